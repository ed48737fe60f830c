//! Tokens to the syntax tree, by recursive descent with recovery.
//!
//! A mistake is reported once, at the place where a person looks for it: a missing `;` at the end of the line
//! that lacks it. Reading goes on as if the mistake were mended, or at the next statement, entry or
//! declaration, so that other mistakes are found too. [`crate::Limits`] bound the memory and the depth of
//! recursion.

mod acl;
mod block;
mod condition;
mod cursor;
mod declaration;
mod expression;
mod include;
mod literal;
mod old;
mod property;
mod recovery;
mod statement;
mod version;
mod words;

use std::sync::Arc;

use cursor::{Parser, Session};

use crate::diagnostic::Diagnostic;
use crate::dialect::Dialect;
use crate::limits::Limits;
use crate::loader::Loader;
use crate::rules;
use crate::source::{Sources, Span};
use crate::token::Comment;
use crate::tree::{Declaration, DeclarationKind, Program};

/// A program that was read, however many mistakes it has.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The files.
    pub sources: Sources,
    /// The tree. Parts with mistakes are `Invalid` nodes, or as they were meant.
    pub program: Program,
    /// The comments of all files, in the order of the files and of their text.
    pub comments: Vec<Comment>,
    /// The errors and warnings, in the order of the files and of their text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether there is an error, so that the program is refused.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads a program: the file `name` with the bytes `text`, and the files that it includes, from `loader`.
pub fn parse(name: &str, text: Arc<[u8]>, loader: &mut dyn Loader, limits: Limits) -> Parsed {
    let mut session = Session {
        sources: Sources::default(),
        comments: Vec::new(),
        diagnostics: Vec::new(),
        loader,
        limits,
        bytes: text.len(),
        tokens: 0,
        errors: 0,
        is_stopped: false,
        main_dialect: Dialect::V4_1,
        old_version: None,
    };
    let is_large = text.len() > limits.bytes;
    let text = if is_large { Arc::default() } else { text };
    let main = session.sources.add(name, text, None);
    if is_large {
        let message =
            format!("the file has {} bytes, and a program has at most {}", session.bytes, limits.bytes);
        session.add(Diagnostic::new(&rules::LIMIT_BYTES, Span::new(main, 0, 0), message));
        session.is_stopped = true;
    }
    let mut parser = Parser::open(&mut session, main);
    let missing_version = if parser.session.is_stopped { None } else { parser.determine_dialect() };
    let declarations = parser.declarations();
    let included_version = match missing_version {
        Some(_) => leading_version(&declarations),
        None => None,
    };
    if let (None, Some(missing)) = (included_version, missing_version) {
        session.add(missing);
    }
    let dialect = included_version.unwrap_or(session.main_dialect);
    let program = Program { dialect, old_version: session.old_version, declarations };
    let Session { sources, mut comments, mut diagnostics, .. } = session;
    comments.sort_by_key(|comment| comment.span);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start));
    Parsed { sources, program, comments, diagnostics }
}

/// The dialect of a version line that comes first, also in a file that is included first.
fn leading_version(declarations: &[Declaration]) -> Option<Dialect> {
    match &declarations.first()?.kind {
        DeclarationKind::Version(version) => Some(version.dialect),
        DeclarationKind::Include(include) => leading_version(&include.parts.first()?.items),
        _ => None,
    }
}
