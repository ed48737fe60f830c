//! The output of subcommands: JSON, and columns of text.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a value to standard output as a line of JSON.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Aligned columns: each as wide as its widest cell, the first `right` of them aligned right. The last cell of a row
/// may be wider than its column.
pub(super) fn table(rows: &[Vec<String>], right: usize) -> String {
    let width = |text: &String| text.chars().count();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let column = |at: usize| {
        rows.iter().filter(move |row| row.len() > at + 1 || at < right).filter_map(move |row| row.get(at))
    };
    let widths: Vec<_> = (0..columns).map(|at| column(at).map(width).max().unwrap_or_default()).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at < right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
