//! The request as sent to the origin: rewritten from its parsed form, with a gateway's fields and without
//! hop-by-hop fields.

use crate::request::client_certificate::{
    add_client_certificate, is_client_certificate, is_of_other_proxies,
};
use crate::request::hash;
use crate::request::received::Received;
use crate::request::requester::Requester;
use crate::request::unkeyed::{
    PROXY, REAL_IP, is_about_files, is_alias, is_forwarded, is_keyed, is_of_proxies, is_unkeyed,
};
use crate::site::Introduction;
use crate::step::fetch::OriginRequest;
use sandarac_cache::Object;
use sandarac_config::Sticky;
use sandarac_message::caching::{SURROGATE_CAPABILITY, SURROGATE_CAPABILITY_ESI};
use sandarac_message::codings::Codings;
use sandarac_message::conditional::{make_continuation, make_unconditional, make_validation};
use sandarac_message::forwarding;
use sandarac_message::hop::{self, MaxForwards};
use sandarac_message::{Field, Fields, FieldsBuf, Method, Name, RequestHead, TooLarge, cookies, range};
use sandarac_policy::{CacheRule, Edits, RequestParts, ResponseEdits, TlsParts};
use sandarac_wire::h1::BodyFraming;

/// The field that announces what this proxy does with responses (W3C Edge Architecture).
const CAPABILITY: &[u8] = b"Surrogate-Capability";

/// The purpose of the request.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// For one client alone: forwarded as received.
    Pass,
    /// The response may be stored and serve others. Conditions and unkeyed inputs are not forwarded, nor is a
    /// range unless `part` is set.
    Fill {
        rule: &'a CacheRule,
        /// A stored response to validate; with `part`, a stored part to complete.
        candidate: Option<&'a Object>,
        /// The range to request.
        part: Option<range::RangeSpec>,
    },
    /// HEAD, whose response may update a stored one. It is sent with the codings of the stored variant.
    Head { rule: &'a CacheRule },
    /// The connection is to become a tunnel.
    Tunnel,
}

impl Purpose<'_> {
    /// Whether the response is for one client alone, and therefore unwanted once that client has gone.
    pub(crate) fn is_for_one_client(&self) -> bool {
        matches!(self, Purpose::Pass | Purpose::Head { .. })
    }

    /// The cache rule of the stored response, or of the one to store.
    fn rule(&self) -> Option<&CacheRule> {
        match self {
            Purpose::Fill { rule, .. } | Purpose::Head { rule } => Some(rule),
            Purpose::Pass | Purpose::Tunnel => None,
        }
    }
}

/// All inputs to the forwarded head.
pub(crate) struct Forward<'a> {
    pub(crate) request: RequestHead<'a>,
    pub(crate) requester: Requester<'a>,
    pub(crate) introduction: &'a Introduction,
    pub(crate) edits: &'a Edits,
    /// The request's unique id; empty if no edit uses it.
    pub(crate) id: &'a str,
    pub(crate) target: &'a [u8],
    /// The configuration of sticky sessions. Their cookie is not the application's.
    pub(crate) sticky: Option<&'a Sticky>,
    pub(crate) expect_continue: bool,
    /// Whether trailers of the body are forwarded.
    pub(crate) trailers: bool,
    /// Whether the response may be a page with fragments.
    pub(crate) fragments: bool,
    pub(crate) purpose: Purpose<'a>,
}

