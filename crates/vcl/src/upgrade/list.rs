//! The list of constructs for people.

use std::fmt::Write;

use crate::dialect::{Dialect, OldVersion};
use crate::source::{FileId, Sources};
use crate::upgrade::Upgrade;
use crate::upgrade::change::Change;

/// The most characters of the old text in a row; longer ones push their column aside.
const WIDEST: usize = 40;

/// A row: a construct as often as it becomes the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The file.
    pub file: FileId,
    /// The line of the first one, from 1.
    pub line: usize,
    /// The old text in short.
    pub was: String,
    /// The new text in short, or the question of a decision.
    pub becomes: String,
    /// The number of them.
    pub count: usize,
    /// Whether a person has to decide.
    pub is_decision: bool,
}

impl Upgrade {
    /// The rows of the list, in the order of the files and of their text.
    pub fn rows(&self, sources: &Sources) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for change in self.changes.iter().filter(|change| !change.was.is_empty()) {
            let Change { span, was, becomes, decision, .. } = change;
            let is_decision = decision.is_some();
            let same = |row: &&mut Row| {
                row.file == span.file
                    && row.was == *was
                    && row.becomes == *becomes
                    && row.is_decision == is_decision
                    && !is_decision
            };
            match rows.iter_mut().find(same) {
                Some(row) => row.count += 1,
                None => rows.push(Row {
                    file: span.file,
                    line: sources.position(*span).line,
                    was: was.clone(),
                    becomes: becomes.clone(),
                    count: 1,
                    is_decision,
                }),
            }
        }
        rows
    }

    /// The list as text, ending in a line break.
    ///
    /// ```text
    /// old.vcl is VCL 2 (no `vcl 4.1;`): 2 constructs to change, none needs a decision
    ///  17  req.request (twice)  → req.method
    ///  21  return (lookup)      → return (hash)
    /// ```
    pub fn list(&self, sources: &Sources) -> String {
        let mut out = String::new();
        let Some((main, file)) = sources.files().next() else { return out };
        let rows = self.rows(sources);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{} is {}", file.name(), self.summary(&rows));
        let shown: Vec<String> = rows.iter().map(was_column).collect();
        let wide = shown.iter().map(|was| was.chars().count()).filter(|&width| width <= WIDEST);
        let width = wide.max().unwrap_or_default();
        let mut file = main;
        for (row, was) in rows.iter().zip(&shown) {
            if row.file != file {
                let _ = writeln!(out, "in {}:", sources.file(row.file).name());
                file = row.file;
            }
            let mark = if row.is_decision { "? decide:" } else { "→" };
            let _ = writeln!(out, "{:>3}  {was:width$}  {mark} {}", row.line, row.becomes);
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        out
    }

    fn summary(&self, rows: &[Row]) -> String {
        if self.dialect != Dialect::Old {
            return match self.changes.is_empty() {
                true => format!("{}: nothing to change", self.dialect),
                false => "VCL 4.1 without its version, which is added".to_owned(),
            };
        }
        let version = match self.version {
            Some(OldVersion::V2) => "VCL 2",
            Some(OldVersion::V3) => "VCL 3",
            None => "VCL 2 or 3",
        };
        let constructs = match rows.len() {
            1 => "1 construct".to_owned(),
            count => format!("{count} constructs"),
        };
        let decisions = match rows.iter().filter(|row| row.is_decision).count() {
            0 => "none needs a decision".to_owned(),
            1 => "1 needs a decision".to_owned(),
            count => format!("{count} need a decision"),
        };
        format!("{version} (no `vcl 4.1;`): {constructs} to change, {decisions}")
    }
}

fn was_column(row: &Row) -> String {
    match row.count {
        1 => row.was.clone(),
        2 => format!("{} (twice)", row.was),
        count => format!("{} ({count} times)", row.was),
    }
}
