//! Errors and warnings about a configuration, rendered with their line.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Whether a diagnostic prevents the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// One diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it prevents the start.
    pub severity: Severity,
    /// The mistake, in one sentence.
    pub message: String,
    /// The wrong bytes of the file; `None` if the diagnostic does not refer to a place in the file.
    pub place: Option<Range<usize>>,
    /// A remedy, or a suggestion.
    pub help: Option<String>,
    /// A related place, and its role.
    pub also: Option<(Range<usize>, String)>,
    /// Whether it refers to a flag, which its message names, instead of the file.
    pub flag: bool,
}

/// The text used if there is no file.
pub(crate) const COMMAND_LINE: &str = "command line";

/// A file by name and text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceText {
    name: String,
    text: String,
}

impl SourceText {
    /// The text of the file called `name`, with stars for what stands at the places of `secrets`.
    pub(crate) fn new(name: &str, text: &str, secrets: &[Range<usize>]) -> Arc<SourceText> {
        let mut text = text.to_owned();
        for place in secrets {
            // Places after it stay as they are: a star for each byte. Line breaks keep the numbers of lines.
            let stars = text.get(place.clone()).map(|secret| {
                secret
                    .bytes()
                    .map(|byte| if matches!(byte, b'"' | b'\'' | b'\n') { byte.into() } else { '*' })
            });
            if let Some(stars) = stars.map(Iterator::collect::<String>) {
                text.replace_range(place.clone(), &stars);
            }
        }
        Arc::new(SourceText { name: name.to_owned(), text })
    }
}

/// All errors, which prevent a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    source: Arc<SourceText>,
    errors: Vec<Diagnostic>,
}

/// A probable mistake that does not prevent a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    source: Arc<SourceText>,
    diagnostic: Diagnostic,
}

impl Diagnostics {
    /// The errors, in the order of the file.
    pub fn errors(&self) -> &[Diagnostic] {
        &self.errors
    }

    /// The line and column of an error, both from 1, the column in characters.
    pub fn position(&self, diagnostic: &Diagnostic) -> Option<(usize, usize)> {
        diagnostic.place.as_ref().map(|place| self.source.position(place.start))
    }
}

impl Warning {
    /// The diagnostic.
    pub fn diagnostic(&self) -> &Diagnostic {
        &self.diagnostic
    }

    /// The line and column, both from 1, the column in characters.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.diagnostic.place.as_ref().map(|place| self.source.position(place.start))
    }
}

/// Splits the diagnostics of a file into errors, if there are any, and warnings.
pub(crate) fn judge<T>(
    source: Arc<SourceText>,
    mut found: Vec<Diagnostic>,
    value: Option<T>,
) -> Result<(T, Vec<Warning>), Diagnostics> {
    found.sort_by_key(|diagnostic| diagnostic.place.as_ref().map_or(usize::MAX, |place| place.start));
    let (errors, warnings): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
    match value {
        Some(value) if errors.is_empty() => {
            let warning = |diagnostic| Warning { source: source.clone(), diagnostic };
            Ok((value, warnings.into_iter().map(warning).collect()))
        }
        _ => Err(Diagnostics { source, errors }),
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // After this many, the first errors are the cause, or the file is not a configuration.
        const SHOWN: usize = 20;
        for (at, error) in self.errors.iter().take(SHOWN).enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            self.source.render(error, f)?;
        }
        match self.errors.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "\nand {more} more errors"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.render(&self.diagnostic, f)
    }
}

/// The most characters of a line that are shown.
const WIDTH: usize = 100;

