//! Literals and paths.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Failed, Parse, Parser, Place};
use crate::parser::words::{self, BYTE_UNITS, DURATION_UNITS, meant_unit};
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

    /// Reports the text of a BLOB literal that is not base64 in groups of four characters.
    pub(super) fn check_base64(&mut self, span: Span) {
        let digits = &self.text[span.range()];
        let padding = digits.iter().rev().take_while(|&&byte| byte == b'=').count();
        let is_padded_within = digits[..digits.len() - padding].contains(&b'=');
        if !digits.len().is_multiple_of(4) || padding > 2 || is_padded_within {
            let message = "a BLOB literal is base64 in groups of four characters, padded with `=`";
            self.report(Diagnostic::new(&rules::BLOB, span, message));
        }
    }

    /// Takes names joined by dots. Blanks may stand around the dots. The names after the first may be quoted.
    pub(super) fn path(&mut self, expected: &str) -> Parse<Path> {
        let start = self.at;
        let mut names = vec![self.name(expected)?];
        loop {
            if self.kind() == TokenKind::OpenBracket && self.previous().end == self.token().start {
                names.push(self.bracketed_name()?);
                continue;
            }
            if !self.at_member_dot() && !self.at_misplaced_colon(&names) {
                break;
            }
            self.bump();
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

    /// Whether a `.` is next that names a member of the value before it.
    pub(super) fn at_member_dot(&self) -> bool {
        let begins_property = self.place == Place::Property && self.previous().end < self.token().start;
        self.kind() == TokenKind::Dot && !begins_property && !self.is_joining_dot()
    }

    /// Whether a statement begins on the line after the `.` that is next.
    pub(super) fn ends_before_statement(&self) -> bool {
        let next = (self.at + 1).min(self.tokens.len() - 1);
        self.token_begins_line(next) && words::begins_statement(self.nth_word(1), self.is_v4())
    }

    /// Whether a `:` is next that stands for a `.`, or begins a part of a field as in Fastly's dialect; it is
    /// reported.
    fn at_misplaced_colon(&mut self, names: &[Name]) -> bool {
        let (colon, next) = (self.token(), self.nth(1));
        let is_adjacent = self.previous().end == colon.start && colon.end == next.start;
        if colon.kind != TokenKind::Colon || next.kind != TokenKind::Name || !is_adjacent {
            return false;
        }
        let span = self.span();
        let follows_fields = names.last().is_some_and(|name| &*name.text == "http");
        self.report(match follows_fields {
            true => {
                Diagnostic::new(&rules::FOREIGN_SYNTAX, span, "a field is named after `.`, not after `:`")
                    .mend("write `.`", span, ".")
            }
            false => {
                Diagnostic::new(&rules::FOREIGN_SYNTAX, span, "VCL has no names for the parts of a field")
                    .note("`FIELD:NAME` is of Fastly's dialect")
                    .advice("use the modules `cookie` or `header`, or `regsub`")
            }
        });
        true
    }

    /// Whether the `.` that is next is meant to join texts, as in PHP: blanks stand around it, and a text
    /// follows.
    pub(super) fn is_joining_dot(&self) -> bool {
        const ROOTS: &[&str] =
            &["req", "bereq", "beresp", "resp", "obj", "client", "server", "local", "remote", "now", "std"];
        let (dot, next) = (self.token(), self.nth(1));
        let is_text = match next.kind {
            TokenKind::String(_) => true,
            TokenKind::Name => ROOTS.contains(&self.nth_word(1)) && self.nth(2).kind == TokenKind::Dot,
            _ => false,
        };
        dot.kind == TokenKind::Dot && is_text && self.previous().end < dot.start && dot.end < next.start
    }

    /// A name in brackets, as other languages index fields: it is reported, and meant with a `.` before it.
    fn bracketed_name(&mut self) -> Parse<Name> {
        let start = self.at;
        self.bump();
        let (text, span) = match self.kind() {
            TokenKind::String(_) => {
                let literal = self.string("a name")?;
                (String::from_utf8_lossy(&self.text[literal.content.range()]).into_owned(), literal.span)
            }
            _ => {
                let name = self.name("a name")?;
                (name.text.into(), name.span)
            }
        };
        if self.eat(TokenKind::CloseBracket).is_none() {
            return Err(self.unexpected("`]`"));
        }
        let whole = self.span_from(start);
        let is_name = |kind| matches!(kind, TokenKind::Name | TokenKind::Dot);
        let before = self.tokens[..start].iter().rev().take_while(|token| is_name(token.kind));
        let first = before.last().map_or(whole.start, |token| token.start);
        let object = String::from_utf8_lossy(&self.text[first as usize..whole.start as usize]).into_owned();
        let message = "a field is named after `.`, not in brackets";
        self.report(Diagnostic::new(&rules::FOREIGN_SYNTAX, whole, message).mend(
            format!("write `{object}.{text}`"),
            whole,
            format!(".{text}"),
        ));
        Ok(Name { text: text.into(), span, is_quoted: false })
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
        let text = self.text_of(token).to_owned();
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
            _ if !word.is_empty() && (is_adjacent || (meant_unit(word).is_some() && !self.begins_line())) => {
                self.unknown_unit(unit, &text);
                self.bump();
                ExpressionKind::UnknownUnit { number: value, unit }
            }
            _ => kind,
        };
        Ok(Expression { kind, span: self.span_from(start) })
    }

    fn unknown_unit(&mut self, unit: Span, number: &str) {
        let word = self.word().to_owned();
        let message = format!("`{word}` is no unit");
        let diagnostic = Diagnostic::new(&rules::DURATION_UNIT, unit, message);
        let diagnostic = match (meant_unit(&word), word.split_once('-')) {
            (Some(meant), _) => diagnostic.mend(format!("write `{number}{meant}`"), unit, meant),
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
        let mut quoted = format!("\"{text}\"");
        let mut span = span;
        if self.kind() == TokenKind::Slash && self.nth(1).kind == TokenKind::Integer {
            self.bump();
            let mask = self.bump();
            quoted = format!("{quoted}/{}", self.text_of(mask));
            span = self.span_from(start);
        }
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
