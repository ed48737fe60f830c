//! The request as the origin gets it: written anew from its parsed form, with what gateways add and without what is
//! the connection's own.

use crate::step::fetch::OriginRequest;
use crate::step::hash;
use crate::step::receive::Received;
use sandarac_cache::Object;
use sandarac_config::Sticky;
use sandarac_message::caching::SURROGATE_CAPABILITY;
use sandarac_message::codings::Codings;
use sandarac_message::conditional::{make_continuation, make_unconditional, make_validation};
use sandarac_message::hop::{self, MaxForwards};
use sandarac_message::target::Scheme;
use sandarac_message::{Field, Fields, FieldsBuf, Name, RequestHead, TooLarge, cookies, range};
use sandarac_policy::{CacheRule, Edits, RequestParts, ResponseEdits};
use sandarac_wire::h1::BodyFraming;
use std::net::IpAddr;

/// Who asks, as the origin is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    /// The address of the connection, or the one that the PROXY protocol announced.
    pub(crate) ip: Option<IpAddr>,
    /// The address of the visitor, as logs name it, where an edit of the request takes it.
    pub(crate) visitor: Option<IpAddr>,
    /// Whether what it says in forwarding fields is believed.
    pub(crate) trusted: bool,
    pub(crate) scheme: Scheme,
    /// The host asked for, as received; as it is keyed where the response may be stored, since applications write it into
    /// pages. Empty where none was named.
    pub(crate) host: &'a [u8],
}

impl Asker<'_> {
    /// The same of a request for `host`.
    pub(crate) fn asking(self, host: &[u8]) -> Asker<'_> {
        let Asker { ip, visitor, trusted, scheme, host: _ } = self;
        Asker { ip, visitor, trusted, scheme, host }
    }
}

/// What origins are told of the way of a request.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    pub(crate) forwarding: hop::Forwarding,
    /// Whether fields go on whose names have underscores.
    pub(crate) underscores: bool,
    /// This proxy's name in Via.
    pub(crate) name: Box<str>,
}

/// What the request is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// One client alone gets the response: the request goes on as it came.
    Pass,
    /// The response may be stored and serve others: conditions, and inputs that are not keyed, stay here. A range
    /// stays here too unless `part` says otherwise.
    Fill {
        rule: &'a CacheRule,
        /// A stored response to be validated; with `part`, a stored part to be completed.
        candidate: Option<&'a Object>,
        /// The range to ask for.
        part: Option<range::RangeSpec>,
    },
    /// HEAD, whose response tells something about what is stored: for the same codings as what is.
    Head { rule: &'a CacheRule },
    /// The connection is to become a tunnel.
    Tunnel,
}

impl Purpose<'_> {
    /// Whether one client alone gets the response, so that nobody wants it once that has gone.
    pub(crate) fn is_for_one_client(&self) -> bool {
        matches!(self, Purpose::Pass | Purpose::Head { .. })
    }

    /// The rule that the response is stored by, or told about what is stored.
    fn rule(&self) -> Option<&CacheRule> {
        match self {
            Purpose::Fill { rule, .. } | Purpose::Head { rule } => Some(rule),
            Purpose::Pass | Purpose::Tunnel => None,
        }
    }
}

/// Everything that makes the forwarded head.
pub(crate) struct Forward<'a> {
    pub(crate) request: RequestHead<'a>,
    pub(crate) asker: Asker<'a>,
    pub(crate) introduction: &'a Introduction,
    pub(crate) edits: &'a Edits,
    /// What tells the request from all others; empty where no edit takes it.
    pub(crate) id: &'a str,
    pub(crate) target: &'a [u8],
    /// How sessions stick to a backend: by a cookie that is not the application's.
    pub(crate) sticky: Option<&'a Sticky>,
    pub(crate) expect_continue: bool,
    /// Whether trailers of the body go on.
    pub(crate) trailers: bool,
    pub(crate) purpose: Purpose<'a>,
}

