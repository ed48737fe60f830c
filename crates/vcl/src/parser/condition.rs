//! Conditions and the end of a sub: `if`, `else`, `return`.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Failed, Parse, Parser, Place};
use crate::rules;
use crate::source::Span;
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::tree::{
    Action, Branch, ElseBlock, ElseKeyword, Expression, ExpressionKind, Return, StatementKind,
};

/// A continuation of a condition.
enum Continuation {
    ElseIf(ElseKeyword),
    Else,
}

impl Parser<'_, '_> {
    /// `if`, with all branches that follow.
    pub(super) fn condition(&mut self) -> Parse<StatementKind> {
        let keyword = self.at;
        self.bump();
        let mut branches = vec![self.branch(keyword, None)?];
        let mut otherwise = None;
        loop {
            let keyword = self.at;
            match self.continuation() {
                Some(Continuation::ElseIf(spelling)) => branches.push(self.branch(keyword, Some(spelling))?),
                Some(Continuation::Else) => {
                    let span = self.span_from(keyword);
                    let block = self.branch_block(keyword)?;
                    otherwise = Some(ElseBlock { keyword: span, block });
                    break;
                }
                None => break,
            }
        }
        Ok(StatementKind::If { branches, otherwise })
    }

    /// Takes the keyword of another branch, if one is next.
    fn continuation(&mut self) -> Option<Continuation> {
        let meant = match self.word() {
            "else" | "elseif" | "elsif" | "elif" => self.word().to_owned(),
            "" => return None,
            word => {
                let next = self.nth(1);
                let fits = matches!(next.kind, TokenKind::OpenParenthesis | TokenKind::OpenBrace)
                    || self.nth_word(1) == "if";
                let candidates: &[&str] = match next.kind {
                    TokenKind::OpenParenthesis => &["elseif", "elsif", "elif"],
                    _ => &["else"],
                };
                if !fits || word.len() < 3 || !word.to_ascii_lowercase().starts_with("el") && word != "esle" {
                    return None;
                }
                let meant = closest(word, candidates.iter().copied())?;
                let span = self.span();
                let message = format!("no branch begins with `{word}`");
                self.report(Diagnostic::new(&rules::UNKNOWN_STATEMENT, span, message).mend(
                    format!("did you mean `{meant}`?"),
                    span,
                    meant,
                ));
                meant.to_owned()
            }
        };
        self.bump();
        Some(match &*meant {
            "elseif" => Continuation::ElseIf(ElseKeyword::Elseif),
            "elsif" => Continuation::ElseIf(ElseKeyword::Elsif),
            "elif" => Continuation::ElseIf(ElseKeyword::Elif),
            _ if self.at_word("if") => {
                self.bump();
                Continuation::ElseIf(ElseKeyword::ElseIf)
            }
            _ if self.kind() == TokenKind::OpenParenthesis => {
                let place = self.here();
                let message = "`else` takes no condition";
                self.report(Diagnostic::new(&rules::EXPECTED, place, message).mend(
                    "write `else if`",
                    place,
                    " if",
                ));
                Continuation::ElseIf(ElseKeyword::ElseIf)
            }
            _ => Continuation::Else,
        })
    }

    fn branch(&mut self, keyword: usize, else_keyword: Option<ElseKeyword>) -> Parse<Branch> {
        let span = self.span_from(keyword);
        let condition = match self.parenthesized_condition() {
            Ok(condition) => condition,
            Err(Failed) => {
                let start = self.at;
                if !self.skip_to_block() {
                    return Err(Failed);
                }
                Expression { kind: ExpressionKind::Invalid, span: self.span_from(start) }
            }
        };
        let block = self.branch_block(keyword)?;
        Ok(Branch { keyword: span, else_keyword, condition, block })
    }

    fn parenthesized_condition(&mut self) -> Parse<Expression> {
        let depth = self.depth;
        let Some(open) = self.eat(TokenKind::OpenParenthesis) else {
            return self.bare_condition();
        };
        let open = open.span(self.file);
        if self.kind() == TokenKind::CloseParenthesis {
            let span = open.to(self.span());
            let failed = self.fail(Diagnostic::new(&rules::EXPECTED, span, "the condition is empty"));
            self.bump();
            return Err(failed);
        }
        let condition = self.expression_in(Place::Condition);
        self.depth = depth;
        let condition = condition?;
        self.close_parenthesis(open)?;
        while self.kind() == TokenKind::CloseParenthesis {
            let span = self.span();
            let message = "this `)` has no `(`";
            self.report(Diagnostic::new(&rules::MISSING_PARENTHESIS, span, message).mend(
                "remove it",
                span,
                "",
            ));
            self.bump();
        }
        Ok(condition)
    }

    /// A condition without parentheses, or one whose first part alone has them: `if (a) && (b) {`.
    fn bare_condition(&mut self) -> Parse<Expression> {
        let start = self.at;
        if !matches!(
            self.kind(),
            TokenKind::Name | TokenKind::Not | TokenKind::String(_) | TokenKind::Integer
        ) {
            return Err(self.unexpected("a condition in parentheses"));
        }
        let condition = self.expression_in(Place::Condition)?;
        let span = self.span_from(start);
        if self.kind() == TokenKind::CloseParenthesis {
            let place = span.before();
            let message = "`(` is missing before the condition";
            self.fail(Diagnostic::new(&rules::MISSING_PARENTHESIS, place, message).mend(
                "write `(`",
                place,
                "(",
            ));
            self.bump();
            return Ok(condition);
        }
        let message = "a condition stands in parentheses";
        self.report(
            Diagnostic::new(&rules::MISSING_PARENTHESIS, span, message)
                .mend("write `(` before and `)` after", span.before(), "(")
                .and_edit(span.after(), ")"),
        );
        Ok(condition)
    }

