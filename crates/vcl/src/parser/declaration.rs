//! Declarations.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Failed, Parse, Parser};
use crate::parser::words;
use crate::rules;
use crate::source::Span;
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::tree::{Backend, BackendBody, Declaration, DeclarationKind, Import, Name, Probe, Sub};

/// The end of the last block at the top of the file.
#[derive(Clone, Copy)]
struct LastBlock {
    close: Span,
    /// Whether the `}` is indented further than the line of its `{`, so that it may be one too many.
    is_suspect: bool,
}

impl Parser<'_, '_> {
    /// All declarations to the end of the file.
    pub(super) fn declarations(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        let mut last_block = None;
        let mut follows_outside = false;
        while self.kind() != TokenKind::End {
            let start = self.at;
            self.misaligned = None;
            if self.is_inner_start() {
                self.inner_parts(last_block, follows_outside);
                follows_outside = true;
                declarations
                    .push(Declaration { kind: DeclarationKind::Invalid, span: self.span_from(start) });
                continue;
            }
            follows_outside = false;
            let declaration = self.declaration();
            if self.previous().kind == TokenKind::CloseBrace {
                let close = self.previous_span();
                let outer = self.indentation(declaration.span);
                let begins_line = self.token_begins_line(self.at - 1);
                let is_suspect = begins_line && self.indentation(close) > outer;
                last_block = Some(LastBlock { close, is_suspect });
            }
            declarations.push(declaration);
        }
        declarations
    }

    /// Whether the next token belongs within a declaration: a statement, a property, an entry or a brace.
    fn is_inner_start(&self) -> bool {
        let is_mark = matches!(
            self.kind(),
            TokenKind::CloseBrace | TokenKind::OpenBrace | TokenKind::Dot | TokenKind::String(_)
        );
        is_mark || self.is_statement_start()
    }

    /// Reads statements, properties and entries that stand outside of declarations, and the `}` after them.
    /// There is one error for all of them, and none if others were reported directly before.
    fn inner_parts(&mut self, last_block: Option<LastBlock>, follows_outside: bool) {
        if self.kind() == TokenKind::CloseBrace && self.forgiven > 0 {
            self.forgiven -= 1;
            self.bump();
            return;
        }
        if !follows_outside {
            self.fail(self.outside(last_block));
        }
        while self.kind() != TokenKind::End && !self.at_declaration() {
            match self.kind() {
                TokenKind::CloseBrace => {
                    self.bump();
                    return;
                }
                TokenKind::Name => drop(self.statement()),
                TokenKind::OpenBrace => self.skip_block(),
                _ => {
                    self.bump();
                    self.recover_item();
                }
            }
        }
    }

    /// The error about a part of a declaration that stands outside of one.
    fn outside(&self, last_block: Option<LastBlock>) -> Diagnostic {
        let span = self.span();
        let (place, keyword) = match self.kind() {
            TokenKind::Name => ("a sub", "sub vcl_recv"),
            TokenKind::Dot => ("a backend or probe", "backend default"),
            _ => ("a declaration", "acl NAME"),
        };
        let message = format!("{} stands outside of {place}", self.describe(self.token()));
        match last_block {
            Some(LastBlock { close, is_suspect: true }) => {
                let message = "this `}` ends the declaration, although the lines after it belong to it";
                Diagnostic::new(&rules::UNOPENED_BLOCK, close, message).mend("remove it", close, "")
            }
            _ if self.kind() == TokenKind::CloseBrace => {
                let message = "this `}` has no `{`";
                Diagnostic::new(&rules::UNOPENED_BLOCK, span, message).mend("remove it", span, "")
            }
            Some(LastBlock { close, .. }) => Diagnostic::new(&rules::MISPLACED, span, message)
                .related(close, "the declaration before it ends here")
                .advice(format!("move it into {place}")),
            None => Diagnostic::new(&rules::MISPLACED, span, message)
                .advice(format!("write it in {place}, such as `{keyword} {{ … }}`")),
        }
    }

    /// The next declaration. It always takes at least one token.
    pub(super) fn declaration(&mut self) -> Declaration {
        let (start, depth) = (self.at, self.depth);
        let kind = match self.declaration_kind() {
            Ok(kind) => kind,
            Err(Failed) => {
                self.depth = depth;
                if self.at == start {
                    self.bump();
                }
                let ended = matches!(self.previous().kind, TokenKind::Semicolon | TokenKind::CloseBrace)
                    && self.previous().end > self.tokens[start].end;
                if !ended {
                    self.recover_declaration();
                }
                DeclarationKind::Invalid
            }
        };
        self.depth = depth;
        Declaration { kind, span: self.span_from(start) }
    }

