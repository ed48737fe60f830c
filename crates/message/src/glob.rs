//! Patterns for names of cookies and query parameters.

/// A pattern such as `_ga*`: `*` matches any run of bytes, all else itself. Letter case matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(Box<[u8]>);

impl Glob {
    /// The pattern written as `text`. Every text is a pattern.
    pub fn new(text: impl AsRef<[u8]>) -> Glob {
        Glob(text.as_ref().into())
    }

    /// The pattern as written.
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// Whether the whole of `name` matches the pattern. Takes time proportional to its length.
    pub fn matches(&self, name: &[u8]) -> bool {
        let mut parts = self.0.split(|&byte| byte == b'*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = memchr::memmem::find(rest, part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_stand_for_any_run() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "abc", true),
            ("_ga*", "_ga", true),
            ("_ga*", "_ga_XYZ", true),
            ("_ga*", "x_ga", false),
            ("_GA*", "_ga", false),
            ("*id", "sessionid", true),
            ("*id", "identity", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXcYb", false),
            ("**", "x", true),
            ("a.b", "axb", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_with_any_part_starred(name in "[a-z]{0,8}", at in 0..8usize, len in 0..8usize) {
            let start = at.min(name.len());
            let end = (start + len).min(name.len());
            let pattern = format!("{}*{}", &name[..start], &name[end..]);
            prop_assert!(Glob::new(&name).matches(name.as_bytes()));
            prop_assert!(Glob::new(pattern).matches(name.as_bytes()));
        }
    }
}
