//! The difference between the old and the new text of a file, as a unified diff.

use std::fmt::Write;
use std::ops::Range;

use crate::diagnostic::Edit;
use crate::edits::apply_edits;
use crate::source::{FileId, SourceFile, Sources, Span};
use crate::upgrade::Upgrade;

/// The lines around a difference that are shown.
const CONTEXT: usize = 3;

/// Lines that differ.
struct Difference {
    /// The old lines, from 0.
    old: Range<usize>,
    /// The new lines, with their line breaks.
    new: Vec<String>,
}

impl Upgrade {
    /// The unified diff of a file; empty if it stays.
    pub fn diff(&self, sources: &Sources, file: FileId) -> String {
        let Some(new) = self.files.iter().find(|new| new.id == file) else { return String::new() };
        let source = sources.file(file);
        let old = lines(source.text());
        let differences = differences(source, file, &old, &new.edits);
        let mut out = String::new();
        if differences.is_empty() {
            return out;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "--- {0}\n+++ {0}", source.name());
        let mut added = 0_isize;
        let mut rest = &*differences;
        while !rest.is_empty() {
            let is_far = |pair: &[Difference]| pair[1].old.start > pair[0].old.end + 2 * CONTEXT;
            let count = rest.windows(2).position(is_far).map_or(rest.len(), |at| at + 1);
            let (hunk, others) = rest.split_at(count);
            let first = hunk[0].old.start.saturating_sub(CONTEXT);
            let last = (hunk[count - 1].old.end + CONTEXT).min(old.len());
            let growth: isize =
                hunk.iter().map(|found| found.new.len() as isize - found.old.len() as isize).sum();
            let length = last - first;
            let new_start = first.saturating_add_signed(added);
            let new_length = length.saturating_add_signed(growth);
            let _ = writeln!(
                out,
                "@@ -{},{length} +{},{new_length} @@",
                first + usize::from(length > 0),
                new_start + usize::from(new_length > 0)
            );
            let mut at = first;
            for found in hunk {
                old[at..found.old.start].iter().for_each(|line| put(&mut out, ' ', line));
                old[found.old.clone()].iter().for_each(|line| put(&mut out, '-', line));
                found.new.iter().for_each(|line| put(&mut out, '+', line));
                at = found.old.end;
            }
            old[at..last].iter().for_each(|line| put(&mut out, ' ', line));
            added += growth;
            rest = others;
        }
        out
    }
}

fn put(out: &mut String, mark: char, line: &str) {
    out.push(mark);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

/// The lines of a text with their line breaks.
fn lines(text: &[u8]) -> Vec<String> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// The lines that differ, in order; those that follow each other directly are of one difference.
fn differences(source: &SourceFile, file: FileId, old: &[String], edits: &[Edit]) -> Vec<Difference> {
    let mut groups: Vec<(Range<usize>, Vec<Edit>)> = Vec::new();
    for edit in edits {
        let first = source.position(edit.span.start).line - 1;
        let last = source.position(edit.span.end).line;
        match groups.last_mut() {
            Some((lines, group)) if first < lines.end => {
                lines.end = lines.end.max(last);
                group.push(edit.clone());
            }
            _ => groups.push((first..last, vec![edit.clone()])),
        }
    }
    let all = groups.into_iter().filter_map(|(range, group)| difference(source, file, old, range, &group));
    let mut joined: Vec<Difference> = Vec::new();
    for found in all {
        match joined.last_mut() {
            Some(last) if last.old.end == found.old.start => {
                last.old.end = found.old.end;
                last.new.extend(found.new);
            }
            _ => joined.push(found),
        }
    }
    joined
}

fn difference(
    source: &SourceFile,
    file: FileId,
    old: &[String],
    range: Range<usize>,
    edits: &[Edit],
) -> Option<Difference> {
    let range = range.start.min(old.len())..range.end.min(old.len());
    let first = edits.first()?.span.start;
    let start = source.line_range(first).start;
    let start_of = |edit: &Edit| edit.span.start as usize - start;
    let length = edits.last()?.span.end as usize;
    let end = source.text()[length.min(source.text().len())..].iter().position(|&byte| byte == b'\n');
    let end = end.map_or(source.text().len(), |at| length + at + 1);
    let moved: Vec<Edit> = edits
        .iter()
        .map(|edit| {
            let from = start_of(edit) as u32;
            let to = from + (edit.span.end - edit.span.start);
            Edit { span: Span::new(file, from, to), text: edit.text.clone() }
        })
        .collect();
    let text = apply_edits(source.text().get(start..end)?, &moved).ok()?;
    let mut new = lines(&text);
    let mut old_range = range.clone();
    while old_range.start < old_range.end && new.last() == Some(&old[old_range.end - 1]) {
        new.pop();
        old_range.end -= 1;
    }
    let same = new.iter().zip(&old[old_range.clone()]).take_while(|(new, old)| new == old).count();
    new.drain(..same);
    old_range.start += same;
    (!new.is_empty() || !old_range.is_empty()).then_some(Difference { old: old_range, new })
}
