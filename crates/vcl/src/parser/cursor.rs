//! The state of a parser: the tokens of one file, the place among them, and what all files of a program
//! share.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::dialect::{Dialect, OldVersion};
use crate::limits::Limits;
use crate::loader::Loader;
use crate::rules;
use crate::source::{FileId, Sources, Span};
use crate::token::{Comment, Token, TokenKind};
use crate::tree::Name;

/// The mark of a failure that was reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed;

/// A part of the tree, or a failure that was reported.
pub(super) type Parse<T> = Result<T, Failed>;

/// The state that all files of a program share.
pub(super) struct Session<'s> {
    pub(super) sources: Sources,
    pub(super) comments: Vec<Comment>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) loader: &'s mut dyn Loader,
    pub(super) limits: Limits,
    /// The bytes of the files so far.
    pub(super) bytes: usize,
    /// The tokens of the files so far.
    pub(super) tokens: usize,
    pub(super) errors: usize,
    /// Whether a limit was reached: nothing is read or reported any more.
    pub(super) is_stopped: bool,
    /// The dialect of the main file.
    pub(super) main_dialect: Dialect,
    /// The version of a main file in an old dialect, if its names show it.
    pub(super) old_version: Option<OldVersion>,
}

impl Session<'_> {
    /// Adds a diagnostic, unless a limit was reached.
    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        if self.is_stopped {
            return;
        }
        let span = diagnostic.span;
        self.errors += usize::from(diagnostic.is_error());
        self.diagnostics.push(diagnostic);
        if self.errors >= self.limits.errors {
            let message = format!("{} errors were found; the rest of the program was not read", self.errors);
            self.diagnostics.push(Diagnostic::new(&rules::LIMIT_ERRORS, span, message));
            self.is_stopped = true;
        }
    }
}

/// The kind of expression that is being read, for messages about missing operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The value of a statement.
    Value,
    /// The condition of an `if`.
    Condition,
    /// An argument of a call.
    Argument,
    /// The value of a property, after which another property may begin with its dot.
    Property,
}

/// A block that was closed by a `}` which, by its indentation, belongs to another block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Misaligned {
    pub(super) open: Span,
    pub(super) close: Span,
    /// The end of the last token before the `}`.
    pub(super) last: Span,
}

/// The parser of one file.
pub(super) struct Parser<'p, 's> {
    pub(super) session: &'p mut Session<'s>,
    pub(super) file: FileId,
    pub(super) text: Arc<[u8]>,
    pub(super) tokens: Vec<Token>,
    /// The index of the next token.
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    /// The levels of nesting around the next token, those of including files too.
    pub(super) depth: usize,
    pub(super) place: Place,
    /// The token at which the last error was reported: another there is a consequence.
    pub(super) quiet_at: Option<usize>,
    /// Whether the last statement could not be read, so that a branch after it may have lost its `if`.
    pub(super) follows_invalid: bool,
    /// The `}` that may follow without a `{`, because blocks were reported as unclosed.
    pub(super) forgiven: usize,
    /// The first block of the current sub whose `}` is less indented than its opening line.
    pub(super) misaligned: Option<Misaligned>,
}

impl Parser<'_, '_> {
    pub(super) fn token(&self) -> Token {
        self.tokens[self.at]
    }

    pub(super) fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// The token `n` places further on, or the end.
    pub(super) fn nth(&self, n: usize) -> Token {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }

    /// The token before the next one; an empty one at the start of the file if there is none.
    pub(super) fn previous(&self) -> Token {
        match self.at.checked_sub(1) {
            Some(before) => self.tokens[before],
            None => Token { kind: TokenKind::End, is_damaged: false, start: 0, end: 0 },
        }
    }

    /// Takes the next token. The end stays.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    /// Takes the next token if it is of this kind.
    pub(super) fn eat(&mut self, kind: TokenKind) -> Option<Token> {
        (self.kind() == kind).then(|| self.bump())
    }

    /// The text of a token. Texts of strings and unknown characters may be cut, because they need not be
    /// UTF-8.
    pub(super) fn text_of(&self, token: Token) -> &str {
        let bytes = &self.text[token.start as usize..token.end as usize];
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }

    /// The text of the next token if it is a name.
    pub(super) fn word(&self) -> &str {
        match self.kind() {
            TokenKind::Name => self.text_of(self.token()),
            _ => "",
        }
    }

    /// The text of the token `n` places further on if it is a name.
    pub(super) fn nth_word(&self, n: usize) -> &str {
        match self.nth(n).kind {
            TokenKind::Name => self.text_of(self.nth(n)),
            _ => "",
        }
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        self.word() == word
    }

    pub(super) fn span(&self) -> Span {
        self.token().span(self.file)
    }

    pub(super) fn previous_span(&self) -> Span {
        self.previous().span(self.file)
    }

    /// The empty place after the previous token.
    pub(super) fn here(&self) -> Span {
        self.previous_span().after()
    }

