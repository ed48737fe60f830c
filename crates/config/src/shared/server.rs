//! The address of a server of the shared tier.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use sandarac_balance::{Address, Endpoint, Host};

use crate::pool::Server;
use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

/// A server of the shared tier. Names are not resolved here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SharedServer {
    /// A host and a TCP port.
    Tcp(Server),
    /// A Unix stream socket, by absolute path.
    Unix(PathBuf),
}

impl SharedServer {
    /// The default port of memcached.
    const PORT: u16 = 11_211;

    /// Whether only processes on this machine can reach it. Of all names, only `localhost` is trusted to be
    /// local.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            SharedServer::Unix(_) => true,
            SharedServer::Tcp(Server { host: Host::Ip(ip), .. }) => ip.to_canonical().is_loopback(),
            SharedServer::Tcp(Server { host: Host::Name(name), .. }) => {
                name.strip_suffix('.').unwrap_or(name) == "localhost"
            }
        }
    }
}

impl fmt::Display for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedServer::Tcp(server) => server.fmt(f),
            SharedServer::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for SharedServer {
    type Err = String;

    /// Reads a server as the file writes it. An error is the mistake, and a suggestion.
    fn from_str(text: &str) -> Result<SharedServer, String> {
        SharedServer::from_text(text).map_err(Complaint::into_line)
    }
}

impl Text for SharedServer {
    fn form() -> Kind {
        Kind::Text {
            name: "server address",
            form: "the address of a server",
            examples: &[
                "10.0.0.1:11211",
                "[2001:db8::1]:11211",
                "cache1.internal",
                "unix:/run/memcached.sock",
            ],
        }
    }

    fn from_text(text: &str) -> Result<SharedServer, Complaint> {
        let text = text.trim();
        let not = || Complaint::new(format!("{text:?} is not {}", SharedServer::form().words()));
        if text.starts_with("unix:") {
            let address: Address = text.parse().map_err(|error| {
                let complaint = Complaint::new(format!("{text:?}: {error}"));
                complaint.help("write the path from the root, as \"unix:/run/memcached.sock\"")
            })?;
            return match address.endpoint() {
                Endpoint::Unix(path) => Ok(SharedServer::Unix(path.clone())),
                Endpoint::Tcp(..) => Err(not()),
            };
        }
        if text.starts_with('/') {
            return Err(not().help(format!("did you mean \"unix:{text}\"?")));
        }
        let server = Server::read(text, SharedServer::PORT)
            .map_err(|complaint| Complaint { help: complaint.help.or_else(|| suggestion(text)), ..not() })?;
        match server.host {
            Host::Ip(ip) if ip.is_unspecified() || ip.is_multicast() => {
                let port = server.port;
                Err(not().help(format!("{ip} is no single machine; this machine is \"127.0.0.1:{port}\"")))
            }
            _ => Ok(SharedServer::Tcp(server)),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// What may be wrong in a text that is no address.
fn suggestion(text: &str) -> Option<String> {
    if text.contains('/') {
        return Some("a Unix socket is a path from the root, as \"unix:/run/memcached.sock\"".to_owned());
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("did you mean \"[{text}]:{}\"?", SharedServer::PORT));
    }
    let (host, port) = text.rsplit_once(':')?;
    if host.parse::<Ipv6Addr>().is_ok() && port.parse::<u16>().is_ok() {
        return Some(format!("did you mean \"[{host}]:{port}\"?"));
    }
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    (is_number && !is_port).then(|| format!("the port is a number from 1 to 65535, not {port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, written, local) in [
            ("10.0.0.1:11211", "10.0.0.1:11211", false),
            ("10.0.0.1", "10.0.0.1:11211", false),
            ("[2001:db8::0:1]:11212", "[2001:db8::1]:11212", false),
            ("Cache1.Example:11211", "cache1.example:11211", false),
            ("localhost.example:1", "localhost.example:1", false),
            ("127.8.0.1:1", "127.8.0.1:1", true),
            ("[::1]", "[::1]:11211", true),
            ("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true),
            ("localhost", "localhost:11211", true),
            (" unix:/run/memcached.sock", "unix:/run/memcached.sock", true),
        ] {
            let server: SharedServer = text.parse().unwrap();
            assert_eq!(server.to_string(), written);
            assert_eq!(server.is_local(), local, "{text}");
            assert_eq!(written.parse(), Ok(server));
        }
    }

    #[test]
    fn other_addresses_are_refused_with_a_suggestion() {
        for (text, help) in [
            ("memcached://10.0.0.1:11211", Some("did you mean \"10.0.0.1:11211\"?")),
            ("/run/memcached.sock", Some("did you mean \"unix:/run/memcached.sock\"?")),
            ("0.0.0.0:11211", Some("0.0.0.0 is no single machine; this machine is \"127.0.0.1:11211\"")),
            ("::1", Some("did you mean \"[::1]:11211\"?")),
            ("2001:db8::1:11211", Some("did you mean \"[2001:db8::1]:11211\"?")),
            ("", None),
            ("a:0", Some("the port is a number from 1 to 65535, not 0")),
            ("a:65536", Some("the port is a number from 1 to 65535, not 65536")),
            ("a b", None),
            ("user@a", None),
            ("a/b", Some("a Unix socket is a path from the root, as \"unix:/run/memcached.sock\"")),
            ("unix:run/a", Some("write the path from the root, as \"unix:/run/memcached.sock\"")),
        ] {
            let complaint = SharedServer::from_text(text).unwrap_err();
            assert_eq!(complaint.help.as_deref(), help, "{text}: {}", complaint.message);
            assert!(complaint.message.contains(&format!("{text:?}")), "{}", complaint.message);
        }
    }
}
