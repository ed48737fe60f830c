//! Changes, each with its construct, and the edits of all of them together.

use std::cmp::Reverse;

use crate::diagnostic::Edit;
use crate::edits::{OverlappingEdits, apply_edits};
use crate::source::Span;
use crate::upgrade::constructs::Construct;
use crate::upgrade::layout::Layout;

/// A construct of an old program and what becomes of it.
#[derive(Clone, Debug)]
pub struct Change {
    /// The construct.
    pub construct: &'static Construct,
    /// The old text, whose start names the line.
    pub span: Span,
    /// The old text in short; empty for additions that no list shows, such as an import.
    pub was: String,
    /// The new text in short.
    pub becomes: String,
    /// The edits of the program.
    pub edits: Vec<Edit>,
    /// The decision that a person has to make; the edits then do one of the choices, or make the old text a
    /// comment.
    pub decision: Option<Decision>,
}

/// A decision that a person has to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The question, in one sentence without a full stop.
    pub text: String,
    /// The choices, each as an instruction.
    pub choices: Vec<String>,
}

/// The word that begins each marked comment. [`super::decisions_left`] counts them.
pub(super) const MARK: &str = "DECISION";

impl Decision {
    /// The marked comment, in lines.
    pub(super) fn comment(&self, construct: &Construct) -> Vec<String> {
        let first = format!("# {MARK} {}: {}", construct.name, self.text);
        let choices = self.choices.iter().map(|choice| format!("#   - {choice}"));
        std::iter::once(first).chain(choices).collect()
    }
}

/// The edits without those within texts that another edit replaces.
pub(super) fn merged(edits: impl IntoIterator<Item = Edit>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = edits.into_iter().collect();
    edits.sort_by_key(|edit| {
        let Span { file, start, end } = edit.span;
        (file, start, !edit.span.is_empty(), Reverse(end))
    });
    let mut merged: Vec<Edit> = Vec::with_capacity(edits.len());
    let mut covered: Option<Span> = None;
    for edit in edits {
        let is_within = covered.is_some_and(|outer| {
            outer.file == edit.span.file && edit.span.start < outer.end && edit.span.end <= outer.end
        });
        if is_within {
            continue;
        }
        if !edit.span.is_empty() {
            covered = Some(edit.span);
        }
        merged.push(edit);
    }
    merged
}

/// The text of a span after the edits that lie within it.
pub(super) fn rewritten(
    layout: Layout<'_>,
    span: Span,
    edits: impl IntoIterator<Item = Edit>,
) -> Result<String, OverlappingEdits> {
    let is_within = |edit: &Edit| {
        edit.span.file == span.file && edit.span.start >= span.start && edit.span.end <= span.end
    };
    let moved = |edit: Edit| {
        let (start, end) = (edit.span.start - span.start, edit.span.end - span.start);
        Edit { span: Span::new(span.file, start, end), text: edit.text }
    };
    let edits: Vec<Edit> = edits.into_iter().filter(is_within).map(moved).collect();
    let text = apply_edits(layout.sources.bytes(span), &merged(edits))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