    /// The span from the token with index `start` to the previous one.
    pub(super) fn span_from(&self, start: usize) -> Span {
        let first = self.tokens[start].span(self.file);
        match self.at > start {
            true => first.to(self.previous_span()),
            false => first.before(),
        }
    }

    /// Takes a name, or fails with `expected` in the message.
    pub(super) fn name(&mut self, expected: &str) -> Parse<Name> {
        match self.kind() {
            TokenKind::Name => {
                let token = self.bump();
                let text = self.text_of(token).into();
                Ok(Name { text, span: token.span(self.file), is_quoted: false })
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Whether a line break stands between the previous token and the next one.
    pub(super) fn begins_line(&self) -> bool {
        self.token_begins_line(self.at)
    }

    /// Whether the token with index `at` is the first of its line.
    pub(super) fn token_begins_line(&self, at: usize) -> bool {
        let from = at.checked_sub(1).map_or(0, |before| self.tokens[before].end as usize);
        let to = self.tokens[at].start as usize;
        at == 0 || memchr::memchr(b'\n', &self.text[from.min(to)..to]).is_some()
    }

    /// The width of the blanks at the start of the line of `span`, with tabs to multiples of 8.
    pub(super) fn indentation(&self, span: Span) -> usize {
        let line = self.session.sources.file(self.file).line_range(span.start);
        let mut width = 0;
        for byte in &self.text[line] {
            match byte {
                b' ' => width += 1,
                b'\t' => width = (width / 8 + 1) * 8,
                _ => break,
            }
        }
        width
    }

    /// Whether the dialect is one of VCL 4.
    pub(super) fn is_v4(&self) -> bool {
        self.dialect != Dialect::Old
    }

    /// Adds a diagnostic that does not disturb what follows.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.session.add(diagnostic);
        if self.session.is_stopped {
            self.stop();
        }
    }

    /// Whether the lexer reported a mistake in the previous token, or in one of the next on its line: a quote
    /// that is missing changes the meaning of all others on the line.
    pub(super) fn is_near_damage(&self) -> bool {
        const MOST_TOKENS: usize = 50;
        let last = self.tokens.len().min(self.at + MOST_TOKENS);
        let is_on_line = |&at: &usize| at == self.at || !self.token_begins_line(at);
        let mut line = (self.at..last).take_while(is_on_line);
        self.previous().is_damaged || line.any(|at| self.tokens[at].is_damaged)
    }

    /// Adds an error at the next token, unless it is the consequence of another.
    pub(super) fn fail(&mut self, diagnostic: Diagnostic) -> Failed {
        if !self.is_near_damage() && self.quiet_at != Some(self.at) {
            self.quiet_at = Some(self.at);
            self.report(diagnostic);
        }
        Failed
    }

    /// Whether an error was reported further left on the line of the next token, so that an unexpected token
    /// is probably one of its consequences.
    fn follows_failure(&self) -> bool {
        const MOST_TOKENS: usize = 30;
        self.quiet_at.is_some_and(|failed| {
            failed + MOST_TOKENS > self.at && (failed + 1..=self.at).all(|at| !self.token_begins_line(at))
        })
    }

    /// Fails because the next token is not what the grammar has here.
    pub(super) fn unexpected(&mut self, expected: &str) -> Failed {
        if self.follows_failure() {
            return Failed;
        }
        let found = self.describe(self.token());
        // The end of a line that lacks something is where a person looks.
        let is_unfinished = !matches!(
            self.previous().kind,
            TokenKind::Semicolon | TokenKind::OpenBrace | TokenKind::CloseBrace | TokenKind::End
        );
        let place = if self.begins_line() && is_unfinished { self.here() } else { self.span() };
        self.fail(Diagnostic::new(&rules::EXPECTED, place, format!("expected {expected}, found {found}")))
    }

    /// The token in words for a message.
    pub(super) fn describe(&self, token: Token) -> String {
        const LONGEST: usize = 40;
        match token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::InlineC => "a block of C".to_owned(),
            TokenKind::String(_) => "a string".to_owned(),
            TokenKind::Blob => "a BLOB".to_owned(),
            _ => match self.text_of(token) {
                "" => "an unknown character".to_owned(),
                text if text.len() > LONGEST => {
                    format!("`{}…`", text.chars().take(LONGEST).collect::<String>())
                }
                text => format!("`{text}`"),
            },
        }
    }

    /// Enters a level of nesting. The caller leaves it by subtracting 1 from `depth`.
    pub(super) fn enter(&mut self) -> Parse<()> {
        if self.depth >= self.session.limits.nesting {
            let message = format!("more than {} levels are nested", self.session.limits.nesting);
            self.report(
                Diagnostic::new(&rules::LIMIT_NESTING, self.span(), message)
                    .note("the rest of the program was not read"),
            );
            self.session.is_stopped = true;
            self.stop();
            return Err(Failed);
        }
        self.depth += 1;
        Ok(())
    }

    /// Goes to the end of the file.
    pub(super) fn stop(&mut self) {
        self.at = self.tokens.len() - 1;
    }
}
