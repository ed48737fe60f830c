//! Texts with a grammar of their own: bans, and replacements of `regsub`.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{Expression, ExpressionKind, LinkOperator};

/// A part of a text that is known only when the program runs.
const COMPUTED: char = '\u{1}';

/// The operators of bans.
const OPERATORS: &[&str] = &["==", "!=", "~", "!~", "<", ">", "<=", ">="];

impl Checker<'_> {
    /// The text of an expression, with [`COMPUTED`] for parts that are no strings.
    pub(super) fn template(&self, value: &Expression) -> String {
        match &value.kind {
            ExpressionKind::String(literal) => self.text(literal.content),
            ExpressionKind::Chain(chain)
                if chain.rest.iter().all(|link| link.operator == LinkOperator::Add) =>
            {
                let rest = chain.rest.iter().map(|link| self.template(&link.operand));
                std::iter::once(self.template(&chain.first)).chain(rest).collect()
            }
            _ => COMPUTED.to_string(),
        }
    }

    /// Checks the tests of a ban: FIELD OPERATOR TEXT, joined by `&&`.
    pub(super) fn ban(&mut self, value: &Expression) {
        let template = self.template(value);
        for test in template.split("&&") {
            let mut words = test.split_whitespace();
            let (field, operator, argument) = (words.next(), words.next(), words.next());
            let Some(field) = field.filter(|field| !field.contains(COMPUTED)) else { return };
            let is_field = field.starts_with("req.") || field.starts_with("obj.");
            let report = |message: String| Diagnostic::new(&rules::BAN, value.span, message);
            let diagnostic = match (operator, argument) {
                _ if !is_field => report(format!("a ban does not test `{field}`"))
                    .note("a ban tests fields of `req` and `obj`, such as `req.url` and `obj.http.X`"),
                (Some(operator), _) if operator.contains(COMPUTED) => return,
                (Some("="), _) => {
                    let place = self.place_of(value, " = ");
                    let message = "a ban compares with `==`, not with `=`";
                    let diagnostic = Diagnostic::new(&rules::BAN, place, message);
                    match place == value.span {
                        true => diagnostic.advice("write `==`"),
                        false => diagnostic.mend("write `==`", place, " == "),
                    }
                }
                (Some(operator), _) if !OPERATORS.contains(&operator) => {
                    report(format!("a ban has no operator `{operator}`"))
                        .note(format!("the operators are {}", OPERATORS.join(" ")))
                }
                (Some(_), Some(_)) => continue,
                _ => report(format!("the test of `{field}` is not complete"))
                    .note("a test is FIELD OPERATOR TEXT, with blanks between them"),
            };
            self.report(diagnostic);
            return;
        }
    }

    /// The place of a part within the first string that has it; or that of the whole expression.
    fn place_of(&self, value: &Expression, part: &str) -> Span {
        match &value.kind {
            ExpressionKind::String(literal) => match self.text(literal.content).find(part) {
                Some(at) => {
                    let start = literal.content.start + at as u32;
                    Span::new(literal.content.file, start, start + part.len() as u32)
                }
                None => value.span,
            },
            ExpressionKind::Chain(chain) => {
                let operands = std::iter::once(&*chain.first).chain(chain.rest.iter().map(|l| &l.operand));
                let mut places = operands.map(|operand| (self.place_of(operand, part), operand.span));
                places.find(|(place, whole)| place != whole).map_or(value.span, |(place, _)| place)
            }
            _ => value.span,
        }
    }

    /// Warns of `$1` in a replacement, which is `\1` in VCL.
    pub(super) fn replacement(&mut self, value: &Expression) {
        let ExpressionKind::String(literal) = &value.kind else { return };
        let text = self.text(literal.content);
        let is_group = |window: &[u8]| window[0] == b'$' && window[1].is_ascii_digit();
        let places = text.as_bytes().windows(2).enumerate().filter(|(_, window)| is_group(window));
        let groups: Vec<(u32, char)> =
            places.map(|(at, window)| (literal.content.start + at as u32, window[1] as char)).collect();
        let Some(&(first, group)) = groups.first() else { return };
        let dollar = |start: u32| Span::new(literal.content.file, start, start + 1);
        let message = format!("`${group}` is a text here, not a group of the pattern");
        let written: Vec<String> = groups.iter().map(|(_, group)| format!("`\\{group}`")).collect();
        let span = Span::new(literal.content.file, first, first + 2);
        let diagnostic = Diagnostic::new(&rules::DOLLAR_GROUP, span, message).mend(
            format!("write {} for the groups of the pattern", written.join(" and ")),
            dollar(first),
            "\\",
        );
        let rest = groups[1..].iter();
        self.report(rest.fold(diagnostic, |diagnostic, &(at, _)| diagnostic.and_edit(dollar(at), "\\")));
    }
}
