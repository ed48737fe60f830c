//! The site of files: its tree, and what a file holds.

use std::fs;
use std::path::Path;

use crate::page::Page;
use crate::pool::Pool;
use crate::random::mix;

/// How many files there are.
pub(crate) const FILES: u64 = 60;

/// Writes all files into a new directory.
pub(crate) fn write_all(directory: &Path) {
    fs::create_dir_all(directory.join("f")).expect("a directory can be made");
    for number in 0..FILES {
        let page = page(number);
        fs::write(directory.join(&target(number)[1..]), page.bytes(0, usize::MAX))
            .expect("a file can be written");
    }
}

/// The table of their route.
pub(crate) fn table(directory: &Path) -> String {
    format!("[[route]]\nmatch = \"{}\"\nfiles = \"{}\"\n\n", Pool::Files.host(), directory.display())
}

pub(crate) fn target(number: u64) -> String {
    format!("/f/{number}.bin")
}

/// What file `number` holds.
pub(crate) fn page(number: u64) -> Page {
    let random = mix(number);
    let length = match number % 6 {
        0 => random % 200,
        1 => random % 5_000,
        2 | 3 => random % 60_000,
        4 => random % 500_000,
        _ => random % 4_000_000,
    };
    Page {
        place: format!("{}{}", Pool::Files.host(), target(number)),
        version: 1,
        length,
        owner: "-".to_owned(),
    }
}
