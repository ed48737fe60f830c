//! Files, spans of bytes, and positions in lines and columns.

use std::ops::Range;
use std::sync::Arc;

/// A file of one [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A range of bytes of one file; empty for a place between two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// The span of the bytes `start..end` of `file`. An end before the start counts as the start.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end: end.max(start) }
    }

    /// The span from the start of this one to the end of `other`, if both are of one file; else this one.
    pub fn to(self, other: Span) -> Span {
        match self.file == other.file {
            true => Span::new(self.file, self.start, other.end),
            false => self,
        }
    }

    /// The empty span at the end.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// The empty span at the start.
    pub fn before(self) -> Span {
        Span { end: self.start, ..self }
    }

    /// Whether it has no bytes.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The bytes as a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A line and a column, both from 1; the column in characters. A sequence that is not UTF-8 counts as one
/// character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A file: name, text, and the include statement that it came from.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: Arc<[u8]>,
    included_from: Option<Span>,
    /// The first byte of each line.
    lines: Vec<u32>,
}

impl SourceFile {
    /// The name, as the caller or the loader gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &Arc<[u8]> {
        &self.text
    }

    /// The include statement in another file; `None` for the main file.
    pub fn included_from(&self) -> Option<Span> {
        self.included_from
    }

    /// The number of lines; a line break at the end of the file begins none.
    pub fn line_count(&self) -> usize {
        let ends_with_break = self.text.last() == Some(&b'\n');
        self.lines.len() - usize::from(ends_with_break && self.lines.len() > 1)
    }

    /// The line of byte `at`, from 0.
    fn line_index(&self, at: u32) -> usize {
        self.lines.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// The bytes of the line that contains byte `at`, without its line break.
    pub fn line_range(&self, at: u32) -> Range<usize> {
        let at = at.min(self.len());
        let index = self.line_index(at);
        let start = self.lines[index] as usize;
        let end = self.lines.get(index + 1).map_or(self.text.len(), |&next| next as usize);
        let line = &self.text[start..end];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        start..start + line.len()
    }

    /// The position of byte `at`.
    pub fn position(&self, at: u32) -> Position {
        let at = at.min(self.len());
        let index = self.line_index(at);
        let before = &self.text[self.lines[index] as usize..at as usize];
        Position { line: index + 1, column: 1 + characters(before) }
    }

    fn len(&self) -> u32 {
        self.text.len() as u32
    }
}

/// The number of characters in `bytes`.
fn characters(bytes: &[u8]) -> usize {
    bytes
        .utf8_chunks()
        .map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty()))
        .sum()
}

/// The files of one program, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file.
    ///
    /// # Panics
    /// If the text is longer than 4 GiB, which [`crate::Limits`] prevent.
    pub fn add(&mut self, name: impl Into<String>, text: Arc<[u8]>, included_from: Option<Span>) -> FileId {
        assert!(u32::try_from(text.len()).is_ok(), "a file beyond the limits");
        let id = FileId(self.files.len() as u32);
        let breaks = memchr::memchr_iter(b'\n', &text).map(|at| at as u32 + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        self.files.push(SourceFile { name: name.into(), text, included_from, lines });
        id
    }

    /// The file.
    ///
    /// # Panics
    /// If it is a file of another [`Sources`].
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files, the main file first.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(at, file)| (FileId(at as u32), file))
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The bytes of a span.
    pub fn bytes(&self, span: Span) -> &[u8] {
        self.file(span.file).text.get(span.range()).unwrap_or_default()
    }

    /// The position of the start of a span.
    pub fn position(&self, span: Span) -> Position {
        self.file(span.file).position(span.start)
    }

    /// The include statements that lead to `file`, the innermost first.
    pub fn include_chain(&self, file: FileId) -> Vec<Span> {
        std::iter::successors(self.file(file).included_from, |span| self.file(span.file).included_from)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_at_line_breaks() {
        let mut sources = Sources::default();
        let id = sources.add("a.vcl", Arc::from("é = 1;\r\nb\n\n".as_bytes()), None);
        let file = sources.file(id);
        assert_eq!(file.position(3), Position { line: 1, column: 3 });
        assert_eq!(file.line_range(3), 0..7);
        assert_eq!(file.position(9), Position { line: 2, column: 1 });
        assert_eq!(file.position(12), Position { line: 4, column: 1 });
        assert_eq!(file.position(u32::MAX), Position { line: 4, column: 1 });
        assert_eq!(file.line_count(), 3);
    }

    #[test]
    fn bytes_that_are_not_utf8_count_as_one_character() {
        let mut sources = Sources::default();
        let id = sources.add("a.vcl", Arc::from(&b"a\xff\xfeb"[..]), None);
        assert_eq!(sources.file(id).position(3), Position { line: 1, column: 4 });
    }
}
