//! The service manager that started the process, if one did: systemd, or what speaks as it does. It passes listening sockets
//! (sd_listen_fds(3)) and is told how the process is (sd_notify(3)).

use std::fmt::Display;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use sandarac_net::Inherited;
use sd_notify::NotifyState;

use crate::stderr::say;

/// The sockets that were passed. To be called once, before anything else opens descriptors.
#[expect(unsafe_code, reason = "descriptors are passed by number")]
pub(crate) fn sockets() -> io::Result<Inherited> {
    let numbers = sd_notify::listen_fds()?;
    // SAFETY: whoever started the process opened these for it (the environment names its id, and each was found to be open), and
    // nobody else here uses descriptors by number.
    Inherited::new(numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
}

/// The process answers on all its listeners.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("ready")]);
}

/// A reload has begun.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// A reload is over, with this outcome.
pub(crate) fn reloaded(outcome: impl Display) {
    tell(&[NotifyState::Ready, NotifyState::Status(&outcome.to_string())]);
}

/// The process takes no new connections and ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        say(format_args!("sandarac: the service manager cannot be told: {error}"));
    }
}
