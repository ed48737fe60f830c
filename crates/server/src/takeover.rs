//! A process that takes the place of another: what the two say to each other, over a Unix socket.
//!
//! ```text
//! old                                     new
//!  │ Offer, listening sockets ───────────▶ │ reads its configuration, listens
//!  │ ◀─────────────────────────── Ready    │
//!  │ Yours, a stream ────────────────────▶ │ accepts
//!  │ stops accepting, sends its objects ═▶ │
//!  │ Forget (perhaps) ───────────────────▶ │ something was purged
//!  │ ◀─────────────────────── Forgotten    │
//!  │ ◀──────────────────── End (perhaps)   │ there are too many old ones
//!  │ ends with its last connection         │
//! ```
//!
//! If the new process ends before it is ready, or is not ready in time, nothing has changed. Connections that
//! come between `Ready` and `Yours` wait in the queues of their sockets. A message is its length and the
//! number of descriptors, each in four bytes, and JSON; descriptors follow, in groups, each with one byte.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use sandarac_cache::{Forgotten, Key, Tag};
use sandarac_net::Inherited;
use sandarac_tls::TicketSecret;
use serde::{Deserialize, Serialize};

use crate::admin::Endpoint;

/// The environment of a process that takes over from the one that started it; its standard input is the
/// socket.
pub(crate) const TAKES_OVER: &str = "SANDARAC_TAKES_OVER";

/// The longest message in bytes, and the most descriptors.
const MAX_MESSAGE: u32 = 16 << 20;
const MAX_DESCRIPTORS: u32 = 1 << 16;

/// So many descriptors are sent at a time (the system allows 253).
const GROUP: usize = 128;

/// How long the other process may take for a message that it has begun, or that is due.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);

/// How often a wait for messages looks whether it is over.
const LOOK: Duration = Duration::from_millis(100);

/// The messages of one process to the other. Fields may be added: those that a version does not know are
/// ignored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// An [intermediary](crate::intermediary) has to start the new process with the socket that comes with
    /// this.
    Start,
    /// It has.
    Started {
        /// The number of the new process.
        pid: u32,
    },
    /// It cannot.
    CannotStart {
        /// Why.
        why: String,
    },
    /// The old process offers its sockets.
    Offer(Offer),
    /// The new one can serve.
    Ready,
    /// It has to. A socket may come with it, over which the objects of the old one come.
    Yours {
        /// The orders about backends that are in force.
        #[serde(default)]
        orders: Vec<PoolOrders>,
    },
    /// Something was purged at the old one.
    Forget {
        /// What.
        what: What,
        /// Whether it only becomes stale.
        #[serde(default)]
        is_soft: bool,
        /// The number of this message.
        #[serde(default)]
        number: u64,
    },
    /// So it was at the new one.
    Forgotten {
        /// The number of the message that asked for it.
        #[serde(default)]
        number: u64,
    },
    /// The old one has to end.
    End,
}

/// The sockets of a process. Their descriptors come with the message, in this order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The version of the process, and its number.
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// The number of sockets of each listener.
    pub(crate) listeners: Vec<OfferedListener>,
    /// The address of the admin interface, which has one socket.
    #[serde(default)]
    pub(crate) admin: Option<String>,
    /// The processes that it has taken over from and that have not ended, the oldest first: their numbers.
    /// Each has a socket, over which it can be told to end.
    #[serde(default)]
    pub(crate) older: Vec<u32>,
    /// The secret of its session tickets, if it is of its own making.
    #[serde(default)]
    pub(crate) tickets: Secret,
    /// Whether the marks of purges are among the descriptors.
    #[serde(default)]
    pub(crate) has_marks: bool,
}

/// [`Orders`](sandarac_proxy::Orders) about the backends of a pool, as a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolOrders {
    /// The name of the pool.
    pub(crate) pool: String,
    /// Addresses with their weights.
    #[serde(default)]
    pub(crate) added: Vec<(String, u32)>,
    #[serde(default)]
    pub(crate) removed: Vec<String>,
    #[serde(default)]
    pub(crate) drained: Vec<String>,
}

/// [`Forgotten`] as a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    Key([u8; 16]),
    Tags(Vec<u64>),
    Target(u64),
    All,
    Ban(String),
}

impl What {
    pub(crate) fn of(what: &Forgotten) -> What {
        match what {
            Forgotten::Key(key) => What::Key(key.to_bytes()),
            Forgotten::Tags(tags) => What::Tags(tags.iter().map(|tag| tag.bits()).collect()),
            Forgotten::Target(tag) => What::Target(tag.bits()),
            Forgotten::All => What::All,
            Forgotten::Ban(text) => What::Ban(text.clone()),
        }
    }
}

impl From<What> for Forgotten {
    fn from(what: What) -> Forgotten {
        match what {
            What::Key(key) => Forgotten::Key(Key::from_bytes(key)),
            What::Tags(tags) => Forgotten::Tags(tags.into_iter().map(Tag::from_bits).collect()),
            What::Target(tag) => Forgotten::Target(Tag::from_bits(tag)),
            What::All => Forgotten::All,
            What::Ban(text) => Forgotten::Ban(text),
        }
    }
}