/// Fields by which some applications let a client choose host, path, method or scheme. Unless a rule keys them, a stored
/// response must not depend on them: whoever asked first would choose for everyone (web cache poisoning).
const UNKEYED: [&[u8]; 58] = [
    b"surrogate-capability",
    // Path and query: Symfony, IIS and Zend, Traefik, ingress-nginx and others.
    b"x-original-url",
    b"x-original-uri",
    b"x-rewrite-url",
    b"x-request-uri",
    b"x-forwarded-uri",
    b"x-forwarded-url",
    b"x-forwarded-path",
    b"x-forwarded-prefix",
    b"x-script-name",
    b"x-envoy-original-path",
    b"x-middleware-subrequest",
    b"x-rewritten-url",
    b"x-rewrite-path",
    b"x-original-path",
    b"x-original-request-uri",
    b"x-override-url",
    b"x-http-path-override",
    b"x-url",
    b"x-path",
    b"x-matched-path",
    b"x-now-route-matches",
    b"x-invoke-path",
    b"x-invoke-status",
    b"x-invoke-query",
    b"x-middleware-prefetch",
    b"x-waws-unencoded-url",
    // Host and port.
    b"x-real-host",
    b"forwarded-host",
    b"forwarded-proto",
    b"host-override",
    b"base-url",
    b"proxy-host",
    b"x-original-host",
    b"x-host",
    b"x-host-override",
    b"x-http-host-override",
    b"x-rewrite-host",
    b"x-backend-host",
    b"x-forwarded-server",
    b"x-forwarded-port",
    // Scheme: Rack, Django's and Laravel's examples, gunicorn, Microsoft.
    b"x-forwarded-scheme",
    b"x-forwarded-protocol",
    b"x-forwarded-ssl",
    b"x-forwarded-https",
    b"x-scheme",
    b"x-url-scheme",
    b"x-https",
    b"x-ssl",
    b"x-arr-ssl",
    b"front-end-https",
    b"cloudfront-forwarded-proto",
    // Method.
    b"x-http-method-override",
    b"x-http-method",
    b"x-method-override",
    b"x-method",
    b"x-original-method",
    b"x-forwarded-method",
];

/// What some servers call the address of the client.
const REAL_IP: &[u8] = b"X-Real-IP";

/// CGI takes it for the setting HTTP_PROXY, by which libraries choose a proxy of their own (CVE-2016-5385).
const PROXY: &[u8] = b"proxy";