    /// Skips the rest of a condition to the `{` of its block; returns `false` if there is none in the
    /// statement.
    fn skip_to_block(&mut self) -> bool {
        loop {
            match self.kind() {
                TokenKind::OpenBrace => return true,
                TokenKind::End | TokenKind::CloseBrace | TokenKind::Semicolon => return false,
                TokenKind::Name if self.begins_line() && self.at_statement_keyword() => return false,
                _ => self.bump(),
            };
        }
    }

    /// A branch without an `if`: it is reported, and its parts are read.
    pub(super) fn stray_else(&mut self) -> Parse<StatementKind> {
        let keyword = self.at;
        let message = format!("`{}` has no `if` before it", self.word());
        let is_v4_else = self.previous().kind == TokenKind::CloseBrace;
        let diagnostic = Diagnostic::new(&rules::EXPECTED, self.span(), message);
        if !self.follows_invalid {
            self.fail(match is_v4_else {
                true => diagnostic.note("after `else` no other branch follows"),
                false => diagnostic,
            });
        }
        match self.continuation() {
            Some(Continuation::ElseIf(spelling)) => self.branch(keyword, Some(spelling)).map(|_| ()),
            _ => self.branch_block(keyword).map(|_| ()),
        }?;
        Ok(StatementKind::Invalid)
    }

    /// `return;` or `return (ACTION);`
    pub(super) fn return_statement(&mut self) -> Parse<StatementKind> {
        let keyword = self.bump().span(self.file);
        if self.kind() == TokenKind::Semicolon {
            self.bump();
            return Ok(StatementKind::Return(Return { keyword, action: None }));
        }
        let Some(open) = self.eat(TokenKind::OpenParenthesis) else {
            if self.begins_line() || self.kind() == TokenKind::CloseBrace {
                self.semicolon()?;
                return Ok(StatementKind::Return(Return { keyword, action: None }));
            }
            let start = self.at;
            let action = self.action()?;
            let span = self.span_from(start);
            let message = "the action of `return` stands in parentheses";
            let written = String::from_utf8_lossy(&self.text[span.range()]).into_owned();
            self.fail(
                Diagnostic::new(&rules::MISSING_PARENTHESIS, span, message)
                    .mend(format!("write `return ({written});`"), span.before(), "(")
                    .and_edit(span.after(), ")"),
            );
            if self.kind() == TokenKind::CloseParenthesis {
                self.bump();
            }
            self.semicolon()?;
            return Ok(StatementKind::Return(Return { keyword, action: Some(action) }));
        };
        let open = open.span(self.file);
        if self.kind() == TokenKind::CloseParenthesis {
            let span = open.to(self.span());
            let diagnostic = Diagnostic::new(&rules::EXPECTED, span, "`return ()` has no action");
            let failed =
                self.fail(diagnostic.advice("write an action, or `return;` to leave a sub of your own"));
            return Err(failed);
        }
        let action = self.action()?;
        self.action_end(open, &action)?;
        self.semicolon()?;
        Ok(StatementKind::Return(Return { keyword, action: Some(action) }))
    }

    fn action_end(&mut self, open: Span, action: &Action) -> Parse<()> {
        let is_value = matches!(self.kind(), TokenKind::Integer | TokenKind::String(_) | TokenKind::Real);
        if is_value && action.arguments.is_none() && !self.begins_line() {
            let message = format!("the arguments of `{}` stand in parentheses", action.name.text);
            return Err(self.fail(
                Diagnostic::new(&rules::MISSING_PARENTHESIS, self.span(), message)
                    .advice(format!("write `return ({}(…));`", action.name.text)),
            ));
        }
        self.close_parenthesis(open)
    }

    fn action(&mut self) -> Parse<Action> {
        let name = self.name("an action, such as `pass` or `deliver`")?;
        let arguments = match self.kind() {
            TokenKind::OpenParenthesis => Some(self.arguments()?),
            _ => None,
        };
        if let (true, "pass", Some(arguments)) = (self.is_v4(), &*name.text, &arguments) {
            for argument in &arguments.list {
                self.needs_unit(&argument.value, "the time of `pass`");
            }
        }
        Ok(Action { name, arguments })
    }

    /// Reports a number without a unit where a duration is needed.
    pub(super) fn needs_unit(&mut self, value: &Expression, what: &str) {
        if matches!(value.kind, ExpressionKind::Integer(_) | ExpressionKind::Real(_)) {
            let written = String::from_utf8_lossy(&self.text[value.span.range()]).into_owned();
            let message = format!("{what} needs a unit");
            self.report(
                Diagnostic::new(&rules::DURATION_UNIT, value.span, message)
                    .mend(format!("write `{written}s` for seconds"), value.span.after(), "s")
                    .note("units are ms, s, m, h, d, w and y"),
            );
        }
    }
}
