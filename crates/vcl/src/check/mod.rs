//! The checker: everything that makes a program invalid beyond its grammar, and warnings.
//!
//! Subs are walked once. A use of a variable, function or action that not all subs allow is noted as a
//! requirement of its sub; afterwards each requirement is compared with the built-in subs that reach it
//! through calls. An expression whose type is unknown was reported, so that one mistake has one error.

mod actions;
mod arguments;
mod comparisons;
mod declarations;
mod expressions;
mod flow;
mod functions;
mod inline_c;
mod mismatch;
mod paths;
mod patterns;
pub mod rules;
mod statements;
mod symbols;
mod texts;

use std::collections::HashMap;

use flow::SubFlow;
use symbols::Symbols;

pub use patterns::{BasicPatterns, PatternError, Patterns};

use crate::diagnostic::Diagnostic;
use crate::dialect::Dialect;
use crate::parser::Parsed;
use crate::source::{FileId, Span};
use crate::tree::{Declaration, DeclarationKind};

/// The errors and warnings about a program, those of the parser included, in the order of the files and of
/// their text. Programs in old dialects have only those of the parser, because they are upgraded first.
pub fn check(parsed: &Parsed, patterns: &dyn Patterns) -> Vec<Diagnostic> {
    let mut diagnostics = parsed.diagnostics.clone();
    if parsed.program.dialect == Dialect::Old {
        return diagnostics;
    }
    let mut checker = Checker::new(parsed, patterns);
    checker.run();
    diagnostics.append(&mut checker.diagnostics);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start));
    diagnostics
}

/// The state of one check.
struct Checker<'p> {
    parsed: &'p Parsed,
    patterns: &'p dyn Patterns,
    diagnostics: Vec<Diagnostic>,
    /// The declarations of all files in the order of the program.
    declarations: Vec<&'p Declaration>,
    /// The dialects of the files that differ from that of the program.
    dialects: HashMap<FileId, Dialect>,
    symbols: Symbols<'p>,
    /// The subs in order; those of one name are one.
    subs: Vec<SubFlow<'p>>,
    /// The declaration that is being checked.
    at: usize,
    /// The sub that is being checked.
    sub: Option<usize>,
}

impl<'p> Checker<'p> {
    fn new(parsed: &'p Parsed, patterns: &'p dyn Patterns) -> Checker<'p> {
        let mut checker = Checker {
            parsed,
            patterns,
            diagnostics: Vec::new(),
            declarations: Vec::new(),
            dialects: HashMap::new(),
            symbols: Symbols::default(),
            subs: Vec::new(),
            at: 0,
            sub: None,
        };
        checker.flatten(&parsed.program.declarations, parsed.program.dialect);
        checker
    }

    /// Collects the declarations of a file and of those that it includes.
    fn flatten(&mut self, declarations: &'p [Declaration], mut dialect: Dialect) {
        for declaration in declarations {
            match &declaration.kind {
                DeclarationKind::Version(version) => {
                    dialect = version.dialect;
                    self.dialects.insert(declaration.span.file, dialect);
                }
                DeclarationKind::Include(include) => {
                    for part in &include.parts {
                        self.dialects.insert(part.file, dialect);
                        self.flatten(&part.items, dialect);
                    }
                }
                _ => self.declarations.push(declaration),
            }
        }
    }

    fn run(&mut self) {
        self.collect_symbols();
        for at in 0..self.declarations.len() {
            self.at = at;
            self.declaration(self.declarations[at]);
        }
        self.recursion();
        self.requirements();
        self.unused();
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The text of a span.
    fn text(&self, span: Span) -> String {
        String::from_utf8_lossy(self.parsed.sources.bytes(span)).into_owned()
    }

    /// The text of a span, or a placeholder for one that is too long for a message.
    fn short_text(&self, span: Span) -> String {
        const LONGEST: usize = 60;
        let text = self.text(span);
        match text.len() <= LONGEST && !text.contains('\n') {
            true => text,
            false => "…".to_owned(),
        }
    }

    /// The dialect at a place.
    fn dialect(&self, span: Span) -> Dialect {
        self.dialects.get(&span.file).copied().unwrap_or(self.parsed.program.dialect)
    }
}
