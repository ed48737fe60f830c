//! Statements.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Failed, Parse, Parser, Place};
use crate::parser::words;
use crate::rules;
use crate::source::Span;
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::tree::{Assignment, AssignmentOperator, Call, New, Path, Statement, StatementKind, Unset};

impl Parser<'_, '_> {
    /// The next statement. It always takes at least one token, unless the end or a `}` is next.
    pub(super) fn statement(&mut self) -> Statement {
        let (start, depth) = (self.at, self.depth);
        let kind = match self.statement_kind() {
            Ok(kind) => kind,
            Err(Failed) => {
                self.depth = depth;
                self.recover_statement();
                if self.at == start && self.kind() != TokenKind::CloseBrace {
                    self.bump();
                }
                StatementKind::Invalid
            }
        };
        self.depth = depth;
        self.follows_invalid = matches!(kind, StatementKind::Invalid);
        Statement { kind, span: self.span_from(start) }
    }

    fn statement_kind(&mut self) -> Parse<StatementKind> {
        match self.kind() {
            TokenKind::Name => {
                let keyword = self.keyword();
                self.statement_of(&keyword)
            }
            TokenKind::OpenBrace => Ok(StatementKind::Block(self.block("block")?)),
            TokenKind::InlineC => {
                self.bump();
                Ok(StatementKind::InlineC)
            }
            TokenKind::Semicolon => {
                self.stray_semicolon();
                Ok(StatementKind::Invalid)
            }
            TokenKind::Unknown | TokenKind::Colon | TokenKind::CloseParenthesis => {
                let failed = self.unexpected("a statement");
                self.bump();
                Err(failed)
            }
            _ => Err(self.unexpected("a statement")),
        }
    }

    /// The word that the statement begins with; for a misspelt keyword, the keyword that was meant, with an
    /// error.
    fn keyword(&mut self) -> String {
        let word = self.word().to_owned();
        let next = self.nth(1);
        let is_known = words::STATEMENTS.contains(&&*word)
            || words::OLD_STATEMENTS.contains(&&*word)
            || words::FUNCTIONS.contains(&&*word)
            || words::ACTIONS.contains(&&*word)
            || word == "unused";
        let is_name = matches!(
            next.kind,
            TokenKind::Dot | TokenKind::Assign | TokenKind::AddAssign | TokenKind::SubtractAssign
        );
        if is_known || is_name {
            return word;
        }
        let takes_parenthesis = ["if", "return", "else", "elseif", "elsif", "elif"];
        let takes_name = ["set", "unset", "call", "new", "remove"];
        let meant = match next.kind {
            TokenKind::OpenParenthesis => closest(&word, takes_parenthesis),
            TokenKind::Name => closest(&word, takes_name).or_else(|| match &*word {
                "delete" | "del" | "clear" => Some("unset"),
                "let" => Some("set"),
                _ => closest(&word, ["return"]),
            }),
            TokenKind::Semicolon => closest(&word, ["return"]),
            TokenKind::OpenBrace => closest(&word, ["else"]),
            TokenKind::String(_) => closest(&word, ["include"]),
            _ => None,
        };
        let Some(meant) = meant else {
            return word;
        };
        let span = self.span();
        let message = format!("no statement begins with `{word}`");
        self.report(Diagnostic::new(&rules::UNKNOWN_STATEMENT, span, message).mend(
            format!("did you mean `{meant}`?"),
            span,
            meant,
        ));
        meant.to_owned()
    }

    fn statement_of(&mut self, keyword: &str) -> Parse<StatementKind> {
        if words::STATEMENTS.contains(&keyword) && keyword == self.nth_word(1) {
            let span = self.nth(1).span(self.file);
            let message = format!("`{keyword}` stands twice");
            self.report(Diagnostic::new(&rules::EXPECTED, span, message).mend(
                "remove one of them",
                span,
                "",
            ));
            self.bump();
        }
        let next = self.nth(1).kind;
        if next == TokenKind::Dot || (next == TokenKind::Assign && !words::STATEMENTS.contains(&keyword)) {
            return self.other_statement();
        }
        match keyword {
            "set" => self.set(),
            "unset" | "remove" => self.unset(keyword == "remove"),
            "call" => self.call(),
            "if" => self.condition(),
            "else" | "elseif" | "elsif" | "elif" => self.stray_else(),
            "return" => self.return_statement(),
            "new" => self.new_object(),
            "include" => {
                let include = self.include(|parser| parser.items_to_end(|parser| [parser.statement()]))?;
                Ok(StatementKind::Include(include))
            }
            "unused" if next == TokenKind::Name => Ok(StatementKind::Unused(self.unused()?)),
            _ if self.is_old_statement(keyword) => self.old_statement(keyword),
            _ => self.other_statement(),
        }
    }

