//! Classes put together from parts of a request.

use std::fmt;

use sandarac_balance::MAX_CLASS_BYTES;

use crate::classify::Subject;
use crate::classify::part::Part;
use crate::report::Complaint;

/// Text with places for parts of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassTemplate(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Box<str>),
    Part(Part),
}

impl ClassTemplate {
    pub(crate) fn read(text: &str) -> Result<ClassTemplate, Complaint> {
        if text.len() > 1024 || text.chars().any(char::is_control) {
            return Err(Complaint::new("a class template has up to 1024 bytes and no control characters"));
        }
        let mut pieces = Vec::new();
        let literal = |text: &str, pieces: &mut Vec<Piece>| match text {
            "" => Ok(()),
            text if text.contains('}') => Err(Complaint::new("`}` without `{`")),
            text => {
                pieces.push(Piece::Literal(text.into()));
                Ok(())
            }
        };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| Complaint::new("`{` without `}`"))?;
            literal(before, &mut pieces)?;
            pieces.push(Piece::Part(Part::of_template(name)?));
            rest = after;
        }
        literal(rest, &mut pieces)?;
        Ok(ClassTemplate(pieces))
    }

    /// The class; a part that the request does not have is left out, and where it has none there is no class.
    pub(crate) fn fill<'b>(&self, subject: &Subject<'_>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let mut any = false;
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => buffer.extend_from_slice(text.as_bytes()),
                Piece::Part(part) => {
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
            Piece::Literal(text) => f.write_str(text),
            Piece::Part(part) => write!(f, "{{{part}}}"),
        })
    }
}
