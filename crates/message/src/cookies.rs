//! Cookie (RFC 6265): the cookies of a request, and removal of those that do not matter.

use crate::{Fields, FieldsBuf, Name, TooLarge};

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie<'a> {
    /// The name; empty for a cookie written without `=`.
    pub name: &'a [u8],
    /// The value as it was sent, quotes included.
    pub value: &'a [u8],
    /// Name and value as written in the field.
    pub pair: &'a [u8],
}

/// The cookies of a request in order, over all Cookie lines (RFC 6265 §5.4). Only white space and empty pairs
/// are skipped, because servers differ in how they read broken pairs.
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

/// Removes the cookies from the request for which `keep` returns false. The others stay in order, in one
/// Cookie line.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::glob::Glob;

    fn request(lines: &[&str]) -> FieldsBuf {
        lines.iter().map(|line| ("Cookie", line)).collect()
    }

    fn globs(texts: &[&str]) -> Vec<Glob> {
        texts.iter().map(Glob::new).collect()
    }

    #[test]
    fn cookies_are_read_over_all_lines() {
        let fields = request(&["a=1; b=\"x y\";c", ";; d = 2 ;=e"]);
        let read: Vec<_> = cookies(fields.view())
            .map(|cookie| (String::from_utf8_lossy(cookie.name), String::from_utf8_lossy(cookie.value)))
            .collect();
        let expected = [("a", "1"), ("b", "\"x y\""), ("", "c"), ("d", "2"), ("", "e")];
        assert_eq!(read, expected.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(cookie(fields.view(), b"d"), Some(&b"2"[..]));
        assert_eq!(cookie(fields.view(), b"D"), None);
    }

    fn strip(fields: &mut FieldsBuf, ignored: &[Glob]) {
        retain(fields, |cookie| !ignored.iter().any(|glob| glob.matches(cookie.name))).unwrap();
    }

    #[test]
    fn cookies_that_are_not_wanted_are_taken_out() {
        let ignored = globs(&["_ga*", "consent"]);
        for (lines, left) in [
            (&[][..], &[][..]),
            (&[""], &[""]),
            (&["_ga=1; _ga_X=2; consent=y"], &[]),
            (&["_ga=1; sid=2"], &["sid=2"]),
            (&["sid=2;theme=x"], &["sid=2;theme=x"]),
            (&["a=1; _ga=2", "b = 3"], &["a=1; b = 3"]),
            (&["x"], &["x"]),
        ] {
            let mut fields = request(lines);
            strip(&mut fields, &ignored);
            let values: Vec<_> = fields.view().all(Name::Cookie).collect();
            assert_eq!(values, left.iter().map(|line| line.as_bytes()).collect::<Vec<_>>(), "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_stripped_is_gone_and_the_rest_stays(lines in proptest::collection::vec("[ab_=; ]{0,12}", 0..3)) {
            let ignored = globs(&["a*"]);
            let before = request(&lines.iter().map(|line| line.trim()).collect::<Vec<_>>());
            let mut after = before.clone();
            strip(&mut after, &ignored);
            let kept: Vec<_> = cookies(before.view()).filter(|cookie| !cookie.name.starts_with(b"a")).collect();
            prop_assert_eq!(cookies(after.view()).collect::<Vec<_>>(), kept);
        }
    }
}
