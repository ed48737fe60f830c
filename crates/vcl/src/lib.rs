//! VCL, the Varnish Configuration Language: text to a syntax tree and diagnostics.
//!
//! [`parse`] reads VCL 4.0 and 4.1, and the dialects 2 and 3, which have no version line. It never stops at
//! the first mistake: [`Parsed::diagnostics`] has them all, each with its place, its cause and what to write
//! instead. Every node of the [tree](tree::Program) has its span in the text, so that programs can be edited
//! in place.
//!
//! Nothing here does I/O, reads a clock or draws a random number: included files come from a [`Loader`]. No
//! input makes it panic or recurse without bound; [`Limits`] bound its memory.

pub mod check;
mod diagnostic;
mod dialect;
mod edits;
mod json;
mod lexer;
mod lexer_text;
mod limits;
mod loader;
mod parser;
mod render;
pub mod rules;
mod source;
mod suggest;
pub mod table;
pub mod token;
pub mod tree;
pub mod upgrade;

pub use diagnostic::{Diagnostic, Edit, Mend, Related, Rule, Severity};
pub use dialect::{Dialect, OldVersion};
pub use edits::{OverlappingEdits, apply_edits};
pub use json::to_json;
pub use lexer::{Tokens, lex};
pub use limits::Limits;
pub use loader::{IncludeRequest, LoadError, LoadedFile, Loader, NoFiles};
pub use parser::{Parsed, parse};
pub use render::render;
pub use source::{FileId, Position, SourceFile, Sources, Span};
pub use suggest::closest;
pub use upgrade::{Upgrade, UpgradeOptions, UpgradeRefusal, upgrade};
