//! Templates of classes, as settings.

use sandarac_policy::{ClassPiece, ClassTemplate};

use crate::classify::part::template_part;
use crate::report::Complaint;

/// Reads a template of classes, in which `{name}` is a place for a part of a request.
pub(crate) fn read_class_template(text: &str) -> Result<ClassTemplate, Complaint> {
    if text.len() > 1024 || text.chars().any(char::is_control) {
        return Err(Complaint::new("a class template has up to 1024 bytes and no control characters"));
    }
    let mut pieces = Vec::new();
    let literal = |text: &str, pieces: &mut Vec<ClassPiece>| match text {
        "" => Ok(()),
        text if text.contains('}') => Err(Complaint::new("`}` without `{`")),
        text => {
            pieces.push(ClassPiece::Literal(text.into()));
            Ok(())
        }
    };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(|| Complaint::new("`{` without `}`"))?;
        literal(before, &mut pieces)?;
        pieces.push(ClassPiece::Part(template_part(name)?));
        rest = after;
    }
    literal(rest, &mut pieces)?;
    Ok(ClassTemplate::new(pieces))
}
