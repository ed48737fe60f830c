//! Listener addresses, and the sets of networks that listeners trust.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::fmt;
use std::path::PathBuf;

use sandarac_balance::Address;

use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// A port on every address of the machine, IPv6 and IPv4.
    Any(u16),
    /// One address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix stream socket.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Any(port) => write!(f, ":{port}"),
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Text for ListenAddress {
    fn form() -> Kind {
        Kind::Text {
            name: "address",
            form: "an address to listen on",
            examples: &[":8080", "127.0.0.1:8080", "[::1]:80", "unix:/run/sandarac.sock"],
        }
    }

    fn from_text(text: &str) -> Result<ListenAddress, Complaint> {
        let text = text.trim();
        let path = text.strip_prefix("unix:").or_else(|| text.starts_with(['/', '.']).then_some(text));
        if let Some(path) = path {
            // The length of sun_path in sockaddr_un, less the NUL that ends it.
            return if path.is_empty() || path.len() > 107 || path.contains('\0') {
                Err(Complaint::new(format!("{text:?} is not the path of a socket, of 1 to 107 bytes")))
            } else {
                Ok(ListenAddress::Unix(PathBuf::from(path)))
            };
        }
        if let Some(Ok(port)) = text.strip_prefix(':').map(str::parse) {
            return Ok(ListenAddress::Any(port));
        }
        if let Ok(address) = text.parse() {
            return Ok(ListenAddress::Tcp(address));
        }
        let complaint = Complaint::new(format!("{text:?} is not {}", ListenAddress::form().words()));
        Err(match text.rsplit_once(':') {
            _ if text.parse::<u16>().is_ok() => complaint.help(format!("did you mean \":{text}\"?")),
            _ if text.parse::<Ipv4Addr>().is_ok() => complaint.help(format!("say the port: \"{text}:8080\"")),
            _ if text.parse::<Ipv6Addr>().is_ok() => {
                complaint.help(format!("brackets and a port: \"[{text}]:8080\""))
            }
            Some(("*", port)) => complaint.help(format!("did you mean \":{port}\"?")),
            Some(("localhost", port)) => complaint.help(format!("did you mean \"127.0.0.1:{port}\"?")),
            _ if text.contains('/') && !text.contains("://") => {
                complaint.help(format!("did you mean \"./{text}\"?"))
            }
            _ => complaint.help(":PORT, IP:PORT, [IPV6]:PORT or unix:/PATH; names are not looked up"),
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// The mode of the file of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Text for Mode {
    fn form() -> Kind {
        Kind::Text { name: "octal mode", form: "an octal mode from 0000 to 0777", examples: &["0660"] }
    }

    fn from_text(text: &str) -> Result<Mode, Complaint> {
        let octal = text.strip_prefix("0o").unwrap_or(text);
        match u32::from_str_radix(octal, 8) {
            Ok(mode) if mode <= 0o777 && !octal.starts_with('+') => Ok(Mode(mode)),
            _ => Err(Complaint::new(format!("{text:?} is not {}", Mode::form().words()))),
        }
    }

    fn text(&self) -> String {
        format!("{:04o}", self.0)
    }
}

/// Defines the name of an account of the system: of a user, or of a group of users.
macro_rules! account {
    ($(#[$doc:meta])* $account:ident, $name:literal, $form:literal, $examples:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $account(Box<str>);

        impl $account {
            /// The name or the number.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Text for $account {
            fn form() -> Kind {
                Kind::Text { name: $name, form: $form, examples: $examples }
            }

            fn from_text(text: &str) -> Result<$account, Complaint> {
                let is_name = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.@\\$".contains(c));
                match is_name && text.len() <= 256 {
                    true => Ok($account(text.into())),
                    false => Err(Complaint::new(format!("{text:?} is not {}", $account::form().words()))),
                }
            }

            fn text(&self) -> String {
                self.0.to_string()
            }
        }
    };
}

account! {
    /// A group of users, by name or by number.
    Group, "group", "the name or the number of a group of users", &["www-data", "33"]
}

account! {
    /// A user, by name or by number.
    User, "user", "the name or the number of a user", &["www-data", "33"]
}

/// A network, as `10.0.0.0/8`, a single address, or `unix` for peers on a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// Addresses that begin with the same bits.
    Ip {
        /// The first address.
        first: IpAddr,
        /// The number of equal bits.
        bits: u8,
    },
    /// Any peer on a Unix socket.
    Unix,
}

impl Network {
    /// Whether `peer` is in it; `None` is a peer on a Unix socket. IPv4 addresses mapped into IPv6 count as IPv4.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        match (self, peer.map(|peer| peer.to_canonical())) {
            (Network::Unix, None) => true,
            (Network::Ip { first: IpAddr::V4(first), bits }, Some(IpAddr::V4(peer))) => {
                (first.to_bits() ^ peer.to_bits()).checked_shr(32 - u32::from(*bits)).unwrap_or(0) == 0
            }
            (Network::Ip { first: IpAddr::V6(first), bits }, Some(IpAddr::V6(peer))) => {
                (first.to_bits() ^ peer.to_bits()).checked_shr(128 - u32::from(*bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// The peers that are in both, if there are any.
    pub fn intersection(&self, other: &Network) -> Option<Network> {
        match (self, other) {
            (Network::Unix, Network::Unix) => Some(Network::Unix),
            (Network::Ip { first: one, bits: narrow }, Network::Ip { bits: wide, .. })
                if narrow >= wide && other.contains(Some(*one)) =>
            {
                Some(*self)
            }
            (Network::Ip { .. }, Network::Ip { first, .. }) if self.contains(Some(*first)) => Some(*other),
            _ => None,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Ip { first, bits } if *bits == width(*first) => write!(f, "{first}"),
            Network::Ip { first, bits } => write!(f, "{first}/{bits}"),
            Network::Unix => f.write_str("unix"),
        }
    }
}

fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

impl Text for Network {
    fn form() -> Kind {
        Kind::Text {
            name: "network",
            form: "a network, an IP address or \"unix\"",
            examples: &["10.0.0.0/8", "127.0.0.1", "2001:db8::/32", "unix"],
        }
    }

    fn from_text(text: &str) -> Result<Network, Complaint> {
        let text = text.trim();
        if text == "unix" {
            return Ok(Network::Unix);
        }
        let not = || Complaint::new(format!("{text:?} is not {}", Network::form().words()));
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let ip: IpAddr = address.parse().map_err(|_| match address {
            "localhost" => not().help("\"127.0.0.1\", \"::1\""),
            _ => not(),
        })?;
        let bits = match bits {
            None => width(ip),
            Some(bits) => bits.parse().ok().filter(|&bits| bits <= width(ip)).ok_or_else(not)?,
        };
        let first = match ip {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(
                ip.to_bits() & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0),
            )),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(
                ip.to_bits() & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0),
            )),
        };
        if first != ip {
            let complaint = Complaint::new(format!("{text:?} has bits set past the first {bits}"));
            return Err(complaint.help(format!("did you mean \"{first}/{bits}\"?")));
        }
        Ok(Network::Ip { first, bits })
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A name server: an IP address, and a port where it isn't 53.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameServer(pub SocketAddr);

impl NameServer {
    const PORT: u16 = 53;
}

impl Text for NameServer {
    fn form() -> Kind {
        Kind::Text {
            name: "IP address with or without a port",
            form: "the IP address of a name server",
            examples: &["10.0.0.2", "127.0.0.1:5353", "[2001:db8::53]:53"],
        }
    }

    fn from_text(text: &str) -> Result<NameServer, Complaint> {
        let text = text.trim();
        let server = text.parse().or_else(|_| text.parse().map(|ip| SocketAddr::new(ip, NameServer::PORT)));
        server.map(NameServer).map_err(|_| {
            Complaint::new(format!("{text:?} is not {}", NameServer::form().words()))
                .help("names are not looked up here")
        })
    }

    fn text(&self) -> String {
        match self.0 {
            server if server.port() == NameServer::PORT => server.ip().to_string(),
            server => server.to_string(),
        }
    }
}

/// Whether `peer` is in one of `networks`; `None` is a peer on a Unix socket.
pub fn contains(networks: &[Network], peer: Option<IpAddr>) -> bool {
    networks.iter().any(|network| network.contains(peer))
}

impl Text for Address {
    fn form() -> Kind {
        Kind::Text {
            name: "backend address",
            form: "a backend address",
            examples: &["http://127.0.0.1:8000", "unix:/run/app.sock"],
        }
    }

    fn from_text(text: &str) -> Result<Address, Complaint> {
        text.parse::<Address>().map_err(|error| {
            let complaint = Complaint::new(error.to_string());
            match error.suggestion() {
                Some(meant) => complaint.help(format!("did you mean \"{meant}\"?")),
                None => complaint,
            }
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_to_listen_on_are_read_and_written_alike() {
        for text in [":8080", "127.0.0.1:0", "[::1]:80", "unix:/run/a.sock"] {
            assert_eq!(ListenAddress::from_text(text).unwrap().text(), text);
        }
        assert_eq!(ListenAddress::from_text("/a").unwrap(), ListenAddress::Unix("/a".into()));
    }

    #[test]
    fn other_addresses_get_a_suggestion() {
        for (text, meant) in [
            ("8080", "\":8080\""),
            ("*:80", "\":80\""),
            ("localhost:80", "127.0.0.1:80"),
            ("10.0.0.1", "10.0.0.1:8080"),
            ("::1", "[::1]:8080"),
            (":70000", ":PORT"),
            ("http://a", ":PORT"),
        ] {
            let help = ListenAddress::from_text(text).unwrap_err().help.unwrap();
            assert!(help.contains(meant), "{text}: {help}");
        }
        assert!(ListenAddress::from_text("unix:").is_err());
    }

    #[test]
    fn networks_hold_what_shares_their_bits() {
        let holds = |network: &str, peer: &str| {
            Network::from_text(network).unwrap().contains((peer != "unix").then(|| peer.parse().unwrap()))
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && holds("::/0", "::5"));
        assert!(!holds("0.0.0.0/0", "::5") && !holds("::/0", "unix"));
        assert!(holds("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(holds("2001:db8::/33", "2001:db8:7fff::1") && !holds("2001:db8::/33", "2001:db8:8000::1"));
        assert!(holds("unix", "unix") && !holds("unix", "127.0.0.1"));
        assert_eq!(
            Network::from_text("10.0.0.1/8").unwrap_err().help.unwrap(),
            "did you mean \"10.0.0.0/8\"?"
        );
        for text in ["", "/8", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0.0/-1", "a"] {
            assert!(Network::from_text(text).is_err(), "{text}");
        }
    }
}
