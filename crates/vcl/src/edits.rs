//! Edits of a text in place.

use std::fmt;

use crate::diagnostic::Edit;

/// Two edits that change the same bytes, so that they cannot both be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlappingEdits {
    /// The first of them.
    pub first: Edit,
    /// The other.
    pub second: Edit,
}

impl fmt::Display for OverlappingEdits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = (self.first.span.range(), self.second.span.range());
        write!(f, "the edits of the bytes {first:?} and {second:?} overlap")
    }
}

impl std::error::Error for OverlappingEdits {}

/// The text with all edits done, which may come in any order. Insertions at one place are done in the order
/// of the list. The edits are those of one file; one that reaches beyond the text counts up to its end.
pub fn apply_edits(text: &[u8], edits: &[Edit]) -> Result<Vec<u8>, OverlappingEdits> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.span);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for (index, edit) in edits.iter().enumerate() {
        let range = edit.span.range();
        if range.start < at {
            let (first, second) = (edits[index - 1].clone(), (*edit).clone());
            return Err(OverlappingEdits { first, second });
        }
        let start = range.start.min(text.len());
        out.extend_from_slice(&text[at..start]);
        out.extend_from_slice(edit.text.as_bytes());
        at = range.end.min(text.len());
    }
    out.extend_from_slice(&text[at..]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::{Sources, Span};

    fn edited(edits: &[(u32, u32, &str)]) -> Result<String, String> {
        let mut sources = Sources::default();
        let file = sources.add("a.vcl", Arc::from(&b"0123456789"[..]), None);
        let edit = |&(start, end, text): &(u32, u32, &str)| Edit {
            span: Span::new(file, start, end),
            text: text.to_owned(),
        };
        let edits: Vec<Edit> = edits.iter().map(edit).collect();
        match apply_edits(sources.file(file).text(), &edits) {
            Ok(text) => Ok(String::from_utf8(text).expect("text")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn edits_are_done_in_the_order_of_the_text() {
        assert_eq!(edited(&[(8, 9, "x"), (0, 2, ""), (4, 4, "a"), (4, 4, "b")]), Ok("23ab4567x9".to_owned()));
        assert_eq!(edited(&[(4, 6, "y"), (4, 4, "a"), (6, 6, "b")]), Ok("0123ayb6789".to_owned()));
        assert_eq!(edited(&[(20, 30, "z")]), Ok("0123456789z".to_owned()));
        assert_eq!(edited(&[]), Ok("0123456789".to_owned()));
    }

    #[test]
    fn overlapping_edits_are_refused() {
        assert_eq!(
            edited(&[(5, 8, "x"), (2, 6, "y")]),
            Err("the edits of the bytes 2..6 and 5..8 overlap".to_owned())
        );
    }
}
