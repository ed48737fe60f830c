//! Hop-by-hop fields, and the field that gateways add about themselves (RFC 9110 §7.6).

use std::cmp::Ordering;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::written::{fields, lines};

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

    proptest! {
        #[test]
        fn no_value_panics(value in "[ -~]{0,40}") {
            let value = value.trim();
            let message: FieldsBuf =
                [("Connection", value), ("Via", value), ("TE", value)].into_iter().collect();
            strip(&mut message.clone());
            passes(message.view(), "sandarac");
        }
    }
}
