//! The names of hosts in certificates and from clients.

use std::fmt;
use std::net::IpAddr;

/// A name that a certificate is valid for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A DNS name in lower case without a dot at its end; it may begin with `*.`.
    Dns(Box<str>),
    /// An address. Clients that connect to an address send no name, so it is never chosen by.
    Ip(IpAddr),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Dns(name) => f.write_str(name),
            Name::Ip(address) => address.fmt(f),
        }
    }
}

/// A DNS name as it is compared: in lower case, without a dot at its end.
pub(crate) fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The wildcard name that covers `name`: `*.example.org` covers one label before `example.org` (RFC 9525 §6.3).
pub(crate) fn wildcard_of(name: &str) -> Option<String> {
    let (first, rest) = name.split_once('.')?;
    (!first.is_empty() && !rest.is_empty()).then(|| format!("*.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_one_label() {
        assert_eq!(wildcard_of("www.example.org").as_deref(), Some("*.example.org"));
        assert_eq!(wildcard_of("a.www.example.org").as_deref(), Some("*.www.example.org"));
        assert_eq!(wildcard_of("localhost"), None);
        assert_eq!(wildcard_of(".example.org"), None);
        assert_eq!(normal("WWW.Example.ORG."), "www.example.org");
    }
}