/// Bytes that no debug output shows.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(pub(crate) Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// The sockets of one listener.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OfferedListener {
    /// Where it listens, as configured.
    pub(crate) address: String,
    /// The number of its sockets.
    pub(crate) sockets: usize,
    /// Whether they were passed to the process by a service manager.
    #[serde(default)]
    pub(crate) is_passed: bool,
}

/// A number that nobody can know before.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The connection between two processes, of which one takes over from the other.
#[derive(Debug)]
pub(crate) struct Line(UnixStream);

impl From<OwnedFd> for Line {
    fn from(socket: OwnedFd) -> Line {
        Line(socket.into())
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Line {
    /// A line and its other end.
    pub(crate) fn pair() -> io::Result<(Line, OwnedFd)> {
        let (own, other) = UnixStream::pair()?;
        Ok((Line(own), other.into()))
    }

    /// A line to the process that waits at the abstract socket of this name, and its number.
    ///
    /// # Errors
    /// `PermissionDenied` if it is another user's.
    pub(crate) fn to(name: &str) -> io::Result<(Line, u32)> {
        let socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        Line::with_kin(socket)
    }

    /// A line of this socket, if the process at its other end is of this user or of root.
    pub(crate) fn with_kin(socket: UnixStream) -> io::Result<(Line, u32)> {
        let other = rustix::net::sockopt::socket_peercred(&socket)?;
        let own = rustix::process::geteuid();
        if other.uid != own && !other.uid.is_root() && !own.is_root() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is of another user"));
        }
        Ok((Line(socket), other.pid.as_raw_nonzero().get().unsigned_abs()))
    }

    /// Sends a message with copies of descriptors.
    pub(crate) fn send(&self, message: &Message, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.0.set_write_timeout(Some(PROMPT))?;
        let json = serde_json::to_vec(message)?;
        let mut bytes = Vec::with_capacity(8 + json.len());
        bytes.extend_from_slice(&(json.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&(descriptors.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&json);
        (&self.0).write_all(&bytes)?;
        for group in descriptors.chunks(GROUP) {
            let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(GROUP))];
            let mut with = SendAncillaryBuffer::new(&mut space);
            with.push(SendAncillaryMessage::ScmRights(group));
            sendmsg(&self.0, &[IoSlice::new(b".")], &mut with, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    /// The next message with its descriptors, which has to begin within `patience`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the other process has ended, `WouldBlock` if nothing came in time, `InvalidData` if
    /// it speaks another language.
    pub(crate) fn receive(&self, patience: Duration) -> io::Result<(Message, Vec<OwnedFd>)> {
        self.0.set_read_timeout(Some(patience))?;
        let mut first = [0; 8];
        (&self.0).read_exact(&mut first[..1])?;
        self.0.set_read_timeout(Some(PROMPT))?;
        (&self.0).read_exact(&mut first[1..])?;
        let number = |at: usize| u32::from_be_bytes(first[at..at + 4].try_into().expect("four bytes"));
        let (len, count) = (number(0), number(4));
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        if len > MAX_MESSAGE || count > MAX_DESCRIPTORS {
            return Err(invalid(format!("{len} bytes with {count} descriptors are no message")));
        }
        let mut json = vec![0; len as usize];
        (&self.0).read_exact(&mut json)?;
        let mut descriptors = Vec::new();
        while descriptors.len() < count as usize {
            let before = descriptors.len();
            self.receive_group(&mut descriptors)?;
            if descriptors.len() == before {
                return Err(invalid("descriptors are missing".to_owned()));
            }
        }
        let message = serde_json::from_slice(&json).map_err(|error| invalid(error.to_string()))?;
        Ok((message, descriptors))
    }

    /// Waits until the other process says that it serves; fails as [`Line::receive`] does.
    pub(crate) fn expect_ready(&self, patience: Duration) -> io::Result<()> {
        match self.receive(patience)?.0 {
            Message::Ready => Ok(()),
            other => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?} is not due"))),
        }
    }

    fn receive_group(&self, into: &mut Vec<OwnedFd>) -> io::Result<()> {
        let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(GROUP))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let received =
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut with, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                into.extend(rights);
            }
        }
        Ok(())
    }

    /// The next message of the other process; `None` if it has ended, or if `is_over`. Waits as long as that
    /// takes.
    pub(crate) fn next(&self, is_over: impl Fn() -> bool) -> Option<Message> {
        while !is_over() {
            match self.receive(LOOK) {
                Ok((message, _)) => return Some(message),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// The same line once more.
    pub(crate) fn copy(&self) -> io::Result<Line> {
        self.0.try_clone().map(Line)
    }

    /// Whether the other process is still there.
    pub(crate) fn is_held(&self) -> bool {
        let mut byte = [0];
        match rustix::net::recv(&self.0, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, received)) => received > 0,
            Err(error) => error == rustix::io::Errno::AGAIN,
        }
    }
}

/// A process that was taken over from and that ends with its last connection.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) pid: u32,
    pub(crate) line: Line,
}

