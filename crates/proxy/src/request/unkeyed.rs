//! Fields and cookies that are not part of a key, and that must not affect what is stored.

use crate::request::client_certificate::{is_client_certificate, is_of_other_proxies};
use sandarac_message::caching::CookieRule;
use sandarac_message::request_field::{FieldKind, kind};
use sandarac_message::{Field, Fields, Name, cookies};
use sandarac_policy::CacheRule;

/// The field in which some servers expect the client's address.
pub(crate) const REAL_IP: &[u8] = b"X-Real-IP";

/// CGI turns it into the setting HTTP_PROXY, by which libraries choose a proxy (CVE-2016-5385).
pub(crate) const PROXY: &[u8] = b"proxy";

/// The field by which Rack and others learn how the server in front sends files.
const SENDFILE_TYPE: &[u8] = b"x-sendfile-type";

/// The prefix of fields with further instructions about files (Rack's X-Accel-Mapping).
const ACCEL: &[u8] = b"x-accel-";

/// Whether a server in front of an application configures its sending of files with the field. A client that
/// sends it could read any file.
pub(crate) fn is_about_files(field: &Field<'_>) -> bool {
    let begins = field.name.get(..ACCEL.len()).is_some_and(|start| start.eq_ignore_ascii_case(ACCEL));
    begins || field.is(SENDFILE_TYPE)
}

/// Whether the rule's key contains the field.
pub(crate) fn is_keyed(field: &Field<'_>, rule: &CacheRule) -> bool {
    rule.key.fields.iter().any(|name| field.is(name))
}

/// Whether a field that is not a standard one must not affect a stored response: one client would choose for
/// all (web cache poisoning).
pub(crate) fn is_unkeyed(field: &Field<'_>, rule: &CacheRule) -> bool {
    let respelled = || rule.key.fields.iter().any(|name| is_respelled(field.name, name));
    (field.name.contains(&b'_') || is_listed(field) || respelled()) && !is_keyed(field, rule)
}

/// Whether some applications let the field choose what they answer, or learn from it where the client is.
fn is_listed(field: &Field<'_>) -> bool {
    kind(field.id, field.name, field.value) == FieldKind::Withheld
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
        || is_listed(field)
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

/// The first cookie of a request that looks like one of a session, and is kept from the application only
/// because
/// `bypass_cookies` names others.
pub(crate) fn lost_session<'a>(rule: &CacheRule, request: Fields<'a>) -> Option<&'a [u8]> {
    if !matches!(rule.policy.bypass_cookies, CookieRule::Named(_)) {
        return None;
    }
    let is_meant = |name: &[u8]| rule.policy.ignored_cookies.iter().any(|glob| glob.matches(name));
    let is_session = |name: &[u8]| {
        let lower = name.to_ascii_lowercase();
        let has = |part: &[u8]| lower.windows(part.len()).any(|window| window == part);
        lower.ends_with(b"sid") || [&b"sess"[..], b"auth", b"login"].into_iter().any(has)
    };
    let mut names = cookies::cookies(request).map(|cookie| cookie.name);
    names.find(|name| !is_forwarded(rule, name) && !is_meant(name) && is_session(name))
}

/// Whether a cookie is forwarded although the response may be stored. If named cookies bypass the cache, a
/// request that gets here has none of them, and the others would make a difference that is not in the key.
pub(crate) fn is_forwarded(rule: &CacheRule, name: &[u8]) -> bool {
    let keyed = rule.key.cookies.iter().any(|glob| glob.matches(name));
    let ignored = rule.policy.ignored_cookies.iter().any(|glob| glob.matches(name));
    keyed || (!ignored && !matches!(rule.policy.bypass_cookies, CookieRule::Named(_)))
}