    /// Reports a `}` without a `{`, and takes it.
    pub(super) fn stray_brace(&mut self) {
        if self.forgiven > 0 {
            self.forgiven -= 1;
        } else {
            let span = self.span();
            let message = "this `}` has no `{`";
            self.fail(Diagnostic::new(&rules::UNOPENED_BLOCK, span, message).mend("remove it", span, ""));
        }
        self.bump();
    }

    fn set(&mut self) -> Parse<StatementKind> {
        self.bump();
        let target = self.path("a variable after `set`")?;
        let operator_span = self.span();
        let operator = match self.kind() {
            TokenKind::Assign => AssignmentOperator::Assign,
            TokenKind::AddAssign => AssignmentOperator::Add,
            TokenKind::SubtractAssign => AssignmentOperator::Subtract,
            TokenKind::MultiplyAssign => AssignmentOperator::Multiply,
            TokenKind::DivideAssign => AssignmentOperator::Divide,
            TokenKind::Equal | TokenKind::Colon => {
                let message = "`set` assigns with `=`";
                self.report(Diagnostic::new(&rules::WRONG_ASSIGNMENT, operator_span, message).mend(
                    "write `=`",
                    operator_span,
                    "=",
                ));
                AssignmentOperator::Assign
            }
            TokenKind::String(_) | TokenKind::Integer | TokenKind::Real | TokenKind::Name
                if !self.begins_line() =>
            {
                let place = self.here();
                let message = format!("`=` is missing after `{}`", target.text());
                self.fail(Diagnostic::new(&rules::WRONG_ASSIGNMENT, place, message).mend(
                    "write `=`",
                    place,
                    " =",
                ));
                let value = self.expression_in(Place::Value)?;
                self.semicolon()?;
                let operator = AssignmentOperator::Assign;
                return Ok(StatementKind::Set(Assignment { target, operator, operator_span: place, value }));
            }
            TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End => {
                let message = format!("`set {}` has no value", target.text());
                return Err(self.fail(
                    Diagnostic::new(&rules::EXPECTED, self.here(), message)
                        .advice("write `= VALUE`; to remove a variable, write `unset`"),
                ));
            }
            _ => return Err(self.unexpected("`=`")),
        };
        self.bump();
        if matches!(self.kind(), TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End)
            || (self.begins_line() && self.at_statement_keyword())
        {
            let message = format!("the value of `{}` is missing", target.text());
            let failed = self.fail(Diagnostic::new(&rules::EXPECTED, self.here(), message));
            self.eat(TokenKind::Semicolon);
            return match self.previous().kind {
                TokenKind::Semicolon => Ok(StatementKind::Invalid),
                _ => Err(failed),
            };
        }
        let value = self.expression_in(Place::Value)?;
        self.semicolon()?;
        Ok(StatementKind::Set(Assignment { target, operator, operator_span, value }))
    }

    fn unset(&mut self, is_remove: bool) -> Parse<StatementKind> {
        let keyword = self.bump().span(self.file);
        if is_remove && self.is_v4() {
            let message = "`remove` is the old word for `unset`";
            self.report(Diagnostic::new(&rules::OLD_SYNTAX, keyword, message).mend(
                "write `unset`",
                keyword,
                "unset",
            ));
        }
        let target = self.path("a variable")?;
        if self.kind() == TokenKind::Comma {
            let message = "`unset` takes one variable";
            return Err(self.fail(
                Diagnostic::new(&rules::EXPECTED, self.span(), message)
                    .advice("write one `unset` for each variable"),
            ));
        }
        self.semicolon()?;
        Ok(StatementKind::Unset(Unset { keyword, is_remove, target }))
    }

