//! Hop-by-hop fields, and the fields that gateways add about themselves (RFC 9110 §7.6).

use std::cmp::Ordering;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use crate::target::Scheme;
use crate::{Field, Fields, FieldsBuf, Method, Name, RequestHead, TooLarge, Version};

/// The fields of one message that belong to the connection and are neither forwarded nor stored (RFC 9110
/// §7.6.1): the standing ones, those named in Connection, and those of the résumé protocol.
#[derive(Clone, Debug)]
pub struct HopByHop<'a>(NameSet<'a>);

impl<'a> HopByHop<'a> {
    /// Reads Connection. Its option `close` names no field, because that name is reserved (RFC 9112 §12.1).
    /// So most messages that have the option need no search.
    pub fn of(fields: Fields<'a>) -> HopByHop<'a> {
        let is_name = |option: &&[u8]| !option.eq_ignore_ascii_case(b"close");
        HopByHop(fields.list(Name::Connection).filter(is_name).collect())
    }

    /// Whether `field` is one of them.
    pub fn has(&self, field: &Field<'_>) -> bool {
        is_standing(field.id) || self.names(field)
    }

    /// Whether Connection names `field`, and it is not one of the standing ones. Connection cannot name
    /// fields meant for all recipients; otherwise a peer could hide from the next hop what this one obeyed.
    pub fn names(&self, field: &Field<'_>) -> bool {
        match field.id {
            Name::Host
            | Name::CacheControl
            | Name::CdnCacheControl
            | Name::SandaracCacheControl
            | Name::SurrogateControl
            | Name::ContentLength
            | Name::Authorization
            | Name::SetCookie
            | Name::Vary
            | Name::Expires
            | Name::Age
            | Name::Date => false,
            name => !is_standing(name) && self.0.has(field.name),
        }
    }
}

/// Whether fields of this name belong to the connection even if Connection does not name them.
pub fn is_standing(name: Name) -> bool {
    matches!(
        name,
        Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::Te
            | Name::TransferEncoding
            | Name::Upgrade
    ) || is_of_workers(name)
}

/// Whether a field belongs to the résumé protocol, which is private to a balancer and its workers.
pub fn is_of_workers(name: Name) -> bool {
    matches!(name, Name::RequestClass | Name::WorkerState | Name::WorkerSkills)
}

/// Field names in any letter case, sorted, because a message can name thousands and each of its fields is
/// looked up.
#[derive(Clone, Debug)]
pub(crate) struct NameSet<'a>(Vec<&'a [u8]>);

impl NameSet<'_> {
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.0.binary_search_by(|known| compare(known, name)).is_ok()
    }
}

impl<'a> FromIterator<&'a [u8]> for NameSet<'a> {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(names: I) -> NameSet<'a> {
        let mut names: Vec<&[u8]> = names.into_iter().collect();
        names.sort_unstable_by(|one, other| compare(one, other));
        NameSet(names)
    }
}

fn compare(one: &[u8], other: &[u8]) -> Ordering {
    one.iter().map(u8::to_ascii_lowercase).cmp(other.iter().map(u8::to_ascii_lowercase))
}

/// Whether Connection has this option, in any letter case.
pub fn has_option(fields: Fields<'_>, option: &[u8]) -> bool {
    fields.list(Name::Connection).any(|member| member.eq_ignore_ascii_case(option))
}

/// The protocols that a message offers, or agrees, to switch to: Upgrade, if Connection names it (RFC 9110
/// §7.8).
pub fn upgrade(fields: Fields<'_>) -> Option<&[u8]> {
    fields.get(Name::Upgrade).filter(|value| !value.is_empty() && has_option(fields, b"upgrade"))
}

/// Whether the client accepts trailers (RFC 9110 §10.1.4).
pub fn accepts_trailers(request: Fields<'_>) -> bool {
    request.list(Name::Te).any(|member| {
        let coding = member.split(|&byte| byte == b';').next().unwrap_or_default();
        coding.trim_ascii().eq_ignore_ascii_case(b"trailers")
    })
}

/// Whether a request may be a call of gRPC, whose clients read trailers and whose bodies are streams. That is only the word
/// of the client, so it MUST NOT free it of anything unless the backend speaks HTTP/2, without which there is no gRPC.
pub fn is_grpc(request: &RequestHead<'_>) -> bool {
    let media = request.fields.get(Name::ContentType);
    request.version == Version::Http2
        && request.method == Method::Post
        && media.is_some_and(|media| media.starts_with(b"application/grpc"))
}

