//! The PROXY protocol, versions 1 and 2, on the accepting side (the specification is at
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header of version 1, including its CR LF.
pub const MAX_V1: usize = 107;

/// The longest accepted header of version 2. TLVs may extend it to 64 KiB, but none are used, and real
/// headers are far smaller.
pub const MAX_V2: usize = 4096;

/// The twelve bytes that begin version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The source of a connection, as announced by the proxy in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client behind the proxy.
    Proxied {
        /// The client's address.
        source: SocketAddr,
        /// The address the client connected to.
        destination: SocketAddr,
    },
    /// The proxy itself (LOCAL, such as a health check), or a client whose address has no meaning here
    /// (UNKNOWN, UNSPEC, a Unix socket): use the addresses of the connection itself.
    Local,
}

/// A complete header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The addresses.
    pub origin: Origin,
    /// Bytes of the header; the connection's own data begins after them.
    pub len: usize,
}

/// Why a header was refused. The connection MUST be closed without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The start of neither version. A listener that expects the PROXY protocol never accepts connections
    /// without it.
    NoHeader,
    /// A line of version 1 that is not well-formed or longer than [`MAX_V1`].
    InvalidV1,
    /// A version 2 header with an unknown version, command or family, or shorter than its family needs.
    InvalidV2,
    /// A version 2 header longer than [`MAX_V2`].
    TooLong,
}

impl Refusal {
    /// A short description of the fault, without a full stop.
    pub const fn text(self) -> &'static str {
        match self {
            Refusal::NoHeader => "no PROXY protocol header",
            Refusal::InvalidV1 => "invalid PROXY protocol header, version 1",
            Refusal::InvalidV2 => "invalid PROXY protocol header, version 2",
            Refusal::TooLong => "PROXY protocol header too long",
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}

/// Reads a header at the start of `buf`; `None` if it is incomplete.
pub fn parse(buf: &[u8]) -> Result<Option<Header>, Refusal> {
    let begins = |with: &[u8]| buf.iter().zip(with).all(|(a, b)| a == b);
    if begins(SIGNATURE) {
        parse_v2(buf)
    } else if begins(b"PROXY ") {
        parse_v1(buf)
    } else {
        Err(Refusal::NoHeader)
    }
}

fn parse_v1(buf: &[u8]) -> Result<Option<Header>, Refusal> {
    let window = &buf[..buf.len().min(MAX_V1)];
    let Some(lf) = memchr::memchr(b'\n', window) else {
        return if window.len() == MAX_V1 { Err(Refusal::InvalidV1) } else { Ok(None) };
    };
    let line = window[..lf].strip_suffix(b"\r").ok_or(Refusal::InvalidV1)?;
    let line = std::str::from_utf8(line).map_err(|_| Refusal::InvalidV1)?;
    let len = lf + 1;
    let mut words = line.split(' ').skip(1);
    let mut word = || words.next().ok_or(Refusal::InvalidV1);
    let origin = match word()? {
        // Anything after UNKNOWN must be ignored.
        "UNKNOWN" => return Ok(Some(Header { origin: Origin::Local, len })),
        "TCP4" => addresses_v1(word()?, word()?, word()?, word()?, |text| {
            text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
        }),
        "TCP6" => addresses_v1(word()?, word()?, word()?, word()?, |text| {
            text.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }),
        _ => None,
    };
    match (origin, words.next()) {
        (Some(origin), None) => Ok(Some(Header { origin, len })),
        _ => Err(Refusal::InvalidV1),
    }
}

fn addresses_v1(
    source: &str,
    destination: &str,
    source_port: &str,
    destination_port: &str,
    address: impl Fn(&str) -> Option<IpAddr>,
) -> Option<Origin> {
    Some(Origin::Proxied {
        source: SocketAddr::new(address(source)?, port(source_port)?),
        destination: SocketAddr::new(address(destination)?, port(destination_port)?),
    })
}

/// A port in decimal without sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

fn parse_v2(buf: &[u8]) -> Result<Option<Header>, Refusal> {
    let [version_command, family, high, low] = match buf.get(12..16) {
        Some(&[a, b, c, d]) => [a, b, c, d],
        _ => return Ok(None),
    };
    if version_command >> 4 != 2 {
        return Err(Refusal::InvalidV2);
    }
    let len = 16 + usize::from(u16::from_be_bytes([high, low]));
    if len > MAX_V2 {
        return Err(Refusal::TooLong);
    }
    let Some(body) = buf.get(16..len) else { return Ok(None) };
    let origin = match version_command & 0x0f {
        // LOCAL may come with any family, which must be ignored.
        0 => Origin::Local,
        1 => addresses_v2(family, body)?,
        _ => return Err(Refusal::InvalidV2),
    };
    Ok(Some(Header { origin, len }))
}

/// The addresses of a PROXY command. The transport is stream or datagram, which the specification lets us
/// treat the same.
fn addresses_v2(family: u8, body: &[u8]) -> Result<Origin, Refusal> {
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    match (family >> 4, family & 0x0f) {
        (1, 1 | 2) => {
            let addresses = body.first_chunk::<12>().ok_or(Refusal::InvalidV2)?;
            let address = |at: usize| {
                IpAddr::from([addresses[at], addresses[at + 1], addresses[at + 2], addresses[at + 3]])
            };
            Ok(Origin::Proxied {
                source: SocketAddr::new(address(0), port(8)),
                destination: SocketAddr::new(address(4), port(10)),
            })
        }
        (2, 1 | 2) => {
            let addresses = body.first_chunk::<36>().ok_or(Refusal::InvalidV2)?;
            let address = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&addresses[at..at + 16]);
                IpAddr::from(octets)
            };
            Ok(Origin::Proxied {
                source: SocketAddr::new(address(0), port(32)),
                destination: SocketAddr::new(address(16), port(34)),
            })
        }
        (3, 1 | 2) if body.len() >= 216 => Ok(Origin::Local),
        (0, 0) => Ok(Origin::Local),
        _ => Err(Refusal::InvalidV2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(version_command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[version_command, family], &len, body].concat()
    }

