//! The address and the limits of a connection.

use sandarac_wire::memcached::Login;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// TCP, over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server.
    pub address: ServerAddress,
    /// The login, if the server wants one.
    pub login: Option<Login>,
    /// The time limit of connecting, logging in and probing together.
    pub connect_timeout: Duration,
    /// The bounds of the queue.
    pub limits: QueueLimits,
}

/// The bounds of what waits for a server. An operation that would exceed one fails with
/// [`super::Unavailable::QueueFull`].
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Operations that are not answered, including those whose callers have gone.
    pub operations: usize,
    /// Bytes of requests that the system has not taken yet. MUST exceed the largest value to be stored.
    pub bytes: usize,
}

impl Default for QueueLimits {
    /// 1024 operations, far more than one core has in flight at a server that answers within a millisecond;
    /// 16 MiB, which is twice the largest entry.
    fn default() -> QueueLimits {
        QueueLimits { operations: 1024, bytes: 16 * 1024 * 1024 }
    }
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerAddress::Tcp(address) => write!(f, "{address}"),
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
