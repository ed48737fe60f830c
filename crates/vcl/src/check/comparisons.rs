//! Comparisons and matches.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::table::{Type, is_comparable};
use crate::tree::{Comparison, ComparisonOperator, Expression, ExpressionKind};

/// Words of other languages for "no value".
const NOTHING: &[&str] = &["null", "NULL", "nil", "none", "None", "undefined", "undef", "empty"];

impl Checker<'_> {
    pub(super) fn comparison(&mut self, comparison: &Comparison) {
        let Comparison { left, operator, operator_span, right } = comparison;
        if matches!(operator, ComparisonOperator::Match | ComparisonOperator::NotMatch) {
            self.matched(comparison);
            return;
        }
        if let ExpressionKind::Path(path) = &right.kind
            && let Some(name) = path.single()
            && NOTHING.contains(&&*name.text)
            && self.symbols.get(&name.text).is_none()
        {
            self.compared_with_nothing(comparison);
            return;
        }
        let left_type = self.expression(left);
        if let (Some(Type::Ip), ExpressionKind::String(literal)) = (left_type, &right.kind)
            && matches!(operator, ComparisonOperator::Equal | ComparisonOperator::NotEqual)
        {
            self.address(literal);
            return;
        }
        let right_type = self.expression(right);
        let (Some(left_type), Some(right_type)) = (left_type, right_type) else { return };
        let is_literal = matches!(right.kind, ExpressionKind::Integer(_));
        let right_type = if left_type == Type::Real && is_literal { Type::Real } else { right_type };
        if is_comparable(left_type, *operator, right_type) {
            return;
        }
        let written = self.text(*operator_span);
        let message = match left_type == right_type {
            true => format!("values of type {left_type} cannot be compared with `{written}`"),
            false => format!("{left_type} cannot be compared with {right_type}"),
        };
        let diagnostic = Diagnostic::new(&rules::TYPE, left.span.to(right.span), message)
            .related(left.span, format!("{left_type} here"))
            .related(right.span, format!("{right_type} here"));
        let diagnostic = self.mended_comparison(diagnostic, comparison, left_type, right_type);
        self.report(diagnostic);
    }

    fn mended_comparison(
        &mut self,
        diagnostic: Diagnostic,
        comparison: &Comparison,
        left_type: Type,
        right_type: Type,
    ) -> Diagnostic {
        let Comparison { left, operator, right, .. } = comparison;
        let left_text = self.short_text(left.span);
        let is_equal = *operator == ComparisonOperator::Equal;
        if left_type == right_type {
            return match left_type {
                Type::Blob => diagnostic.advice("compare with `blob.equal(…, …)`"),
                _ => diagnostic,
            };
        }
        match (left_type, right_type, &right.kind) {
            (text, Type::Bool, &ExpressionKind::Boolean(value)) if text.is_text() || text == Type::Int => {
                let is_positive = value == is_equal;
                let condition = if is_positive { left_text } else { format!("!{left_text}") };
                let note = "a text is true if it is present";
                let span = left.span.to(right.span);
                diagnostic.note(note).mend(format!("write `{condition}`"), span, condition)
            }
            (Type::Bool, ..) => diagnostic.advice(format!("write `{left_text}` or `!{left_text}`")),
            (text, ..) if text.is_text() => match self.conversion(left, right_type) {
                Some(converted) => {
                    diagnostic.mend(format!("write `{converted}`"), left.span, converted.clone())
                }
                None => diagnostic,
            },
            _ => self.mended_value(diagnostic, right, right_type, left_type),
        }
    }

    fn compared_with_nothing(&mut self, comparison: &Comparison) {
        let Comparison { left, operator, right, .. } = comparison;
        if self.expression(left).is_none() {
            return;
        }
        let word = self.text(right.span);
        let left_text = self.short_text(left.span);
        let condition = match operator {
            ComparisonOperator::Equal => format!("!{left_text}"),
            _ => left_text,
        };
        let message = format!("VCL has no `{word}`");
        self.report(
            Diagnostic::new(&rules::UNKNOWN_SYMBOL, right.span, message)
                .note("a field that is absent is false in a condition")
                .mend(format!("write `{condition}`"), left.span.to(right.span), condition),
        );
    }

    /// `LEFT ~ RIGHT`: a text with a pattern, or an address with an access list.
    fn matched(&mut self, comparison: &Comparison) {
        let Comparison { left, right, .. } = comparison;
        let left_type = self.expression(left);
        let acl = match &right.kind {
            ExpressionKind::Path(path) => path.single().filter(|name| {
                matches!(self.symbols.get(&name.text).map(|symbol| symbol.kind), Some(SymbolKind::Acl))
            }),
            _ => None,
        };
        if let Some(acl) = acl {
            self.symbols.mark_used(&acl.text);
        }
        match (left_type, acl) {
            (Some(Type::Ip), Some(_)) | (None, Some(_)) => {}
            (Some(Type::Ip), None) => self.address_list(comparison),
            (Some(found), Some(_)) => {
                let message = format!("{found} cannot be matched with an access list");
                let diagnostic = Diagnostic::new(&rules::TYPE, left.span, message)
                    .note("addresses are matched with access lists");
                self.report(match self.conversion(left, Type::Ip) {
                    Some(converted) => {
                        diagnostic.mend(format!("write `{converted}`"), left.span, converted.clone())
                    }
                    None => diagnostic,
                });
            }
            (Some(found), None) if found.is_text() => {
                self.pattern(right, "the pattern");
            }
            (Some(found), None) => {
                let written = self.text(comparison.operator_span);
                let message = format!("a value of type {found} cannot be matched with `{written}`");
                let name = self.short_text(left.span);
                let diagnostic = Diagnostic::new(&rules::TYPE, left.span, message)
                    .note("texts are matched with patterns, addresses with access lists");
                self.report(match found {
                    Type::Int if !name.ends_with(".status") => diagnostic.advice("compare it with `==`"),
                    Type::Int => diagnostic.advice(format!("compare: `{name} >= 500 && {name} < 600`")),
                    _ => diagnostic,
                });
            }
            (None, None) => {}
        }
    }

    /// The error about an address that is matched with no access list.
    fn address_list(&mut self, comparison: &Comparison) {
        let right = &comparison.right;
        if let ExpressionKind::Path(path) = &right.kind
            && let Some(name) = path.single()
            && self.symbols.get(&name.text).is_none()
        {
            let message = format!("there is no access list `{}`", name.text);
            let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, name.span, message);
            let is_list = |kind| matches!(kind, SymbolKind::Acl);
            let diagnostic = match self.with_meant(diagnostic, name, is_list) {
                (diagnostic, true) => diagnostic,
                (_, false) if !self.is_news(&name.text) => return,
                (diagnostic, false) => {
                    diagnostic.advice(format!("define it: `acl {} {{ \"192.0.2.0\"/24; }}`", name.text))
                }
            };
            self.report(diagnostic);
            return;
        }
        let found = match is_string(right) {
            true => Some(Type::String),
            false => self.expression(right),
        };
        let Some(found) = found else { return };
        let message = format!("an address is matched with an access list, not with {found}");
        self.report(
            Diagnostic::new(&rules::TYPE, right.span, message)
                .advice("write `acl NAME { \"192.0.2.0\"/24; }`, and match with NAME"),
        );
    }
}

fn is_string(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::String(_))
}
