//! Marks that are missing and assumed, and the places where reading goes on after a mistake.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Failed, Misaligned, Parse, Parser};
use crate::parser::words;
use crate::rules;
use crate::source::Span;
use crate::token::TokenKind;

impl Parser<'_, '_> {
    /// Takes the `;` at the end of a statement. A missing one is reported at the end of its line, and reading
    /// goes on as if it were there.
    pub(super) fn semicolon(&mut self) -> Parse<()> {
        loop {
            if self.eat(TokenKind::Semicolon).is_some() {
                return Ok(());
            }
            if self.kind() != TokenKind::CloseParenthesis {
                break;
            }
            let span = self.span();
            let message = "this `)` has no `(`";
            self.fail(Diagnostic::new(&rules::MISSING_PARENTHESIS, span, message).mend(
                "remove it",
                span,
                "",
            ));
            self.bump();
        }
        let is_property = self.nth(1).kind == TokenKind::Name && self.nth(2).kind == TokenKind::Assign;
        let is_end = matches!(self.kind(), TokenKind::CloseBrace | TokenKind::End)
            || (self.kind() == TokenKind::Dot && is_property);
        if is_end || self.begins_line() || self.at_statement_keyword() {
            let place = self.here();
            // Another mistake at the same token is none of its consequences.
            if !self.is_near_damage() && self.quiet_at != Some(self.at) {
                let message = "`;` is missing at the end of this statement";
                self.report(Diagnostic::new(&rules::MISSING_SEMICOLON, place, message).mend(
                    "write `;` here",
                    place,
                    ";",
                ));
            }
            return Ok(());
        }
        if self.kind() == TokenKind::Comma {
            let span = self.span();
            let message = "`,` stands where the statement ends with `;`";
            let failed = self.fail(Diagnostic::new(&rules::MISSING_SEMICOLON, span, message).mend(
                "write `;`",
                span,
                ";",
            ));
            self.bump();
            return match self.begins_line() {
                true => Ok(()),
                false => Err(failed),
            };
        }
        Err(self.unexpected("`;`"))
    }

    /// Takes the `)` that belongs to the `(` at `open`. A missing one is reported and assumed where the
    /// statement or the condition ends.
    pub(super) fn close_parenthesis(&mut self, open: Span) -> Parse<()> {
        if self.eat(TokenKind::CloseParenthesis).is_some() {
            return Ok(());
        }
        let follows = (self.at + 1).min(self.tokens.len() - 1);
        if self.kind() == TokenKind::CloseBrace
            && matches!(self.tokens[follows].kind, TokenKind::OpenBrace | TokenKind::Semicolon)
            && !self.begins_line()
            && !self.token_begins_line(follows)
        {
            let span = self.span();
            let message = "`}` stands in the place of `)`";
            let diagnostic = Diagnostic::new(&rules::MISSING_PARENTHESIS, span, message);
            self.fail(diagnostic.related(open, "opened here").mend("write `)`", span, ")"));
            self.bump();
            return Ok(());
        }
        let ends = matches!(
            self.kind(),
            TokenKind::Semicolon | TokenKind::OpenBrace | TokenKind::CloseBrace | TokenKind::End
        );
        if ends || (self.begins_line() && self.at_statement_keyword()) {
            let place = self.here();
            self.fail(
                Diagnostic::new(&rules::MISSING_PARENTHESIS, place, "`)` is missing here")
                    .related(open, "opened here")
                    .mend("write `)`", place, ")"),
            );
            return Ok(());
        }
        Err(self.unexpected("`)`"))
    }

    /// Whether the next token is a word that begins a statement, and no name of something else.
    pub(super) fn at_statement_keyword(&self) -> bool {
        let next = self.nth(1).kind;
        let is_name = matches!(next, TokenKind::Dot | TokenKind::Comma | TokenKind::CloseParenthesis);
        !is_name && words::begins_statement(self.word(), self.is_v4())
    }

    /// Whether a declaration begins here: its keyword begins a line, and what follows fits.
    pub(super) fn at_declaration(&self) -> bool {
        self.kind() == TokenKind::Name && self.begins_line() && self.is_declaration_start()
    }

    /// Whether the next tokens are the start of a declaration other than `include`.
    pub(super) fn is_declaration_start(&self) -> bool {
        let (second, third) = (self.nth(1).kind, self.nth(2));
        match self.word() {
            "vcl" => matches!(second, TokenKind::Real | TokenKind::Integer),
            "import" => second == TokenKind::Name,
            "sub" | "backend" | "probe" | "acl" | "director" => {
                let begins = matches!(third.kind, TokenKind::OpenBrace | TokenKind::Plus | TokenKind::Minus);
                let name_alone = self.token_begins_line((self.at + 2).min(self.tokens.len() - 1));
                let call = self.at_word("sub") && third.kind == TokenKind::OpenParenthesis;
                let word = self.nth_word(2);
                let kind = word == "none" || (self.at_word("director") && !word.is_empty());
                second == TokenKind::Name && (begins || name_alone || call || kind)
            }
            _ => false,
        }
    }

