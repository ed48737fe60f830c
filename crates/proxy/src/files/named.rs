//! Files that a response of a pool names, to be sent in place of its body.

use super::representation::{EditsOf, Means};
use super::resolve::{Asked, Resolution, resolve};
use super::tree::{On, Tree, refused};
use super::{FileFound, PATIENCE};
use crate::report::file_refusal::FileRefusal;
use sandarac_net::{Places, off_core, within};
use sandarac_policy::{Edits, FileRule, RequestParts};
use std::fs::canonicalize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A file that a response names.
pub(crate) struct NamedFile {
    /// The directory tree. Nothing outside of it is opened.
    pub(crate) rule: Arc<FileRule>,
    /// The edits of its response, and the host and the target that they may use.
    pub(crate) edits: Edits,
    pub(crate) host: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) name: FileAt,
}

/// Where a named file is.
pub(crate) enum FileAt {
    /// At this path below the root, in the form in which routes see paths.
    Below(Vec<u8>),
    /// At this absolute path of the file system, which must begin with that of the root.
    Absolute(Vec<u8>),
}

/// Why a named file is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The name leads out of the tree.
    Outside,
    /// There is no such file.
    Refused(FileRefusal),
}

impl NamedFile {
    /// Opens it, on another thread, with one of `places`.
    pub(crate) async fn open(self, places: Arc<Places>) -> Result<FileFound, NotSent> {
        let opened = within(PATIENCE, off_core(move || self.open_here(&places))).await;
        opened.ok_or(NotSent::Refused(FileRefusal::Late))?.ok_or(NotSent::Refused(FileRefusal::Unreadable))?
    }

    fn open_here(self, places: &Arc<Places>) -> Result<FileFound, NotSent> {
        let NamedFile { rule, edits, host, target, name } = self;
        let path = match name {
            FileAt::Below(path) => path,
            FileAt::Absolute(path) => below(&rule.root, &path).ok_or(NotSent::Outside)?,
        };
        let refuse = |absent| NotSent::Refused(refused(absent));
        let tree = Tree::open(&rule, None, On::Thread).map_err(refuse)?;
        let request = RequestParts { host: &host, target: &target, ..RequestParts::default() };
        let edits = EditsOf { edits: &edits, request };
        let means = Means { tree: &tree, edits, places, on: On::Thread };
        let asked = Asked { means, names: &tree.rule.names, path: &path, known: None };
        match resolve(asked).map_err(refuse)? {
            found @ Resolution::File(_) => Ok(FileFound(Arc::new(found))),
            Resolution::Nothing(why) => Err(NotSent::Refused(why)),
            Resolution::WithSlash | Resolution::Listing(..) => Err(NotSent::Refused(FileRefusal::NoIndex)),
        }
    }
}

/// The part of an absolute path that is below `root`, in the form in which routes see paths. The path may
/// begin with that of the root as it is configured, or as it is without symbolic links. `None` if it does
/// not, or has dot segments.
fn below(root: &Path, path: &[u8]) -> Option<Vec<u8>> {
    let rest = strip(root, path).or_else(|| strip(&canonicalize(root).ok()?, path))?;
    if rest.split(|&byte| byte == b'/').any(|part| matches!(part, b"." | b"..")) {
        return None;
    }
    let mut name = Vec::with_capacity(rest.len());
    for &byte in rest {
        // The path of a request has these encoded.
        if byte == b'%' { name.extend_from_slice(b"%25") } else { name.push(byte) }
    }
    Some(name)
}

/// What follows `root` in `path`, from a slash on.
fn strip<'p>(root: &Path, path: &'p [u8]) -> Option<&'p [u8]> {
    let root = root.as_os_str().as_bytes();
    let rest = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root))?;
    (rest.first() == Some(&b'/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_the_root_only_by_whole_parts_and_without_dots() {
        let below = |path: &str| below(Path::new("/nowhere/files"), path.as_bytes());
        assert_eq!(below("/nowhere/files/a/b c.bin").as_deref(), Some(&b"/a/b c.bin"[..]));
        assert_eq!(below("/nowhere/files/100%2F").as_deref(), Some(&b"/100%252F"[..]));
        for outside in [
            "",
            "a",
            "/nowhere/files",
            "/nowhere/files2/a",
            "/nowhere/files/../secret",
            "/nowhere/files/a/..",
            "/nowhere/files/./a",
            "/nowhere/../nowhere/files/a",
            "//nowhere/files/a",
            "/etc/passwd",
        ] {
            assert_eq!(below(outside), None, "{outside}");
        }
    }
}