/// Whether a message is an event stream, in which nothing may be old.
pub fn is_event_stream(fields: Fields<'_>) -> bool {
    const MEDIA: &[u8] = b"text/event-stream";
    let start = fields.get(Name::ContentType).and_then(|media| media.get(..MEDIA.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(MEDIA))
}

/// Whether a field may be in a trailer section (RFC 9110 §6.5.1). False if it frames, routes, authenticates
/// or modifies the message, or determines its caching: all that is settled before the body.
pub fn is_trailer(field: &Field<'_>) -> bool {
    !matches!(
        field.id,
        Name::Age
            | Name::Authorization
            | Name::CacheControl
            | Name::CdnCacheControl
            | Name::Connection
            | Name::ContentEncoding
            | Name::ContentLength
            | Name::ContentLocation
            | Name::ContentRange
            | Name::ContentType
            | Name::Cookie
            | Name::Date
            | Name::Expect
            | Name::Expires
            | Name::Forwarded
            | Name::Host
            | Name::IfMatch
            | Name::IfModifiedSince
            | Name::IfNoneMatch
            | Name::IfRange
            | Name::IfUnmodifiedSince
            | Name::KeepAlive
            | Name::Location
            | Name::MaxForwards
            | Name::Pragma
            | Name::ProxyAuthenticate
            | Name::ProxyAuthorization
            | Name::ProxyConnection
            | Name::Range
            | Name::RequestClass
            | Name::RetryAfter
            | Name::SandaracCacheControl
            | Name::SetCookie
            | Name::SurrogateControl
            | Name::Te
            | Name::Trailer
            | Name::TransferEncoding
            | Name::Upgrade
            | Name::Vary
            | Name::Via
            | Name::WorkerSkills
            | Name::WorkerState
            | Name::XForwardedFor
            | Name::XForwardedHost
            | Name::XForwardedProto
    )
}

/// The meaning of Max-Forwards for an OPTIONS or TRACE request (RFC 9110 §7.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxForwards {
    /// Absent or invalid: forward it as it is.
    Unlimited,
    /// Zero: respond here.
    Answer,
    /// Forward it with this value, one less than received.
    Forward(u32),
}

/// Reads Max-Forwards, which applies to OPTIONS and TRACE only.
pub fn max_forwards(method: Method, request: Fields<'_>) -> MaxForwards {
    if !matches!(method, Method::Options | Method::Trace) {
        return MaxForwards::Unlimited;
    }
    match request.get(Name::MaxForwards).and_then(crate::caching::delta_seconds) {
        None => MaxForwards::Unlimited,
        Some(0) => MaxForwards::Answer,
        Some(left) => MaxForwards::Forward(left - 1),
    }
}

/// Adds our Via to a message that came in `version` (RFC 9110 §7.6.3).
pub fn add_via(fields: &mut FieldsBuf, version: Version, pseudonym: &str) -> Result<(), TooLarge> {
    let version = match version {
        Version::Http10 => "1.0 ",
        Version::Http11 => "1.1 ",
        Version::Http2 => "2 ",
    };
    fields.add_with(Name::Via, |value| {
        value.extend_from_slice(version.as_bytes());
        value.extend_from_slice(pseudonym.as_bytes());
    })
}

/// How often a message has passed a proxy with this pseudonym. More than the number of tiers in a deployment
/// means a loop.
pub fn passes(fields: Fields<'_>, pseudonym: &str) -> usize {
    fields
        .list(Name::Via)
        .filter(|member| {
            let by = member.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1);
            by.is_some_and(|by| by.eq_ignore_ascii_case(pseudonym.as_bytes()))
        })
        .count()
}

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
/// trusted peer are extended, and its protocol and host are kept. Fields not selected by `forwarding` are
/// removed.
pub fn set_forwarded(
    fields: &mut FieldsBuf,
    peer: &Peer<'_>,
    forwarding: Forwarding,
) -> Result<(), TooLarge> {
    fields.retain_names(|name| match name {
        Name::Forwarded => peer.trusted && forwarding.forwarded,
        Name::XForwardedFor | Name::XForwardedProto | Name::XForwardedHost => {
            peer.trusted && forwarding.x_forwarded
        }
        _ => true,
    });
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
    match peer.host {
        Some(host) if !fields.view().has(Name::XForwardedHost) => fields.add(Name::XForwardedHost, host),
        _ => Ok(()),
    }
}

