//! Fields and cookies that are not part of a key, and that must not affect what is stored.

use crate::client_certificate::{is_client_certificate, is_of_other_proxies};
use sandarac_message::{Field, Name};
use sandarac_policy::CacheRule;

/// Fields by which some applications let a client choose host, path, method or scheme. Unless a rule keys
/// them, a stored response must not depend on them, because one client would choose for all (web cache
/// poisoning).
const UNKEYED: [&[u8]; 77] = [
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
    b"x-forwarded-context",
    b"x-forwarded-contextpath",
    b"x-proxycontextpath",
    b"x-context-path",
    b"x-ingress-path",
    b"x-stripped-path",
    b"x-replaced-path",
    b"x-request-path",
    b"request-uri",
    b"x-uri",
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
    b"x-forwarded-host-override",
    b"x-forwarded-hostname",
    b"x-proxy-host",
    b"x-server-name",
    b"x-original-port",
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
    b"x-original-scheme",
    b"x-original-proto",
    b"x-http-scheme",
    b"wl-proxy-ssl",
    // Method.
    b"x-http-method-override",
    b"x-http-method",
    b"x-method-override",
    b"x-method",
    b"x-original-method",
    b"x-forwarded-method",
];

/// The field in which some servers expect the client's address.
pub(crate) const REAL_IP: &[u8] = b"X-Real-IP";

/// CGI turns it into the setting HTTP_PROXY, by which libraries choose a proxy (CVE-2016-5385).
pub(crate) const PROXY: &[u8] = b"proxy";

/// The field by which Rack and others learn how the server in front sends files.
const SENDFILE_TYPE: &[u8] = b"x-sendfile-type";

/// The prefix of fields with further instructions about files (Rack's X-Accel-Mapping).
const ACCEL: &[u8] = b"x-accel-";

/// Whether a server in front of an application configures its sending of files with the field. A client that sends
/// it could read any file.
pub(crate) fn is_about_files(field: &Field<'_>) -> bool {
    let begins = field.name.get(..ACCEL.len()).is_some_and(|start| start.eq_ignore_ascii_case(ACCEL));
    begins || field.is(SENDFILE_TYPE)
}

/// Whether the rule's key contains the field.
pub(crate) fn is_keyed(field: &Field<'_>, rule: &CacheRule) -> bool {
    rule.key.fields.iter().any(|name| field.is(name))
}

/// Whether a field that is not a standard one must not affect a stored response.
pub(crate) fn is_unkeyed(field: &Field<'_>, rule: &CacheRule) -> bool {
    let listed = || UNKEYED.iter().any(|name| field.is(name));
    let respelled = || rule.key.fields.iter().any(|name| is_respelled(field.name, name));
    (field.name.contains(&b'_') || listed() || respelled()) && !is_keyed(field, rule)
}

/// Whether a field, sent as a trailer, could influence an application.
pub(crate) fn is_suspect(field: &Field<'_>) -> bool {
    field.id == Name::AcceptEncoding
        || field.name.contains(&b'_')
        || field.is(PROXY)
        || is_about_files(field)
        || field.is(REAL_IP)
        || is_client_certificate(field)
        || is_of_other_proxies(field)
        || UNKEYED.iter().any(|name| field.is(name))
}

/// Whether trusted proxies use the field to describe the request they received. They often forward what
/// clients wrote there.
pub(crate) fn is_of_proxies(name: Name) -> bool {
    matches!(name, Name::Forwarded | Name::XForwardedHost | Name::XForwardedProto)
}

/// Whether two names differ only in letter case and in underscores for hyphens.
fn is_respelled(one: &[u8], other: &[u8]) -> bool {
    let plain = |name| hyphenated(name).map(|byte| byte.to_ascii_lowercase());
    one.len() == other.len() && plain(one).eq(plain(other))
}

/// Whether applications that read fields from their environment (CGI, FastCGI, WSGI) would find this one,
/// with underscores in its name, in place of one with hyphens that a proxy wrote or a server used.
pub(crate) fn is_alias(field: &Field<'_>) -> bool {
    field.name.contains(&b'_') && Name::of(&hyphenated(field.name).collect::<Vec<u8>>()) != Name::Other
}

/// A name with hyphens in place of underscores.
fn hyphenated(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte })
}

/// Whether a cookie is forwarded although the response may be stored. If named cookies bypass the cache, a
/// request that gets here has none of them, and the others would make a difference that is not in the key.
pub(crate) fn is_forwarded(rule: &CacheRule, name: &[u8]) -> bool {
    use sandarac_message::caching::CookieRule;
    let keyed = rule.key.cookies.iter().any(|glob| glob.matches(name));
    let ignored = rule.policy.ignored_cookies.iter().any(|glob| glob.matches(name));
    keyed || (!ignored && !matches!(rule.policy.bypass_cookies, CookieRule::Named(_)))
}
