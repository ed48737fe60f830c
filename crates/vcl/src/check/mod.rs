//! The checker: everything that makes a program invalid beyond its grammar, and warnings.
//!
//! Subs are walked once. A use of a variable, function or action that not all subs allow is noted as a
//! requirement of its sub; afterwards each requirement is compared with the built-in subs that reach it
//! through calls. An expression whose type is unknown was reported, so that one mistake has one error.

mod access_lists;
mod actions;
mod arguments;
mod checker;
mod comparisons;
mod declarations;
mod definitions;
mod expressions;
mod flow;
mod functions;
mod inline_c;
mod mismatch;
mod paths;
mod pattern_values;
mod patterns;
mod reach;
pub mod rules;
mod statements;
mod symbols;
mod texts;
mod warnings;

use checker::Checker;

pub use patterns::{BasicPatterns, PatternError, Patterns};

use crate::diagnostic::Diagnostic;
use crate::dialect::Dialect;
use crate::parser::Parsed;

/// The errors and warnings about a program, those of the parser included, in the order of the files and of
/// their text. Programs in old dialects have only those of the parser, because they are upgraded first.
pub fn check(parsed: &Parsed, patterns: &dyn Patterns) -> Vec<Diagnostic> {
    let mut diagnostics = parsed.diagnostics.clone();
    if parsed.program.dialect == Dialect::Old {
        return diagnostics;
    }
    let mut checker = Checker::new(parsed, patterns);
    checker.collect_symbols();
    for at in 0..checker.declarations.len() {
        checker.at = at;
        checker.declaration(checker.declarations[at]);
    }
    checker.recursion();
    checker.requirements();
    checker.unused();
    // After an error of the grammar, statements may not be where they seem to be.
    if !parsed.has_errors() {
        checker.warnings();
    }
    if let (true, Some(last)) = (checker.is_full(), checker.diagnostics.last()) {
        let count = checker.diagnostics.len();
        let message = format!("{count} mistakes were found; the rest of the program was not checked");
        checker.diagnostics.push(Diagnostic::new(&crate::rules::LIMIT_ERRORS, last.span, message));
    }
    diagnostics.append(&mut checker.diagnostics);
    warnings::retain_unsilenced(parsed, &mut diagnostics);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start));
    diagnostics
}
