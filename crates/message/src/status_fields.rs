//! Cache-Status (RFC 9211) and Proxy-Status (RFC 9209): the report of this cache on a response.

use std::io::Write;

/// Why a request was forwarded (RFC 9211 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// The cache was told not to handle it.
    Bypass,
    /// By its method.
    Method,
    /// Nothing is stored for its URI.
    UriMiss,
    /// Nothing that is stored for its URI is selected by it.
    VaryMiss,
    /// Nothing is stored that could answer it, for either reason.
    Miss,
    /// Something fresh is stored, but the request's own directives forbid its use.
    Request,
    /// Something is stored, but stale.
    Stale,
    /// Something is stored, but not all of the range it asks for.
    Partial,
}

impl Forward {
    /// The token of the field.
    pub const fn text(self) -> &'static str {
        match self {
            Forward::Bypass => "bypass",
            Forward::Method => "method",
            Forward::UriMiss => "uri-miss",
            Forward::VaryMiss => "vary-miss",
            Forward::Miss => "miss",
            Forward::Request => "request",
            Forward::Stale => "stale",
            Forward::Partial => "partial",
        }
    }
}

/// Our member of Cache-Status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// Answered from the cache, without forwarding. Excludes `forward`.
    pub hit: bool,
    /// Why it was forwarded.
    pub forward: Option<Forward>,
    /// The status that the origin answered, where the response has another one.
    pub forward_status: Option<u16>,
    /// Seconds of freshness left, negative when stale.
    pub ttl: Option<i64>,
    /// Whether the response was stored.
    pub stored: bool,
    /// Whether the request shared another's fetch; `None` where there was nothing to share.
    pub collapsed: Option<bool>,
    /// The cache key.
    pub key: Option<&'a [u8]>,
    /// Anything else.
    pub detail: Option<&'a str>,
}

impl CacheStatus<'_> {
    /// Writes the member, for a cache called `name`, to the end of `out`. Allocates nothing else.
    pub fn write(&self, name: &str, out: &mut Vec<u8>) {
        item(name.as_bytes(), out);
        if self.hit {
            out.extend_from_slice(b"; hit");
        }
        if let Some(forward) = self.forward {
            out.extend_from_slice(b"; fwd=");
            out.extend_from_slice(forward.text().as_bytes());
        }
        if let Some(status) = self.forward_status {
            number("fwd-status", status.into(), out);
        }
        if let Some(ttl) = self.ttl {
            number("ttl", ttl, out);
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        match self.collapsed {
            Some(true) => out.extend_from_slice(b"; collapsed"),
            Some(false) => out.extend_from_slice(b"; collapsed=?0"),
            None => {}
        }
        if let Some(key) = self.key {
            out.extend_from_slice(b"; key=");
            string(key, out);
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            item(detail.as_bytes(), out);
        }
    }
}

macro_rules! proxy_errors {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal);* $(;)?) => {
        /// What went wrong between this proxy and the next hop (RFC 9209 §2.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProxyError {
            $($(#[$doc])* $variant),*
        }

        impl ProxyError {
            /// The token of the field.
            pub const fn text(self) -> &'static str {
                match self { $(ProxyError::$variant => $text),* }
            }

            /// The status that the RFC recommends for the response the proxy makes.
            pub const fn status(self) -> u16 {
                match self { $(ProxyError::$variant => $status),* }
            }

            /// Every error.
            pub const ALL: &'static [ProxyError] = &[$(ProxyError::$variant),*];
        }
    };
}