impl<'a> Forward<'a> {
    /// The request, with a body framed by `framing`; `response` are the edits of its response.
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
            // A stored response serves clients that read trailers and clients that do not, so it is not
            // requested with TE.
            takes_trailers: one_client && hop::accepts_trailers(self.request.fields),
            is_grpc: hop::is_grpc(&self.request),
            one_client,
            framing: if framing == BodyFraming::None && !tunnel { self.no_body() } else { framing },
            cgi: None,
            edits: response,
        })
    }

    /// The framing of a request without a body. Some origins refuse one with 411 unless it announces its
    /// length (RFC 9110 §8.6).
    fn no_body(&self) -> BodyFraming {
        match self.request.method {
            Method::Post | Method::Put | Method::Patch => BodyFraming::Length(0),
            Method::Get | Method::Head => BodyFraming::None,
            _ if self.request.fields.get(Name::ContentLength).is_some() => BodyFraming::Length(0),
            _ => BodyFraming::None,
        }
    }

    /// The end-to-end fields.
    fn fields(&self) -> Result<FieldsBuf, TooLarge> {
        let received = self.request.fields;
        // Room for the added forwarding fields and Via.
        let bytes = Vec::with_capacity(received.encoded_len() + 320);
        let mut fields = FieldsBuf::after(bytes, received.len() + 8);
        fields.add(Name::Host, self.requester.host)?;
        // Fields that Connection names were removed when the request was read.
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
        let is_read = matches!(self.request.method, Method::Get | Method::Head);
        if self.fragments && is_read && self.purpose.is_for_one_client() {
            // The backend knows only the text of the page that the client has.
            make_unconditional(&mut fields);
        }
        if let Some(rule) = self.purpose.rule() {
            self.accept_codings(&mut fields, rule)?;
        }
        if let Purpose::Fill { part: Some(_), rule: CacheRule { accept_encoding: Some(_), .. }, .. } =
            self.purpose
        {
            // A part of a coded body serves nobody who cannot take the coding.
            fields.set(Name::AcceptEncoding, b"identity")?;
        }
        match self.purpose {
            Purpose::Tunnel => {}
            _ if self.fragments => {
                fields.push(CAPABILITY, SURROGATE_CAPABILITY_ESI.as_bytes())?;
                // Tags are found in no other body.
                fields.replace(Name::AcceptEncoding.text().as_bytes(), b"identity")?;
            }
            Purpose::Fill { .. } => fields.push(CAPABILITY, SURROGATE_CAPABILITY.as_bytes())?,
            Purpose::Pass | Purpose::Head { .. } => {}
        }
        if let MaxForwards::Forward(left) = hop::max_forwards(self.request.method, received) {
            fields.set(Name::MaxForwards, left.to_string().as_bytes())?;
        }
        self.introduce(&mut fields)?;
        let tls = self.requester.tls.filter(|_| self.edits.needs_tls());
        let cipher = tls.map(|tls| tls.suite_name()).unwrap_or_default();
        let parts = RequestParts {
            client: self.requester.visitor,
            id: self.id,
            scheme: self.requester.scheme.text(),
            host: self.requester.host,
            target: self.target,
            tls: tls.map(|tls| TlsParts {
                version: tls.version_name(),
                cipher: &cipher,
                server_name: tls.server_name.as_deref().unwrap_or_default(),
                resumed: tls.resumed,
                client_certificate: tls.certificate_digest.as_deref().unwrap_or_default(),
            }),
        };
        self.edits.apply(&mut fields, &parts)?;
        Ok(fields)
    }

    /// Requests the codings of the variant.
    fn accept_codings(&self, fields: &mut FieldsBuf, rule: &CacheRule) -> Result<(), TooLarge> {
        if let Some(codings) = rule.accept_encoding {
            return fields.replace(Name::AcceptEncoding.text().as_bytes(), codings.as_bytes());
        }
        if forwards_raw_codings(self.request.fields, rule) {
            return Ok(());
        }
        match Codings::of(self.request.fields) {
            Some(codings) => fields.replace(Name::AcceptEncoding.text().as_bytes(), &codings.value()),
            None => Ok(()),
        }
    }

    /// Whether a received field is dropped or rewritten.
    fn is_withheld(&self, field: &Field<'_>) -> bool {
        match (field.id, self.purpose) {
            (Name::Host | Name::Expect, _) => true,
            (Name::Trailer, _) => !self.trailers,
            (Name::Other, _) if self.is_claimed_certificate(field) => true,
            (Name::Other, _) if !self.requester.trusted && is_about_files(field) => true,
            // Keyed certificates are those of the connection by now, or a trusted proxy's word.
            (Name::Other, Purpose::Fill { rule, .. }) if is_keyed(field, rule) => false,
            (Name::Other, _) if !self.requester.trusted && is_client_certificate(field) => true,
            (Name::Other, _) if self.fragments && field.is(CAPABILITY) => true,
            (Name::Other, _) if field.is(PROXY) || self.is_claimed_address(field) => true,
            (Name::Other, _) if field.name.contains(&b'_') && !self.introduction.underscores => true,
            (Name::Other, Purpose::Fill { .. }) if is_client_certificate(field) => true,
            (Name::Other, Purpose::Fill { rule, .. }) => is_unkeyed(field, rule),
            (Name::Other, _) => is_alias(field),
            (name, Purpose::Fill { rule, .. }) => is_of_proxies(name) && !is_keyed(field, rule),
            _ => false,
        }
    }

    /// Whether a client that is not trusted claims a certificate with this field of another proxy. Such names
    /// may have other uses where nobody asks for certificates.
    fn is_claimed_certificate(&self, field: &Field<'_>) -> bool {
        let Requester { certificate_forward, trusted, .. } = self.requester;
        certificate_forward.is_some() && !trusted && is_of_other_proxies(field)
    }

    /// Whether a client that is not trusted claims an address with this field.
    fn is_claimed_address(&self, field: &Field<'_>) -> bool {
        !self.requester.trusted && field.is(REAL_IP)
    }

    /// Adds the fields in which a gateway describes itself and the client.
    fn introduce(&self, fields: &mut FieldsBuf) -> Result<(), TooLarge> {
        if self.expect_continue {
            fields.add(Name::Expect, b"100-continue")?;
        }
        if self.request.fields.iter().any(|field| self.is_claimed_address(&field))
            && let Some(ip) = self.requester.ip
        {
            fields.push(REAL_IP, ip.to_string().as_bytes())?;
        }
        // The certificate of a trusted proxy's own connection is not that of its client.
        if let (Some(tls), Some(forward)) = (self.requester.tls, self.requester.certificate_forward)
            && !self.requester.trusted
        {
            add_client_certificate(fields, &tls.certificates, forward)?;
        }
        let peer = forwarding::Peer {
            address: self.requester.ip,
            scheme: self.requester.scheme,
            host: Some(self.requester.host).filter(|host| !host.is_empty()),
            trusted: self.requester.trusted,
        };
        forwarding::set_forwarded(fields, &peer, self.introduction.forwarding)?;
        hop::add_via(fields, self.request.version, &self.introduction.name)
    }
}

