//! Request fields by name: those that say nothing of who asks, those that one client could use to choose for
//! all, and those that choose one of several forms of a page.
//!
//! A field of none of these kinds may identify somebody: an API key, or the user as a login proxy names it.
//! No list of such names could be complete, so the harmless ones are listed.

use crate::Name;

/// The kind of a request field, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// It says nothing of who asks: standard, or written by browsers, proxies or tracing.
    Harmless,
    /// Some applications let it choose host, path, method or scheme, or learn from it where the client is. A
    /// response that is stored must not depend on it, so it is not sent with requests for the store.
    Withheld,
    /// It selects one of several forms of a URL, such as a fragment instead of the page.
    Form,
    /// It may identify somebody.
    Unknown,
}

use FieldKind::{Form, Harmless, Unknown, Withheld};

/// The kind of a request field, by its name in any letter case. `name` is what the parser knows of it.
/// The fields with rules of their own, `Authorization` and `Cookie`, count as harmless.
pub fn kind(name: Name, text: &[u8], value: &[u8]) -> FieldKind {
    match name {
        Name::Other => of_other(text, value),
        // It is not for a gateway. An application that reads it all the same knows its users by it.
        Name::ProxyAuthorization => Unknown,
        _ => Harmless,
    }
}

fn of_other(text: &[u8], value: &[u8]) -> FieldKind {
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..text.len()) else { return Unknown };
    for (to, from) in lower.iter_mut().zip(text) {
        *to = from.to_ascii_lowercase();
    }
    if lower == b"x-requested-with" {
        return if is_package(value) { Harmless } else { Form };
    }
    let of_name = NAMES.binary_search_by(|(known, _)| known.as_bytes().cmp(lower));
    if let Ok(at) = of_name {
        return NAMES[at].1;
    }
    let of_start = STARTS.iter().find(|(start, _)| lower.starts_with(start.as_bytes()));
    of_start.map_or(Unknown, |(_, kind)| *kind)
}

/// Whether a value is the name of a package of Android, such as `com.android.browser`, whose browsers send it
/// with all requests. Everything else comes from scripts, and applications look for their words anywhere in
/// it.
fn is_package(value: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_alphabetic)
            && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let is_script = value.to_ascii_lowercase().windows(14).any(|window| window == b"xmlhttprequest");
    !is_script && value.contains(&b'.') && value.split(|&byte| byte == b'.').all(is_word)
}

/// More than any listed name has.
const LONGEST: usize = 48;

/// Beginnings of names; the first that fits decides.
const STARTS: [(&str, FieldKind); 30] = [
    // Identities, and exceptions to what follows.
    ("cf-access-", Unknown),
    ("x-appengine-user-", Unknown),
    ("sec-ch-", Harmless),
    ("sec-fetch-", Harmless),
    ("x-b3-", Harmless),
    ("x-datadog-", Harmless),
    ("x-instana-", Harmless),
    // Written by networks in front, about the client's connection and place.
    ("cf-", Withheld),
    ("cloudfront-", Withheld),
    ("fastly-client", Withheld),
    ("x-fd-", Withheld),
    ("x-appengine-", Withheld),
    ("x-vercel-ip-", Withheld),
    ("fly-", Withheld),
    ("x-nf-", Withheld),
    ("geoip-", Withheld),
    ("x-geoip-", Withheld),
    // Forms of one URL.
    ("hx-", Form),
    ("turbo-frame", Form),
    ("x-pjax", Form),
    ("next-router-", Form),
    ("x-inertia", Form),
    ("x-livewire", Form),
    ("x-up-", Form),
    ("x-alpine-", Form),
    ("wicket-ajax", Form),
    ("x-october-request-", Form),
    ("x-microsoftajax", Form),
    ("access-control-request-", Harmless),
    // Removed from the requests of clients.
    ("x-accel-", Harmless),
];

