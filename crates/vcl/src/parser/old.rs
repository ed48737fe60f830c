//! Statements that only VCL 2 and 3 have. In VCL 4 they are reported with what to write instead, and read as
//! well.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Parse, Parser, Place};
use crate::parser::words;
use crate::rules;
use crate::token::TokenKind;
use crate::tree::{Expression, OldStatement, StatementKind};

impl Parser<'_, '_> {
    /// Whether a statement that only VCL 2 and 3 have begins here with `keyword`.
    pub(super) fn is_old_statement(&self, keyword: &str) -> bool {
        let next = self.nth(1).kind;
        let ends = matches!(next, TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End)
            || self.token_begins_line((self.at + 1).min(self.tokens.len() - 1));
        match keyword {
            "error" => true,
            "synthetic" | "log" | "panic" => next != TokenKind::OpenParenthesis,
            "esi" | "rollback" | "purge" => ends,
            _ => ends && words::ACTIONS.contains(&keyword),
        }
    }

    /// The statement that begins with `keyword`.
    pub(super) fn old_statement(&mut self, keyword: &str) -> Parse<StatementKind> {
        let start = self.at;
        let statement = match keyword {
            "error" => self.old_error()?,
            "synthetic" | "log" | "panic" => {
                self.bump();
                let value = self.expression_in(Place::Value)?;
                match keyword {
                    "synthetic" => OldStatement::Synthetic(value),
                    "log" => OldStatement::Log(value),
                    _ => OldStatement::Panic(value),
                }
            }
            "esi" | "rollback" | "purge" => {
                self.bump();
                match keyword {
                    "esi" => OldStatement::Esi,
                    "purge" => OldStatement::Purge,
                    _ => OldStatement::Rollback,
                }
            }
            _ => OldStatement::Action(self.name("an action")?),
        };
        if self.is_v4() {
            self.report_old(start, &statement);
        }
        self.semicolon()?;
        Ok(StatementKind::Old(statement))
    }

    fn old_error(&mut self) -> Parse<OldStatement> {
        self.bump();
        let ends = |parser: &Self| {
            matches!(parser.kind(), TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End)
                || (parser.begins_line() && !matches!(parser.kind(), TokenKind::String(_)))
        };
        if ends(self) {
            return Ok(OldStatement::Error { status: None, reason: None });
        }
        let status = Some(self.primary()?);
        self.eat(TokenKind::Comma);
        let reason = match ends(self) {
            true => None,
            false => Some(self.expression_in(Place::Value)?),
        };
        Ok(OldStatement::Error { status, reason })
    }

    /// Reports an old statement, whose first token has the index `start`, in VCL 4.
    fn report_old(&mut self, start: usize, statement: &OldStatement) {
        let span = self.span_from(start);
        let written = |expression: &Expression| {
            String::from_utf8_lossy(&self.text[expression.span.range()]).into_owned()
        };
        let (word, replacement) = match statement {
            OldStatement::Error { status, reason } => {
                let status = status.as_ref().map_or_else(|| "503".to_owned(), written);
                let reason =
                    reason.as_ref().map_or_else(String::new, |reason| format!(", {}", written(reason)));
                ("error", Some(format!("return (synth({status}{reason}))")))
            }
            OldStatement::Synthetic(value) => ("synthetic", Some(format!("synthetic({})", written(value)))),
            OldStatement::Log(value) => ("log", Some(format!("std.log({})", written(value)))),
            OldStatement::Panic(_) => ("panic", None),
            OldStatement::Rollback => ("rollback", Some("std.rollback(req)".to_owned())),
            OldStatement::Purge => ("purge", Some("return (purge)".to_owned())),
            OldStatement::Esi => ("esi", Some("set beresp.do_esi = true".to_owned())),
            OldStatement::Action(name) => (&*name.text, Some(format!("return ({})", name.text))),
        };
        let is_action = matches!(statement, OldStatement::Action(_));
        let message = match is_action {
            true => format!("`{word}` is an action, and an action stands in `return (…)`"),
            false => format!("the statement `{word}` is of VCL 2 and 3"),
        };
        let diagnostic = Diagnostic::new(&rules::OLD_SYNTAX, span, message);
        self.report(match replacement {
            Some(replacement) if replacement.len() <= 100 => {
                diagnostic.mend(format!("write `{replacement};`"), span, replacement)
            }
            Some(replacement) => {
                let form = match statement {
                    OldStatement::Error { .. } => "return (synth(STATUS, TEXT));".to_owned(),
                    OldStatement::Log(_) => "std.log(TEXT);".to_owned(),
                    _ => format!("{word}(TEXT);"),
                };
                diagnostic.mend(format!("write `{form}`"), span, replacement)
            }
            None => diagnostic.advice("remove it"),
        });
    }
}
