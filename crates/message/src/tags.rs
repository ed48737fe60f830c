//! Tags by which stored responses are purged together: those of CDNs, and the groups of RFC 9875.

use std::convert::Infallible;

use sfv::visitor::{EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, Parser};

use crate::{Fields, Name};

/// The tags of a response, over all lines of all three fields, repeated ones as often as they stand there. Surrogate-Key
/// (Fastly) is split at white space, Cache-Tag (Cloudflare) at commas, xkey (Varnish) at both. Letter case matters.
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

/// Whether a field is for caches before the client only, and is taken out before it reaches one: the tags above,
/// Surrogate-Control and Sandarac-Cache-Control.
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

/// The groups that Cache-Groups puts a response into, or that Cache-Group-Invalidation makes invalid (RFC 9875 §2, §3):
/// a structured list of strings. Empty where a member is no string, because the whole field is then ignored. A group is
/// one only within its origin.
pub fn groups(response: Fields<'_>, name: Name) -> Vec<String> {
    let mut lines = response.all(name);
    let Some(first) = lines.next() else {
        return Vec::new();
    };
    let mut joined = first.to_vec();
    for line in lines {
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    let mut groups = Groups { names: Vec::new(), valid: true };
    let parsed = Parser::new(&joined).parse_list_with_visitor(&mut groups);
    if parsed.is_ok() && groups.valid { groups.names } else { Vec::new() }
}

struct Groups {
    names: Vec<String>,
    valid: bool,
}

impl<'de> ListVisitor<'de> for &mut Groups {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(Member(self))
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Member<'a>(&'a mut Groups);

impl<'de> EntryVisitor<'de> for Member<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        self.0.valid = false;
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Member<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        match item {
            BareItemFromInput::String(name) => self.0.names.push(name.as_str().to_owned()),
            _ => self.0.valid = false,
        }
        Ok(Ignored)
    }
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