/// Names in lower case, sorted. Those of IANA's registry that a request can have are harmless except where
/// they name somebody (`From`, `DPoP`, `Hobareg`, …) or choose a form.
const NAMES: [(&str, FieldKind); 262] = [
    ("a-im", Form),
    ("accept-ch", Harmless),
    ("accept-datetime", Form),
    ("accept-features", Harmless),
    ("akamai-origin-hop", Harmless),
    ("alpn", Harmless),
    ("alt-used", Harmless),
    ("amp-cache-transform", Form),
    ("apply-to-redirect-ref", Harmless),
    ("available-dictionary", Harmless),
    ("b3", Harmless),
    ("baggage", Harmless),
    ("base-url", Withheld),
    ("c-ext", Harmless),
    ("c-man", Harmless),
    ("c-opt", Harmless),
    ("c-pep", Harmless),
    ("caldav-timezones", Form),
    ("capsule-protocol", Harmless),
    ("cdn-loop", Harmless),
    ("cf-ray", Harmless),
    ("client-ip", Withheld),
    ("cloudfront-forwarded-proto", Withheld),
    ("configuration-context", Harmless),
    ("content-base", Harmless),
    ("content-digest", Harmless),
    ("content-disposition", Harmless),
    ("content-features", Harmless),
    ("content-id", Harmless),
    ("content-md5", Harmless),
    ("content-script-type", Harmless),
    ("content-style-type", Harmless),
    ("content-version", Harmless),
    ("datastar-request", Form),
    ("dav", Harmless),
    ("default-style", Harmless),
    ("delta-base", Harmless),
    ("depth", Form),
    ("derived-from", Harmless),
    ("destination", Harmless),
    ("device-memory", Harmless),
    ("dictionary-id", Harmless),
    ("digest", Harmless),
    ("dnt", Harmless),
    ("do-connecting-ip", Withheld),
    ("downlink", Harmless),
    ("dpr", Harmless),
    ("early-data", Harmless),
    ("ect", Harmless),
    ("ediint-features", Harmless),
    ("elastic-apm-traceparent", Harmless),
    ("ext", Harmless),
    ("faces-request", Form),
    ("fastly-ff", Harmless),
    ("fastly-ssl", Withheld),
    ("fly-request-id", Harmless),
    ("forwarded-host", Withheld),
    ("forwarded-proto", Withheld),
    ("front-end-https", Withheld),
    ("fx-request", Form),
    ("getprofile", Harmless),
    ("host-override", Withheld),
    ("http2-settings", Harmless),
    ("if", Harmless),
    ("if-schedule-tag-match", Harmless),
    ("include-referred-token-binding-id", Harmless),
    ("incremental", Harmless),
    ("isolation", Form),
    ("label", Form),
    ("last-event-id", Harmless),
    ("link", Harmless),
    ("lock-token", Harmless),
    ("man", Harmless),
    ("mime-version", Harmless),
    ("negotiate", Harmless),
    ("newrelic", Harmless),
    ("next-action", Form),
    ("next-url", Form),
    ("odata-isolation", Form),
    ("odata-maxversion", Form),
    ("odata-version", Form),
    ("opt", Harmless),
    ("ordering-type", Harmless),
    ("oscore", Harmless),
    ("oslc-core-version", Harmless),
    ("overwrite", Harmless),
    ("pep", Harmless),
    ("ping-from", Harmless),
    ("ping-to", Harmless),
    ("position", Harmless),
    ("postman-token", Harmless),
    ("prefer", Form),
    ("profileobject", Harmless),
    ("protocol", Harmless),
    ("protocol-request", Harmless),
    ("proxy", Harmless),
    ("proxy-host", Withheld),
    ("purpose", Harmless),
    ("redirect-ref", Harmless),
    ("repeatability-first-sent", Harmless),
    ("request-id", Harmless),
    ("request-uri", Withheld),
    ("rsc", Form),
    ("rtt", Harmless),
    ("save-data", Harmless),
    ("schedule-reply", Harmless),
    ("script-name", Withheld),
    ("sec-gpc", Harmless),
    ("sec-purpose", Harmless),
    ("sentry-trace", Harmless),
    ("service-worker", Harmless),
    ("slug", Harmless),
    ("soapaction", Form),
    ("status-uri", Harmless),
    ("surrogate-capability", Withheld),
    ("tcn", Harmless),
    ("timeout", Harmless),
    ("timing-allow-origin", Harmless),
    ("topic", Harmless),
    ("traceparent", Harmless),
    ("tracestate", Harmless),
    ("true-client-ip", Withheld),
    ("ttl", Harmless),
    ("turbolinks-referrer", Harmless),
    ("uber-trace-id", Harmless),
    ("unencoded-digest", Harmless),
    ("urgency", Harmless),
    ("uri", Harmless),
    ("use-as-dictionary", Harmless),
    ("variant-vary", Harmless),
    ("viewport-width", Harmless),
    ("want-content-digest", Harmless),
    ("want-digest", Harmless),
    ("want-repr-digest", Harmless),
    ("want-unencoded-digest", Harmless),
    ("width", Harmless),
    ("wl-proxy-client-ip", Withheld),
    ("wl-proxy-ssl", Withheld),
    ("x-amz-cf-id", Harmless),
    ("x-amzn-trace-id", Harmless),
    ("x-arr-ssl", Withheld),
    ("x-astro-locals", Withheld),
    ("x-astro-path", Withheld),
    ("x-azure-clientip", Withheld),
    ("x-azure-ref", Harmless),
    ("x-azure-requestchain", Harmless),
    ("x-azure-socketip", Withheld),
    ("x-backend-host", Withheld),
    ("x-barba", Form),
    ("x-base-url", Withheld),
    ("x-bluecoat-via", Harmless),
    ("x-client-data", Harmless),
    ("x-client-ip", Withheld),
    ("x-cloud-trace-context", Harmless),
    ("x-cluster-client-ip", Withheld),
    ("x-context-path", Withheld),
    ("x-correlation-id", Harmless),
    ("x-country-code", Withheld),
    ("x-envoy-external-address", Withheld),
    ("x-envoy-original-host", Withheld),
    ("x-envoy-original-path", Withheld),
    ("x-external-path", Withheld),
    ("x-forward-host", Withheld),
    ("x-forward-proto", Withheld),
    ("x-forwarded-base", Withheld),
    ("x-forwarded-context", Withheld),
    ("x-forwarded-contextpath", Withheld),
    ("x-forwarded-host-override", Withheld),
    ("x-forwarded-hostname", Withheld),
    ("x-forwarded-https", Withheld),
    ("x-forwarded-method", Withheld),
    ("x-forwarded-path", Withheld),
    ("x-forwarded-pathbase", Withheld),
    ("x-forwarded-port", Withheld),
    ("x-forwarded-prefix", Withheld),
    ("x-forwarded-protocol", Withheld),
    ("x-forwarded-request-uri", Withheld),
    ("x-forwarded-scheme", Withheld),
    ("x-forwarded-server", Withheld),
    ("x-forwarded-ssl", Withheld),
    ("x-forwarded-uri", Withheld),
    ("x-forwarded-url", Withheld),
    ("x-fragment", Form),
    ("x-host", Withheld),
    ("x-host-override", Withheld),
    ("x-http-destinationurl", Withheld),
    ("x-http-host-override", Withheld),
    ("x-http-method", Withheld),
    ("x-http-method-override", Withheld),
    ("x-http-path-override", Withheld),
    ("x-http-scheme", Withheld),
    ("x-https", Withheld),
    ("x-ic-request", Form),
    ("x-imforwards", Harmless),
    ("x-ingress-path", Withheld),
    ("x-invoke-error", Withheld),
    ("x-invoke-output", Withheld),
    ("x-invoke-path", Withheld),
    ("x-invoke-query", Withheld),
    ("x-invoke-status", Withheld),
    ("x-matched-path", Withheld),
    ("x-method", Withheld),
    ("x-method-override", Withheld),
    ("x-middleware-prefetch", Withheld),
    ("x-middleware-subrequest", Withheld),
    ("x-moz", Harmless),
    ("x-ms-original-url", Withheld),
    ("x-nextjs-data", Form),
    ("x-nginx-proxy", Withheld),
    ("x-now-route-matches", Withheld),
    ("x-nuxt-no-ssr", Withheld),
    ("x-original-forwarded-for", Withheld),
    ("x-original-host", Withheld),
    ("x-original-method", Withheld),
    ("x-original-path", Withheld),
    ("x-original-port", Withheld),
    ("x-original-proto", Withheld),
    ("x-original-request-uri", Withheld),
    ("x-original-scheme", Withheld),
    ("x-original-uri", Withheld),
    ("x-original-url", Withheld),
    ("x-override-url", Withheld),
    ("x-partial", Form),
    ("x-path", Withheld),
    ("x-proto", Withheld),
    ("x-proxy-host", Withheld),
    ("x-proxy-url", Withheld),
    ("x-proxycontextpath", Withheld),
    ("x-purpose", Harmless),
    ("x-queue-start", Harmless),
    ("x-react-router-prerender-data", Withheld),
    ("x-react-router-spa-mode", Withheld),
    ("x-real-host", Withheld),
    ("x-real-ip", Harmless),
    ("x-replaced-path", Withheld),
    ("x-request-id", Harmless),
    ("x-request-path", Withheld),
    ("x-request-start", Harmless),
    ("x-request-uri", Withheld),
    ("x-rewrite", Withheld),
    ("x-rewrite-host", Withheld),
    ("x-rewrite-path", Withheld),
    ("x-rewrite-uri", Withheld),
    ("x-rewrite-url", Withheld),
    ("x-rewritten-url", Withheld),
    ("x-scheme", Withheld),
    ("x-script-name", Withheld),
    ("x-sendfile-type", Harmless),
    ("x-server-name", Withheld),
    ("x-spf-referer", Form),
    ("x-splade", Form),
    ("x-ssl", Withheld),
    ("x-stripped-path", Withheld),
    ("x-turbo-request-id", Harmless),
    ("x-uri", Withheld),
    ("x-url", Withheld),
    ("x-url-scheme", Withheld),
    ("x-varnish", Harmless),
    ("x-vercel-forwarded-for", Withheld),
    ("x-vercel-id", Harmless),
    ("x-wap-profile", Harmless),
    ("x-waws-unencoded-url", Withheld),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(name: &str) -> FieldKind {
        kind(Name::of(name.as_bytes()), name.as_bytes(), b"x")
    }

    #[test]
    fn names_are_sorted_short_and_unknown_to_the_parser() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, _) in NAMES {
            assert_eq!(name, name.to_ascii_lowercase());
            assert!(name.len() < LONGEST, "{name}");
            assert_eq!(Name::of(name.as_bytes()), Name::Other, "{name} is known to the parser");
        }
        assert!(STARTS.iter().all(|(start, _)| *start == start.to_ascii_lowercase()));
    }

    #[test]
    fn what_browsers_send_is_harmless() {
        for name in [
            "Accept",
            "accept-language",
            "Sec-CH-UA-Full-Version-List",
            "Sec-Fetch-Storage-Access",
            "sec-gpc",
            "DNT",
            "Upgrade-Insecure-Requests",
            "Priority",
            "Origin",
            "Referer",
            "Save-Data",
            "traceparent",
            "X-B3-TraceId",
            "X-Request-ID",
            "CF-Ray",
            "Access-Control-Request-Method",
        ] {
            assert_eq!(kind_of(name), Harmless, "{name}");
        }
    }

    #[test]
    fn what_may_identify_somebody_is_unknown() {
        for name in [
            "X-API-Key",
            "X-Auth-Token",
            "X-CSRF-Token",
            "X-XSRF-TOKEN",
            "X-WP-Nonce",
            "Remote-User",
            "X-Forwarded-User",
            "CF-Access-Jwt-Assertion",
            "X-Amzn-Oidc-Identity",
            "X-Goog-Authenticated-User-Email",
            "X-Forwarded-Client-Cert",
            "X-Device-Id",
            "From",
            "DPoP",
            "Client-Cert",
            "Proxy-Authorization",
            "Sec-WebSocket-Key",
            "Sec-Private-State-Token",
            "Sec-Token-Binding",
            "Signature",
            "Signature-Input",
            "Hobareg",
            "CTA-Common-Access-Token",
            "Idempotency-Key",
            "X-AppEngine-User-Email",
            "",
            "A-Name-That-Is-Longer-Than-Every-Name-Of-The-Whole-Table",
        ] {
            assert_eq!(kind_of(name), Unknown, "{name}");
        }
    }

    #[test]
    fn what_chooses_for_all_is_withheld_and_what_chooses_a_form_is_one() {
        for name in [
            "X-Original-URL",
            "X-MS-Original-URL",
            "X-Rewrite-URI",
            "X-Base-URL",
            "X-Proxy-URL",
            "X-Proto",
            "X-Forwarded-Port",
            "CF-IPCountry",
            "True-Client-IP",
            "Fastly-Client-IP",
            "Fly-Region",
        ] {
            assert_eq!(kind_of(name), Withheld, "{name}");
        }
        for name in [
            "HX-Request",
            "Turbo-Frame",
            "RSC",
            "Next-Router-State-Tree",
            "X-Inertia-Version",
            "Prefer",
            "Depth",
        ] {
            assert_eq!(kind_of(name), Form, "{name}");
        }
        let requested_with = |value: &[u8]| kind(Name::Other, b"X-Requested-With", value);
        for script in [
            "xmlhttprequest",
            "x, XMLHttpRequest",
            "XMLHttpRequest;x",
            "fetch",
            "swup",
            "",
            "a.XMLHttpRequest",
        ] {
            assert_eq!(requested_with(script.as_bytes()), Form, "{script}");
        }
        assert_eq!(requested_with(b"com.example.browser"), Harmless);
    }
}
