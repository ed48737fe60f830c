//! Files of a directory tree, served by Sandarac itself.

mod disks;
mod fallbacks;
mod freshness;
mod http2;
mod links;
mod losses;
mod names;
mod not_found;
mod responses;
mod settings;

use std::fs;
use std::path::Path;

use sandarac_test_support::{Sandarac, TempDir};

use crate::sandarac;

/// A configuration with one core, a listener on a free port, and one route that serves the files below `root`.
fn site(root: &Path, keys: &str) -> String {
    format!(
        "threads = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[route]]\nfiles = {:?}\n{keys}\n",
        root.display().to_string()
    )
}

/// Sandarac with such a configuration, before a tree with these files.
fn serving(files: &[(&str, &str)], keys: &str) -> (Sandarac, TempDir) {
    let tree = tree(files);
    (sandarac().config(site(tree.path(), keys)).start(), tree)
}

/// A tree with these files.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let tree = TempDir::new();
    files.iter().for_each(|(name, content)| write(&tree, name, content));
    tree
}

/// Writes a file of the tree, in place.
fn write(tree: &TempDir, name: &str, content: &str) {
    let path = tree.join(name);
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory can be made");
    fs::write(path, content).expect("a file can be written");
}

/// Replaces a file of the tree at once.
fn replace(tree: &TempDir, name: &str, content: &str) {
    write(tree, ".new", content);
    fs::rename(tree.join(".new"), tree.join(name)).expect("a file can be renamed");
}
