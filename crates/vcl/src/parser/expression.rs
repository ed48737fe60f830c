//! Expressions: operators by precedence, calls, values.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Parse, Parser, Place};
use crate::rules;
use crate::source::Span;
use crate::token::TokenKind;
use crate::tree::{
    Argument, Arguments, Call, Chain, ChainLink, Comparison, ComparisonOperator, Expression, ExpressionKind,
    LinkOperator, MemberAccess,
};

/// A precedence of operators that form chains.
#[derive(Clone, Copy)]
enum Level {
    Or,
    And,
    Sum,
    Product,
}

impl Parser<'_, '_> {
    /// An expression of any kind.
    pub(super) fn expression(&mut self) -> Parse<Expression> {
        self.chain(Level::Or)
    }

    /// An expression at a place that has its own message about a missing operator.
    pub(super) fn expression_in(&mut self, place: Place) -> Parse<Expression> {
        let outer = std::mem::replace(&mut self.place, place);
        let expression = self.expression();
        self.place = outer;
        expression
    }

    fn chain(&mut self, level: Level) -> Parse<Expression> {
        let start = self.at;
        let first = self.operand(level)?;
        let mut rest: Vec<ChainLink> = Vec::new();
        while let Some((operator, operator_span)) = self.link_operator(level, &rest) {
            let operand = self.operand(level)?;
            rest.push(ChainLink { operator, operator_span, operand });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let kind = ExpressionKind::Chain(Chain { first: Box::new(first), rest });
        Ok(Expression { kind, span: self.span_from(start) })
    }

    fn operand(&mut self, level: Level) -> Parse<Expression> {
        match level {
            Level::Or => self.chain(Level::And),
            Level::And => self.negation(),
            Level::Sum => self.chain(Level::Product),
            Level::Product => self.unary(),
        }
    }

    /// Takes the operator between two operands of this level, if one is next.
    fn link_operator(&mut self, level: Level, rest: &[ChainLink]) -> Option<(LinkOperator, Span)> {
        let operator = match (level, self.kind()) {
            (Level::Or, TokenKind::Or) => LinkOperator::Or,
            (Level::And, TokenKind::And) => LinkOperator::And,
            (Level::Sum, TokenKind::Plus) => LinkOperator::Add,
            (Level::Sum, TokenKind::Minus) => LinkOperator::Subtract,
            (Level::Sum, TokenKind::Dot) if self.is_joining_dot() => {
                let span = self.span();
                let diagnostic =
                    Diagnostic::new(&rules::UNKNOWN_OPERATOR, span, "texts are not joined with `.`");
                self.report(diagnostic.mend("write `+`", span, "+"));
                LinkOperator::Add
            }
            (Level::Product, TokenKind::Star) => LinkOperator::Multiply,
            (Level::Product, TokenKind::Slash) => LinkOperator::Divide,
            (Level::Product, TokenKind::Percent) => LinkOperator::Remainder,
            (Level::Or, TokenKind::Name) if self.is_word_operator("or") => {
                self.word_operator("||", LinkOperator::Or)
            }
            (Level::And, TokenKind::Name) if self.is_word_operator("and") => {
                self.word_operator("&&", LinkOperator::And)
            }
            (Level::Sum, TokenKind::Name | TokenKind::String(_)) if self.is_side_by_side() => {
                let here = self.here();
                self.check_side_by_side(rest);
                return Some((LinkOperator::SideBySide, here));
            }
            _ => return None,
        };
        let span = self.bump().span(self.file);
        Some((operator, span))
    }

    fn is_word_operator(&self, word: &str) -> bool {
        self.word().eq_ignore_ascii_case(word)
    }

    fn word_operator(&mut self, operator: &str, link: LinkOperator) -> LinkOperator {
        let message = format!("VCL has no operator `{}`", self.word());
        let span = self.span();
        self.report(Diagnostic::new(&rules::WORD_OPERATOR, span, message).mend(
            format!("write `{operator}`"),
            span,
            operator,
        ));
        link
    }

    /// Whether the next token continues the value before it without an operator.
    fn is_side_by_side(&self) -> bool {
        if matches!(self.kind(), TokenKind::String(_)) {
            return true;
        }
        let is_operator = self.is_word_operator("and") || self.is_word_operator("or");
        // In VCL 4 a name on a new line begins a statement, whose predecessor lacks its `;`. In VCL 2 it may
        // be a part of a text, unless it looks like a statement.
        let is_call = self.nth(1).kind == TokenKind::OpenParenthesis && !self.word().starts_with("regsub");
        let is_elsewhere = self.begins_line() && (self.is_v4() || is_call);
        !is_operator && !is_elsewhere && !self.at_statement_keyword()
    }

    /// In VCL 4, reports the missing operator before the next token; once in a chain.
    fn check_side_by_side(&mut self, rest: &[ChainLink]) {
        let was_reported = rest.iter().any(|link| link.operator == LinkOperator::SideBySide);
        if !self.is_v4() || was_reported {
            return;
        }
        let here = self.here();
        let are_words = self.kind() == TokenKind::Name
            && self.previous().kind == TokenKind::Name
            && self.nth(1).kind != TokenKind::Dot
            && self.nth(1).kind != TokenKind::OpenParenthesis;
        let found = self.describe(self.token());
        let is_adjacent = self.previous().end == self.token().start;
        let splits_string = is_adjacent && matches!(self.previous().kind, TokenKind::String(_));
        let diagnostic = match self.place {
            _ if splits_string => {
                let message = "this string ends before the end of its text, at its second `\"`";
                Diagnostic::new(&rules::EXPECTED, self.previous_span(), message)
                    .advice("write `{\"…\"}` around a text that contains `\"`")
            }
            _ if are_words => {
                Diagnostic::new(&rules::EXPECTED, self.span(), format!("unexpected word {found}"))
                    .note("a text stands in quotes: \"…\"")
            }
            Place::Condition => {
                let message = format!("an operator is missing before {found}");
                Diagnostic::new(&rules::EXPECTED, here, message)
                    .advice("write `==`, `~`, `&&`, `||` or `+` between the two")
            }
            Place::Argument => {
                let message = format!("`,` or `+` is missing before {found}");
                Diagnostic::new(&rules::MISSING_PLUS, here, message)
                    .advice("write `,` between two arguments, and `+` between parts of a text")
            }
            Place::Value | Place::Property => {
                let message = format!("`+` is missing before {found}");
                Diagnostic::new(&rules::MISSING_PLUS, here, message).mend(
                    "write `+` between the parts",
                    here,
                    " +",
                )
            }
        };
        self.fail(diagnostic);
    }

    /// A comparison, or its negation.
    fn negation(&mut self) -> Parse<Expression> {
        let start = self.at;
        let is_word = self.is_word_operator("not")
            && matches!(
                self.nth(1).kind,
                TokenKind::Name | TokenKind::OpenParenthesis | TokenKind::String(_)
            );
        if is_word {
            self.word_operator("!", LinkOperator::And);
        } else if self.kind() != TokenKind::Not {
            return self.comparison();
        }
        self.bump();
        if self.kind() == TokenKind::Not {
            let span = self.previous_span().to(self.span());
            let message = "`!` cannot be doubled";
            self.report(Diagnostic::new(&rules::EXPECTED, span, message).mend("remove both", span, ""));
        }
        self.enter()?;
        let of = self.negation();
        self.depth -= 1;
        Ok(Expression { kind: ExpressionKind::Not(Box::new(of?)), span: self.span_from(start) })
    }

    fn comparison(&mut self) -> Parse<Expression> {
        let start = self.at;
        let mut left = self.chain(Level::Sum)?;
        let mut is_second = false;
        while let Some(operator) = self.comparison_operator() {
            let operator_span = self.span();
            if is_second {
                let message = "a comparison cannot be compared without parentheses";
                self.report(
                    Diagnostic::new(&rules::EXPECTED, operator_span, message)
                        .advice("join comparisons with `&&`, or write parentheses"),
                );
            }
            self.bump();
            // A chain of these would nest as deeply as it is long.
            self.enter()?;
            let right = self.chain(Level::Sum);
            self.depth -= 1;
            let comparison = Comparison { left, operator, operator_span, right: right? };
            left = Expression {
                kind: ExpressionKind::Comparison(Box::new(comparison)),
                span: self.span_from(start),
            };
            if is_second {
                break;
            }
            is_second = true;
        }
        Ok(left)
    }

    fn comparison_operator(&mut self) -> Option<ComparisonOperator> {
        Some(match self.kind() {
            TokenKind::Equal => ComparisonOperator::Equal,
            TokenKind::NotEqual => ComparisonOperator::NotEqual,
            TokenKind::Less => ComparisonOperator::Less,
            TokenKind::LessOrEqual => ComparisonOperator::LessOrEqual,
            TokenKind::Greater => ComparisonOperator::Greater,
            TokenKind::GreaterOrEqual => ComparisonOperator::GreaterOrEqual,
            TokenKind::Match => ComparisonOperator::Match,
            TokenKind::NotMatch => ComparisonOperator::NotMatch,
            TokenKind::Assign if self.place == Place::Condition => {
                let span = self.span();
                let message = "`=` assigns; a condition compares with `==`";
                self.report(Diagnostic::new(&rules::WRONG_ASSIGNMENT, span, message).mend(
                    "write `==`",
                    span,
                    "==",
                ));
                ComparisonOperator::Equal
            }
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parse<Expression> {
        let start = self.at;
        match self.kind() {
            TokenKind::Minus => {
                self.enter()?;
                self.bump();
                let of = self.unary();
                self.depth -= 1;
                Ok(Expression { kind: ExpressionKind::Negative(Box::new(of?)), span: self.span_from(start) })
            }
            TokenKind::Not => {
                let message = "`!` negates a whole condition, not a part of a comparison";
                self.report(
                    Diagnostic::new(&rules::EXPECTED, self.span(), message)
                        .advice("write parentheses around the negation: `(!…)`"),
                );
                self.negation()
            }
            _ => self.primary(),
        }
    }

    /// A value with the members that follow it.
    pub(super) fn primary(&mut self) -> Parse<Expression> {
        let start = self.at;
        let mut value = self.value()?;
        let depth = self.depth;
        while self.at_member_dot() && self.nth(1).kind == TokenKind::Name && !self.ends_before_statement() {
            // A chain of members nests as deeply as it is long.
            self.enter()?;
            self.bump();
            let member = self.path("a name")?;
            let arguments = match self.kind() {
                TokenKind::OpenParenthesis => Some(self.arguments()?),
                _ => None,
            };
            let member = Box::new(MemberAccess { of: value, member, arguments });
            value = Expression { kind: ExpressionKind::Member(member), span: self.span_from(start) };
        }
        self.depth = depth;
        Ok(value)
    }

    fn value(&mut self) -> Parse<Expression> {
        let start = self.at;
        let kind = match self.kind() {
            TokenKind::String(kind) => {
                let token = self.bump();
                ExpressionKind::String(self.string_literal(token, kind))
            }
            TokenKind::Integer | TokenKind::Real => return self.number(),
            TokenKind::Blob => {
                let span = self.bump().span(self.file);
                let content = Span::new(self.file, span.start + 1, span.end - 1);
                self.check_base64(content);
                ExpressionKind::Blob(content)
            }
            TokenKind::Name if !(self.begins_line() && self.at_statement_keyword()) => {
                let path = self.path("a value")?;
                let single = path.single().map_or("", |name| &*name.text);
                match self.kind() {
                    TokenKind::OpenParenthesis => {
                        let arguments = self.arguments()?;
                        ExpressionKind::Call(Call { function: path, arguments })
                    }
                    _ if single.eq_ignore_ascii_case("true") => ExpressionKind::Boolean(true),
                    _ if single.eq_ignore_ascii_case("false") => ExpressionKind::Boolean(false),
                    _ => ExpressionKind::Path(path),
                }
            }
            TokenKind::OpenParenthesis => {
                self.enter()?;
                let open = self.bump().span(self.file);
                let inner = self.expression()?;
                self.close_parenthesis(open)?;
                self.depth -= 1;
                ExpressionKind::Parenthesized(Box::new(inner))
            }
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Expression { kind, span: self.span_from(start) })
    }

    /// Arguments in parentheses. One with a mistake is invalid, and the others are read.
    pub(super) fn arguments(&mut self) -> Parse<Arguments> {
        let start = self.at;
        self.enter()?;
        let open = self.bump().span(self.file);
        let mut list = Vec::new();
        while self.kind() != TokenKind::CloseParenthesis {
            list.push(self.argument()?);
            if self.eat(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.close_parenthesis(open)?;
        self.depth -= 1;
        Ok(Arguments { list, span: self.span_from(start) })
    }

    fn argument(&mut self) -> Parse<Argument> {
        let is_named = self.kind() == TokenKind::Name && self.nth(1).kind == TokenKind::Assign;
        let name = match is_named {
            true => {
                let name = self.name("a name")?;
                self.bump();
                Some(name)
            }
            false => None,
        };
        let value = self.expression_in(Place::Argument)?;
        Ok(Argument { name, value })
    }
}