/// One element of Forwarded (RFC 7239 §4).
fn write_element(value: &mut Vec<u8>, peer: &Peer<'_>) {
    value.extend_from_slice(b"for=");
    match peer.address.map(|address| address.to_canonical()) {
        Some(address @ IpAddr::V6(_)) => {
            value.extend_from_slice(b"\"[");
            write_address(value, address);
            value.extend_from_slice(b"]\"");
        }
        Some(address) => write_address(value, address),
        None => value.extend_from_slice(b"unknown"),
    }
    value.extend_from_slice(b";proto=");
    value.extend_from_slice(peer.scheme.text().as_bytes());
    if let Some(host) = peer.host {
        value.extend_from_slice(b";host=");
        // A valid host has neither quotes nor backslashes.
        let quote: &[u8] = if crate::is_token(host) { b"" } else { b"\"" };
        value.extend_from_slice(quote);
        value.extend_from_slice(host);
        value.extend_from_slice(quote);
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
    let proto = |element: &[u8]| {
        element.split(|&byte| byte == b';').find_map(|pair| {
            let at = memchr::memchr(b'=', pair)?;
            let value = pair[at + 1..].trim_ascii();
            let value =
                value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            pair[..at].trim_ascii().eq_ignore_ascii_case(b"proto").then(|| Scheme::named(value))?
        })
    };
    let x_forwarded = request.list(Name::XForwardedProto).last().map(Scheme::named);
    x_forwarded.unwrap_or_else(|| request.list(Name::Forwarded).last().and_then(proto))
}

/// The client's address: going backwards from the peer through X-Forwarded-For, the first that is not
/// `trusted`. `None` is a peer on a Unix socket. Entries before it come from an untrusted source. If all are
/// trusted, it is the first in the list; an invalid entry ends the search.
pub fn client_address(
    request: Fields<'_>,
    peer: Option<IpAddr>,
    trusted: impl Fn(Option<IpAddr>) -> bool,
) -> Option<IpAddr> {
    let mut client = peer.map(|peer| peer.to_canonical());
    let entries: Vec<&[u8]> = request.list(Name::XForwardedFor).collect();
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

    fn fields(text: &str) -> FieldsBuf {
        text.lines().map(|line| line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""))).collect()
    }

    fn lines(fields: &FieldsBuf) -> String {
        let mut out = Vec::new();
        fields.encode(&mut out);
        String::from_utf8(out).unwrap().replace("\r\n", "\n").trim_end().to_owned()
    }

    fn strip(fields: &mut FieldsBuf) {
        let before = fields.clone();
        let hop_by_hop = HopByHop::of(before.view());
        fields.retain(|field| !hop_by_hop.has(&field));
    }

    #[test]
    fn fields_of_the_connection_go_and_others_stay() {
        // RFC 9110 §7.6.1
        let mut message = fields(
            "Host: a\nConnection: close, X-Foo\nConnection: BAR\nKeep-Alive: 1\nTE: trailers\nTrailer: t\n\
             Transfer-Encoding: chunked\nUpgrade: h2c\nProxy-Connection: close\nx-foo: 1\nBar: 2\nX-Foo-Bar: 3",
        );
        strip(&mut message);
        assert_eq!(lines(&message), "Host: a\nTrailer: t\nX-Foo-Bar: 3");
        let mut closing = fields("Connection: close, x\nClose: 1\nX: 1");
        strip(&mut closing);
        assert_eq!(lines(&closing), "Close: 1");
        let mut hiding = fields(
            "Connection: Host, Cache-Control, Set-Cookie, Content-Length\nHost: a\nCache-Control: private",
        );
        strip(&mut hiding);
        assert_eq!(lines(&hiding), "Host: a\nCache-Control: private");
    }

    #[test]
    fn options_upgrades_and_trailers_are_recognised() {
        let message = fields("Connection: keep-alive, Upgrade\nUpgrade: websocket\nTE: gzip;q=0.5, Trailers");
        assert!(has_option(message.view(), b"Keep-Alive") && !has_option(message.view(), b"close"));
        assert_eq!(upgrade(message.view()), Some(&b"websocket"[..]));
        assert_eq!(upgrade(fields("Upgrade: websocket").view()), None);
        assert!(accepts_trailers(message.view()));
        assert!(!accepts_trailers(fields("TE: gzip").view()));
        let trailers =
            fields("Content-Length: 1\nHost: a\nServer-Timing: x\nContent-Digest: y\nSet-Cookie: z");
        let kept: Vec<_> = trailers.view().iter().filter(is_trailer).map(|field| field.value).collect();
        assert_eq!(kept, [b"x", b"y"]);
    }

    #[test]
    fn max_forwards_counts_down() {
        // RFC 9110 §7.6.2
        for (method, value, expected) in [
            ("OPTIONS", "Max-Forwards: 0", MaxForwards::Answer),
            ("TRACE", "Max-Forwards: 5", MaxForwards::Forward(4)),
            ("OPTIONS", "Max-Forwards: x", MaxForwards::Unlimited),
            ("OPTIONS", "A: 1", MaxForwards::Unlimited),
            ("GET", "Max-Forwards: 0", MaxForwards::Unlimited),
        ] {
            assert_eq!(
                max_forwards(Method::of(method.as_bytes()), fields(value).view()),
                expected,
                "{method} {value}"
            );
        }
    }

    #[test]
    fn via_is_added_and_loops_are_seen() {
        let mut message = fields("Via: 1.0 fred, 1.1 Sandarac (x)");
        add_via(&mut message, Version::Http11, "sandarac").unwrap();
        add_via(&mut message, Version::Http2, "other").unwrap();
        assert_eq!(lines(&message), "Via: 1.0 fred, 1.1 Sandarac (x)\nVia: 1.1 sandarac\nVia: 2 other");
        assert_eq!(passes(message.view(), "sandarac"), 2);
        assert_eq!(passes(fields("Via: sandarac").view(), "sandarac"), 0);
    }

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
            let value = value.trim();
            let message: FieldsBuf =
                [("Connection", value), ("Via", value), ("X-Forwarded-For", value), ("TE", value)].into_iter().collect();
            strip(&mut message.clone());
            passes(message.view(), "sandarac");
            client_address(message.view(), Some(IpAddr::from([10, 0, 0, 1])), |_| true);
        }
    }
}
