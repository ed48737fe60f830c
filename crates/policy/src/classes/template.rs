//! Classes combined from parts of a request.

use std::fmt;

use sandarac_balance::MAX_CLASS_BYTES;

use super::{ClassPart, Subject};

/// Text with places for parts of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassTemplate(Vec<ClassPiece>);

/// A piece of a [`ClassTemplate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassPiece {
    /// Text that is the same for every request.
    Literal(Box<str>),
    /// A place for a part of the request.
    Part(ClassPart),
}

impl ClassTemplate {
    /// The template of these pieces, in this order.
    pub fn new(pieces: Vec<ClassPiece>) -> ClassTemplate {
        ClassTemplate(pieces)
    }

    /// The class. A part that the request does not have is omitted; if it has none of them, there is no
    /// class.
    pub(crate) fn fill<'b>(&self, subject: &Subject<'_>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let mut any = false;
        for piece in &self.0 {
            match piece {
                ClassPiece::Literal(text) => buffer.extend_from_slice(text.as_bytes()),
                ClassPiece::Part(part) => {
                    let value = part.value(subject).unwrap_or_default();
                    if buffer.len() + value.len() > MAX_CLASS_BYTES {
                        return None;
                    }
                    any |= !value.is_empty();
                    buffer.extend_from_slice(&value);
                }
            }
        }
        any.then_some(buffer)
    }
}

impl fmt::Display for ClassTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            ClassPiece::Literal(text) => f.write_str(text),
            ClassPiece::Part(part) => write!(f, "{{{part}}}"),
        })
    }
}
