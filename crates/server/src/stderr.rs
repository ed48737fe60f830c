//! Lines of the process on standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard error, if that can be written. It may be a pipe that nobody reads any more, or a file on a disk
/// that is full: `eprintln!` panics there, and takes along whoever had something to say.
pub fn print_line(line: impl Display) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
