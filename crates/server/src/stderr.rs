//! Messages of the process on standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard error, if possible. It may be a pipe without a reader, or a file on a full disk:
/// `eprintln!` panics then, and ends the calling thread.
pub fn print_line(line: impl Display) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
