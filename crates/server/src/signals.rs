//! Signals as events: SIGTERM and SIGINT stop, SIGHUP reloads, SIGUSR1 reopens logs, SIGUSR2 upgrades.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first SIGTERM or SIGINT: finish exchanges in progress, then end.
    Drain,
    /// A later one: end at once.
    Exit,
    /// SIGHUP: reload the configuration and reopen the logs.
    Reload,
    /// SIGUSR1: reopen the logs.
    Reopen,
    /// SIGUSR2: start the program again, and hand over to it.
    Upgrade,
}

/// The signals of this process, starting when this is created.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user1: Signal,
    user2: Signal,
    draining: bool,
}

impl Signals {
    /// Installs the handlers; from now on these signals no longer end the process by themselves. Needs a tokio runtime.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            draining: false,
        })
    }

    /// The next event. Dropping the future loses no events.
    pub async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => return Event::Reload,
            _ = self.user1.recv() => return Event::Reopen,
            _ = self.user2.recv() => return Event::Upgrade,
        }
        if std::mem::replace(&mut self.draining, true) { Event::Exit } else { Event::Drain }
    }

    /// Waits for an event that stops the process; ignores others.
    pub async fn stop(&mut self) {
        while !matches!(self.next().await, Event::Drain | Event::Exit) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn signals_ask_to_reload_to_drain_and_then_to_exit() {
        let mut signals = Signals::listen().unwrap();
        for (signal, event) in [
            (Signal::HUP, Event::Reload),
            (Signal::USR1, Event::Reopen),
            (Signal::USR2, Event::Upgrade),
            (Signal::TERM, Event::Drain),
            (Signal::INT, Event::Exit),
        ] {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(signals.next().await, event);
        }
    }
}
