//! Where something listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A TCP or Unix socket address, written as the binary and its configuration write it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// Reads `127.0.0.1:80`, `[::1]:80` or `unix:/path`.
    ///
    /// # Panics
    /// On anything else.
    pub fn parse(text: &str) -> Address {
        match text.strip_prefix("unix:") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp(text.parse().unwrap_or_else(|_| panic!("not an address: {text:?}"))),
        }
    }

    /// The port of a TCP address.
    ///
    /// # Panics
    /// If it is a Unix socket.
    pub fn port(&self) -> u16 {
        match self {
            Address::Tcp(address) => address.port(),
            Address::Unix(path) => panic!("{} has no port", path.display()),
        }
    }

    /// The address as the URL of a backend: `http://127.0.0.1:80` or `unix:/path`.
    pub fn url(&self) -> String {
        match self {
            Address::Tcp(address) => format!("http://{address}"),
            Address::Unix(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}
