//! Diagnostics as text for people: the line with the mistake, with its place marked below it.

use std::fmt::Write;

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{FileId, SourceFile, Sources, Span};

/// The most characters of a line that are shown.
const WIDTH: usize = 100;

/// The width of a tab: each is shown as this many blanks, so that marks line up.
const TAB: usize = 4;

/// A diagnostic with its lines, without colours, ending in a line break.
///
/// ```text
/// error[missing-semicolon]: `;` is missing at the end of this statement
///  --> shop.vcl:4:23
///   |
/// 4 |     set req.url = "/"
///   |                      ^
///   = help: write `;` here
/// ```
pub fn render(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.rule.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{severity}[{}]: {}", diagnostic.rule.name, one_line(&diagnostic.message));
    let marks = marks(diagnostic);
    let line_number = |mark: &Mark<'_>| sources.position(mark.span).line;
    let gutter = marks.iter().map(line_number).max().unwrap_or(1).to_string().len();
    let mut shown_file = None;
    let mut shown_line = 0;
    for mark in &marks {
        let file = sources.file(mark.span.file);
        let position = file.position(mark.span.start);
        if shown_file != Some(mark.span.file) {
            let arrow = if shown_file.is_none() { "-->" } else { ":::" };
            // The place in the header is that of the diagnostic, which may not be the first mark of its file.
            let place = if shown_file.is_none() { sources.position(diagnostic.span) } else { position };
            let name = one_line(file.name());
            let _ = writeln!(out, "{:gutter$}{arrow} {name}:{}:{}", "", place.line, place.column);
            let _ = writeln!(out, "{:gutter$} |", "");
            shown_line = 0;
        }
        let line = Line::around(file, mark.span);
        if shown_line != position.line {
            if shown_line > 0 && position.line > shown_line + 1 {
                let _ = writeln!(out, "{:.<gutter$}", "..");
            }
            let _ = writeln!(out, "{:>gutter$} | {}", position.line, line.text.trim_end());
        }
        let symbol = if mark.is_primary { "^" } else { "-" };
        let under =
            format!("{:indent$}{} {}", "", symbol.repeat(line.marked), mark.label, indent = line.before);
        let _ = writeln!(out, "{:gutter$} | {}", "", under.trim_end());
        shown_file = Some(mark.span.file);
        shown_line = position.line;
    }
    for note in &diagnostic.notes {
        let _ = writeln!(out, "{:gutter$} = note: {}", "", one_line(note));
    }
    if let Some(mend) = &diagnostic.mend {
        let _ = writeln!(out, "{:gutter$} = help: {}", "", one_line(&mend.text));
    }
    for include in included_from(sources, diagnostic.span.file) {
        let position = sources.position(include);
        let name = one_line(sources.file(include.file).name());
        let _ = writeln!(
            out,
            "{:gutter$} = note: included from {name}:{}:{}",
            "", position.line, position.column
        );
    }
    out
}

/// The include statements that lead to a file; the middle of a long chain is left out.
fn included_from(sources: &Sources, file: FileId) -> Vec<Span> {
    const SHOWN: usize = 3;
    let mut chain = sources.include_chain(file);
    if chain.len() > 2 * SHOWN {
        chain.drain(SHOWN..chain.len() - SHOWN);
    }
    chain
}

/// A place to mark.
struct Mark<'d> {
    span: Span,
    label: &'d str,
    is_primary: bool,
}

/// The marks of a diagnostic: those of its file in the order of the text, then those of other files.
fn marks(diagnostic: &Diagnostic) -> Vec<Mark<'_>> {
    let label = diagnostic.label.as_deref().unwrap_or_default();
    let mut marks = vec![Mark { span: diagnostic.span, label, is_primary: true }];
    let related = diagnostic.related.iter();
    marks.extend(related.map(|related| Mark {
        span: related.span,
        label: &related.label,
        is_primary: false,
    }));
    let home = diagnostic.span.file;
    marks.sort_by_key(|mark| (mark.span.file != home, mark.span.file, mark.span.start));
    marks
}

/// A text without line breaks and other control characters, which may come from a program.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A line as it is shown: at most [`WIDTH`] characters of it, around the mark.
struct Line {
    text: String,
    /// The characters before the mark.
    before: usize,
    /// The characters of the mark; at least one.
    marked: usize,
}

impl Line {
    fn around(file: &SourceFile, span: Span) -> Line {
        let range = file.line_range(span.start);
        let text = file.text();
        let start = (span.start as usize).clamp(range.start, range.end);
        let end = (span.end as usize).clamp(start, range.end);
        // Four bytes are the most that one character takes.
        let from = nearest(text, start.saturating_sub(4 * WIDTH).max(range.start));
        let to = (start + 4 * WIDTH).min(range.end);
        let mut before = cells(&text[from.min(start)..start]);
        let is_cut_before = from > range.start || before.len() > WIDTH / 2 + 10;
        if is_cut_before {
            before.drain(..before.len().saturating_sub(WIDTH / 2));
            before.insert(0, '…');
        }
        let marked = cells(&text[start..end.min(to)]).len();
        let rest = cells(&text[start..to]);
        let room = WIDTH.saturating_sub(before.len());
        let is_cut_after = rest.len() > room || to < range.end;
        let marked = marked.clamp(1, room.max(1));
        let indent = before.len();
        let mut shown: String = before.into_iter().chain(rest.into_iter().take(room)).collect();
        if is_cut_after {
            shown.push('…');
        }
        Line { text: shown, before: indent, marked }
    }
}

/// The next place from `at` where a character may begin.
fn nearest(text: &[u8], at: usize) -> usize {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    at + text[at..].iter().take_while(is_continuation).take(3).count()
}

/// The characters as they are shown: tabs as blanks, control characters as one blank, other bytes as `�`.
fn cells(bytes: &[u8]) -> Vec<char> {
    let mut cells = Vec::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => cells.extend([' '; TAB]),
                // Characters that hide others or change their order.
                '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                    cells.push('\u{fffd}');
                }
                c if c.is_control() => cells.push(' '),
                c => cells.push(c),
            }
        }
        if !chunk.invalid().is_empty() {
            cells.push('\u{fffd}');
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rules;

    fn shown(text: &[u8], start: u32, end: u32) -> String {
        let mut sources = Sources::default();
        let file = sources.add("a.vcl", Arc::from(text), None);
        let diagnostic = Diagnostic::new(&rules::EXPECTED, Span::new(file, start, end), "bad");
        render(&sources, &diagnostic)
    }

    #[test]
    fn tabs_and_characters_of_several_bytes_line_up() {
        let expected = "error[expected]: bad\n --> a.vcl:1:3\n  |\n1 |     éü = x\n  |      ^^^\n";
        assert_eq!(shown("\téü = x".as_bytes(), 3, 7), expected);
    }

    #[test]
    fn any_place_of_any_text_can_be_shown_in_short_lines() {
        let long = "é".repeat(40_000);
        for text in [&b""[..], b"\n", b"\r\n\r\n", "é".as_bytes(), b"a\0\x7fb\xff\xfe", long.as_bytes()] {
            for start in (0..text.len() as u32 + 2).step_by(1 + text.len() / 200) {
                for end in [start, start + 1, start + 200, u32::MAX] {
                    let shown = shown(text, start, end);
                    assert!(shown.lines().all(|line| line.chars().count() < WIDTH + 20), "{shown}");
                }
            }
        }
    }
}
