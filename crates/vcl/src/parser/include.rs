//! Included files.

use crate::diagnostic::Diagnostic;
use crate::lexer::lex;
use crate::loader::{IncludeRequest, LoadError, LoadedFile};
use crate::parser::cursor::{Parse, Parser, Place, Session};
use crate::rules;
use crate::source::{FileId, Span};
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::tree::{Include, IncludedPart, StringLiteral};

impl Parser<'_, '_> {
    /// `include "…";`. The files are read by `items`, which reads to the end of one.
    pub(super) fn include<T>(&mut self, items: impl Fn(&mut Parser<'_, '_>) -> Vec<T>) -> Parse<Include<T>> {
        let start = self.at;
        self.bump();
        let mut glob = None;
        if let Some(sign) = self.eat(TokenKind::Plus) {
            let sign = sign.span(self.file);
            let name = self.name("`glob` after `+`")?;
            if &*name.text != "glob" {
                let message = format!("there is no flag `{}` of `include`", name.text);
                let diagnostic = Diagnostic::new(&rules::UNKNOWN_FLAG, name.span, message);
                self.report(match closest(&name.text, ["glob"]) {
                    Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), name.span, meant),
                    None => diagnostic.note("the only flag is `+glob`"),
                });
            }
            glob = Some(sign.to(name.span));
        }
        let path = self.string("the path of a file in quotes")?;
        let span = self.span_from(start);
        self.semicolon()?;
        let mut parts = Vec::new();
        for file in self.load(&path, glob.is_some(), span) {
            parts.push(IncludedPart { file, items: self.read_file(file, &items) });
        }
        Ok(Include { path, glob, parts })
    }

    /// The files of an include statement, within the limits.
    fn load(&mut self, path: &StringLiteral, is_pattern: bool, span: Span) -> Vec<FileId> {
        if self.session.is_stopped {
            return Vec::new();
        }
        let chain = self.session.sources.include_chain(self.file);
        if chain.len() >= self.session.limits.include_depth {
            let message = format!("includes nest deeper than {}", self.session.limits.include_depth);
            self.limit(Diagnostic::new(&rules::LIMIT_INCLUDES, span, message));
            return Vec::new();
        }
        let Ok(text) = std::str::from_utf8(&self.text[path.content.range()]) else {
            let message = "the path of an included file is not UTF-8";
            self.report(Diagnostic::new(&rules::INCLUDE, path.span, message));
            return Vec::new();
        };
        let text = text.to_owned();
        let from = self.session.sources.file(self.file).name().to_owned();
        let request = IncludeRequest { path: &text, is_pattern, from: &from };
        let files = match self.session.loader.load(request) {
            Ok(files) => files,
            Err(error) => {
                let message = match error {
                    LoadError::NotFound => format!("there is no file `{text}`"),
                    LoadError::NoMatch => format!("no file matches `{text}`"),
                    LoadError::Unreadable(reason) => format!("`{text}` cannot be read: {reason}"),
                };
                self.report(Diagnostic::new(&rules::INCLUDE, path.span, message));
                return Vec::new();
            }
        };
        files.into_iter().map_while(|file| self.accept(file, span)).collect()
    }

    /// Adds a loaded file, unless it includes itself or a limit is reached.
    fn accept(&mut self, file: LoadedFile, span: Span) -> Option<FileId> {
        let sources = &self.session.sources;
        let chain = sources.include_chain(self.file);
        let mut around = std::iter::once(self.file).chain(chain.iter().map(|include| include.file));
        if around.any(|id| sources.file(id).name() == file.name) {
            let message = format!("`{}` includes itself", file.name);
            let diagnostic = Diagnostic::new(&rules::INCLUDE_LOOP, span, message);
            self.report(diagnostic.advice("remove one of these includes"));
            return None;
        }
        let limits = self.session.limits;
        if sources.len() >= limits.files {
            let message = format!("the program has more than {} files", limits.files);
            self.limit(Diagnostic::new(&rules::LIMIT_FILES, span, message));
            return None;
        }
        self.session.bytes = self.session.bytes.saturating_add(file.text.len());
        if self.session.bytes > limits.bytes {
            let message = format!("the files of the program have more than {} bytes", limits.bytes);
            self.limit(Diagnostic::new(&rules::LIMIT_BYTES, span, message));
            return None;
        }
        Some(self.session.sources.add(file.name, file.text, Some(span)))
    }

    /// Reports that a limit was reached, and stops.
    fn limit(&mut self, diagnostic: Diagnostic) {
        self.report(diagnostic.note("the rest of the program was not read"));
        self.session.is_stopped = true;
        self.stop();
    }

    fn read_file<T>(&mut self, file: FileId, items: &impl Fn(&mut Parser<'_, '_>) -> Vec<T>) -> Vec<T> {
        if self.session.is_stopped || self.enter().is_err() {
            return Vec::new();
        }
        let mut parser = Parser::open(self.session, file);
        parser.dialect = self.dialect;
        parser.depth = self.depth;
        let list = items(&mut parser);
        self.depth -= 1;
        if self.session.is_stopped {
            self.stop();
        }
        list
    }
}

impl<'p, 's> Parser<'p, 's> {
    /// A parser at the start of a file, whose tokens are read here.
    pub(super) fn open(session: &'p mut Session<'s>, file: FileId) -> Parser<'p, 's> {
        let text = session.sources.file(file).text().clone();
        let limits = session.limits;
        let room = limits.tokens.saturating_sub(session.tokens);
        let mut lexed = lex(file, &text, room, limits.errors.saturating_sub(session.errors));
        session.tokens += lexed.tokens.len();
        session.comments.append(&mut lexed.comments);
        for diagnostic in lexed.diagnostics {
            session.add(diagnostic);
        }
        if lexed.is_cut {
            let end = lexed.tokens.len().saturating_sub(2);
            let span = lexed.tokens[end].span(file).after();
            let message = format!("the program has more than {} words", limits.tokens);
            let note = "the rest of the program was not read";
            session.add(Diagnostic::new(&rules::LIMIT_TOKENS, span, message).note(note));
            session.is_stopped = true;
        }
        let dialect = session.main_dialect;
        let mut parser = Parser {
            session,
            file,
            text,
            tokens: lexed.tokens,
            at: 0,
            dialect,
            depth: 0,
            place: Place::Value,
            quiet_at: None,
            follows_invalid: false,
            forgiven: 0,
            misaligned: None,
        };
        if parser.session.is_stopped {
            parser.stop();
        }
        parser
    }
}