/// The sockets of the process that has them so far, each listener's with its address as configured there.
#[derive(Debug, Default)]
pub(crate) struct TakenSockets(Mutex<Vec<(String, Inherited)>>);

impl TakenSockets {
    /// Takes those of a listener that is configured like this.
    pub(crate) fn take(&self, address: &str) -> Option<Inherited> {
        let mut sockets = self.0.lock();
        let at = sockets.iter().position(|(configured, _)| configured == address)?;
        Some(sockets.remove(at).1)
    }
}

/// The process from which one takes over, and all that this gets.
pub(crate) struct Takeover {
    pub(crate) from: Older,
    /// Its version.
    pub(crate) version: String,
    /// The processes that it took over from.
    pub(crate) older: Vec<Older>,
    pub(crate) taken: Taken,
}

/// All that a process gets from the one that it takes over from.
#[derive(Default)]
pub(crate) struct Taken {
    /// The sockets that it bound.
    pub(crate) sockets: TakenSockets,
    /// Those that were passed to it.
    pub(crate) passed: Inherited,
    /// The socket of its admin interface.
    pub(crate) admin: Option<(Endpoint, OwnedFd)>,
    /// The secret of its session tickets.
    pub(crate) tickets: Option<TicketSecret>,
    /// The marks of purges.
    pub(crate) marks: Option<OwnedFd>,
}

impl Takeover {
    /// The offer of the process that started this one, if that is why it was started. MUST be called once,
    /// before standard input is used.
    pub(crate) fn of_parent() -> io::Result<Option<Takeover>> {
        if std::env::var_os(TAKES_OVER).is_none() {
            return Ok(None);
        }
        let line = Line::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        Takeover::over(line).map(Some)
    }

    /// The offer of a process over `line`.
    pub(crate) fn over(line: Line) -> io::Result<Takeover> {
        let (message, mut descriptors) = line.receive(PROMPT)?;
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let Message::Offer(offer) = message else { return Err(invalid("it offers nothing")) };
        let mut take = |count: usize| match count <= descriptors.len() {
            true => Ok(descriptors.drain(..count).collect::<Vec<OwnedFd>>()),
            false => Err(invalid("it offers more sockets than it sends")),
        };
        let (mut sockets, mut passed) = (Vec::new(), Vec::new());
        for listener in &offer.listeners {
            let group = take(listener.sockets)?;
            match listener.is_passed {
                true => passed.push(group),
                false => sockets.push((listener.address.clone(), Inherited::grouped([group])?)),
            }
        }
        let admin = match &offer.admin {
            Some(address) => {
                let endpoint = address.parse().map_err(|what: String| invalid(&what))?;
                take(1)?.pop().map(|socket| (endpoint, socket))
            }
            None => None,
        };
        let mut older = Vec::new();
        for pid in offer.older {
            older.extend(take(1)?.pop().map(|socket| Older { pid, line: socket.into() }));
        }
        let marks = if offer.has_marks { take(1)?.pop() } else { None };
        Ok(Takeover {
            from: Older { pid: offer.pid, line },
            version: offer.version,
            older,
            taken: Taken {
                sockets: TakenSockets(Mutex::new(sockets)),
                passed: Inherited::grouped(passed)?,
                admin,
                tickets: TicketSecret::of(&offer.tickets.0),
                marks,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_message_comes_with_its_descriptors() {
        let (line, other) = Line::pair().unwrap();
        let other = Line::from(other);
        let files: Vec<std::fs::File> = (0..300).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let offer = Offer { pid: 7, older: vec![1, 2], ..Offer::default() };
        let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        line.send(&Message::Offer(offer), &descriptors).unwrap();
        line.send(&Message::Yours { orders: Vec::new() }, &[]).unwrap();
        let (message, received) = other.receive(PROMPT).unwrap();
        assert!(matches!(message, Message::Offer(Offer { pid: 7, .. })));
        assert_eq!(received.len(), 300);
        assert!(received.iter().all(|one| files.iter().all(|file| file.as_raw_fd() != one.as_raw_fd())));
        assert!(matches!(other.receive(PROMPT).unwrap(), (Message::Yours { .. }, _)));
        assert!(other.is_held());
        drop(line);
        assert!(!other.is_held());
        assert_eq!(other.receive(PROMPT).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_message_is_an_error_and_nothing_is_reserved_for_it() {
        for bytes in [
            &[0xff; 8][..],
            b"GET / HTTP/1.1\r\n\r\n",
            b"\0\0\0\x05\0\0\0\0Hello",
            b"\0\0\0\x02\0\0\0\x01{}.",
        ] {
            let (line, other) = Line::pair().unwrap();
            (&line.0).write_all(bytes).unwrap();
            let error = Line::from(other).receive(PROMPT).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}: {error}");
        }
    }
}
