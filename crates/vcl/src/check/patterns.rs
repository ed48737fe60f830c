//! Regular expressions.

/// A mistake in a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The byte of the pattern where it is.
    pub offset: usize,
    /// The mistake, in one sentence without a full stop.
    pub message: String,
}

/// A compiler of patterns, which the caller has.
pub trait Patterns {
    /// Whether the pattern can be compiled. MUST NOT panic, whatever the bytes are.
    fn check(&self, pattern: &[u8]) -> Result<(), PatternError>;
}

/// Checks of patterns that need no compiler: groups, sets, and quantifiers with nothing before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct BasicPatterns;

impl Patterns for BasicPatterns {
    fn check(&self, pattern: &[u8]) -> Result<(), PatternError> {
        let error = |offset: usize, message: &str| Err(PatternError { offset, message: message.to_owned() });
        let mut groups: Vec<usize> = Vec::new();
        let mut can_repeat = false;
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            match byte {
                b'\\' => {
                    if at + 1 == pattern.len() {
                        return error(at, "`\\` stands at the end");
                    }
                    if pattern[at + 1] == b'Q' {
                        let rest = &pattern[at..];
                        let end = memchr::memmem::find(rest, b"\\E");
                        at += end.unwrap_or(rest.len() - 1);
                    }
                    can_repeat = true;
                    at += 1;
                }
                b'(' => {
                    let rest = &pattern[at + 1..];
                    groups.push(at);
                    // An option or a comment: `(?i)`, `(?#…)`.
                    let is_comment = rest.starts_with(b"?#");
                    if is_comment || rest.starts_with(b"*") {
                        at += memchr::memchr(b')', rest).unwrap_or(rest.len());
                    } else if rest.starts_with(b"?") {
                        at += 1;
                    }
                    can_repeat = false;
                }
                b')' => {
                    if groups.pop().is_none() {
                        return error(at, "`)` has no `(` before it");
                    }
                    can_repeat = true;
                }
                b'[' => {
                    let Some(end) = end_of_set(pattern, at) else {
                        return error(at, "`[` has no `]` after it");
                    };
                    at = end;
                    can_repeat = true;
                }
                b'*' | b'+' | b'?' => {
                    if !can_repeat {
                        return error(at, &format!("`{}` has nothing before it to repeat", byte as char));
                    }
                    // A quantifier may be lazy or possessive.
                    if matches!(pattern.get(at + 1), Some(b'?' | b'+')) {
                        at += 1;
                    }
                    can_repeat = false;
                }
                b'{' => {
                    if let Some(end) = end_of_counts(pattern, at) {
                        if !can_repeat {
                            return error(at, "a count has nothing before it to repeat");
                        }
                        at = end;
                        if matches!(pattern.get(at + 1), Some(b'?' | b'+')) {
                            at += 1;
                        }
                        can_repeat = false;
                    } else {
                        can_repeat = true;
                    }
                }
                b'|' | b'^' => can_repeat = false,
                _ => can_repeat = true,
            }
            at += 1;
        }
        match groups.last() {
            Some(&open) => error(open, "`(` has no `)` after it"),
            None => Ok(()),
        }
    }
}

