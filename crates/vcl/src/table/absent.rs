//! Modules that are known but not provided, read from `absent.txt`.

use std::sync::LazyLock;

use crate::table::rows;

/// The edition that a module is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// Free software.
    Free,
    /// The enterprise edition of Varnish Software.
    Enterprise,
}

/// A module that is known but not provided.
#[derive(Debug)]
pub struct AbsentModule {
    /// The name.
    pub name: &'static str,
    /// The edition.
    pub edition: Edition,
    /// The module in a few words.
    pub text: &'static str,
    /// A replacement, if there is one.
    pub replacement: Option<&'static str>,
}

/// The known module of this name that is not provided.
pub fn absent_module(name: &str) -> Option<&'static AbsentModule> {
    static ABSENT: LazyLock<Vec<AbsentModule>> =
        LazyLock::new(|| rows(include_str!("absent.txt")).map(absent_of_row).collect());
    ABSENT.iter().find(|row| row.name == name)
}

/// # Panics
/// If the row is not of the form that the head of the table describes.
fn absent_of_row(row: &'static str) -> AbsentModule {
    let columns: Vec<&'static str> = row.split('|').map(str::trim).collect();
    let &[name, edition, text, replacement] = columns.as_slice() else {
        panic!("not a row of the table: {row}")
    };
    let edition = match edition {
        "free" => Edition::Free,
        "enterprise" => Edition::Enterprise,
        _ => panic!("no edition: {row}"),
    };
    AbsentModule { name, edition, text, replacement: Some(replacement).filter(|text| !text.is_empty()) }
}