    /// Skips to where the next statement may begin. A block on the way is read for its own mistakes.
    pub(super) fn recover_statement(&mut self) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                // A brace within a line of other marks is one of the mistakes on the line.
                TokenKind::CloseBrace if !self.is_inner_brace() => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::OpenBrace if !self.is_inner_brace() => {
                    // The block reports what is wrong in it.
                    let _ = self.block("block");
                    return;
                }
                TokenKind::Name
                    if self.begins_line() && (self.at_statement_keyword() || self.is_declaration_start()) =>
                {
                    return;
                }
                _ => self.bump(),
            };
        }
    }

    /// Whether the brace that is next cannot begin or end a block, because of what follows it on its line.
    fn is_inner_brace(&self) -> bool {
        let next = (self.at + 1).min(self.tokens.len() - 1);
        let marks = matches!(
            self.tokens[next].kind,
            TokenKind::CloseParenthesis
                | TokenKind::Comma
                | TokenKind::Dot
                | TokenKind::Assign
                | TokenKind::String(_)
                | TokenKind::And
                | TokenKind::Or
        );
        marks && !self.token_begins_line(next)
    }

    /// The items to the end of an included file, each by `read`.
    pub(super) fn items_to_end<I: IntoIterator>(&mut self, read: impl Fn(&mut Self) -> I) -> Vec<I::Item> {
        let mut items = Vec::new();
        while self.kind() != TokenKind::End {
            match self.kind() {
                TokenKind::CloseBrace => self.stray_brace(),
                _ => items.extend(read(self)),
            }
        }
        items
    }

    /// The next item of a list of entries or properties, by `read`; `None` after a mistake. It takes at least
    /// one token unless a `}` or the end is next.
    pub(super) fn item<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Option<T> {
        if self.kind() == TokenKind::Semicolon {
            self.stray_semicolon();
            return None;
        }
        let (start, depth) = (self.at, self.depth);
        let item = read(self);
        self.depth = depth;
        item.map_err(|Failed| {
            self.recover_item();
            if self.at == start && self.kind() != TokenKind::CloseBrace {
                self.bump();
            }
        })
        .ok()
    }

    /// Skips to where the next item of a list of entries or properties may begin.
    pub(super) fn recover_item(&mut self) {
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::CloseBrace => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::Name if self.at_declaration() => return,
                TokenKind::Dot if self.begins_line() => return,
                TokenKind::OpenBrace => self.skip_block(),
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Skips to where the next declaration may begin.
    pub(super) fn recover_declaration(&mut self) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::OpenBrace => {
                    self.skip_block();
                    return;
                }
                TokenKind::Name
                    if self.at_declaration() || (self.begins_line() && self.at_word("include")) =>
                {
                    return;
                }
                TokenKind::CloseBrace if self.begins_line() => return,
                _ => self.bump(),
            };
        }
    }

    /// Skips a `{` and all to its `}`, or to the next declaration.
    pub(super) fn skip_block(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth -= 1,
                TokenKind::Name if self.at_declaration() => return,
                _ => {}
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    /// Reports that the block of `what` which began at `open` does not end before the next token. The mistake
    /// is shown at the `{`, because the place of its `}` is a guess.
    pub(super) fn unclosed(&mut self, open: Span, what: &str) -> Failed {
        self.forgiven += 1;
        // The first block that ended at the `}` of another lacks its own.
        let (open, last, close) = match self.misaligned.take() {
            Some(Misaligned { open, close, last }) => (open, last.after(), Some(close)),
            None => (open, self.here(), None),
        };
        let message = match close {
            Some(_) => "this `{` has no closing `}`".to_owned(),
            None => format!("the {what} has no closing `}}`"),
        };
        let mut diagnostic = Diagnostic::new(&rules::UNCLOSED_BLOCK, open, message)
            .label("opened here")
            .related(last, "`}` is missing after this");
        if let Some(close) = close {
            diagnostic = diagnostic.related(close, "this `}` has the indentation of another block");
        }
        let brace = format!("\n{}}}", " ".repeat(self.indentation(open)));
        self.fail(diagnostic.mend("write `}` where the block ends", last, brace))
    }

    /// Notes a block whose `}` begins a line and is less indented than the line of its `{`.
    pub(super) fn note_alignment(&mut self, open: Span, last: Span) {
        let close = self.previous_span();
        let begins_line = self.at > 0 && self.token_begins_line(self.at - 1);
        if begins_line && self.misaligned.is_none() && self.indentation(close) < self.indentation(open) {
            self.misaligned = Some(Misaligned { open, close, last });
        }
    }
}