proxy_errors! {
    /// The name lookup took too long.
    DnsTimeout = "dns_timeout", 504;
    /// The name lookup failed.
    DnsError = "dns_error", 502;
    /// No backend fits the request.
    DestinationNotFound = "destination_not_found", 500;
    /// Every backend that fits is known to be down.
    DestinationUnavailable = "destination_unavailable", 503;
    /// The backend's address may not be connected to.
    DestinationIpProhibited = "destination_ip_prohibited", 502;
    /// There is no route to the backend.
    DestinationIpUnroutable = "destination_ip_unroutable", 502;
    /// The backend refused the connection.
    ConnectionRefused = "connection_refused", 502;
    /// The connection closed before the response was complete.
    ConnectionTerminated = "connection_terminated", 502;
    /// Connecting took too long.
    ConnectionTimeout = "connection_timeout", 504;
    /// The backend sent nothing for too long.
    ConnectionReadTimeout = "connection_read_timeout", 504;
    /// The backend took nothing for too long.
    ConnectionWriteTimeout = "connection_write_timeout", 504;
    /// The backend has as many connections as it may have.
    ConnectionLimitReached = "connection_limit_reached", 503;
    /// TLS failed.
    TlsProtocolError = "tls_protocol_error", 502;
    /// The backend's certificate is not to be trusted.
    TlsCertificateError = "tls_certificate_error", 502;
    /// The backend sent a TLS alert.
    TlsAlertReceived = "tls_alert_received", 502;
    /// The request is malformed or cannot be forwarded.
    HttpRequestError = "http_request_error", 400;
    /// A rule of the proxy forbids the request.
    HttpRequestDenied = "http_request_denied", 403;
    /// The response broke off.
    HttpResponseIncomplete = "http_response_incomplete", 502;
    /// The response's header section is too large.
    HttpResponseHeaderSectionSize = "http_response_header_section_size", 502;
    /// A header field of the response is too large.
    HttpResponseHeaderSize = "http_response_header_size", 502;
    /// The response's body is too large.
    HttpResponseBodySize = "http_response_body_size", 502;
    /// The response's trailer section is too large.
    HttpResponseTrailerSectionSize = "http_response_trailer_section_size", 502;
    /// A trailer field of the response is too large.
    HttpResponseTrailerSize = "http_response_trailer_size", 502;
    /// The response's transfer coding is unknown or broken.
    HttpResponseTransferCoding = "http_response_transfer_coding", 502;
    /// The response's content coding is broken.
    HttpResponseContentCoding = "http_response_content_coding", 502;
    /// The response took too long.
    HttpResponseTimeout = "http_response_timeout", 504;
    /// The upgrade failed.
    HttpUpgradeFailed = "http_upgrade_failed", 502;
    /// The backend broke the protocol.
    HttpProtocolError = "http_protocol_error", 502;
    /// The proxy made this response itself, and nothing is wrong.
    ProxyInternalResponse = "proxy_internal_response", 200;
    /// The proxy itself failed.
    ProxyInternalError = "proxy_internal_error", 500;
    /// The proxy's configuration is wrong.
    ProxyConfigurationError = "proxy_configuration_error", 500;
    /// The request has been here before.
    ProxyLoopDetected = "proxy_loop_detected", 502;
}

/// Our member of Proxy-Status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyStatus<'a> {
    /// What went wrong.
    pub error: Option<ProxyError>,
    /// The backend that was asked.
    pub next_hop: Option<&'a [u8]>,
    /// The ALPN identifier of the protocol that was spoken to it.
    pub next_protocol: Option<&'a str>,
    /// The status it answered, where the response has another one.
    pub received_status: Option<u16>,
    /// Anything else.
    pub details: Option<&'a str>,
}

impl ProxyStatus<'_> {
    /// Writes the member, for a proxy called `name`, to the end of `out`. Allocates nothing else.
    pub fn write(&self, name: &str, out: &mut Vec<u8>) {
        item(name.as_bytes(), out);
        if let Some(error) = self.error {
            out.extend_from_slice(b"; error=");
            out.extend_from_slice(error.text().as_bytes());
        }
        if let Some(next_hop) = self.next_hop {
            out.extend_from_slice(b"; next-hop=");
            item(next_hop, out);
        }
        if let Some(protocol) = self.next_protocol {
            out.extend_from_slice(b"; next-protocol=");
            item(protocol.as_bytes(), out);
        }
        if let Some(status) = self.received_status {
            number("received-status", status.into(), out);
        }
        if let Some(details) = self.details {
            out.extend_from_slice(b"; details=");
            string(details.as_bytes(), out);
        }
    }
}

