//! Regular expressions.

use crate::check::{Checker, rules};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::table::Type;
use crate::tree::{Expression, ExpressionKind, LinkOperator, StringLiteral};

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

impl Checker<'_> {
    /// Checks a pattern, which is a string, or strings joined by `+`.
    pub(super) fn pattern(&mut self, value: &Expression, context: &str) -> Option<Type> {
        let mut parts = Vec::new();
        if collect_literals(value, &mut parts) {
            let text: Vec<u8> =
                parts.iter().flat_map(|part| self.parsed.sources.bytes(part.content)).copied().collect();
            return match self.patterns.check(&text) {
                Ok(()) => Some(Type::Regex),
                Err(error) => {
                    self.pattern_error(&parts, &text, &error);
                    None
                }
            };
        }
        let found = self.expression(value)?;
        let message = match found.is_text() {
            true => format!("{context} is written as a string; it cannot be computed"),
            false => format!("{context} is a string, not a value of type {found}"),
        };
        let diagnostic = Diagnostic::new(&rules::PATTERN, value.span, message);
        self.report(match found.is_text() {
            true => diagnostic
                .note("patterns are compiled when the program is loaded")
                .advice("compare with `==`, or search with `std.strstr(TEXT, PART)`"),
            false => diagnostic,
        });
        None
    }

    fn pattern_error(&mut self, parts: &[StringLiteral], text: &[u8], error: &PatternError) {
        let mut offset = error.offset.min(text.len());
        let mut place = parts[0].content.before();
        for part in parts {
            let length = part.content.range().len();
            if offset < length || (offset == length && part.span == parts[parts.len() - 1].span) {
                let start = part.content.start + offset as u32;
                place = Span::new(part.content.file, start, (start + 1).min(part.content.end));
                break;
            }
            offset -= length;
        }
        let diagnostic = Diagnostic::new(&rules::PATTERN, place, error.message.clone());
        let byte = text.get(error.offset).copied();
        self.report(match byte {
            Some(b'(') => diagnostic.advice("write `)` where the group ends, or `\\(` for the character"),
            Some(b'[') => diagnostic.advice("write `]` where the set ends, or `\\[` for the character"),
            Some(byte @ (b'*' | b'+' | b'?' | b')')) => {
                let escaped = format!("\\{}", byte as char);
                let diagnostic = match (byte, error.offset) {
                    (b'*', 0) => diagnostic.note("any text is `.*`"),
                    _ => diagnostic,
                };
                diagnostic.mend(format!("write `{escaped}` for the character"), place, escaped)
            }
            _ => diagnostic,
        });
    }
}

/// Collects the strings of an expression; returns whether it is nothing but strings.
fn collect_literals(value: &Expression, parts: &mut Vec<StringLiteral>) -> bool {
    match &value.kind {
        ExpressionKind::String(literal) => {
            parts.push(*literal);
            true
        }
        ExpressionKind::Chain(chain) => {
            collect_literals(&chain.first, parts)
                && chain
                    .rest
                    .iter()
                    .all(|link| link.operator == LinkOperator::Add && collect_literals(&link.operand, parts))
        }
        _ => false,
    }
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
}
