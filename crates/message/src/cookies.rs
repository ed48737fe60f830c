//! Cookie and Set-Cookie (RFC 6265): which cookies a request carries, and requests without those that do not matter.

use crate::glob::Glob;
use crate::{Fields, FieldsBuf, Name, TooLarge};

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie<'a> {
    /// The name; empty for a cookie written without `=`.
    pub name: &'a [u8],
    /// The value as it was sent, quotes included.
    pub value: &'a [u8],
    /// Name and value as they stand in the field.
    pub pair: &'a [u8],
}

/// The cookies of a request in order, over all Cookie lines (RFC 6265 §5.4). Servers differ in how they read broken
/// pairs, so nothing but white space and empty pairs is passed over.
pub fn cookies(fields: Fields<'_>) -> impl Iterator<Item = Cookie<'_>> + Clone {
    fields.all(Name::Cookie).flat_map(pairs)
}

/// The cookies of one Cookie value.
pub fn pairs(value: &[u8]) -> impl Iterator<Item = Cookie<'_>> + Clone {
    value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = match memchr::memchr(b'=', pair) {
            Some(at) => (pair[..at].trim_ascii_end(), pair[at + 1..].trim_ascii_start()),
            None => (&[][..], pair),
        };
        Cookie { name, value, pair }
    })
}

/// The first value of the cookie called `name`.
pub fn cookie<'a>(fields: Fields<'a>, name: &[u8]) -> Option<&'a [u8]> {
    cookies(fields).find(|cookie| cookie.name == name).map(|cookie| cookie.value)
}

/// Whether every cookie of the request fits one of `ignored`; true where there is none.
pub fn only_ignored(fields: Fields<'_>, ignored: &[Glob]) -> bool {
    cookies(fields).all(|cookie| ignored.iter().any(|glob| glob.matches(cookie.name)))
}

/// Takes the cookies that fit one of `ignored` out of the request; the others stay in order, in one Cookie line. A
/// request without such cookies is not touched.
pub fn strip_ignored(fields: &mut FieldsBuf, ignored: &[Glob]) -> Result<(), TooLarge> {
    retain(fields, |cookie| !ignored.iter().any(|glob| glob.matches(cookie.name)))
}

/// Takes out of the request the cookies that `keep` does not want; the others stay in order, in one Cookie line.
pub fn retain(fields: &mut FieldsBuf, keep: impl Fn(&Cookie<'_>) -> bool) -> Result<(), TooLarge> {
    if cookies(fields.view()).all(|cookie| keep(&cookie)) {
        return Ok(());
    }
    let kept: Vec<&[u8]> =
        cookies(fields.view()).filter(|cookie| keep(cookie)).map(|cookie| cookie.pair).collect();
    let value = kept.join(&b"; "[..]);
    fields.remove(Name::Cookie);
    if value.is_empty() { Ok(()) } else { fields.add(Name::Cookie, &value) }
}

/// The name of the cookie that a Set-Cookie value sets; empty where it has none (RFC 6265 §5.2).
pub fn set_cookie_name(value: &[u8]) -> &[u8] {
    let pair = value.split(|&byte| byte == b';').next().unwrap_or_default();
    match memchr::memchr(b'=', pair) {
        Some(at) => pair[..at].trim_ascii(),
        None => &[],
    }
}
