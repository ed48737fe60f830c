//! Hosts and ports (RFC 3986 §3.2, RFC 9110 §4.2).

use crate::decimal;
use crate::tokens::alphanumeric_or;
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// The two schemes of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The default port of a URI without one.
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// The scheme's name.
    pub const fn text(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The scheme of that name, in any letter case.
    pub fn named(name: &[u8]) -> Option<Scheme> {
        [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.text().as_bytes()))
    }

    /// Strips `http://` or `https://`, in any letter case, from a URI.
    pub fn strip(uri: &[u8]) -> Option<(Scheme, &[u8])> {
        [Scheme::Http, Scheme::Https].into_iter().find_map(|scheme| {
            let (name, rest) = uri.split_at_checked(scheme.text().len())?;
            let rest = rest.strip_prefix(b"://")?;
            name.eq_ignore_ascii_case(scheme.text().as_bytes()).then_some((scheme, rest))
        })
    }
}

/// A valid host, with a port if one was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The host as received, with the brackets of an IPv6 address.
    pub host: &'a [u8],
    /// The port; `None` if there is none or it is empty.
    pub port: Option<u16>,
    /// Host and port as received.
    pub text: &'a [u8],
}

impl<'a> Authority<'a> {
    /// Reads `host` or `host:port`. `None` for an empty host, a user name, an invalid address, a host with
    /// bytes not allowed in a registered name, and a port that is not a number up to 65535.
    pub fn parse(text: &'a [u8]) -> Option<Authority<'a>> {
        let host_len = match text {
            [b'[', rest @ ..] => {
                let len = memchr::memchr(b']', rest)?;
                std::str::from_utf8(&rest[..len]).ok()?.parse::<Ipv6Addr>().ok()?;
                len + 2
            }
            _ => {
                let len = registered_name_len(text);
                if len == 0 {
                    return None;
                }
                len
            }
        };
        let (host, rest) = text.split_at(host_len);
        let port = match rest {
            [] | [b':'] => None,
            [b':', digits @ ..] => Some(port(digits)?),
            _ => return None,
        };
        Some(Authority { host, port, text })
    }

    /// Host and port in the form used in keys: lower case, and without the scheme's default port. Borrowed if
    /// received in this form.
    pub fn normalised(&self, scheme: Scheme) -> Cow<'a, [u8]> {
        let port = self.port.filter(|&port| port != scheme.default_port());
        let plain = !self.host.iter().fold(false, |found, byte| found | byte.is_ascii_uppercase());
        // A port with leading zeros is rewritten.
        let canonical = self.text.get(self.host.len() + 1) != Some(&b'0');
        match port {
            None if plain => Cow::Borrowed(self.host),
            Some(_) if plain && canonical => Cow::Borrowed(self.text),
            _ => {
                let mut out = self.host.to_ascii_lowercase();
                if let Some(port) = port {
                    out.push(b':');
                    decimal::append(&mut out, port.into());
                }
                Cow::Owned(out)
            }
        }
    }
}

fn port(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |port, byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    })
}

/// The number of bytes at the start of `text` that are a registered name or IPv4 address (RFC 3986 §3.2.2).
fn registered_name_len(text: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&byte) = text.get(len) {
        len += match byte {
            _ if NAME_BYTES[byte as usize] => 1,
            b'%' if text.get(len + 1..len + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => 3,
            _ => break,
        };
    }
    len
}

/// The bytes that need no escape in a registered name.
const NAME_BYTES: [bool; 256] = alphanumeric_or(b"-._~!$&'()*+,;=");
