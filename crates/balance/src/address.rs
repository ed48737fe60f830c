//! The address of a backend: `http://host:port`, `https://host:port` or `unix:/path`; `h2://host:port` or `h2+unix:/path` if it
//! speaks HTTP/2 in clear; `fcgi://host:port` or `fcgi+unix:/path` if it speaks FastCGI.

use core::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The address of a backend, as configured. Names are not resolved here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    endpoint: Endpoint,
    scheme: Scheme,
    authority: Box<str>,
}

/// What is spoken over the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scheme {
    /// HTTP/1.1 in clear.
    Http,
    /// HTTP/2 in clear, with prior knowledge (RFC 9113 §3.3).
    Http2,
    /// TLS, which negotiates the protocol in it.
    Https,
    /// FastCGI.
    FastCgi,
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A host and a TCP port.
    Tcp(Host, u16),
    /// A Unix stream socket, by absolute path.
    Unix(PathBuf),
}

/// A host by name or by number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name to be resolved, in lower case.
    Name(Box<str>),
    /// An IP address.
    Ip(IpAddr),
}

impl Address {
    /// What to connect to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether connections are encrypted.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// Whether the backend is known to speak HTTP/2 in clear.
    pub fn is_http2(&self) -> bool {
        self.scheme == Scheme::Http2
    }

    /// Whether the backend speaks FastCGI instead of HTTP.
    pub fn is_fastcgi(&self) -> bool {
        self.scheme == Scheme::FastCgi
    }

    /// The same place, over FastCGI instead of HTTP in clear.
    pub fn over_fastcgi(self) -> Address {
        match &self.endpoint {
            Endpoint::Tcp(host, port) if !self.is_tls() => {
                Address::tcp(host.clone(), Some(*port), Scheme::FastCgi)
            }
            Endpoint::Unix(path) => Address::unix(path, Scheme::FastCgi),
            Endpoint::Tcp(..) => self,
        }
    }

    /// The `Host` value of the balancer's own requests, such as checks: host and port, without the port if it
    /// is that of the scheme; `localhost` for a Unix socket.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The Unix socket at `path`, which MUST be absolute.
    fn unix(path: &Path, scheme: Scheme) -> Address {
        Address { endpoint: Endpoint::Unix(path.to_path_buf()), scheme, authority: "localhost".into() }
    }

    fn tcp(host: Host, port: Option<u16>, scheme: Scheme) -> Address {
        let usual = scheme.usual_port();
        let port = port.unwrap_or(usual);
        let name = match &host {
            Host::Name(name) => name.to_string(),
            Host::Ip(IpAddr::V4(ip)) => ip.to_string(),
            Host::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        let authority = if port == usual { name } else { format!("{name}:{port}") };
        Address { endpoint: Endpoint::Tcp(host, port), scheme, authority: authority.into() }
    }
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Http, Scheme::Http2, Scheme::Https, Scheme::FastCgi];

    const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Http2 => "h2",
            Scheme::Https => "https",
            Scheme::FastCgi => "fcgi",
        }
    }

    fn of(name: &str) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }

    /// The port of an address without one. FastCGI has none of its own; php-fpm's is 9000.
    const fn usual_port(self) -> u16 {
        match self {
            Scheme::Http | Scheme::Http2 => 80,
            Scheme::Https => 443,
            Scheme::FastCgi => 9000,
        }
    }
}

/// The names that other servers have for schemes.
const OTHER_SCHEMES: [(&str, Scheme); 4] =
    [("fastcgi", Scheme::FastCgi), ("grpc", Scheme::Http2), ("h2c", Scheme::Http2), ("grpcs", Scheme::Https)];

