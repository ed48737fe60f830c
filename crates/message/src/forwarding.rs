//! The fields by which gateways describe their clients: Forwarded (RFC 7239), and the X-Forwarded fields before it.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use crate::target::Scheme;
use crate::{Fields, FieldsBuf, Name, TooLarge};

/// The client's side of a request, as a gateway sees it.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The address the request came from; `None` over a Unix socket.
    pub address: Option<IpAddr>,
    /// The scheme it used.
    pub scheme: Scheme,
    /// The requested host, as received; `None` if there was none.
    pub host: Option<&'a [u8]>,
    /// Whether the forwarding fields sent by the peer are trusted.
    pub trusted: bool,
}

/// The fields that describe the client's side of a request to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
    pub x_forwarded: bool,
    /// Forwarded (RFC 7239).
    pub forwarded: bool,
}

/// Writes the forwarding fields of a request. Those from an untrusted peer are replaced. The lists of a
/// trusted peer are extended, and its protocol and host are kept; if it sent only those of one kind, the others say the
/// same (RFC 7239 §7.4). Fields not selected by `forwarding` are removed.
pub fn set_forwarded(
    fields: &mut FieldsBuf,
    peer: &Peer<'_>,
    forwarding: Forwarding,
) -> Result<(), TooLarge> {
    // Only what the proxy did not send is made of what it sent.
    let lacks = |wanted, name| peer.trusted && wanted && !fields.view().has(name);
    let elements = lacks(forwarding.forwarded, Name::Forwarded).then(|| elements_told(fields.view()));
    let addresses = lacks(forwarding.x_forwarded, Name::XForwardedFor).then(|| addresses_told(fields.view()));
    let host = host_told(fields.view()).filter(|_| peer.trusted).map(<[u8]>::to_vec);
    fields.retain_names(|name| match name {
        Name::Forwarded => peer.trusted && forwarding.forwarded,
        Name::XForwardedFor | Name::XForwardedProto | Name::XForwardedHost => {
            peer.trusted && forwarding.x_forwarded
        }
        _ => true,
    });
    let made = [(Name::Forwarded, elements), (Name::XForwardedFor, addresses)];
    for (name, value) in made {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            fields.add(name, &value)?;
        }
    }
    if forwarding.forwarded {
        append(fields, Name::Forwarded, |value| write_element(value, peer))?;
    }
    if !forwarding.x_forwarded {
        return Ok(());
    }
    append(fields, Name::XForwardedFor, |value| match peer.address {
        Some(address) => write_address(value, address.to_canonical()),
        None => value.extend_from_slice(b"unknown"),
    })?;
    if !fields.view().has(Name::XForwardedProto) {
        fields.add(Name::XForwardedProto, peer.scheme.text().as_bytes())?;
    }
    match host.as_deref().or(peer.host) {
        Some(host) if !fields.view().has(Name::XForwardedHost) => fields.add(Name::XForwardedHost, host),
        _ => Ok(()),
    }
}

/// The elements of Forwarded that say what the X-Forwarded fields of a proxy do; the last one, which the proxy itself wrote,
/// has its protocol and host.
fn elements_told(request: Fields<'_>) -> Vec<u8> {
    let mut elements: Vec<Vec<u8>> = request
        .list(Name::XForwardedFor)
        .map(|entry| {
            let mut element = b"for=".to_vec();
            match address(entry) {
                Some(address) => write_node(&mut element, address),
                None => element.extend_from_slice(b"unknown"),
            }
            element
        })
        .collect();
    let pairs = [(&b"proto="[..], Name::XForwardedProto), (b"host=", Name::XForwardedHost)];
    for (pair, name) in pairs {
        let Some(value) = request.list(name).last().filter(|value| is_quotable(value)) else { continue };
        if elements.is_empty() {
            elements.push(Vec::new());
        }
        let last = elements.last_mut().expect("there is one");
        if !last.is_empty() {
            last.push(b';');
        }
        last.extend_from_slice(pair);
        write_value(last, value);
    }
    elements.join(&b", "[..])
}

/// The value of X-Forwarded-For that says what Forwarded does.
fn addresses_told(request: Fields<'_>) -> Vec<u8> {
    let entry = |element| match pair(element, b"for").and_then(address) {
        Some(address) => address.to_string().into_bytes(),
        None => b"unknown".to_vec(),
    };
    request.list(Name::Forwarded).map(entry).collect::<Vec<_>>().join(&b", "[..])
}

