//! Edge Side Includes (ESI 1.0, W3C note of 2001-08-04), without I/O.
//!
//! A [`Parser`] takes a body in any pieces and returns its [`Part`]s: ranges of text, includes and variables. A [`Template`] is
//! a whole body that was parsed once; a [`PageStream`] is one that is parsed as it arrives.
//!
//! | markup | becomes |
//! |---|---|
//! | `<esi:include src="…" alt="…" onerror="continue"/>` | an [`Include`] |
//! | `<esi:remove>…</esi:remove>` | nothing |
//! | `<esi:comment text="…"/>` | nothing |
//! | `<!--esi … -->` | what is between |
//! | `<esi:vars>…</esi:vars>` | what is between, with [`Variable`]s |
//!
//! No body is refused. Elements of other names, end tags without a beginning, and includes without a usable `src` vanish; what
//! is between other elements' tags stays. A tag that does not end within [`MAX_TAG`] bytes, that has a `<` in it, or that the
//! body ends in, is text. An element that is not closed reaches to the end of the body. Memory is bounded by [`MAX_TAG`].

mod escape;
mod parser;
mod stream;
mod tag;
mod template;
mod text;

pub use escape::escape_html;
pub use parser::{MAX_TAG, Parser, Part};
pub use stream::{PageStream, Segment};
pub use tag::Include;
pub use template::{MAX_PARTS, Template, TemplateBuilder};
pub use text::{Text, Variable};