/// Whether a request forwarded as received equals the one that would be made for the store. Its response is
/// then valid for all clients.
pub(crate) fn is_for_all(request: &RequestHead<'_>, received: &Received<'_>, rule: &CacheRule) -> bool {
    let target = received.target.path_and_query;
    let unkeyed = |field: Field<'_>| match field.id {
        Name::Other => is_unkeyed(&field, rule),
        name => received.requester.trusted && is_of_proxies(name) && !is_keyed(&field, rule),
    };
    received.requester.host == &*received.host
        && hash::target(&rule.key, target) == target
        && !request.fields.iter().any(unkeyed)
        && cookies::cookies(request.fields).all(|cookie| is_forwarded(rule, cookie.name))
}

fn forwards_raw_codings(request: Fields<'_>, rule: &CacheRule) -> bool {
    let is_keyed = |field: Field<'_>| field.id == Name::AcceptEncoding && is_keyed(&field, rule);
    rule.policy.vary.raw_codings || request.iter().any(is_keyed)
}

/// Whether the response to a request forwarded as received has a coding that all clients of the variant
/// accept.
pub(crate) fn fits_variant(request: Fields<'_>, response: Fields<'_>, rule: &CacheRule) -> bool {
    forwards_raw_codings(request, rule)
        || !response.has(Name::ContentEncoding)
        || Codings::of(request).is_some_and(|codings| codings.accept(response))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::fetch::encode_request;
    use sandarac_message::caching::Policy;
    use sandarac_message::target::Scheme;
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
            requester: Requester {
                ip: Some("192.0.2.7".parse().unwrap()),
                port: None,
                visitor: None,
                trusted,
                scheme: Scheme::Http,
                host: b"example.com",
                tls: None,
                certificate_forward: Some(sandarac_config::ClientCertificateForward::Leaf),
            },
            introduction: &Introduction {
                forwarding: forwarding::Forwarding { x_forwarded: true, forwarded: false },
                underscores: false,
                name: "sandarac".into(),
            },
            edits: &Edits::default(),
            id: "",
            target: b"/p",
            sticky: None,
            expect_continue: false,
            trailers: false,
            fragments: false,
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
            shared: sandarac_policy::SharedUse::Off,
            accept_encoding: None,
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