/// The host in the last element of Forwarded.
fn host_told(request: Fields<'_>) -> Option<&[u8]> {
    request
        .list(Name::Forwarded)
        .last()
        .and_then(|element| pair(element, b"host"))
        .filter(|host| is_quotable(host))
}

/// The value of the pair with this name in an element of Forwarded, without quotes.
fn pair<'a>(element: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    element.split(|&byte| byte == b';').find_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        let value = pair[at + 1..].trim_ascii();
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        pair[..at].trim_ascii().eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Whether a value can stand between quotes as it is.
fn is_quotable(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(byte))
}

fn write_value(out: &mut Vec<u8>, value: &[u8]) {
    let quote: &[u8] = if crate::is_token(value) { b"" } else { b"\"" };
    out.extend_from_slice(quote);
    out.extend_from_slice(value);
    out.extend_from_slice(quote);
}

/// An address as a node of Forwarded (RFC 7239 §6).
fn write_node(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V6(_) => {
            out.extend_from_slice(b"\"[");
            write_address(out, address);
            out.extend_from_slice(b"]\"");
        }
        IpAddr::V4(_) => write_address(out, address),
    }
}

/// One element of Forwarded (RFC 7239 §4).
fn write_element(value: &mut Vec<u8>, peer: &Peer<'_>) {
    value.extend_from_slice(b"for=");
    match peer.address {
        Some(address) => write_node(value, address.to_canonical()),
        None => value.extend_from_slice(b"unknown"),
    }
    value.extend_from_slice(b";proto=");
    value.extend_from_slice(peer.scheme.text().as_bytes());
    if let Some(host) = peer.host {
        value.extend_from_slice(b";host=");
        // A valid host has neither quotes nor backslashes.
        write_value(value, host);
    }
}

/// Writes an address as text. Every forwarded request has one, and the formatter of the standard library
/// takes ten times as long for IPv4.
fn write_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            let mut text = [0; "255.255.255.255.".len()];
            let mut len = 0;
            for octet in address.octets() {
                for (least, unit) in [(100, 100), (10, 10), (0, 1)] {
                    if octet >= least {
                        text[len] = b'0' + octet / unit % 10;
                        len += 1;
                    }
                }
                text[len] = b'.';
                len += 1;
            }
            out.extend_from_slice(&text[..len - 1]);
        }
        IpAddr::V6(address) => write!(out, "{address}").expect("memory takes all that is written"),
    }
}

