//! Literals and paths.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Failed, Parse, Parser};
use crate::parser::words::{BYTE_UNITS, DURATION_UNITS, meant_unit};
use crate::rules;
use crate::source::Span;
use crate::token::{StringKind, Token, TokenKind};
use crate::tree::{Expression, ExpressionKind, Name, Path, StringLiteral};

impl Parser<'_, '_> {
    /// The string literal of a token.
    pub(super) fn string_literal(&self, token: Token, kind: StringKind) -> StringLiteral {
        let span = token.span(self.file);
        let (opening, closing) = match kind {
            StringKind::Short | StringKind::Foreign => (1, 1),
            StringKind::Long => (2, 2),
            StringKind::Triple => (3, 3),
        };
        let opening = match (kind, self.text[span.start as usize]) {
            // A typographic quote has three bytes.
            (StringKind::Foreign, 0xe2) => 3,
            _ => opening,
        };
        let closing = match (kind, self.text[span.end as usize - 1]) {
            (StringKind::Foreign, b'\'' | b'"' | b'`') => 1,
            (StringKind::Foreign, _) => 3,
            // A damaged string has no end.
            _ if token.is_damaged => 0,
            _ => closing,
        };
        let content = Span::new(self.file, span.start + opening, span.end - closing);
        let bytes = &self.text[content.range()];
        let has_escapes = bytes
            .windows(3)
            .any(|window| matches!(window, [b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()));
        StringLiteral { kind, span, content, has_escapes }
    }

    /// Takes a string, or fails with `expected` in the message.
    pub(super) fn string(&mut self, expected: &str) -> Parse<StringLiteral> {
        match self.kind() {
            TokenKind::String(kind) => {
                let token = self.bump();
                Ok(self.string_literal(token, kind))
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Takes names joined by dots. Blanks may stand around the dots. The names after the first may be quoted.
    pub(super) fn path(&mut self, expected: &str) -> Parse<Path> {
        let start = self.at;
        let mut names = vec![self.name(expected)?];
        while self.eat(TokenKind::Dot).is_some() {
            match self.kind() {
                // A line that begins with a word of a statement is one, not the rest of a name.
                TokenKind::Name if !(self.begins_line() && self.at_statement_keyword()) => {
                    names.push(self.name("a name")?);
                }
                TokenKind::String(StringKind::Short) => {
                    let token = self.bump();
                    let literal = self.string_literal(token, StringKind::Short);
                    let bytes = &self.text[literal.content.range()];
                    let text = String::from_utf8_lossy(bytes).into();
                    names.push(Name { text, span: literal.span, is_quoted: true });
                }
                TokenKind::Integer | TokenKind::Real => names.push(self.name_after_digits()),
                _ => {
                    let place = self.here();
                    let message = "a name is missing after `.`";
                    return Err(self.fail(Diagnostic::new(&rules::EXPECTED, place, message)));
                }
            }
        }
        Ok(Path { names, span: self.span_from(start) })
    }

    /// A name that begins with a digit, which needs quotes.
    fn name_after_digits(&mut self) -> Name {
        let start = self.at;
        self.bump();
        while self.previous().end == self.token().start
            && matches!(self.kind(), TokenKind::Name | TokenKind::Integer | TokenKind::Real)
        {
            self.bump();
        }
        let span = self.span_from(start);
        let text = String::from_utf8_lossy(&self.text[span.range()]).into_owned();
        let quoted = format!("\"{text}\"");
        self.report(
            Diagnostic::new(&rules::NAME_CHARACTER, span, format!("the name `{text}` begins with a digit"))
                .mend(format!("write the name of a header field in quotes: `{quoted}`"), span, quoted),
        );
        Name { text: text.into(), span, is_quoted: false }
    }

    /// A number, with its unit if there is one.
    pub(super) fn number(&mut self) -> Parse<Expression> {
        let start = self.at;
        let token = self.bump();
        let text = self.text_of(token);
        let value: f64 = text.trim_end_matches('.').parse().unwrap_or(f64::MAX);
        let kind = match token.kind {
            TokenKind::Integer => ExpressionKind::Integer(text.parse().unwrap_or(i64::MAX)),
            _ => ExpressionKind::Real(value),
        };
        let is_adjacent = self.token().start == token.end;
        if is_adjacent && self.kind() == TokenKind::Dot && token.kind == TokenKind::Real {
            return Err(self.bare_address(start));
        }
        let word = self.word();
        let duration = DURATION_UNITS.into_iter().find(|&(unit, _)| unit == word);
        let bytes = BYTE_UNITS.into_iter().find(|(unit, _)| unit.eq_ignore_ascii_case(word));
        let unit = self.span();
        let kind = match (duration, bytes) {
            (Some((_, seconds)), _) if is_adjacent || !self.begins_line() => {
                self.bump();
                ExpressionKind::Duration { seconds: value * seconds, unit }
            }
            (_, Some((_, size))) if is_adjacent || !self.begins_line() => {
                self.bump();
                ExpressionKind::Bytes { bytes: value * size, unit }
            }
            _ if is_adjacent && !word.is_empty() => {
                self.unknown_unit(unit);
                self.bump();
                ExpressionKind::UnknownUnit { number: value, unit }
            }
            _ => kind,
        };
        Ok(Expression { kind, span: self.span_from(start) })
    }

    fn unknown_unit(&mut self, unit: Span) {
        let word = self.word().to_owned();
        let message = format!("`{word}` is no unit");
        let diagnostic = Diagnostic::new(&rules::DURATION_UNIT, unit, message);
        let diagnostic = match (meant_unit(&word), word.split_once('-')) {
            (Some(meant), _) => diagnostic.mend(format!("write `{meant}`"), unit, meant),
            (None, Some((first, _))) if DURATION_UNITS.iter().any(|&(unit, _)| unit == first) => {
                let place =
                    Span::new(unit.file, unit.start + first.len() as u32, unit.start + first.len() as u32);
                diagnostic.note("`-` may be part of a name").mend("write a space before `-`", place, " ")
            }
            _ => diagnostic,
        };
        self.report(
            diagnostic.note("units are ms, s, m, h, d, w, y for time and B, KB, MB, GB, TB for size"),
        );
    }

    /// Reports an address without quotes, whose first part was taken, and takes the rest.
    pub(super) fn bare_address(&mut self, start: usize) -> Failed {
        while self.previous().end == self.token().start
            && matches!(
                self.kind(),
                TokenKind::Dot
                    | TokenKind::Integer
                    | TokenKind::Real
                    | TokenKind::Name
                    | TokenKind::Colon
                    | TokenKind::Blob
            )
        {
            self.bump();
        }
        let span = self.span_from(start);
        let text = String::from_utf8_lossy(&self.text[span.range()]).into_owned();
        let quoted = format!("\"{text}\"");
        self.report(
            Diagnostic::new(&rules::EXPECTED, span, "addresses and names of hosts stand in quotes").mend(
                format!("write `{quoted}`"),
                span,
                quoted,
            ),
        );
        self.quiet_at = Some(self.at);
        Failed
    }
}
