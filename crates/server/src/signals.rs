//! Signals as events: SIGTERM and SIGINT ask to stop, SIGHUP to take up what has changed.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first SIGTERM or SIGINT: finish what is begun, then end.
    Drain,
    /// A later one: end at once.
    Exit,
    /// SIGHUP: read the configuration again and open the logs anew.
    Reload,
}

/// The signals of this process, from when this is made.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    draining: bool,
}

impl Signals {
    /// Begins to listen; from now on these signals no longer end the process by themselves. Needs a tokio runtime.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            draining: false,
        })
    }

    /// The next event. Dropping the future loses none.
    pub async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => return Event::Reload,
        }
        if std::mem::replace(&mut self.draining, true) { Event::Exit } else { Event::Drain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn signals_ask_to_reload_to_drain_and_then_to_exit() {
        let mut signals = Signals::listen().unwrap();
        for (signal, event) in
            [(Signal::HUP, Event::Reload), (Signal::TERM, Event::Drain), (Signal::INT, Event::Exit)]
        {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(signals.next().await, event);
        }
    }
}