    fn call(&mut self) -> Parse<StatementKind> {
        self.bump();
        let name = self.name("the name of a sub after `call`")?;
        if self.kind() == TokenKind::OpenParenthesis {
            let start = self.at;
            if self.nth(1).kind == TokenKind::CloseParenthesis {
                self.bump();
                self.bump();
                let span = self.span_from(start);
                let message = "a sub is called without parentheses";
                self.report(Diagnostic::new(&rules::EXPECTED, span, message).mend(
                    format!("write `call {};`", name.text),
                    span,
                    "",
                ));
            } else {
                let message = "a sub takes no arguments";
                return Err(self.fail(
                    Diagnostic::new(&rules::EXPECTED, self.span(), message)
                        .advice("set a header field before the call, and read it in the sub"),
                ));
            }
        }
        self.semicolon()?;
        Ok(StatementKind::Call(name))
    }

    fn new_object(&mut self) -> Parse<StatementKind> {
        self.bump();
        let name = self.name("the name of the object after `new`")?;
        if self.eat(TokenKind::Assign).is_none() {
            return Err(self.unexpected("`=`"));
        }
        let constructor = self.path("`MODULE.TYPE(…)`")?;
        if self.kind() != TokenKind::OpenParenthesis {
            let place = self.here();
            let message = "the arguments of the constructor are missing";
            return Err(self.fail(Diagnostic::new(&rules::MISSING_PARENTHESIS, place, message).mend(
                "write `()`",
                place,
                "()",
            )));
        }
        let arguments = self.arguments()?;
        self.semicolon()?;
        Ok(StatementKind::New(New { name, constructor, arguments }))
    }

    /// `unused SYMBOL;`
    pub(super) fn unused(&mut self) -> Parse<Path> {
        self.bump();
        let path = self.path("the name of a symbol after `unused`")?;
        self.semicolon()?;
        Ok(path)
    }

    /// Reports two words side by side, which are a declaration of a variable in other languages.
    fn foreign_statement(&mut self, start: usize, span: Span) -> Failed {
        let name = self.word().to_owned();
        let is_declaration = self.nth(1).kind == TokenKind::Assign;
        let both = span.to(self.span());
        self.at = start;
        let diagnostic = match is_declaration {
            true => {
                let variable = format!("set req.http.{name}");
                Diagnostic::new(&rules::FOREIGN_SYNTAX, both, "VCL has no variables of one's own")
                    .note("values are kept in header fields, or by the module `var`")
                    .mend(format!("write `{variable} = …`"), both, variable)
            }
            false => {
                let message = format!("no statement begins with `{}`", self.word());
                Diagnostic::new(&rules::FOREIGN_SYNTAX, span, message)
            }
        };
        let failed = self.fail(diagnostic);
        self.bump();
        failed
    }

    /// A call of a function, or something that is no statement.
    fn other_statement(&mut self) -> Parse<StatementKind> {
        let start = self.at;
        let function = self.path("a statement")?;
        let span = function.span;
        match self.kind() {
            TokenKind::OpenParenthesis => {
                let arguments = self.arguments()?;
                if self.kind() == TokenKind::OpenBrace {
                    let message = format!("no statement with a block begins with `{}`", function.text());
                    return Err(self.fail(Diagnostic::new(&rules::UNKNOWN_STATEMENT, span, message)));
                }
                self.semicolon()?;
                Ok(StatementKind::Function(Call { function, arguments }))
            }
            TokenKind::Assign
            | TokenKind::AddAssign
            | TokenKind::SubtractAssign
            | TokenKind::MultiplyAssign
            | TokenKind::DivideAssign => {
                let place = span.before();
                self.report(
                    Diagnostic::new(&rules::MISSING_SET, span, "an assignment begins with `set`").mend(
                        format!("write `set {}`", function.text()),
                        place,
                        "set ",
                    ),
                );
                self.bump();
                self.expression_in(Place::Value)?;
                self.semicolon()?;
                Ok(StatementKind::Invalid)
            }
            TokenKind::Name if !self.begins_line() => Err(self.foreign_statement(start, span)),
            _ => {
                let message = format!("`{}` is no statement", function.text());
                self.at = start;
                let failed = self.fail(Diagnostic::new(&rules::UNKNOWN_STATEMENT, span, message));
                self.bump();
                Err(failed)
            }
        }
    }
}
