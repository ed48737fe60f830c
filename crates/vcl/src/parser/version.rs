//! The version line.

use crate::diagnostic::Diagnostic;
use crate::dialect::{Dialect, Evidence};
use crate::parser::cursor::{Failed, Parse, Parser};
use crate::rules;
use crate::source::FileId;
use crate::token::TokenKind;
use crate::tree::{DeclarationKind, Version};

impl Parser<'_, '_> {
    /// Sets the dialect of the main file: that of VCL 4 if it has a version line, else the one that its names
    /// show. Returns the error about a missing version line, which an included file may hold.
    pub(super) fn determine_dialect(&mut self) -> Option<Diagnostic> {
        let version = self.version_line();
        self.dialect = match version {
            Some(_) => Dialect::V4_1,
            None => {
                let evidence = self.evidence();
                let dialect = evidence.dialect();
                self.session.old_version = evidence.old_version().filter(|_| dialect == Dialect::Old);
                dialect
            }
        };
        self.session.main_dialect = self.dialect;
        self.is_v4().then(|| self.missing_version(version)).flatten()
    }

    /// The index of the version line. The keyword of the first line may be misspelt, or have no number.
    fn version_line(&self) -> Option<usize> {
        if self.at_word("vcl") && self.nth(1).kind != TokenKind::Dot {
            return Some(0);
        }
        (0..self.tokens.len() - 1).find(|&at| {
            self.tokens[at].kind == TokenKind::Name
                && (at == 0 || self.text_of(self.tokens[at]) == "vcl")
                && matches!(self.tokens[at + 1].kind, TokenKind::Real | TokenKind::Integer)
        })
    }

    fn missing_version(&self, version: Option<usize>) -> Option<Diagnostic> {
        match version {
            // A misspelt `vcl` has its own message.
            Some(0) => None,
            Some(at) => {
                let span = self.tokens[at].span(self.file).to(self.tokens[at + 1].span(self.file));
                let message = "the version stands before everything else";
                let diagnostic = Diagnostic::new(&rules::MISSING_VERSION, span, message);
                Some(diagnostic.advice("move this line to the start of the file"))
            }
            None => {
                let start = self.span().before();
                let message = "the file does not begin with its version";
                let diagnostic = Diagnostic::new(&rules::MISSING_VERSION, start, message);
                Some(diagnostic.mend("write `vcl 4.1;` before everything else", start, "vcl 4.1;\n\n"))
            }
        }
    }

    fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::default();
        let mut at = 0;
        while at < self.tokens.len() {
            if self.tokens[at].kind != TokenKind::Name {
                at += 1;
                continue;
            }
            let start = at;
            while at + 2 < self.tokens.len()
                && self.tokens[at + 1].kind == TokenKind::Dot
                && self.tokens[at + 2].kind == TokenKind::Name
            {
                at += 2;
            }
            let bytes = self.tokens[start].start as usize..self.tokens[at].end as usize;
            // A name has ASCII letters only; one with blanks around its dots is not counted.
            evidence.add(std::str::from_utf8(&self.text[bytes]).unwrap_or_default());
            at += 1;
        }
        evidence
    }

    /// `vcl 4.1;`
    pub(super) fn version(&mut self) -> Parse<DeclarationKind> {
        let keyword = self.bump().span(self.file);
        let number = self.span();
        let known = match self.text_of(self.token()) {
            "4.0" => Some(Dialect::V4_0),
            "4.1" => Some(Dialect::V4_1),
            _ => None,
        };
        match self.kind() {
            TokenKind::String(_) => return Err(self.quoted_version()),
            TokenKind::Real | TokenKind::Integer => self.bump(),
            _ => {
                return Err(self.fail(
                    Diagnostic::new(&rules::VERSION, self.here(), "the version is missing after `vcl`").mend(
                        "write `vcl 4.1;`",
                        self.here(),
                        " 4.1",
                    ),
                ));
            }
        };
        let main = self.session.main_dialect;
        let is_first = self.at == 2 && self.file == self.main_file();
        match known {
            None => {
                let written = String::from_utf8_lossy(&self.text[number.range()]).into_owned();
                let message = format!("there is no VCL {}", written.trim_matches('"'));
                self.fail(
                    Diagnostic::new(&rules::VERSION, number, message)
                        .mend("write `vcl 4.1;`", number, "4.1")
                        .note("the versions are 4.0 and 4.1; VCL 2 and 3 have no version line"),
                );
            }
            Some(dialect) if !is_first && dialect > main && main != Dialect::Old => {
                let message = format!("{dialect} is above the version of the main file, which is {main}");
                let diagnostic = Diagnostic::new(&rules::VERSION, keyword.to(number), message);
                self.report(diagnostic.advice(format!("write `vcl {};` in the main file", dialect.number())));
            }
            Some(_) => {}
        }
        let dialect = known.unwrap_or(Dialect::V4_1);
        self.dialect = dialect;
        if is_first {
            self.session.main_dialect = dialect;
        }
        self.semicolon()?;
        Ok(DeclarationKind::Version(Version { number, dialect }))
    }

    fn quoted_version(&mut self) -> Failed {
        let span = self.span();
        let number = String::from_utf8_lossy(&self.text[span.range()]).trim_matches('"').to_owned();
        let message = "the version stands without quotes";
        let failed = self.fail(Diagnostic::new(&rules::VERSION, span, message).mend(
            format!("write `vcl {number};`"),
            span,
            number,
        ));
        self.bump();
        self.eat(TokenKind::Semicolon);
        failed
    }

    fn main_file(&self) -> FileId {
        let first = self.session.sources.files().next();
        first.map_or(self.file, |(id, _)| id)
    }
}
