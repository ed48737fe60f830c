//! The choice of the file that answers a request: the names that are tried, index files, compressed
//! neighbours.

use super::name::{file_path, is_script};
use super::representation::{Coding, Found, Means, Representation};
use super::tree::{Absent, Node, Tree};
use crate::report::file_refusal::FileRefusal;
use rustix::fs::Stat;
use sandarac_policy::FileName;
use std::sync::Arc;

/// How much older than its file a compressed one may be, in seconds. Copying a tree writes its files in any
/// order.
const OLDER: i64 = 60;

/// What answers requests for one path.
pub(super) enum Resolution {
    /// A file. The first is not encoded; the others are smaller, in a coding, the smallest first.
    File(Vec<Arc<Representation>>),
    /// A redirect to the same path with a slash.
    WithSlash,
    /// A list of this directory.
    Listing(Arc<Tree>, Vec<u8>),
    /// Nothing.
    Nothing(FileRefusal),
}

impl Resolution {
    /// Descriptors that it holds.
    pub(super) fn descriptors(&self) -> usize {
        self.files().iter().filter(|file| file.is_open()).count()
    }

    /// Bytes of memory that it holds.
    pub(super) fn held(&self) -> usize {
        size_of::<Resolution>() + self.files().iter().map(|file| file.held()).sum::<usize>()
    }

    fn files(&self) -> &[Arc<Representation>] {
        match self {
            Resolution::File(files) => files,
            Resolution::WithSlash | Resolution::Listing(..) | Resolution::Nothing(_) => &[],
        }
    }
}

/// A path, and what its response depends on.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The names that are tried.
    pub(super) names: &'a [FileName],
    /// The path as routes see it.
    pub(super) path: &'a [u8],
    /// The earlier answer, whose open files are used again if they are still the same.
    pub(super) known: Option<&'a Resolution>,
    pub(super) means: Means<'a>,
}

/// Finds what answers a path.
///
/// # Errors
/// [`Absent::Waits`] on a core if the answer may take a while; [`Absent::Refused`] if the failure is not to
/// be remembered.
pub(super) fn resolve(asked: Asked<'_>) -> Result<Resolution, Absent> {
    let path = match file_path(asked.path) {
        Ok(path) => path,
        Err(refusal) => return Ok(Resolution::Nothing(refusal)),
    };
    let rule = &asked.means.tree.rule;
    let mut refusal = FileRefusal::NotFound;
    for template in asked.names {
        let name = template.fill(&path);
        let is_directory_name = name.last() == Some(&b'/');
        let node = match asked.means.tree.look(&name, asked.means.on) {
            Err(Absent::Refused(
                why @ (FileRefusal::Denied
                | FileRefusal::Link
                | FileRefusal::NotRegular
                | FileRefusal::Script),
            )) => {
                return Ok(Resolution::Nothing(why));
            }
            looked => looked?,
        };
        match node {
            None => {}
            // `file.html/` is not `file.html`.
            Some(Node::File(..)) if is_directory_name => {}
            Some(Node::File(..)) if is_script(&name) => return Ok(Resolution::Nothing(FileRefusal::Script)),
            Some(Node::File(file, stat)) => return asked.file(&name, Found { file, stat, coding: None }),
            Some(Node::Directory) => {
                refusal = FileRefusal::NoIndex;
                let lacks_slash = template.is_path() && !is_directory_name;
                for index in &rule.index {
                    let name = [&name, &b"/"[..], index.as_bytes()].concat();
                    match asked.means.tree.look(&name, asked.means.on)? {
                        Some(Node::File(..)) if lacks_slash => return Ok(Resolution::WithSlash),
                        Some(Node::File(..)) if is_script(&name) => {
                            return Ok(Resolution::Nothing(FileRefusal::Script));
                        }
                        Some(Node::File(file, stat)) => {
                            return asked.file(&name, Found { file, stat, coding: None });
                        }
                        Some(Node::Directory) | None => {}
                    }
                }
                if rule.listing {
                    return Ok(match lacks_slash {
                        true => Resolution::WithSlash,
                        false => Resolution::Listing(asked.means.tree.clone(), name),
                    });
                }
            }
        }
    }
    Ok(Resolution::Nothing(refusal))
}

impl Asked<'_> {
    /// The file called `name`, with its compressed neighbours.
    fn file(&self, name: &[u8], plain: Found) -> Result<Resolution, Absent> {
        let mut neighbours = Vec::new();
        if self.means.tree.rule.precompressed {
            for coding in Coding::ALL {
                match self.means.tree.look(&[name, coding.ending()].concat(), self.means.on) {
                    Ok(Some(Node::File(file, stat))) if is_usable(&stat, &plain.stat) => {
                        neighbours.push(Found { file, stat, coding: Some(coding) });
                    }
                    Err(Absent::Waits) => return Err(Absent::Waits),
                    Ok(_) | Err(Absent::Refused(_)) => {}
                }
            }
        }
        neighbours.sort_by_key(|found| found.stat.st_size);
        let varies = !neighbours.is_empty();
        let known = self.known.map_or(&[][..], Resolution::files);
        let ready = |found: Found| found.ready(&self.means, name, varies, known);
        std::iter::once(plain).chain(neighbours).map(ready).collect::<Result<_, _>>().map(Resolution::File)
    }
}

/// Whether a compressed file can stand for its `plain` one.
fn is_usable(compressed: &Stat, plain: &Stat) -> bool {
    compressed.st_size > 0
        && compressed.st_size < plain.st_size
        && compressed.st_mtime + OLDER >= plain.st_mtime
}
