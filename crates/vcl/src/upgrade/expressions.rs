//! Expressions: texts, variables and calls.

use crate::diagnostic::Edit;
use crate::dialect::OldVersion;
use crate::source::Span;
use crate::token::StringKind;
use crate::tree::{Call, ComparisonOperator, Expression, ExpressionKind, LinkOperator, StringLiteral};
use crate::upgrade::constructs;
use crate::upgrade::walker::Walker;

/// A function of a module, its successor, and the name of its first argument; the others are dropped then.
const MODULE_FUNCTIONS: &[(&str, &str, Option<&str>)] = &[
    ("std.real2integer", "std.integer", Some("real")),
    ("std.real2time", "std.time", Some("real")),
    ("std.time2integer", "std.integer", Some("time")),
    ("std.time2real", "std.real", Some("time")),
    ("cookie.format_rfc1123", "cookie.format_date", None),
    ("cookie.filter_except", "cookie.keep", None),
];

impl Walker<'_, '_> {
    pub(super) fn expression(&mut self, of: &Expression) {
        match &of.kind {
            ExpressionKind::String(literal) => self.string(literal),
            ExpressionKind::Duration { unit, .. } => self.duration(of.span, *unit),
            ExpressionKind::Path(path) => self.read(path),
            ExpressionKind::Call(call) => self.function(of.span, call, false),
            ExpressionKind::Member(member) => {
                self.expression(&member.of);
                let arguments = member.arguments.iter().flat_map(|arguments| &arguments.list);
                arguments.for_each(|argument| self.expression(&argument.value));
            }
            ExpressionKind::Not(inner) => self.negation(of.span, inner),
            ExpressionKind::Parenthesized(inner) | ExpressionKind::Negative(inner) => self.expression(inner),
            ExpressionKind::Chain(chain) => {
                self.expression(&chain.first);
                for link in &chain.rest {
                    if link.operator == LinkOperator::SideBySide {
                        let edit = Edit { span: link.operator_span, text: " +".to_owned() };
                        self.change(
                            &constructs::TEXTS_SIDE_BY_SIDE,
                            of.span,
                            "TEXT TEXT",
                            "TEXT + TEXT",
                            vec![edit],
                        );
                    }
                    self.expression(&link.operand);
                }
            }
            ExpressionKind::Comparison(comparison) => {
                self.operand(&comparison.left);
                let is_match =
                    matches!(comparison.operator, ComparisonOperator::Match | ComparisonOperator::NotMatch);
                let is_acl =
                    matches!(&comparison.right.kind, ExpressionKind::Path(path) if path.single().is_some());
                if !(is_match && is_acl) {
                    self.operand(&comparison.right);
                }
            }
            _ => {}
        }
    }

    /// An operand of a comparison, where a condition needs parentheses.
    fn operand(&mut self, of: &Expression) {
        self.expression(of);
        if let ExpressionKind::Path(path) = &of.kind
            && (path.is("beresp.cacheable") || path.is("obj.cacheable"))
        {
            let edits = vec![
                Edit { span: of.span.before(), text: "(".to_owned() },
                Edit { span: of.span.after(), text: ")".to_owned() },
            ];
            self.change(&constructs::CACHEABLE, of.span, "", "", edits);
        }
    }

    fn negation(&mut self, span: Span, inner: &Expression) {
        match &inner.kind {
            ExpressionKind::Path(path) if path.is("beresp.cacheable") || path.is("obj.cacheable") => {
                let object = if self.state.is_backend() { "beresp" } else { "obj" };
                self.replace(&constructs::CACHEABLE, span, format!("{object}.ttl <= 0s"));
            }
            _ => self.expression(inner),
        }
    }

    fn duration(&mut self, span: Span, unit: Span) {
        let number = span.before().to(unit.before());
        let written = self.text(number);
        let digits = written.trim_end().len() as u32;
        if (digits as usize) < written.len() {
            let gap = Span::new(span.file, span.start + digits, unit.start);
            let was = self.text(span);
            let becomes = format!("{}{}", written.trim_end(), self.text(unit));
            self.change(
                &constructs::DURATION,
                span,
                was,
                becomes,
                vec![Edit { span: gap, text: String::new() }],
            );
        }
    }

