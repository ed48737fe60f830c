//! The address of the admin interface.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sandarac_config::ListenAddress;

/// The address of the admin interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address; callers need a token.
    Tcp(SocketAddr),
}

impl Endpoint {
    /// The name of a default socket in its directory.
    pub(crate) const SOCKET: &str = "admin.sock";

    /// The default socket of a process and its subcommands: in `/run` for root and for the user to whom root gave the directory
    /// there, in the user's runtime directory for other users, or in a directory of their own in the directory for temporary files.
    pub fn standard() -> Endpoint {
        let uid = rustix::process::getuid();
        let is_given = || {
            let metadata = std::fs::symlink_metadata(Endpoint::directory_of_root());
            metadata.is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == uid.as_raw())
        };
        if uid.is_root() || is_given() {
            return Endpoint::of_root();
        }
        let runtime =
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = match runtime {
            Some(runtime) => runtime.join("sandarac"),
            None => std::env::temp_dir().join(format!("sandarac-{}", uid.as_raw())),
        };
        Endpoint::Unix(directory.join(Endpoint::SOCKET))
    }

    /// The default socket of root.
    pub(crate) fn of_root() -> Endpoint {
        Endpoint::Unix(Endpoint::directory_of_root().join(Endpoint::SOCKET))
    }

    /// The directory of [`of_root`](Endpoint::of_root).
    pub(crate) fn directory_of_root() -> &'static Path {
        Path::new("/run/sandarac")
    }

    /// The configured one, or else the default.
    pub fn of(configured: Option<&ListenAddress>) -> Endpoint {
        match configured {
            None => Endpoint::standard(),
            Some(ListenAddress::Unix(path)) => Endpoint::Unix(path.clone()),
            Some(ListenAddress::Tcp(address)) => Endpoint::Tcp(*address),
            Some(ListenAddress::Any(port)) => Endpoint::Tcp((Ipv6Addr::UNSPECIFIED, *port).into()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
            Endpoint::Tcp(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    /// Reads `unix:/path`, a path with a slash in it, or an IP address and port.
    fn from_str(text: &str) -> Result<Endpoint, String> {
        let path = text.strip_prefix("unix:").or_else(|| text.contains('/').then_some(text));
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            return Ok(Endpoint::Unix(path.into()));
        }
        if let Ok(address) = text.parse() {
            return Ok(Endpoint::Tcp(address));
        }
        Err(match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
            Ok(port) => {
                format!("give the address too: \"127.0.0.1:{port}\" reaches no further than this machine")
            }
            Err(_) => format!(
                "expected a socket path (\"/run/sandarac/admin.sock\", or \"./{text}\" for one here) or an address \
                 (\"127.0.0.1:6081\")"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_and_written_alike() {
        for text in ["unix:/run/a.sock", "127.0.0.1:6081", "[::1]:6081"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        assert_eq!("./a.sock".parse(), Ok(Endpoint::Unix("./a.sock".into())));
        assert!(":6081".parse::<Endpoint>().unwrap_err().contains("127.0.0.1:6081"));
        assert!("unix:".parse::<Endpoint>().is_err() && "admin".parse::<Endpoint>().is_err());
        assert!(matches!(Endpoint::standard(), Endpoint::Unix(path) if path.is_absolute()));
    }
}
