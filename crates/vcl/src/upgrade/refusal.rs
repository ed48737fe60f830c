//! The reasons for which a program is not upgraded.

use std::fmt;

use crate::edits::OverlappingEdits;

/// The reason why a program is not upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeRefusal {
    /// The program has mistakes, so that its meaning is not known; their number.
    Unreadable(usize),
    /// Two changes are about the same text.
    Overlap(OverlappingEdits),
    /// A file that is included twice would need two new texts; its name.
    SharedFile(String),
    /// The new text would have a mistake; its message and line.
    Output(String),
}

impl fmt::Display for UpgradeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpgradeRefusal::Unreadable(1) => {
                f.write_str("the program has a mistake, which has to be mended first")
            }
            UpgradeRefusal::Unreadable(count) => {
                write!(f, "the program has {count} mistakes, which have to be mended first")
            }
            UpgradeRefusal::Overlap(overlap) => write!(f, "the program cannot be upgraded: {overlap}"),
            UpgradeRefusal::SharedFile(name) => {
                write!(f, "the file `{name}` is included twice and would differ: include a copy in one place")
            }
            UpgradeRefusal::Output(message) => {
                write!(f, "the program cannot be upgraded: the new text would have a mistake: {message}")
            }
        }
    }
}

impl std::error::Error for UpgradeRefusal {}

impl From<OverlappingEdits> for UpgradeRefusal {
    fn from(overlap: OverlappingEdits) -> UpgradeRefusal {
        UpgradeRefusal::Overlap(overlap)
    }
}
