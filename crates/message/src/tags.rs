//! Tags by which stored responses are purged together: those of CDNs, and the groups of RFC 9875.

use sfv::BareItemFromInput;

use crate::accel::is_instruction;
use crate::structured::{self, Member};
use crate::{Field, Fields, Name};

/// The tags of a response, over all lines of all three fields, with repetitions. Surrogate-Key (Fastly) is
/// split at white space, Cache-Tag (Cloudflare) at commas, xkey (Varnish) at both. Letter case matters.
pub fn tags(response: Fields<'_>) -> impl Iterator<Item = &[u8]> + Clone {
    [Name::SurrogateKey, Name::CacheTag, Name::XKey]
        .into_iter()
        .flat_map(move |name| response.all(name).map(move |value| (name, value)))
        .flat_map(|(name, value)| value.split(move |&byte| separates(name, byte)))
        .map(<[u8]>::trim_ascii)
        .filter(|tag| !tag.is_empty())
}

/// Whether `byte` separates tags in the field `name`.
fn separates(name: Name, byte: u8) -> bool {
    let blank = byte == b' ' || byte == b'\t';
    match name {
        Name::SurrogateKey => blank,
        Name::CacheTag => byte == b',',
        _ => blank || byte == b',',
    }
}

/// Whether a field is for proxies only, so that no client gets it.
pub fn is_for_proxies(field: &Field<'_>) -> bool {
    is_surrogate_only(field.id) || is_instruction(field)
}

/// Whether a field is only for the caches before the client, and is removed from responses to clients: the
/// tags above, Surrogate-Control and Sandarac-Cache-Control.
pub fn is_surrogate_only(name: Name) -> bool {
    matches!(
        name,
        Name::SurrogateKey
            | Name::CacheTag
            | Name::XKey
            | Name::SurrogateControl
            | Name::SandaracCacheControl
    )
}

/// The groups in Cache-Groups, which the response belongs to, or in Cache-Group-Invalidation, which it
/// invalidates (RFC 9875 §2, §3): a structured list of strings. Empty if a member is no string, because the
/// whole field is then ignored. A group is only meaningful within its origin.
pub fn groups(response: Fields<'_>, name: Name) -> Vec<String> {
    let (mut groups, mut valid) = (Vec::new(), true);
    let parsed = structured::list(response, name, |member| match member {
        Member::Item(BareItemFromInput::String(group)) => groups.push(group.as_str().to_owned()),
        _ => valid = false,
    });
    if parsed.is_some() && valid { groups } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::FieldsBuf;

    fn fields(lines: &[(&str, &str)]) -> FieldsBuf {
        lines.iter().copied().collect()
    }

    #[test]
    fn each_field_is_split_by_its_own_rule() {
        let response = fields(&[
            ("Surrogate-Key", "a b,c \t d"),
            ("Cache-Tag", "e f, g,,h "),
            ("xkey", "i j, k"),
            ("XKEY", "l"),
            ("surrogate-key", "a"),
        ]);
        let read: Vec<_> = tags(response.view()).map(|tag| std::str::from_utf8(tag).unwrap()).collect();
        assert_eq!(read, ["a", "b,c", "d", "a", "e f", "g", "h", "i", "j", "k", "l"]);
    }

    #[test]
    fn groups_are_a_list_of_strings_or_nothing() {
        // RFC 9875 §2
        for (lines, expected) in [
            (&["\"scripts\", \"a b\""][..], &["scripts", "a b"][..]),
            (&["\"a\";x=1", "\"b\\\"\""], &["a", "b\""]),
            (&["\"a\", token"], &[]),
            (&["\"a\", (\"b\")"], &[]),
            (&["\"a\", \"b"], &[]),
            (&["a"], &[]),
            (&[""], &[]),
            (&[], &[]),
        ] {
            let response: FieldsBuf = lines.iter().map(|line| ("Cache-Groups", line)).collect();
            assert_eq!(groups(response.view(), Name::CacheGroups), expected, "{lines:?}");
            assert!(groups(response.view(), Name::CacheGroupInvalidation).is_empty());
        }
    }

    proptest! {
        #[test]
        fn no_value_panics(value in "[ -~]{0,40}") {
            let response = fields(&[("Cache-Groups", value.trim()), ("Cache-Tag", value.trim())]);
            groups(response.view(), Name::CacheGroups);
            prop_assert!(tags(response.view()).all(|tag| !tag.is_empty()));
        }
    }
}
