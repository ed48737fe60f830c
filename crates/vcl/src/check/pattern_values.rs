//! Values that are patterns.

use crate::check::checker::Checker;
use crate::check::patterns::PatternError;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::table::Type;
use crate::tree::{Expression, ExpressionKind, LinkOperator, StringLiteral};

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