/// The `]` of the set that begins at `open`. A `]` at its beginning is part of it.
fn end_of_set(pattern: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    if pattern.get(at) == Some(&b'^') {
        at += 1;
    }
    if pattern.get(at) == Some(&b']') {
        at += 1;
    }
    while let Some(&byte) = pattern.get(at) {
        match byte {
            b']' => return Some(at),
            b'\\' => at += 1,
            b'[' if pattern.get(at + 1) == Some(&b':') => {
                let end = memchr::memmem::find(&pattern[at + 2..], b":]")?;
                at += end + 3;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The `}` of counts such as `{2}`, `{2,}` and `{2,3}`; other braces are characters.
fn end_of_counts(pattern: &[u8], open: usize) -> Option<usize> {
    let rest = &pattern[open + 1..];
    let length = memchr::memchr(b'}', rest)?;
    let counts = &rest[..length];
    let is_counts = counts.first().is_some_and(u8::is_ascii_digit)
        && counts.iter().all(|byte| byte.is_ascii_digit() || *byte == b',')
        && counts.iter().filter(|byte| **byte == b',').count() <= 1;
    is_counts.then_some(open + 1 + length)
}

/// Whether a repeated group has an alternative that is nothing but repetitions, such as `(a+)*`: the number
/// of ways to match a text with it grows exponentially with the text.
pub(super) fn has_nested_quantifiers(pattern: &[u8]) -> bool {
    /// An alternative of a group.
    #[derive(Clone, Copy, Default)]
    struct Alternative {
        atoms: usize,
        repeated: usize,
        /// Whether an earlier alternative of the group was nothing but repetitions.
        is_found: bool,
    }
    let is_loose = |of: Alternative| of.is_found || (of.atoms > 0 && of.atoms == of.repeated);
    let mut groups = vec![Alternative::default()];
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        let mut is_loose_group = false;
        match byte {
            b'(' => {
                groups.push(Alternative::default());
                at += 1;
                if pattern.get(at) == Some(&b'?') {
                    at += 1;
                    while pattern
                        .get(at)
                        .is_some_and(|byte| byte.is_ascii_alphabetic() || b":=!<>-".contains(byte))
                    {
                        at += 1;
                        if pattern[at - 1] == b':' || pattern[at - 1] == b'=' {
                            break;
                        }
                    }
                }
                continue;
            }
            b')' if groups.len() > 1 => {
                is_loose_group = groups.pop().is_some_and(is_loose);
            }
            b'|' => {
                let Some(last) = groups.last_mut() else { return false };
                *last = Alternative { is_found: is_loose(*last), ..Alternative::default() };
                at += 1;
                continue;
            }
            b'^' | b'$' => {
                at += 1;
                continue;
            }
            b'\\' => at += 1,
            b'[' => at = end_of_set(pattern, at).unwrap_or(pattern.len()),
            _ => {}
        }
        at += 1;
        let is_unbounded = match pattern.get(at) {
            Some(b'*' | b'+') => {
                at += 1;
                true
            }
            Some(b'?') => {
                at += 1;
                false
            }
            Some(b'{') => match end_of_counts(pattern, at) {
                Some(end) => {
                    let is_unbounded = pattern[at..end].ends_with(b",");
                    at = end + 1;
                    is_unbounded
                }
                None => false,
            },
            _ => false,
        };
        // A possessive quantifier is tried in one way only.
        let is_possessive = pattern.get(at) == Some(&b'+');
        if is_possessive || pattern.get(at) == Some(&b'?') {
            at += 1;
        }
        if is_loose_group && is_unbounded && !is_possessive {
            return true;
        }
        if let Some(last) = groups.last_mut() {
            last.atoms += 1;
            last.repeated += usize::from((is_unbounded || is_loose_group) && !is_possessive);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(pattern: &str) -> Option<usize> {
        BasicPatterns.check(pattern.as_bytes()).err().map(|error| error.offset)
    }

    #[test]
    fn good_patterns_have_no_error() {
        for pattern in [
            "",
            "^/(de|fr)/",
            "(?i)^www\\.",
            "[^]]+",
            "[[:alpha:]_-]*",
            "a{2,3}?",
            "{x",
            "a++",
            "\\(",
            "x*?y",
            "(?:a|b)+",
            "(?=a)",
            "(?<!x)y",
            "\\Q(*\\E",
            "(?#a(b)c",
            "(*UTF8)a",
            "a|b|",
            "()",
        ] {
            assert_eq!(offset(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn a_mistake_is_found_at_its_byte() {
        for (pattern, at) in [
            ("^/(de|fr/", 2),
            ("a)", 1),
            ("[a", 0),
            ("*a", 0),
            ("a|+", 2),
            ("a**", 2),
            ("(*", 0),
            ("a\\", 1),
            ("{2}", 0),
            ("(?i", 0),
        ] {
            assert_eq!(offset(pattern), Some(at), "{pattern}");
        }
    }

    #[test]
    fn groups_of_nothing_but_repetitions_are_found() {
        for pattern in ["^(a+)+$", "([a-z]*)*", "(a|b+)*", "(?:x|(a+)+)", "((a+)){2,}", "(.*)+x"] {
            assert!(has_nested_quantifiers(pattern.as_bytes()), "{pattern}");
        }
        for pattern in
            ["(/[a-z]+)*", "(a+b)+", "(a|b)+", "a+b+", "(a+)?", "(a++)+", "(a+){2}", "[(a+)+]", "\\(a+\\)+"]
        {
            assert!(!has_nested_quantifiers(pattern.as_bytes()), "{pattern}");
        }
    }
}