    /// A call, as a statement with the `;` in `span` or within an expression.
    pub(super) fn function(&mut self, span: Span, call: &Call, is_statement: bool) {
        let name = call.function.text();
        let list = &call.arguments.list;
        let replace = |text: &str| Edit { span: call.function.span, text: text.to_owned() };
        match (&*name, list.as_slice()) {
            ("purge", [_]) => {
                self.change(&constructs::BAN, span, "purge(TEXT)", "ban(TEXT)", vec![replace("ban")]);
            }
            ("ban_url" | "purge_url", [argument]) => {
                let prefix =
                    Edit { span: argument.value.span.before(), text: "\"req.url ~ \" + ".to_owned() };
                let was = format!("{name}(TEXT)");
                let edits = vec![replace("ban"), prefix];
                self.change(&constructs::BAN, span, was, "ban(\"req.url ~ \" + TEXT)", edits);
            }
            ("purge_hash", _) => {
                let end = if is_statement { ";" } else { "" };
                let text = format!(
                    "ban(\"req.url == \" + req.url + \" && req.http.host == \" + req.http.host){end}"
                );
                let question = "a ban cannot test the key of an object; this one tests URL and host";
                let choices = ["keep it", "return (purge); for the object of this request"];
                self.decide(&constructs::PURGE_HASH, span, question, &choices, vec![Edit { span, text }]);
                return;
            }
            _ => {}
        }
        let successor = MODULE_FUNCTIONS.iter().find(|(old, ..)| *old == name);
        if let (Some((_, new, argument)), [first, ..]) = (successor, list.as_slice()) {
            let mut edits = vec![replace(new)];
            if let Some(argument) = argument {
                let value = first.value.span;
                edits.push(Edit { span: value.before(), text: format!("{argument}=") });
                let last = list.last().map_or(value, |last| last.value.span);
                if last.end > value.end {
                    edits.push(Edit { span: value.after().to(last), text: String::new() });
                }
                self.change(
                    &constructs::MODULE_FUNCTION,
                    span,
                    format!("{name}(…)"),
                    format!("{new}(…)"),
                    edits,
                );
                return self.expression(&first.value);
            }
            self.change(&constructs::MODULE_FUNCTION, span, format!("{name}(…)"), format!("{new}(…)"), edits);
        }
        list.iter().for_each(|argument| self.expression(&argument.value));
    }

    /// A text, which may have escapes in VCL 2.
    pub(super) fn string(&mut self, literal: &StringLiteral) {
        if !literal.has_escapes || literal.kind != StringKind::Short {
            return;
        }
        let question = match self.facts.version {
            Some(OldVersion::V3) => return,
            Some(OldVersion::V2) => "the characters meant by these escapes cannot stand in a text",
            None => "VCL 2 reads `%` with two digits as one character, VCL 3 as it is written",
        };
        let decoded = decoded(self.facts.layout.sources.bytes(literal.content));
        let written = decoded.as_deref().and_then(quoted);
        match (self.facts.version, written) {
            (Some(_), Some(text)) => self.replace(&constructs::TEXT_ESCAPES, literal.span, text),
            _ => {
                let choices =
                    ["leave it, if the text means what it shows", "write the characters themselves"];
                self.decide(&constructs::TEXT_ESCAPES, literal.span, question, &choices, Vec::new());
            }
        }
    }
}

/// The text with its escapes replaced; `None` if the result is no text without control characters.
fn decoded(text: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    let text = String::from_utf8(out).ok()?;
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(is_text).then_some(text)
}

/// A text in quotes that can hold it.
fn quoted(text: &str) -> Option<String> {
    let needs_long = text.contains(['"', '\n', '\r']);
    match needs_long {
        false => Some(format!("\"{text}\"")),
        true if !text.contains("\"}") => Some(format!("{{\"{text}\"}}")),
        true if !text.contains("\"\"\"") && !text.ends_with('"') => Some(format!("\"\"\"{text}\"\"\"")),
        true => None,
    }
}