impl<'a> Forward<'a> {
    /// The request, whose body is framed by `framing`; `response` are the edits of what answers it.
    pub(crate) fn request(
        &self,
        framing: BodyFraming,
        response: &'a ResponseEdits,
    ) -> Result<OriginRequest<'a>, TooLarge> {
        let tunnel = matches!(self.purpose, Purpose::Tunnel);
        let one_client = self.purpose.is_for_one_client();
        Ok(OriginRequest {
            method: self.request.method,
            method_text: self.request.method_text,
            target: self.target,
            fields: self.fields()?,
            tunnel,
            protocols: hop::upgrade(self.request.fields).filter(|_| tunnel),
            // What is stored serves those who read trailers and those who do not, so it is not asked for in the name of one.
            takes_trailers: one_client && hop::accepts_trailers(self.request.fields),
            one_client,
            framing,
            edits: response,
        })
    }

    /// The fields that are not the connection's own.
    fn fields(&self) -> Result<FieldsBuf, TooLarge> {
        let received = self.request.fields;
        // Room for what is added: forwarding fields and Via.
        let bytes = Vec::with_capacity(received.encoded_len() + 320);
        let mut fields = FieldsBuf::after(bytes, received.len() + 8);
        fields.add(Name::Host, self.asker.host)?;
        // What Connection names was taken out when the request was read.
        fields.extend(received, |field| !hop::is_standing(field.id) && !self.is_withheld(field))?;
        if let Some(sticky) = self.sticky {
            cookies::retain(&mut fields, |cookie| cookie.name != sticky.cookie.as_str().as_bytes())?;
        }
        if let Purpose::Fill { rule, candidate, part } = self.purpose {
            cookies::retain(&mut fields, |cookie| is_forwarded(rule, cookie.name))?;
            match (candidate, part) {
                (Some(object), None) => _ = make_validation(&mut fields, object.fields())?,
                (Some(object), Some(lacks)) => {
                    make_continuation(&mut fields, object.fields(), lacks, object.received())?;
                }
                (None, None) => make_unconditional(&mut fields),
                (None, Some(part)) => {
                    make_unconditional(&mut fields);
                    let mut value = Vec::new();
                    part.write(&mut value);
                    fields.add(Name::Range, &value)?;
                }
            }
        }
        if let Some(rule) = self.purpose.rule() {
            self.accept_codings(&mut fields, rule)?;
        }
        if let Purpose::Fill { .. } = self.purpose {
            fields.push(b"Surrogate-Capability", SURROGATE_CAPABILITY.as_bytes())?;
        }
        if let MaxForwards::Forward(left) = hop::max_forwards(self.request.method, received) {
            fields.set(Name::MaxForwards, left.to_string().as_bytes())?;
        }
        self.introduce(&mut fields)?;
        let parts = RequestParts {
            client: self.asker.visitor,
            id: self.id,
            scheme: self.asker.scheme.text(),
            host: self.asker.host,
            target: self.target,
        };
        self.edits.apply(&mut fields, &parts)?;
        Ok(fields)
    }

    /// Asks for the codings that the variant stands for.
    fn accept_codings(&self, fields: &mut FieldsBuf, rule: &CacheRule) -> Result<(), TooLarge> {
        if forwards_raw_codings(self.request.fields, rule) {
            return Ok(());
        }
        match Codings::of(self.request.fields) {
            Some(codings) => fields.replace(Name::AcceptEncoding.text().as_bytes(), &codings.value()),
            None => Ok(()),
        }
    }

    /// Whether a received field is left out, or written anew.
    fn is_withheld(&self, field: &Field<'_>) -> bool {
        match (field.id, self.purpose) {
            (Name::Host | Name::Expect, _) => true,
            (Name::Trailer, _) => !self.trailers,
            (Name::Other, Purpose::Fill { rule, .. }) if is_keyed(field, rule) => false,
            (Name::Other, _) if field.is(PROXY) || self.is_claimed_address(field) => true,
            (Name::Other, _) if field.name.contains(&b'_') && !self.introduction.underscores => true,
            (Name::Other, Purpose::Fill { rule, .. }) => is_unkeyed(field, rule),
            (Name::Other, _) => is_alias(field),
            (name, Purpose::Fill { rule, .. }) => is_of_proxies(name) && !is_keyed(field, rule),
            _ => false,
        }
    }

    /// Whether a client that is not trusted says by this field what its address is.
    fn is_claimed_address(&self, field: &Field<'_>) -> bool {
        !self.asker.trusted && field.is(REAL_IP)
    }

    /// Adds what a gateway says of itself and of the client.
    fn introduce(&self, fields: &mut FieldsBuf) -> Result<(), TooLarge> {
        if self.expect_continue {
            fields.add(Name::Expect, b"100-continue")?;
        }
        if self.request.fields.iter().any(|field| self.is_claimed_address(&field))
            && let Some(ip) = self.asker.ip
        {
            fields.push(REAL_IP, ip.to_string().as_bytes())?;
        }
        let peer = hop::Peer {
            address: self.asker.ip,
            scheme: self.asker.scheme,
            host: Some(self.asker.host).filter(|host| !host.is_empty()),
            trusted: self.asker.trusted,
        };
        hop::set_forwarded(fields, &peer, self.introduction.forwarding)?;
        hop::add_via(fields, self.request.version, &self.introduction.name)
    }
}