impl std::fmt::Display for Address {
    /// Writes the address in the form that [`Address::from_str`] reads.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp(..) => write!(f, "{}://{}", self.scheme.name(), self.authority),
            Endpoint::Unix(path) if self.is_http2() => write!(f, "h2+unix:{}", path.display()),
            Endpoint::Unix(path) if self.is_fastcgi() => write!(f, "fcgi+unix:{}", path.display()),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why a text is not a backend address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// An empty text.
    Empty,
    /// Without `http://` or `unix:`; holds the probable address.
    NoScheme(String),
    /// Some other scheme, and the address that was probably meant.
    UnknownScheme(String, Option<String>),
    /// `user:password@`.
    UserInfo,
    /// A path, query or fragment after the authority; holds the address without it.
    Path(String),
    /// Not a host name, an IPv4 address or an IPv6 address in brackets.
    Host(String),
    /// Not a port from 1 to 65535.
    Port(String),
    /// A Unix socket path that is not absolute.
    RelativePath(String),
    /// A Unix socket path with more bytes than the system allows (107), or with control characters.
    SocketPath,
}

impl AddressError {
    /// The probable intent, if there is one.
    pub fn suggestion(&self) -> Option<&str> {
        match self {
            AddressError::NoScheme(meant)
            | AddressError::Path(meant)
            | AddressError::UnknownScheme(_, Some(meant)) => Some(meant),
            _ => None,
        }
    }
}

impl std::fmt::Display for AddressError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AddressError::Empty => f.write_str("a backend address is empty"),
            AddressError::NoScheme(_) => f.write_str("a backend address starts with http:// or unix:"),
            AddressError::UnknownScheme(scheme, _) => {
                write!(
                    f,
                    "backends are reached by http://, https://, h2://, fcgi://, unix:, h2+unix: or fcgi+unix:, not by {scheme}"
                )
            }
            AddressError::UserInfo => f.write_str("a backend address holds no user name or password"),
            AddressError::Path(_) => f.write_str(
                "a backend address holds no path: requests are forwarded with the path they came with",
            ),
            AddressError::Host(host) => {
                write!(f, "{host:?} is not a host name, an IPv4 address or an IPv6 address in brackets")
            }
            AddressError::Port(port) => write!(f, "{port:?} is not a port from 1 to 65535"),
            AddressError::RelativePath(path) => write!(f, "the socket path {path:?} is not absolute"),
            AddressError::SocketPath => {
                f.write_str("a socket path has at most 107 bytes, and no control characters")
            }
        }
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    /// Parses `http://host:port`, `http://host` (port 80), `http://[v6]:port`, the same with `https` (port 443), `h2` (port 80)
    /// or `fcgi` (port 9000), `unix:/path`, `h2+unix:/path`, or `fcgi+unix:/path`. One `/` after the authority is allowed.
    fn from_str(text: &str) -> Result<Address, AddressError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return socket(path, Scheme::Http);
        }
        if let Some(path) = text.strip_prefix("h2+unix:") {
            return socket(path, Scheme::Http2);
        }
        if let Some(path) = text.strip_prefix("fcgi+unix:") {
            return socket(path, Scheme::FastCgi);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(AddressError::NoScheme(if text.starts_with('/') {
                format!("unix:{text}")
            } else {
                format!("http://{text}")
            }));
        };
        let Some(scheme) = Scheme::of(scheme) else {
            let meant = OTHER_SCHEMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(scheme));
            let path = rest.strip_prefix("unix:").or(rest.starts_with('/').then_some(rest));
            let meant = meant.map(|(_, ours)| match path {
                Some(path) => format!("{}+unix:{path}", ours.name()),
                None => format!("{}://{rest}", ours.name()),
            });
            return Err(AddressError::UnknownScheme(format!("{scheme}://"), meant));
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, after) = rest.split_at(end);
        if authority.contains('@') {
            return Err(AddressError::UserInfo);
        }
        if !matches!(after, "" | "/") {
            return Err(AddressError::Path(format!("{}://{authority}", scheme.name())));
        }
        let (host, port) = split_port(authority)?;
        Ok(Address::tcp(host, port, scheme))
    }
}

fn socket(path: &str, scheme: Scheme) -> Result<Address, AddressError> {
    // The length of sun_path in sockaddr_un, less the NUL that ends it.
    const LONGEST: usize = 107;
    if !path.starts_with('/') {
        return Err(AddressError::RelativePath(path.to_owned()));
    }
    // Line breaks and terminal control characters would take effect wherever the address is shown.
    if path.len() > LONGEST || path.contains(char::is_control) {
        return Err(AddressError::SocketPath);
    }
    Ok(Address::unix(Path::new(path), scheme))
}