/// Adds a member to a list field, in one line, because many applications read the first line only.
fn append(fields: &mut FieldsBuf, name: Name, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLarge> {
    if !fields.view().has(name) {
        return fields.add_with(name, write);
    }
    let mut value = fields.view().all(name).collect::<Vec<_>>().join(&b", "[..]);
    if !value.is_empty() {
        value.extend_from_slice(b", ");
    }
    write(&mut value);
    fields.set(name, &value)
}

/// The scheme of the request to the previous proxy, from X-Forwarded-Proto or else from Forwarded (RFC 7239
/// §5.4). The last member is the one that proxy wrote.
pub fn told_scheme(request: Fields<'_>) -> Option<Scheme> {
    let proto = |element| pair(element, b"proto").and_then(Scheme::named);
    let x_forwarded = request.list(Name::XForwardedProto).last().map(Scheme::named);
    x_forwarded.unwrap_or_else(|| request.list(Name::Forwarded).last().and_then(proto))
}

/// The client's address: going backwards from the peer through X-Forwarded-For, or else through Forwarded, the first that is
/// not `trusted`. `None` is a peer on a Unix socket. Entries before it come from an untrusted source. If all are
/// trusted, it is the first in the list; an invalid entry ends the search.
pub fn client_address(
    request: Fields<'_>,
    peer: Option<IpAddr>,
    trusted: impl Fn(Option<IpAddr>) -> bool,
) -> Option<IpAddr> {
    let mut client = peer.map(|peer| peer.to_canonical());
    let mut entries: Vec<&[u8]> = request.list(Name::XForwardedFor).collect();
    if entries.is_empty() {
        entries =
            request.list(Name::Forwarded).map(|element| pair(element, b"for").unwrap_or_default()).collect();
    }
    for entry in entries.into_iter().rev() {
        let Some(address) = (if trusted(client) { address(entry) } else { None }) else {
            break;
        };
        client = Some(address);
    }
    client
}

/// An address in X-Forwarded-For: some proxies add brackets or a port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let address: Option<IpAddr> = text.parse().ok().or_else(bracketed);
    address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip())).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::written::{fields, lines};

    const BOTH: Forwarding = Forwarding { x_forwarded: true, forwarded: true };

    #[test]
    fn forwarding_fields_that_are_not_wanted_do_not_go_on() {
        let mut message = fields("X-Forwarded-For: 1.1.1.1\nForwarded: for=1.1.1.1\nA: 1");
        let peer = Peer {
            address: Some("10.0.0.255".parse().unwrap()),
            scheme: Scheme::Http,
            host: None,
            trusted: true,
        };
        let one = Forwarding { x_forwarded: true, forwarded: false };
        set_forwarded(&mut message, &peer, one).unwrap();
        assert_eq!(lines(&message), "A: 1\nX-Forwarded-For: 1.1.1.1, 10.0.0.255\nX-Forwarded-Proto: http");
        set_forwarded(&mut message, &peer, Forwarding { x_forwarded: false, forwarded: false }).unwrap();
        assert_eq!(lines(&message), "A: 1");
    }

    #[test]
    fn forwarding_fields_of_strangers_are_replaced_and_of_proxies_continued() {
        let sent = "X-Forwarded-For: 1.1.1.1\nx-forwarded-for: 2.2.2.2\nX-Forwarded-Proto: https\n\
                    X-Forwarded-Host: evil\nForwarded: for=1.1.1.1";
        let peer = Peer {
            address: Some("192.0.2.1".parse().unwrap()),
            scheme: Scheme::Http,
            host: Some(b"example.com"),
            trusted: false,
        };
        let mut message = fields(sent);
        set_forwarded(&mut message, &peer, BOTH).unwrap();
        assert_eq!(
            lines(&message),
            "Forwarded: for=192.0.2.1;proto=http;host=example.com\nX-Forwarded-For: 192.0.2.1\n\
             X-Forwarded-Proto: http\nX-Forwarded-Host: example.com"
        );
        let mut message = fields(sent);
        set_forwarded(&mut message, &Peer { trusted: true, ..peer }, BOTH).unwrap();
        assert_eq!(
            lines(&message),
            "X-Forwarded-Proto: https\nX-Forwarded-Host: evil\n\
             Forwarded: for=1.1.1.1, for=192.0.2.1;proto=http;host=example.com\n\
             X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.1"
        );
        let mut message = FieldsBuf::new();
        let v6 = Peer { address: Some("2001:db8::1".parse().unwrap()), host: Some(b"a:81"), ..peer };
        set_forwarded(&mut message, &v6, BOTH).unwrap();
        assert!(lines(&message).starts_with(
            "Forwarded: for=\"[2001:db8::1]\";proto=http;host=\"a:81\"\nX-Forwarded-For: 2001:db8::1\n"
        ));
        let mut message = FieldsBuf::new();
        set_forwarded(&mut message, &Peer { address: None, host: None, ..peer }, BOTH).unwrap();
        assert_eq!(
            lines(&message),
            "Forwarded: for=unknown;proto=http\nX-Forwarded-For: unknown\nX-Forwarded-Proto: http"
        );
    }

    /// Regression: a proxy that sent only one kind was contradicted by the other.
    #[test]
    fn what_a_proxy_says_in_one_kind_the_other_says_too() {
        let peer = Peer {
            address: Some("10.0.0.1".parse().unwrap()),
            scheme: Scheme::Https,
            host: Some(b"inner"),
            trusted: true,
        };
        for (sent, forwarded, x_forwarded_for, host) in [
            (
                "X-Forwarded-For: 1.1.1.1, 2001:db8::1\nX-Forwarded-Proto: https\nX-Forwarded-Host: a.example:81",
                "for=1.1.1.1, for=\"[2001:db8::1]\";proto=https;host=\"a.example:81\", for=10.0.0.1;proto=https;host=inner",
                "1.1.1.1, 2001:db8::1, 10.0.0.1",
                "a.example:81",
            ),
            (
                "Forwarded: for=1.1.1.1, For=\"[2001:db8::1]:4711\";proto=https;host=\"a.example:81\"",
                "for=1.1.1.1, For=\"[2001:db8::1]:4711\";proto=https;host=\"a.example:81\", for=10.0.0.1;proto=https;host=inner",
                "1.1.1.1, 2001:db8::1, 10.0.0.1",
                "a.example:81",
            ),
            (
                "X-Forwarded-Proto: https",
                "proto=https, for=10.0.0.1;proto=https;host=inner",
                "10.0.0.1",
                "inner",
            ),
            (
                "X-Forwarded-For: \"; evil, _hidden",
                "for=unknown, for=10.0.0.1;proto=https;host=inner",
                "\"; evil, _hidden, 10.0.0.1",
                "inner",
            ),
        ] {
            let mut message = fields(sent);
            set_forwarded(&mut message, &peer, BOTH).unwrap();
            let said =
                |name| message.view().get(name).map(|value| String::from_utf8_lossy(value).into_owned());
            assert_eq!(said(Name::Forwarded).as_deref(), Some(forwarded), "{sent}");
            assert_eq!(said(Name::XForwardedFor).as_deref(), Some(x_forwarded_for), "{sent}");
            assert_eq!(said(Name::XForwardedProto).as_deref(), Some("https"), "{sent}");
            assert_eq!(said(Name::XForwardedHost).as_deref(), Some(host), "{sent}");
        }
        let request = fields("Forwarded: for=1.1.1.1, for=\"[2001:db8::1]\"");
        let trusts = |address: Option<IpAddr>| address == peer.address;
        assert_eq!(client_address(request.view(), peer.address, trusts), "2001:db8::1".parse().ok());
    }

    #[test]
    fn the_client_is_the_last_address_no_one_vouches_for() {
        let trusted = |address: Option<IpAddr>| match address {
            Some(IpAddr::V4(address)) => address.octets()[0] == 10,
            Some(IpAddr::V6(address)) => address.is_loopback(),
            None => false,
        };
        for (peer, list, expected) in [
            ("192.0.2.1", "1.1.1.1", "192.0.2.1"),
            ("10.0.0.1", "1.1.1.1, 2.2.2.2", "2.2.2.2"),
            ("10.0.0.1", "1.1.1.1, 10.0.0.2", "1.1.1.1"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "1.1.1.1, unknown, 10.0.0.2", "10.0.0.2"),
            ("::1", "[2001:db8::1]", "2001:db8::1"),
            ("::1", "[2001:db8::1]:80", "2001:db8::1"),
            ("::ffff:10.0.0.1", "1.1.1.1:5000", "1.1.1.1"),
            ("10.0.0.1", "", "10.0.0.1"),
        ] {
            let request = fields(&format!("X-Forwarded-For: {list}"));
            let client = client_address(request.view(), Some(peer.parse().unwrap()), trusted);
            assert_eq!(client, Some(expected.parse().unwrap()), "{peer} {list}");
        }
        let request = fields("X-Forwarded-For: 1.1.1.1, 10.0.0.2");
        assert_eq!(client_address(request.view(), None, |peer| peer.is_none()), "10.0.0.2".parse().ok());
        assert_eq!(client_address(request.view(), None, |_| false), None);
    }

    #[test]
    fn the_last_proxy_tells_the_scheme() {
        for (sent, expected) in [
            ("X-Forwarded-Proto: http, https", Some(Scheme::Https)),
            ("X-Forwarded-Proto: https\nForwarded: proto=http", Some(Scheme::Https)),
            ("Forwarded: for=1.1.1.1;proto=http, for=2.2.2.2;Proto=\"https\";host=a", Some(Scheme::Https)),
            ("Forwarded: proto=https, for=2.2.2.2", None),
            ("Forwarded: proto=ftp", None),
            ("X-Forwarded-Proto: evil\nForwarded: proto=https", None),
            ("A: 1", None),
        ] {
            assert_eq!(told_scheme(fields(sent).view()), expected, "{sent}");
        }
    }

    proptest! {
        #[test]
        fn addresses_are_written_as_everywhere(address: std::net::Ipv4Addr) {
            let mut out = Vec::new();
            write_address(&mut out, address.into());
            prop_assert_eq!(String::from_utf8(out).unwrap(), address.to_string());
        }

        #[test]
        fn no_value_panics(value in "[ -~]{0,40}") {
            let peer = Peer { address: None, scheme: Scheme::Http, host: None, trusted: true };
            for name in ["X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"] {
                let mut message: FieldsBuf = [(name, value.trim())].into_iter().collect();
                client_address(message.view(), Some(IpAddr::from([10, 0, 0, 1])), |_| true);
                told_scheme(message.view());
                set_forwarded(&mut message, &peer, BOTH).unwrap();
            }
        }
    }
}
