//! The types of expressions.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::table::{Access, Type, arithmetic};
use std::net::{IpAddr, SocketAddr};

use crate::tree::{Chain, ChainLink, Expression, ExpressionKind, LinkOperator, MemberAccess, StringLiteral};

impl Checker<'_> {
    /// The type of an expression; `None` if it is unknown, which was reported.
    pub(super) fn expression(&mut self, expression: &Expression) -> Option<Type> {
        match &expression.kind {
            ExpressionKind::String(_) => Some(Type::String),
            ExpressionKind::Integer(_) => Some(Type::Int),
            ExpressionKind::Real(_) => Some(Type::Real),
            ExpressionKind::Duration { .. } => Some(Type::Duration),
            ExpressionKind::Bytes { .. } => Some(Type::Bytes),
            ExpressionKind::Boolean(_) => Some(Type::Bool),
            ExpressionKind::Blob(_) => Some(Type::Blob),
            ExpressionKind::UnknownUnit { .. } | ExpressionKind::Invalid => None,
            ExpressionKind::Path(path) => self.path(path, Access::Read),
            ExpressionKind::Call(call) => self.called_value(call),
            ExpressionKind::Member(member) => self.member(member),
            ExpressionKind::Parenthesized(inner) => self.expression(inner),
            ExpressionKind::Not(inner) => {
                self.value(inner, Type::Bool, "the operand of `!`")?;
                Some(Type::Bool)
            }
            ExpressionKind::Negative(inner) => self.negative(inner),
            ExpressionKind::Chain(chain) => self.chain(chain),
            ExpressionKind::Comparison(comparison) => {
                self.comparison(comparison);
                Some(Type::Bool)
            }
        }
    }

    /// Checks that an expression has the type of its place, or becomes it. `context` is the place in words.
    /// Returns `None` if it was reported.
    pub(super) fn value(&mut self, expression: &Expression, expected: Type, context: &str) -> Option<Type> {
        match expected {
            Type::Regex => return self.pattern(expression, context),
            Type::Acl | Type::Probe | Type::Sub => return self.symbol_value(expression, expected, context),
            _ => {}
        }
        if expected == Type::Backend && self.backend_value(expression, context).is_some() {
            return None;
        }
        if let (Type::Ip, ExpressionKind::String(literal)) = (expected, &expression.kind) {
            return self.address(literal);
        }
        let found = self.expression(expression)?;
        let is_negative = matches!(expression.kind, ExpressionKind::Negative(_));
        let fits = match expected {
            Type::Bool if is_negative => false,
            Type::String => found.becomes_text(),
            Type::Bool => found.is_condition(),
            Type::Real => found == Type::Real || (found == Type::Int && begins_with_number(expression)),
            _ => found == expected,
        };
        match fits {
            true => Some(expected),
            false => {
                self.mismatch(expression, found, expected, context);
                None
            }
        }
    }

    /// An address that is written as a string.
    pub(super) fn address(&mut self, literal: &StringLiteral) -> Option<Type> {
        let text = self.text(literal.content);
        let is_address = text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok();
        // A name is resolved when the program is loaded.
        let is_name =
            text.contains(|letter: char| letter.is_ascii_alphabetic()) && !text.contains([' ', '/']);
        if is_address || is_name {
            return Some(Type::Ip);
        }
        let message = format!("`{text}` is no address");
        self.report(Diagnostic::new(&rules::TYPE, literal.content, message));
        None
    }

    /// The value of a body: a text or binary data.
    pub(super) fn body(&mut self, expression: &Expression, context: &str) {
        if let Some(found) = self.expression(expression)
            && !found.becomes_text()
        {
            self.mismatch(expression, found, Type::String, context);
        }
    }

    fn negative(&mut self, inner: &Expression) -> Option<Type> {
        let found = self.expression(inner)?;
        if matches!(found, Type::Int | Type::Real | Type::Duration) {
            return Some(found);
        }
        let message = format!("a value of type {found} has no negative");
        self.report(Diagnostic::new(&rules::TYPE, inner.span, message));
        None
    }

    fn chain(&mut self, chain: &Chain) -> Option<Type> {
        let is_logical =
            chain.rest.iter().any(|link| matches!(link.operator, LinkOperator::Or | LinkOperator::And));
        if is_logical {
            self.value(&chain.first, Type::Bool, "a condition");
            for link in &chain.rest {
                self.value(&link.operand, Type::Bool, "a condition");
            }
            return Some(Type::Bool);
        }
        let is_reported = chain.rest.iter().any(|link| link.operator == LinkOperator::SideBySide);
        if is_reported {
            return None;
        }
        let mut left = self.expression(&chain.first);
        let mut left_end = &*chain.first;
        for link in &chain.rest {
            let right = self.expression(&link.operand);
            left = match (left, right) {
                (Some(left), Some(right)) => self.link(chain, left, left_end, link, right),
                _ => None,
            };
            left_end = &link.operand;
        }
        left
    }

    /// The type of the operation of a link, whose left side has the type `left` and ends with `before`.
    fn link(
        &mut self,
        chain: &Chain,
        left: Type,
        before: &Expression,
        link: &ChainLink,
        right: Type,
    ) -> Option<Type> {
        if let Some(result) = arithmetic(left, link.operator, right) {
            // A duration and a bare number would be joined as texts, which nobody means.
            let is_number = matches!(link.operand.kind, ExpressionKind::Integer(_) | ExpressionKind::Real(_));
            let lacks_unit = matches!(left, Type::Duration | Type::Time) && is_number;
            if !(lacks_unit && link.operator == LinkOperator::Add && chain.rest.len() == 1) {
                return Some(result);
            }
        }
        let operator = self.text(link.operator_span);
        let message = format!("there is no {left} `{operator}` {right}");
        let diagnostic = Diagnostic::new(&rules::TYPE, link.operator_span, message)
            .related(before.span, format!("{left} here"))
            .related(link.operand.span, format!("{right} here"));
        self.report(match (left, link.operator, right) {
            (Type::Int, LinkOperator::Multiply, Type::Duration | Type::Bytes) => diagnostic.advice(format!(
                "write the {right} first: `{} * {}`",
                self.short_text(link.operand.span),
                self.short_text(before.span)
            )),
            (
                Type::Duration | Type::Time,
                LinkOperator::Add | LinkOperator::Subtract,
                Type::Int | Type::Real,
            ) if matches!(link.operand.kind, ExpressionKind::Integer(_) | ExpressionKind::Real(_)) => {
                let number = self.text(link.operand.span);
                diagnostic.mend(format!("write `{number}s`"), link.operand.span.after(), "s")
            }
            (Type::Real, LinkOperator::Remainder, _) => {
                diagnostic.advice("convert it with `std.integer(real = …)`")
            }
            (_, LinkOperator::Subtract, _) if left.is_text() && right.is_text() => {
                diagnostic.advice("remove a part of a text with `regsub(TEXT, PATTERN, \"\")`")
            }
            _ if left.is_text() => diagnostic.advice("convert the text with `std.integer` or `std.real`"),
            _ => diagnostic,
        });
        None
    }

    fn member(&mut self, member: &MemberAccess) -> Option<Type> {
        let of = self.expression(&member.of)?;
        let name = member.member.text();
        if let Some(arguments) = &member.arguments
            && of.is_text()
            && matches!(&*name, "upper" | "lower")
        {
            if let Some(first) = arguments.list.first() {
                let message = format!("`{name}` has no arguments");
                self.report(Diagnostic::new(&rules::ARGUMENTS, first.value.span, message));
            }
            return Some(Type::String);
        }
        self.unknown_property(&member.member, of);
        None
    }

    /// The error about a member that values of a type do not have.
    pub(super) fn unknown_property(&mut self, member: &crate::tree::Path, of: Type) {
        let name = member.text();
        let message = format!("a value of type {of} has no `{name}`");
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_FUNCTION, member.span, message);
        self.report(match of.is_text() {
            true => diagnostic.note("texts have `.upper()` and `.lower()`"),
            false => diagnostic,
        });
    }

    /// A value that can only be the name of a symbol: an access list, a probe or a sub.
    fn symbol_value(&mut self, expression: &Expression, expected: Type, context: &str) -> Option<Type> {
        if let ExpressionKind::Path(path) = &expression.kind
            && let Some(name) = path.single()
        {
            let symbol = self.symbols.get(&name.text);
            match (symbol.map(|symbol| symbol.kind), expected) {
                (Some(SymbolKind::Acl), Type::Acl) | (Some(SymbolKind::Probe), Type::Probe) => {
                    self.symbols.mark_used(&name.text);
                    return Some(expected);
                }
                (Some(SymbolKind::Sub(callee)), Type::Sub) => {
                    self.symbols.mark_used(&name.text);
                    self.sub_call(crate::check::flow::SubCall { callee, span: expression.span });
                    return Some(expected);
                }
                _ => {}
            }
            if symbol.is_none() {
                self.unknown_name(name, move |kind| {
                    matches!(
                        (kind, expected),
                        (SymbolKind::Acl, Type::Acl)
                            | (SymbolKind::Probe, Type::Probe)
                            | (SymbolKind::Sub(_), Type::Sub)
                    )
                });
                return None;
            }
        }
        let found = self.expression(expression)?;
        self.mismatch(expression, found, expected, context);
        None
    }
}

/// Whether an expression begins with a number, so that its integers count as real numbers where those are
/// needed.
fn begins_with_number(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Integer(_) => true,
        ExpressionKind::Parenthesized(inner) | ExpressionKind::Negative(inner) => begins_with_number(inner),
        ExpressionKind::Chain(chain) => begins_with_number(&chain.first),
        _ => false,
    }
}
