//! Edits that keep the layout: indentation, whole lines, and comments above statements.

use crate::diagnostic::Edit;
use crate::source::{SourceFile, Sources, Span};
use crate::token::Comment;

/// The texts and comments of a program.
#[derive(Clone, Copy)]
pub(super) struct Layout<'p> {
    pub(super) sources: &'p Sources,
    pub(super) comments: &'p [Comment],
}

impl<'p> Layout<'p> {
    /// The text of a span; bytes that are not UTF-8 are replaced.
    pub(super) fn text(self, span: Span) -> String {
        String::from_utf8_lossy(self.sources.bytes(span)).into_owned()
    }

    fn file(self, span: Span) -> &'p SourceFile {
        self.sources.file(span.file)
    }

    /// The bytes before a place on its line.
    fn before(self, span: Span) -> &'p [u8] {
        let file = self.file(span);
        let line = file.line_range(span.start);
        &file.text()[line.start..(span.start as usize).clamp(line.start, line.end)]
    }

    /// The bytes after a span on its last line, without the line break.
    fn rest(self, span: Span) -> &'p [u8] {
        let file = self.file(span);
        let line = file.line_range(span.end);
        &file.text()[(span.end as usize).clamp(line.start, line.end)..line.end]
    }

    /// The blanks at the start of the line.
    pub(super) fn indent(self, span: Span) -> String {
        let blanks = self.before(span).iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        blanks.map(|&byte| char::from(byte)).collect()
    }

    /// Whether only blanks stand before it on its line.
    pub(super) fn begins_line(self, span: Span) -> bool {
        self.before(span).trim_ascii().is_empty()
    }

    /// Whether only blanks stand after it on its line.
    pub(super) fn ends_line(self, span: Span) -> bool {
        self.rest(span).trim_ascii().is_empty()
    }

    /// The blanks or the line break with indentation that separate a new statement from the one at `span`.
    pub(super) fn separator(self, span: Span) -> String {
        match self.begins_line(span) {
            true => format!("\n{}", self.indent(span)),
            false => " ".to_owned(),
        }
    }

    /// An insertion of whole lines before `span`.
    pub(super) fn lines_before(self, span: Span, lines: &[String]) -> Edit {
        let indent = self.indent(span);
        let mut text = lines.join(&format!("\n{indent}"));
        text += &format!("\n{indent}");
        if !self.begins_line(span) {
            text.insert_str(0, &format!("\n{indent}"));
        }
        Edit { span: span.before(), text }
    }

    /// The edits that make the text of a span a comment.
    pub(super) fn comment_out(self, span: Span) -> Vec<Edit> {
        let indent = self.indent(span);
        let start = match self.begins_line(span) {
            true => "# ".to_owned(),
            false => format!("\n{indent}# "),
        };
        let mut edits = vec![Edit { span: span.before(), text: start }];
        let text = self.sources.bytes(span);
        for at in memchr::memchr_iter(b'\n', text) {
            let line = &text[at + 1..];
            let blanks = line.iter().take(indent.len()).take_while(|byte| matches!(byte, b' ' | b'\t'));
            let place = span.start + (at + 1 + blanks.count()) as u32;
            edits.push(Edit { span: Span::new(span.file, place, place), text: "# ".to_owned() });
        }
        if !self.ends_line(span) {
            edits.push(Edit { span: span.after(), text: format!("\n{indent}") });
        }
        edits
    }

    /// The start of the lines of comments that stand directly above `span`; else the start of `span`.
    pub(super) fn with_comments_above(self, span: Span) -> Span {
        let file = self.file(span);
        let mut start = span.start;
        while self.begins_line(Span::new(span.file, start, start)) {
            let line = file.line_range(start);
            let Some(above) = line.start.checked_sub(1) else { break };
            let above = file.line_range(above as u32);
            let ends = |comment: &Comment| {
                let range = comment.span.range();
                comment.span.file == span.file && above.contains(&range.end.saturating_sub(1))
            };
            let comment = self.comments.iter().rfind(|comment| ends(comment)).map(|comment| comment.span);
            match comment {
                Some(comment) if self.begins_line(comment) && self.ends_line(comment) => {
                    start = comment.start;
                }
                _ => break,
            }
        }
        Span::new(span.file, start, span.end)
    }

    /// The removal of a span: whole lines if it is alone on them, else it and the blanks before it.
    pub(super) fn remove(self, span: Span) -> Edit {
        let file = self.file(span);
        let text = file.text();
        if self.begins_line(span) && self.ends_line(span) {
            let start = file.line_range(span.start).start;
            let end = file.line_range(span.end).end;
            let line_break = match &text[end..] {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                _ => 0,
            };
            let span = Span::new(span.file, start as u32, (end + line_break) as u32);
            return Edit { span, text: String::new() };
        }
        let blanks = self.before(span).iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let blanks = if self.begins_line(span) { 0 } else { blanks as u32 };
        Edit { span: Span::new(span.file, span.start - blanks, span.end), text: String::new() }
    }

    /// The removal of a declaration with the comments above it and one empty line after it.
    pub(super) fn remove_paragraph(self, span: Span) -> Edit {
        let mut edit = self.remove(self.with_comments_above(span));
        let text = self.file(span).text();
        let rest = &text[edit.span.end as usize..];
        let blank = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => 0,
        };
        if edit.span.start == 0 || text[..edit.span.start as usize].ends_with(b"\n") {
            edit.span.end += blank;
        }
        edit
    }

    /// Whether a comment lies within a span.
    pub(super) fn comments_within(self, span: Span) -> impl Iterator<Item = Span> {
        let is_within = move |comment: &Span| {
            comment.file == span.file && comment.start >= span.start && comment.end <= span.end
        };
        self.comments.iter().map(|comment| comment.span).filter(is_within)
    }
}