fn number(key: &str, number: i64, out: &mut Vec<u8>) {
    // Structured fields hold integers of up to 15 digits (RFC 9651 §3.3.1). Writing to a vector cannot fail.
    const LIMIT: i64 = 999_999_999_999_999;
    let _ = write!(out, "; {key}={}", number.clamp(-LIMIT, LIMIT));
}

/// A token where `text` is one (RFC 9651 §3.3.4), else a string.
fn item(text: &[u8], out: &mut Vec<u8>) {
    let starts = text.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'*');
    if starts && text.iter().all(|&byte| crate::is_tchar(byte) || byte == b':' || byte == b'/') {
        out.extend_from_slice(text);
    } else {
        string(text, out);
    }
}

/// A string (RFC 9651 §3.3.3); bytes that it cannot hold become `?`.
fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cache(status: CacheStatus<'_>) -> String {
        let mut out = Vec::new();
        status.write("sandarac", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_read_like_the_examples_of_the_rfcs() {
        let hit = CacheStatus { hit: true, ttl: Some(376), ..CacheStatus::default() };
        assert_eq!(cache(hit), "sandarac; hit; ttl=376");
        let stale = CacheStatus {
            hit: true,
            ttl: Some(-412),
            detail: Some("stale-while-revalidate"),
            ..CacheStatus::default()
        };
        assert_eq!(cache(stale), "sandarac; hit; ttl=-412; detail=stale-while-revalidate");
        let miss = CacheStatus {
            forward: Some(Forward::UriMiss),
            stored: true,
            collapsed: Some(false),
            ..CacheStatus::default()
        };
        assert_eq!(cache(miss), "sandarac; fwd=uri-miss; stored; collapsed=?0");
        let validated = CacheStatus {
            forward: Some(Forward::Stale),
            forward_status: Some(304),
            collapsed: Some(true),
            key: Some(b"a \"b\"\\\xff"),
            detail: Some("two words"),
            ..CacheStatus::default()
        };
        assert_eq!(
            cache(validated),
            "sandarac; fwd=stale; fwd-status=304; collapsed; key=\"a \\\"b\\\"\\\\?\"; detail=\"two words\""
        );
        let mut out = Vec::new();
        let failed = ProxyStatus {
            error: Some(ProxyError::ConnectionTimeout),
            next_hop: Some(b"192.0.2.1:8080"),
            next_protocol: Some("http/1.1"),
            received_status: Some(503),
            details: Some("after 3 s"),
        };
        failed.write("sandarac", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "sandarac; error=connection_timeout; next-hop=\"192.0.2.1:8080\"; next-protocol=http/1.1; \
             received-status=503; details=\"after 3 s\""
        );
    }

    #[test]
    fn every_error_has_a_status_that_blames_the_right_side() {
        for error in ProxyError::ALL {
            let expected = match error {
                ProxyError::HttpRequestError | ProxyError::HttpRequestDenied => 400..500,
                ProxyError::ProxyInternalResponse => 200..300,
                _ => 500..600,
            };
            assert!(expected.contains(&error.status()), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_a_structured_field(name: String, key: Vec<u8>, detail: String, ttl: i64) {
            let mut out = Vec::new();
            let status = CacheStatus {
                forward: Some(Forward::Bypass),
                ttl: Some(ttl),
                key: Some(&key),
                detail: Some(&detail),
                ..CacheStatus::default()
            };
            status.write(&name, &mut out);
            out.extend_from_slice(b", ");
            ProxyStatus { next_hop: Some(&key), details: Some(&detail), ..ProxyStatus::default() }.write(&name, &mut out);
            prop_assert!(sfv::Parser::new(&out).parse_list_with_visitor(sfv::visitor::Ignored).is_ok());
        }
    }
}
