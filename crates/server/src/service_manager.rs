//! The service manager that started the process, if any: systemd, or a compatible one. It passes listening sockets
//! (sd_listen_fds(3)) and receives the state of the process (sd_notify(3)).

use std::fmt::Display;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sandarac_net::Inherited;
use sd_notify::NotifyState;

use crate::stderr::print_line;

/// How long the service manager may take to accept a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The sockets that were passed. MUST be called once, before anything else opens descriptors.
#[expect(unsafe_code, reason = "descriptors are passed by number")]
pub(crate) fn sockets() -> io::Result<Inherited> {
    let numbers = sd_notify::listen_fds().map_err(|error| {
        io::Error::new(error.kind(), format!("LISTEN_FDS names no open descriptors: {error}"))
    })?;
    // SAFETY: the parent process opened these for this one (the environment names its id, and each was found to be
    // open), and no other code here uses descriptors by number.
    Inherited::new(numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Whether there is one that is told of the state of the process.
pub(crate) fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// The process accepts requests on all its listeners.
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

/// A reload has ended, with this outcome.
pub(crate) fn reloaded(outcome: impl Display) {
    let text = outcome.to_string();
    // A second line would be a second message.
    tell(&[NotifyState::Ready, NotifyState::Status(text.lines().next().unwrap_or_default())]);
}

/// The process accepts no new connections and ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// Another process serves from now on.
pub(crate) fn handed_over(pid: u32) -> Option<Noted> {
    tell(&[NotifyState::MainPid(pid)]);
    let place = std::env::var_os("NOTIFY_SOCKET")?;
    let barrier = || {
        let (open, shut) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        send(place.as_bytes(), b"BARRIER=1\n", Some(shut.as_fd()))?;
        Ok::<_, io::Error>(Noted(open))
    };
    barrier().ok()
}

/// Shows when the service manager has read all messages so far: it closes the other end (sd_notify_barrier(3)). A process
/// that ends before that is not known as the one that was replaced, and the service would count as ended.
pub(crate) struct Noted(OwnedFd);

impl Noted {
    /// How long the service manager may take. It may be reading all its units anew.
    const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

    /// Waits for that; blocks the thread.
    pub(crate) fn wait(self) {
        let mut files = [PollFd::new(&self.0, PollFlags::empty())];
        while poll(&mut files, Some(&Noted::PATIENCE)) == Err(rustix::io::Errno::INTR) {}
    }
}

fn tell(state: &[NotifyState<'_>]) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let lines: String = state.iter().map(|state| format!("{state}\n")).collect();
    if let Err(error) = send(place.as_bytes(), lines.as_bytes(), None) {
        print_line(format_args!("sandarac: cannot notify the service manager: {error}"));
    }
}

/// Sends a message, perhaps with a descriptor, to the socket at `place`: a path, or `@` and the name of an abstract socket. It
/// does not wait for long: a receiver that does not read must not block the process.
fn send(place: &[u8], message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    let address = match place {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    socket.connect_addr(&address)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        with.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(&socket, &[IoSlice::new(message)], &mut with, SendFlags::NOSIGNAL)?;
    Ok(())
}