    /// Reads `header` with the first bytes of a request behind it, and checks that no prefix of it is
    /// complete.
    fn read(header: &[u8]) -> Result<Origin, Refusal> {
        let wire = [header, b"GET /"].concat();
        let whole = parse(&wire);
        for cut in 0..header.len() {
            let early = parse(&wire[..cut]);
            assert!(early == Ok(None) || early == whole && early.is_err(), "{cut}: {early:?}, {whole:?}");
        }
        whole.map(|read| {
            let read = read.expect("the header is whole");
            assert_eq!(read.len, header.len());
            read.origin
        })
    }

    fn proxied(source: &str, destination: &str) -> Result<Origin, Refusal> {
        Ok(Origin::Proxied { source: source.parse().unwrap(), destination: destination.parse().unwrap() })
    }

    #[test]
    fn version_1_gives_the_addresses() {
        let tcp4 = read(b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
        assert_eq!(tcp4, proxied("192.0.2.1:56324", "198.51.100.2:443"));
        let tcp6 = read(b"PROXY TCP6 2001:db8::1 ::ffff:1.2.3.4 0 65535\r\n");
        assert_eq!(tcp6, proxied("[2001:db8::1]:0", "[::ffff:1.2.3.4]:65535"));
        assert_eq!(read(b"PROXY UNKNOWN\r\n"), Ok(Origin::Local));
        assert_eq!(read(b"PROXY UNKNOWN ffff::1 whatever 1 2 3\r\n"), Ok(Origin::Local));
    }

    #[test]
    fn version_1_is_refused_where_it_is_not_well_formed() {
        for line in [
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
            "PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.04 1 2\r\n",
            "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY \r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rx\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 \u{661}\r\n",
        ] {
            assert_eq!(read(line.as_bytes()), Err(Refusal::InvalidV1), "{line:?}");
        }
        let long = format!("PROXY UNKNOWN {}", "x".repeat(MAX_V1));
        assert_eq!(parse(long.as_bytes()), Err(Refusal::InvalidV1));
        let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(MAX_V1 - 16));
        assert_eq!(read(longest.as_bytes()), Ok(Origin::Local));
    }

    #[test]
    fn version_2_gives_the_addresses_and_skips_what_follows_them() {
        let inet = [&[192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb][..], b"\x04\x00\x01x"].concat();
        assert_eq!(read(&v2(0x21, 0x11, &inet)), proxied("192.0.2.1:56324", "198.51.100.2:443"));
        assert_eq!(read(&v2(0x21, 0x12, &inet)), proxied("192.0.2.1:56324", "198.51.100.2:443"));
        let mut inet6 = [0; 36];
        inet6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        (inet6[15], inet6[31], inet6[33], inet6[35]) = (1, 2, 80, 81);
        assert_eq!(read(&v2(0x21, 0x21, &inet6)), proxied("[2001:db8::1]:80", "[::2]:81"));
        assert_eq!(read(&v2(0x21, 0x31, &[0; 216])), Ok(Origin::Local));
        assert_eq!(read(&v2(0x21, 0x00, b"anything")), Ok(Origin::Local));
        assert_eq!(read(&v2(0x20, 0x11, b"")), Ok(Origin::Local));
        assert_eq!(read(&v2(0x20, 0xff, &[0; MAX_V2 - 16])), Ok(Origin::Local));
    }

    #[test]
    fn version_2_is_refused_where_it_is_not_well_formed() {
        for header in [
            v2(0x11, 0x11, &[0; 12]),
            v2(0x31, 0x11, &[0; 12]),
            v2(0x22, 0x11, &[0; 12]),
            v2(0x21, 0x11, &[0; 11]),
            v2(0x21, 0x21, &[0; 35]),
            v2(0x21, 0x31, &[0; 215]),
            v2(0x21, 0x10, &[0; 12]),
            v2(0x21, 0x13, &[0; 12]),
            v2(0x21, 0x41, &[0; 216]),
        ] {
            assert_eq!(read(&header), Err(Refusal::InvalidV2), "{header:?}");
        }
        assert_eq!(read(&v2(0x21, 0x11, &[0; MAX_V2 - 15])), Err(Refusal::TooLong));
    }

    #[test]
    fn a_connection_without_a_header_is_refused_at_its_first_odd_byte() {
        for wire in [&b"GET / HTTP/1.1"[..], b"PROXX", b"\r\n\r\nG", b"proxy TCP4", b"PROXY\t"] {
            assert_eq!(parse(wire), Err(Refusal::NoHeader));
            assert_eq!(parse(&wire[..wire.len() - 1]).is_err(), wire[0] == b'G' || wire[0] == b'p');
        }
    }
}
