//! Hash: the key of a request.

use sandarac_cache::{Key, KeyBuilder, Tag};
use sandarac_message::cookies;
use sandarac_message::target::{Scheme, filter_query};
use sandarac_message::{Fields, Name};
use sandarac_policy::KeyRule;
use std::borrow::Cow;

/// The key of a request: scheme, host, path and query as received except for what the rule ignores, then the
/// fields and cookies that the rule adds. The host is always part of it.
pub(crate) fn key(
    rule: &KeyRule,
    scheme: Scheme,
    host: &[u8],
    path_and_query: &[u8],
    fields: Fields<'_>,
) -> Key {
    let scheme = scheme.text().as_bytes();
    let target = if rule.ignore_query.is_empty() || !path_and_query.contains(&b'?') {
        Cow::Borrowed(path_and_query)
    } else {
        Cow::Owned(target(rule, path_and_query))
    };
    let mut builder = KeyBuilder::new(scheme, host, &target);
    for name in &rule.fields {
        // The count separates the values of one field from those of the next, and from cookies.
        builder.part(&fields.all_named(name).count().to_le_bytes());
        for value in fields.all_named(name) {
            builder.part(value);
        }
    }
    if !rule.cookies.is_empty() && fields.has(Name::Cookie) {
        let mut kept: Vec<_> = cookies::cookies(fields)
            .filter(|cookie| rule.cookies.iter().any(|glob| glob.matches(cookie.name)))
            .map(|cookie| (cookie.name, cookie.value))
            .collect();
        // Parameters of one name keep their order: applications take the first, or the last.
        kept.sort_by_key(|(name, _)| *name);
        for (name, value) in kept {
            builder.part(name).part(value);
        }
    }
    builder.finish()
}

/// Path and query as keyed, and as forwarded if the response may be stored. An unkeyed parameter must not
/// reach the origin, because one client's value would then determine the response for all.
pub(crate) fn target(rule: &KeyRule, path_and_query: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(path_and_query.len());
    filter_query(path_and_query, &rule.ignore_query, &mut kept);
    kept
}

/// The tag of responses to a target whose keys have more parts than the target, so that all of them can be
/// purged.
pub(crate) fn target_tag(rule: &KeyRule, host: &[u8], path_and_query: &[u8]) -> Option<Tag> {
    let plain = rule.fields.is_empty() && rule.cookies.is_empty();
    (!plain).then(|| Tag::target(host, &target(rule, path_and_query)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::FieldsBuf;
    use sandarac_message::glob::Glob;

    fn fields(lines: &[(&str, &str)]) -> FieldsBuf {
        lines.iter().copied().collect()
    }

    #[test]
    fn host_scheme_and_target_are_always_keyed() {
        let rule = KeyRule::default();
        let none = Fields::default();
        let one = key(&rule, Scheme::Http, b"a", b"/", none);
        assert_ne!(one, key(&rule, Scheme::Https, b"a", b"/", none));
        assert_ne!(one, key(&rule, Scheme::Http, b"b", b"/", none));
        assert_ne!(one, key(&rule, Scheme::Http, b"a", b"/?", none));
        assert_eq!(one, key(&rule, Scheme::Http, b"a", b"/", fields(&[("X", "1")]).view()));
    }

    #[test]
    fn ignored_parameters_are_neither_keyed_nor_forwarded() {
        let rule = KeyRule { ignore_query: vec![Glob::new("utm_*")], ..KeyRule::default() };
        let none = Fields::default();
        let plain = key(&rule, Scheme::Http, b"a", b"/p?id=1", none);
        assert_eq!(plain, key(&rule, Scheme::Http, b"a", b"/p?utm_source=x&id=1&utm_medium=y", none));
        assert_eq!(target(&rule, b"/p?utm_source=x&id=1"), b"/p?id=1");
    }

    #[test]
    fn keyed_fields_and_cookies_distinguish() {
        let rule = KeyRule {
            fields: vec![b"X-Country"[..].into(), b"X-Plan"[..].into()],
            cookies: vec![Glob::new("theme")],
            ..KeyRule::default()
        };
        let of = |lines: &[(&str, &str)]| key(&rule, Scheme::Http, b"a", b"/", fields(lines).view());
        assert_ne!(of(&[("X-Country", "at")]), of(&[("X-Country", "ch")]));
        assert_ne!(of(&[("X-Country", "at")]), of(&[("X-Plan", "at")]));
        assert_ne!(of(&[("Cookie", "theme=dark")]), of(&[("Cookie", "theme=light")]));
        assert_eq!(of(&[("Cookie", "theme=dark; id=1")]), of(&[("Cookie", "id=2; theme=dark")]));
        assert_ne!(of(&[("Cookie", "theme=a; theme=b")]), of(&[("Cookie", "theme=b; theme=a")]));
        // No value of a field equals another part of the key.
        assert_ne!(of(&[("X-Plan", "theme"), ("X-Plan", "dark")]), of(&[("Cookie", "theme=dark")]));
        assert_ne!(of(&[("X-Country", "X-Plan")]), of(&[("X-Plan", "X-Plan")]));
    }
}
