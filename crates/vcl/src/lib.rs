//! VCL, the Varnish Configuration Language: text to tokens and diagnostics.
//!
//! Nothing here does I/O, reads a clock or draws a random number.

mod diagnostic;
mod json;
mod lexer;
mod lexer_text;
mod render;
pub mod rules;
mod source;
mod suggest;
pub mod token;

pub use diagnostic::{Diagnostic, Edit, Mend, Related, Rule, Severity};
pub use json::to_json;
pub use lexer::{Tokens, lex};
pub use render::render;
pub use source::{FileId, Position, SourceFile, Sources, Span};
pub use suggest::closest;