fn split_port(authority: &str) -> Result<(Host, Option<u16>), AddressError> {
    let bad_host = || AddressError::Host(authority.to_owned());
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or_else(bad_host)?;
        let ip: Ipv6Addr = inside.parse().map_err(|_| bad_host())?;
        let port = match after {
            "" => None,
            _ => Some(after.strip_prefix(':').ok_or_else(bad_host)?),
        };
        (Host::Ip(ip.into()), port)
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        // Several colons without brackets are an IPv6 address whose brackets are missing.
        if port.is_some_and(|port| port.contains(':')) || !is_host(host) {
            return Err(bad_host());
        }
        (host.parse().map_or_else(|_| Host::Name(host.to_ascii_lowercase().into()), Host::Ip), port)
    };
    match port {
        None => Ok((host, None)),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => match port.parse() {
            Ok(number) if number > 0 => Ok((host, Some(number))),
            _ => Err(AddressError::Port(port.to_owned())),
        },
        Some(port) => Err(AddressError::Port(port.to_owned())),
    }
}

/// Whether `host` is an IPv4 address or a host name: labels of letters, digits, `-` and `_` (which container
/// networks use), 63 bytes each, 253 in all. Only an IPv4 address may end in a label of digits alone.
fn is_host(host: &str) -> bool {
    let labels = host.strip_suffix('.').unwrap_or(host);
    let named = labels.len() <= 253
        && labels.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
    let numeric =
        labels.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    named && (!numeric || host.parse::<core::net::Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_of_other_servers_are_understood() {
        for (text, meant) in [
            ("fastcgi://127.0.0.1:9000", "fcgi://127.0.0.1:9000"),
            ("fastcgi://unix:/run/php/php-fpm.sock", "fcgi+unix:/run/php/php-fpm.sock"),
            ("grpc://127.0.0.1:50051", "h2://127.0.0.1:50051"),
            ("grpc:///run/a.sock", "h2+unix:/run/a.sock"),
            ("GRPCS://a", "https://a"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap_err().suggestion(), Some(meant));
            assert!(meant.parse::<Address>().is_ok());
        }
    }

    fn read(text: &str) -> Result<Address, AddressError> {
        text.parse()
    }

    #[test]
    fn addresses_with_tls_are_read_and_written_alike() {
        for (text, written, authority) in [
            ("https://app.internal", "https://app.internal", "app.internal"),
            ("https://app.internal:443/", "https://app.internal", "app.internal"),
            ("https://app.internal:80", "https://app.internal:80", "app.internal:80"),
            ("https://[::1]:8443", "https://[::1]:8443", "[::1]:8443"),
        ] {
            let address = read(text).unwrap();
            assert!(address.is_tls());
            assert_eq!((address.to_string().as_str(), address.authority()), (written, authority));
            assert_eq!(read(written).unwrap(), address);
        }
        let plain = read("http://app.internal:443").unwrap();
        assert!(!plain.is_tls() && plain != read("https://app.internal").unwrap());
    }

    #[test]
    fn addresses_of_backends_that_speak_http_2_are_read_and_written_alike() {
        for (text, written, authority) in [
            ("h2://app.internal:50051/", "h2://app.internal:50051", "app.internal:50051"),
            ("H2://app.internal", "h2://app.internal", "app.internal"),
            ("h2+unix:/run/app.sock", "h2+unix:/run/app.sock", "localhost"),
        ] {
            let address = read(text).unwrap();
            assert!(address.is_http2() && !address.is_tls());
            assert_eq!((address.to_string().as_str(), address.authority()), (written, authority));
            assert_eq!(read(written).unwrap(), address);
        }
        assert_ne!(read("h2://app:80").unwrap(), read("http://app:80").unwrap());
        assert_eq!(read("h2+unix:app.sock"), Err(AddressError::RelativePath("app.sock".to_owned())));
    }

    #[test]
    fn addresses_of_fastcgi_are_read_and_written_alike() {
        for (text, written, authority) in [
            ("fcgi://php.internal", "fcgi://php.internal", "php.internal"),
            ("fcgi://127.0.0.1:9000", "fcgi://127.0.0.1", "127.0.0.1"),
            ("FCGI://[::1]:9001/", "fcgi://[::1]:9001", "[::1]:9001"),
            ("fcgi+unix:/run/php/php-fpm.sock", "fcgi+unix:/run/php/php-fpm.sock", "localhost"),
        ] {
            let address = read(text).unwrap();
            assert!(address.is_fastcgi() && !address.is_tls());
            assert_eq!((address.to_string().as_str(), address.authority()), (written, authority));
            assert_eq!(read(written).unwrap(), address);
        }
        assert_ne!(read("unix:/a"), read("fcgi+unix:/a"));
        for (found, meant) in [
            ("unix:/a", "fcgi+unix:/a"),
            ("http://a:9000", "fcgi://a"),
            ("fcgi://a", "fcgi://a"),
            ("https://a", "https://a"),
        ] {
            assert_eq!(read(found).unwrap().over_fastcgi(), read(meant).unwrap());
        }
        assert_eq!(read("fcgi://a").unwrap().endpoint(), &Endpoint::Tcp(Host::Name("a".into()), 9000));
    }

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, written, authority) in [
            ("http://localhost:8000", "http://localhost:8000", "localhost:8000"),
            ("http://App.Example/", "http://app.example", "app.example"),
            ("HTTP://10.0.0.1", "http://10.0.0.1", "10.0.0.1"),
            ("http://[::1]:81", "http://[::1]:81", "[::1]:81"),
            ("http://my_app.internal.:80", "http://my_app.internal.", "my_app.internal."),
            (" unix:/run/app.sock ", "unix:/run/app.sock", "localhost"),
        ] {
            let address = read(text).unwrap();
            assert_eq!(address.to_string(), written);
            assert_eq!(address.authority(), authority);
            assert_eq!(read(written).unwrap(), address);
        }
    }

    #[test]
    fn what_is_no_address_says_why() {
        let host = |text: &str| AddressError::Host(text.to_owned());
        for (text, error) in [
            ("", AddressError::Empty),
            ("localhost:8000", AddressError::NoScheme("http://localhost:8000".to_owned())),
            ("/run/app.sock", AddressError::NoScheme("unix:/run/app.sock".to_owned())),
            ("ftp://app:9000", AddressError::UnknownScheme("ftp://".to_owned(), None)),
            ("fcgi://app:9000/index.php", AddressError::Path("fcgi://app:9000".to_owned())),
            ("fcgi+unix:php.sock", AddressError::RelativePath("php.sock".to_owned())),
            ("http://a@b", AddressError::UserInfo),
            ("http://a:1/b?c", AddressError::Path("http://a:1".to_owned())),
            ("http://", host("")),
            ("http://::1", host("::1")),
            ("http://[::1", host("[::1")),
            ("http://[::1]81", host("[::1]81")),
            ("http://300.1.1.1", host("300.1.1.1")),
            ("http://a b", host("a b")),
            ("http://a..b", host("a..b")),
            ("http://a:0", AddressError::Port("0".to_owned())),
            ("http://a:+1", AddressError::Port("+1".to_owned())),
            ("http://a:65536", AddressError::Port("65536".to_owned())),
            ("http://a:", AddressError::Port(String::new())),
            ("unix:app.sock", AddressError::RelativePath("app.sock".to_owned())),
        ] {
            assert_eq!(read(text), Err(error), "{text:?}");
        }
        for path in ["a".repeat(107), "a\nb".to_owned(), "a\u{1b}[2J".to_owned(), "a\0b".to_owned()] {
            assert_eq!(read(&format!("unix:/{path}")), Err(AddressError::SocketPath), "{path:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_reads_again(
            text in "((http|h2|fcgi)://|((h2|fcgi)[+])?unix:/)?[ -~]{0,40}"
        ) {
            if let Ok(address) = read(&text) {
                proptest::prop_assert_eq!(read(&address.to_string()), Ok(address));
            }
        }
    }
}