impl SourceText {
    /// The start of the line that contains byte `at`, the line's text, and its number from 1.
    fn line(&self, at: usize) -> (usize, &str, usize) {
        let at = self.text.floor_char_boundary(at);
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline);
        let number = 1 + self.text[..start].bytes().filter(|&byte| byte == b'\n').count();
        (start, self.text[start..end].trim_end_matches('\r'), number)
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let (start, _, number) = self.line(at);
        let at = self.text.floor_char_boundary(at).max(start);
        (number, 1 + self.text[start..at].chars().count())
    }

    fn render(&self, diagnostic: &Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(f, "{severity}: {}", diagnostic.message)?;
        let number = |place: &Range<usize>| self.line(place.start).2;
        let last = diagnostic.place.as_ref().map_or(0, number);
        let last = diagnostic.also.as_ref().map_or(0, |(place, _)| number(place)).max(last);
        let gutter = last.to_string().len();
        match &diagnostic.place {
            Some(place) => {
                let (line, column) = self.position(place.start);
                writeln!(f, "{:gutter$}--> {}:{line}:{column}", "", self.name)?;
                writeln!(f, "{:gutter$} |", "")?;
                self.mark(place, "", gutter, f)?;
            }
            None if diagnostic.flag || self.name == COMMAND_LINE => {}
            None => writeln!(f, " --> {}", self.name)?,
        }
        if let Some((place, why)) = &diagnostic.also {
            self.mark(place, why, gutter, f)?;
        }
        if let Some(help) = &diagnostic.help {
            writeln!(f, "{:gutter$} = help: {help}", "")?;
        }
        Ok(())
    }

    /// Shows the line at `place` with the place marked below it, at most to the end of the line.
    fn mark(
        &self,
        place: &Range<usize>,
        label: &str,
        gutter: usize,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (start, text, number) = self.line(place.start);
        let from = text.floor_char_boundary(place.start.saturating_sub(start));
        let to = text.floor_char_boundary(place.end.saturating_sub(start)).max(from);
        let (mut before, mut marked, mut after) =
            (text[..from].to_owned(), text[from..to].to_owned(), text[to..].to_owned());
        for part in [&mut before, &mut marked, &mut after] {
            // One column per character, so that the marks line up.
            *part = part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        }
        let cut = before.chars().count().saturating_sub(WIDTH / 2);
        if cut > 0 {
            before = format!("…{}", before.chars().skip(cut).collect::<String>());
        }
        let room = WIDTH.saturating_sub(before.chars().count());
        let marks = marked.chars().count().clamp(1, room.max(1));
        let rest: String = marked.chars().chain(after.chars()).take(room).collect();
        let carets = "^".repeat(marks);
        let under = format!("{:indent$}{carets} {label}", "", indent = before.chars().count());
        writeln!(f, "{number:gutter$} | {}", format!("{before}{rest}").trim_end())?;
        writeln!(f, "{:gutter$} | {}", "", under.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, place: Range<usize>, also: Option<(Range<usize>, String)>) -> String {
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            message: "bad".to_owned(),
            place: Some(place),
            help: Some("better".to_owned()),
            also,
            flag: false,
        };
        judge::<()>(SourceText::new("a.toml", text, &[]), vec![diagnostic], None).unwrap_err().to_string()
    }

    #[test]
    fn the_offending_text_is_marked_with_line_column_and_help() {
        let text = "[x]\n\tkéy = 1 # note\n";
        let shown = rendered(text, 5..9, Some((0..3, "in here".to_owned())));
        let expected = "error: bad\n --> a.toml:2:2\n  |\n2 |  kéy = 1 # note\n  |  ^^^\n1 | [x]\n  | ^^^ in here\n  = help: better\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn any_place_of_any_text_can_be_shown() {
        for text in ["", "\n", "\r\n\r\n", "é", "a\u{0}\u{7f}b", &"é".repeat(5000)] {
            for start in 0..text.len() + 2 {
                for end in [start, start + 1, start + 200, usize::MAX] {
                    let shown = rendered(text, start..end, None);
                    assert!(shown.lines().all(|line| line.chars().count() < WIDTH + 20), "{shown}");
                }
                if start > 300 {
                    break;
                }
            }
        }
    }
}
