//! Blocks of statements.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Parse, Parser};
use crate::parser::words;
use crate::rules;
use crate::source::Span;
use crate::token::TokenKind;
use crate::tree::{Block, Statement, StatementKind};

impl Parser<'_, '_> {
    /// Statements in braces. `what` names the block in messages. A missing `{` is reported and assumed if
    /// statements follow.
    pub(super) fn block(&mut self, what: &str) -> Parse<Block> {
        self.enter()?;
        let open = match self.eat(TokenKind::OpenBrace) {
            Some(token) => token.span(self.file),
            None => {
                let place = self.here();
                if self.begins_line() || self.at_statement_keyword() {
                    let message = format!("`{{` is missing before the {what}");
                    let diagnostic = Diagnostic::new(&rules::MISSING_BRACE, place, message);
                    self.fail(diagnostic.mend("write `{` here", place, " {"));
                } else {
                    let failed = self.unexpected("`{`");
                    if !self.replaces_brace() {
                        self.depth -= 1;
                        return Err(failed);
                    }
                    self.bump();
                }
                place
            }
        };
        let mut statements = Vec::new();
        let close = loop {
            match self.kind() {
                TokenKind::CloseBrace => {
                    let last = self.previous_span();
                    let close = self.bump().span(self.file);
                    self.note_alignment(open, last);
                    break close;
                }
                TokenKind::End => {
                    self.unclosed(open, what);
                    break self.here();
                }
                TokenKind::Name if self.at_declaration() && self.is_indented_below(open) => {
                    self.nested_declaration(open);
                    statements.push(self.skipped_declaration());
                }
                TokenKind::Name if self.at_declaration() => {
                    self.unclosed(open, what);
                    break self.here();
                }
                _ => statements.push(self.statement()),
            }
        };
        self.depth -= 1;
        Ok(Block { statements, open, close })
    }

    /// Whether the next token stands in the place of a `{`: it ends its line, and the next line is indented
    /// further.
    pub(super) fn replaces_brace(&self) -> bool {
        let next = (self.at + 1).min(self.tokens.len() - 1);
        let is_mark = !matches!(self.kind(), TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End);
        let next_span = self.tokens[next].span(self.file);
        is_mark && self.token_begins_line(next) && self.indentation(next_span) > self.indentation(self.span())
    }

    /// Whether the next token is indented further than the line of `open`.
    fn is_indented_below(&self, open: Span) -> bool {
        self.indentation(self.span()) > self.indentation(open)
    }

    fn nested_declaration(&mut self, open: Span) {
        let message = format!("`{}` stands within a block", self.word());
        self.report(
            Diagnostic::new(&rules::MISPLACED, self.span(), message)
                .related(open, "the block begins here")
                .advice("move it out of the block"),
        );
    }

    /// Reads a declaration within a block for its own mistakes.
    fn skipped_declaration(&mut self) -> Statement {
        let start = self.at;
        self.declaration();
        Statement { kind: StatementKind::Invalid, span: self.span_from(start) }
    }

    /// The block after a condition. In VCL it cannot be a statement without braces: such a statement is
    /// reported.
    pub(super) fn branch_block(&mut self, keyword: usize) -> Parse<Block> {
        if self.kind() == TokenKind::Semicolon && self.nth(1).kind == TokenKind::OpenBrace {
            let span = self.span();
            let message = "`;` stands between the condition and its block";
            self.report(Diagnostic::new(&rules::STRAY_SEMICOLON, span, message).mend("remove it", span, ""));
            self.bump();
        }
        let is_statement = self.at_statement_keyword()
            || (self.kind() == TokenKind::Name
                && matches!(self.nth(1).kind, TokenKind::Dot | TokenKind::OpenParenthesis | TokenKind::Name)
                && !self.replaces_brace());
        if self.kind() == TokenKind::OpenBrace || !is_statement {
            return self.block("block");
        }
        self.enter()?;
        let before = self.here();
        // The statements that are indented further than the condition belong to it.
        let outer = self.indentation(self.tokens[keyword].span(self.file));
        let begins_line = self.begins_line();
        let mut statements = vec![self.statement()];
        while begins_line
            && self.kind() == TokenKind::Name
            && self.begins_line()
            && self.indentation(self.span()) > outer
        {
            statements.push(self.statement());
        }
        let after = self.here();
        let has_brace = self.kind() == TokenKind::CloseBrace
            && self.begins_line()
            && begins_line
            && self.indentation(self.span()) == outer;
        let diagnostic = match has_brace {
            true => {
                self.bump();
                let message = "`{` is missing before the block";
                Diagnostic::new(&rules::MISSING_BRACE, before, message).mend("write `{` here", before, " {")
            }
            false => {
                let span = self.span_of(&statements);
                let message = "the statements of a condition stand in braces";
                Diagnostic::new(&rules::MISSING_BRACE, span, message)
                    .mend("write `{` before and `}` after", before, " {")
                    .and_edit(after, " }")
            }
        };
        self.report(diagnostic);
        self.depth -= 1;
        Ok(Block { statements, open: before, close: self.here() })
    }

    fn span_of(&self, statements: &[Statement]) -> Span {
        match statements {
            [first, .., last] => first.span.to(last.span),
            [first] => first.span,
            [] => self.here(),
        }
    }

    /// Reports a `;` without a statement. VCL 2 and 3 mean nothing by it, so it is reported in VCL 4 only.
    pub(super) fn stray_semicolon(&mut self) {
        let span = self.span();
        let after_block = self.previous().kind == TokenKind::CloseBrace;
        let message = match after_block {
            true => "a block does not end with `;`",
            false => "this `;` ends no statement",
        };
        if self.is_v4() {
            self.report(Diagnostic::new(&rules::STRAY_SEMICOLON, span, message).mend("remove it", span, ""));
        }
        self.bump();
    }

    /// Whether the next token begins a statement rather than a declaration.
    pub(super) fn is_statement_start(&self) -> bool {
        let word = self.word();
        let next = self.nth(1).kind;
        match word {
            "" => false,
            _ if words::DECLARATIONS.contains(&word) => false,
            _ => {
                words::begins_statement(word, self.is_v4())
                    || matches!(next, TokenKind::Dot | TokenKind::OpenParenthesis)
                    || (words::OLD_STATEMENTS.contains(&word) && next != TokenKind::OpenBrace)
            }
        }
    }
}
