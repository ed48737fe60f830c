//! Tables of classes, in files written by applications.

use std::fmt;
use std::path::{Path, PathBuf};

use sandarac_balance::MAX_CLASS_BYTES;
use sandarac_policy::{ClassTable, Classifier, HostPattern, PathPattern};

use crate::report::Complaint;
use crate::value::Text;

/// The most bytes of a table.
pub const TABLE_BYTES: usize = 16 << 20;

/// The most lines of a table that name a class.
const MAX_LINES: usize = 100_000;

/// The longest line, in bytes.
const MAX_LINE: usize = 4096;

/// The reason why a file is not a table of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The file.
    pub path: PathBuf,
    /// The number of the line, from 1.
    pub line: usize,
    /// The mistake, in one sentence.
    pub message: String,
    /// A remedy, or a suggestion.
    pub help: Option<String>,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TableError {}

/// A complaint about a line.
#[derive(Debug)]
struct BadLine {
    line: usize,
    complaint: Complaint,
}

impl BadLine {
    fn of(self, path: &Path) -> TableError {
        let BadLine { line, complaint: Complaint { message, help } } = self;
        TableError { path: path.to_path_buf(), line, message, help }
    }
}

/// The classifier with `text`, the complete content of its file, as its table. A classifier without a table is returned
/// unchanged.
///
/// # Errors
/// The first line that cannot be read, or the lack of a line with a class.
pub fn read_class_table(classifier: &Classifier, text: &[u8]) -> Result<Classifier, TableError> {
    match classifier.table_path() {
        Some(path) => Ok(classifier.with_table(read(text).map_err(|error| error.of(path))?)),
        None => Ok(classifier.clone()),
    }
}

/// Reads a table: lines of a pattern and a class, separated by white space; `#` at the start of a line or after white
/// space begins a comment. At least one line has a class.
fn read(text: &[u8]) -> Result<ClassTable, BadLine> {
    let bad = |line: usize, message: String| BadLine { line, complaint: Complaint::new(message) };
    if text.len() > TABLE_BYTES {
        return Err(bad(1, format!("the file has more than {TABLE_BYTES} bytes")));
    }
    let mut table = ClassTable::default();
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        if line.len() > MAX_LINE {
            return Err(bad(number, format!("the line has more than {MAX_LINE} bytes")));
        }
        let line = std::str::from_utf8(line).map_err(|_| bad(number, "the line is not UTF-8".to_owned()))?;
        let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
        let Some(pattern) = words.next() else { continue };
        let (Some(class), None) = (words.next(), words.next()) else {
            return Err(bad(number, "a line has a pattern and a class, with a blank between".to_owned()));
        };
        if class.len() > MAX_CLASS_BYTES {
            return Err(bad(number, format!("a class has at most {MAX_CLASS_BYTES} bytes")));
        }
        if table.len() == MAX_LINES {
            return Err(bad(number, format!("the file has more than {MAX_LINES} lines with a class")));
        }
        let added = add(&mut table, pattern, class, number);
        added.map_err(|complaint| BadLine { line: number, complaint })?;
    }
    if table.is_empty() {
        // This is more likely a file that is still being written than one that removes all classes.
        return Err(bad(1, "no line of the file has a class".to_owned()));
    }
    Ok(table)
}

fn add(table: &mut ClassTable, pattern: &str, class: &str, line: usize) -> Result<(), Complaint> {
    let (host, path) = pattern.split_at(pattern.find(['/', '=']).unwrap_or(pattern.len()));
    if path.starts_with("//") && host.ends_with(':') {
        // Refused, with a suggestion.
        HostPattern::from_text(pattern)?;
    }
    let host = if host.is_empty() { HostPattern::Any } else { HostPattern::from_text(host)? };
    let path =
        if path.is_empty() { PathPattern::Below(Box::default()) } else { PathPattern::from_text(path)? };
    table.add(host, path, class.as_bytes(), line).map_err(|conflict| Complaint::new(conflict.to_string()))
}