/// Whether a request that goes on as it came is the one that would be made for the store: what its response says is then right
/// for all.
pub(crate) fn is_for_all(request: &RequestHead<'_>, received: &Received<'_>, rule: &CacheRule) -> bool {
    let target = received.target.path_and_query;
    let unkeyed = |field: Field<'_>| match field.id {
        Name::Other => is_unkeyed(&field, rule),
        name => received.asker.trusted && is_of_proxies(name) && !is_keyed(&field, rule),
    };
    received.asker.host == &*received.host
        && hash::target(&rule.key, target) == target
        && !request.fields.iter().any(unkeyed)
        && cookies::cookies(request.fields).all(|cookie| is_forwarded(rule, cookie.name))
}

fn forwards_raw_codings(request: Fields<'_>, rule: &CacheRule) -> bool {
    let is_keyed = |field: Field<'_>| field.id == Name::AcceptEncoding && is_keyed(&field, rule);
    rule.policy.vary.raw_codings || request.iter().any(is_keyed)
}

/// Whether the response to a request that went on as it came has a coding that all clients of the same variant accept.
pub(crate) fn fits_variant(request: Fields<'_>, response: Fields<'_>, rule: &CacheRule) -> bool {
    forwards_raw_codings(request, rule)
        || !response.has(Name::ContentEncoding)
        || Codings::of(request).is_some_and(|codings| codings.accept(response))
}

fn is_keyed(field: &Field<'_>, rule: &CacheRule) -> bool {
    rule.key.fields.iter().any(|name| field.is(name))
}

/// Whether a field that is not among the known ones must not make a difference to a stored response.
fn is_unkeyed(field: &Field<'_>, rule: &CacheRule) -> bool {
    let listed = || UNKEYED.iter().any(|name| field.is(name));
    let respelled = || rule.key.fields.iter().any(|name| is_respelled(field.name, name));
    (field.name.contains(&b'_') || listed() || respelled()) && !is_keyed(field, rule)
}

/// Whether a field, in the place of a trailer, could choose what an application does.
pub(crate) fn is_suspect(field: &Field<'_>) -> bool {
    field.name.contains(&b'_') || UNKEYED.iter().any(|name| field.is(name))
}

/// Whether a field says what a trusted proxy was asked for. Such proxies hand on what clients wrote there, often enough.
fn is_of_proxies(name: Name) -> bool {
    matches!(name, Name::Forwarded | Name::XForwardedHost | Name::XForwardedProto)
}

/// Whether two names differ in letter case and in hyphens for underscores alone.
fn is_respelled(one: &[u8], other: &[u8]) -> bool {
    let plain = |name| hyphenated(name).map(|byte| byte.to_ascii_lowercase());
    one.len() == other.len() && plain(one).eq(plain(other))
}

/// Whether applications that take fields from their environment (CGI, FastCGI, WSGI) find this one, whose name has underscores,
/// in place of one with hyphens that a proxy wrote or a server obeyed.
fn is_alias(field: &Field<'_>) -> bool {
    field.name.contains(&b'_') && Name::of(&hyphenated(field.name).collect::<Vec<u8>>()) != Name::Other
}

/// A name with hyphens for underscores.
fn hyphenated(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte })
}