    fn declaration_kind(&mut self) -> Parse<DeclarationKind> {
        match self.kind() {
            TokenKind::Name => {}
            TokenKind::InlineC => {
                self.bump();
                return Ok(DeclarationKind::InlineC);
            }
            TokenKind::Semicolon => {
                self.stray_semicolon();
                return Ok(DeclarationKind::Invalid);
            }
            _ => return Err(self.unexpected("a declaration, such as `sub` or `backend`")),
        }
        let word = self.word().to_owned();
        let keyword = match words::DECLARATIONS.contains(&&*word) {
            true => word,
            false => self.meant_declaration(&word)?,
        };
        match &*keyword {
            "vcl" => self.version(),
            "import" => self.import(),
            "include" => Ok(DeclarationKind::Include(self.include(|parser| parser.declarations())?)),
            "backend" => self.backend(),
            "probe" => {
                self.bump();
                let name = self.name("the name of the probe")?;
                let properties = self.properties("probe")?;
                Ok(DeclarationKind::Probe(Probe { name, properties }))
            }
            "acl" => self.acl(),
            "sub" => self.sub(),
            "director" => self.director(),
            _ => Ok(DeclarationKind::Unused(self.unused()?)),
        }
    }

    /// The keyword meant by a word that begins no declaration.
    fn meant_declaration(&mut self, word: &str) -> Parse<String> {
        let meant = match word {
            _ if self.nth(1).kind == TokenKind::Real => Some("vcl"),
            "function" | "subroutine" | "def" | "fn" | "procedure" => Some("sub"),
            "server" | "upstream" => Some("backend"),
            "healthcheck" => Some("probe"),
            "use" | "require" => Some("import"),
            _ => closest(word, words::DECLARATIONS.iter().copied()),
        };
        let span = self.span();
        let message = format!("no declaration begins with `{word}`");
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_DECLARATION, span, message);
        match meant {
            Some(meant) => {
                self.report(diagnostic.mend(format!("did you mean `{meant}`?"), span, meant));
                Ok(meant.to_owned())
            }
            None => {
                let known = "declarations begin with vcl, import, include, backend, probe, acl or sub";
                Err(self.fail(diagnostic.note(known)))
            }
        }
    }

    fn import(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        if let TokenKind::String(_) = self.kind() {
            let token = self.token();
            let span = self.span();
            let text = self.text_of(token).trim_matches('"').to_owned();
            let message = "the name of a module stands without quotes";
            self.report(Diagnostic::new(&rules::EXPECTED, span, message).mend(
                format!("write `import {text};`"),
                span,
                text.clone(),
            ));
            self.bump();
            self.semicolon()?;
            let module = Name { text: text.into(), span, is_quoted: true };
            return Ok(DeclarationKind::Import(Import { module, alias: None, from: None }));
        }
        let module = self.name("the name of a module")?;
        let mut import = Import { module, alias: None, from: None };
        if self.at_word("as") {
            self.bump();
            import.alias = Some(self.name("a name after `as`")?);
        }
        if self.at_word("from") {
            self.bump();
            import.from = Some(self.string("the path of the module in quotes")?);
        }
        if self.kind() == TokenKind::Comma {
            let message = "an import names one module";
            return Err(self.fail(
                Diagnostic::new(&rules::EXPECTED, self.span(), message)
                    .advice("write one `import` for each module"),
            ));
        }
        self.semicolon()?;
        Ok(DeclarationKind::Import(import))
    }

    fn backend(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let name = self.symbol_name("backend")?;
        if self.at_word("none") {
            self.bump();
            self.semicolon()?;
            return Ok(DeclarationKind::Backend(Backend { name, body: BackendBody::None }));
        }
        let properties = self.properties("backend")?;
        Ok(DeclarationKind::Backend(Backend { name, body: BackendBody::Properties(properties) }))
    }

    /// The name of a declared symbol. One in quotes is reported.
    pub(super) fn symbol_name(&mut self, what: &str) -> Parse<Name> {
        if let TokenKind::String(kind) = self.kind() {
            let token = self.bump();
            let literal = self.string_literal(token, kind);
            let text = String::from_utf8_lossy(&self.text[literal.content.range()]).into_owned();
            let message = format!("the name of a {what} stands without quotes");
            self.report(Diagnostic::new(&rules::EXPECTED, literal.span, message).mend(
                format!("write `{text}`"),
                literal.span,
                text.clone(),
            ));
            return Ok(Name { text: text.into(), span: literal.span, is_quoted: true });
        }
        self.name(&format!("the name of the {what}"))
    }

    fn sub(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let name = self.symbol_name("sub")?;
        if self.kind() == TokenKind::OpenParenthesis {
            let start = self.at;
            while !matches!(self.kind(), TokenKind::OpenBrace | TokenKind::End | TokenKind::Semicolon) {
                self.bump();
            }
            let span = self.span_from(start);
            let message = "a sub has no parameters and no parentheses";
            self.report(Diagnostic::new(&rules::FOREIGN_SYNTAX, span, message).mend(
                format!("write `sub {} {{`", name.text),
                span,
                "",
            ));
        }
        let block = self.block("sub")?;
        Ok(DeclarationKind::Sub(Sub { name, block }))
    }
}