/// Whether a cookie goes to the origin although the response may be stored: where named cookies bypass the cache, what
/// got here has none of them, and the others would make a difference that the key does not know.
fn is_forwarded(rule: &CacheRule, name: &[u8]) -> bool {
    use sandarac_message::caching::CookieRule;
    let keyed = rule.key.cookies.iter().any(|glob| glob.matches(name));
    let ignored = rule.policy.ignored_cookies.iter().any(|glob| glob.matches(name));
    keyed || (!ignored && !matches!(rule.policy.bypass_cookies, CookieRule::Named(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::fetch::encode_request;
    use sandarac_message::caching::Policy;
    use sandarac_message::{Method, RequestHeadBuf, Version};

    fn forwarded(purpose: Purpose<'_>, trusted: bool, lines: &[(&str, &str)]) -> String {
        let head = RequestHeadBuf {
            method: Method::Get,
            method_text: b"GET"[..].into(),
            target: b"/p"[..].into(),
            version: Version::Http11,
            fields: lines.iter().copied().collect(),
        };
        let forward = Forward {
            request: head.view(),
            asker: Asker {
                ip: Some("192.0.2.7".parse().unwrap()),
                visitor: None,
                trusted,
                scheme: Scheme::Http,
                host: b"example.com",
            },
            introduction: &Introduction {
                forwarding: hop::Forwarding { x_forwarded: true, forwarded: false },
                underscores: false,
                name: "sandarac".into(),
            },
            edits: &Edits::default(),
            id: "",
            target: b"/p",
            sticky: None,
            expect_continue: false,
            trailers: false,
            purpose,
        };
        let edits = ResponseEdits::default();
        let request = forward.request(BodyFraming::None, &edits).unwrap();
        String::from_utf8(encode_request(&request, &FieldsBuf::new())).unwrap()
    }

    fn rule() -> CacheRule {
        CacheRule {
            policy: Policy::rfc(),
            key: sandarac_policy::KeyRule::default(),
            max_object: sandarac_policy::ByteSize(1 << 20),
            stale_after: None,
        }
    }

    const INTRODUCTION: &str = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n\
        X-Forwarded-Host: example.com\r\nVia: 1.1 sandarac\r\n\r\n";

    #[test]
    fn a_pass_keeps_what_is_end_to_end_in_order_and_case() {
        let sent = forwarded(
            Purpose::Pass,
            false,
            &[("x-A", "1"), ("Connection", "close"), ("Keep-Alive", "5"), ("Range", "bytes=0-1")],
        );
        assert_eq!(
            sent,
            format!("GET /p HTTP/1.1\r\nHost: example.com\r\nx-A: 1\r\nRange: bytes=0-1\r\n{INTRODUCTION}")
        );
    }

    #[test]
    fn a_fill_sends_neither_conditions_nor_ranges_nor_inputs_outside_the_key() {
        let sent = forwarded(
            Purpose::Fill { rule: &rule(), candidate: None, part: None },
            false,
            &[
                ("If-None-Match", "\"a\""),
                ("Range", "bytes=0-1"),
                ("X-Original-URL", "/admin"),
                ("X-Forwarded-Host", "evil.example"),
                ("Forwarded", "host=evil.example"),
            ],
        );
        assert_eq!(
            sent,
            format!(
                "GET /p HTTP/1.1\r\nHost: example.com\r\nAccept-Encoding: identity\r\n\
                 Surrogate-Capability: {SURROGATE_CAPABILITY}\r\n{INTRODUCTION}"
            )
        );
    }

    #[test]
    fn cookies_that_neither_bypass_nor_are_keyed_stay_here() {
        let mut rule = rule();
        rule.policy.bypass_cookies =
            sandarac_message::caching::CookieRule::Named(vec![sandarac_message::glob::Glob::new("session*")]);
        rule.key.cookies = vec![sandarac_message::glob::Glob::new("theme")];
        let fill = Purpose::Fill { rule: &rule, candidate: None, part: None };
        let sent = forwarded(fill, false, &[("Cookie", "a=1; theme=dark; b=2")]);
        assert!(sent.contains("\r\nCookie: theme=dark\r\n"), "{sent}");
    }

    #[test]
    fn a_trusted_proxy_is_believed_and_added_to() {
        let sent = forwarded(
            Purpose::Pass,
            true,
            &[("X-Forwarded-For", "198.51.100.1"), ("X-Forwarded-Proto", "https")],
        );
        assert!(sent.contains("X-Forwarded-For: 198.51.100.1, 192.0.2.7\r\n"), "{sent}");
        assert!(sent.contains("X-Forwarded-Proto: https\r\n"), "{sent}");
    }
}
