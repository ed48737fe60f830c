//! The programs of an application below a directory tree. They are found as files are, so that a request runs
//! only what the route would serve.

use super::name::relative;
use super::tree::{On, Tree, refusal, refused};
use crate::report::file_refusal::FileRefusal;
use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;
use sandarac_policy::FileRule;
use std::path::Path;
use std::sync::Arc;

/// The programs below a directory.
pub(crate) struct Programs(Arc<Tree>);

/// Programs are read by the application; this process need not be able to.
const SEEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

impl Programs {
    /// Those below `root`, to which links lead as `rule` allows.
    pub(crate) fn below(root: &Path, rule: &Arc<FileRule>) -> Result<Programs, FileRefusal> {
        let rule = match rule.root == root {
            true => rule.clone(),
            false => Arc::new(FileRule { root: root.to_owned(), ..FileRule::clone(rule) }),
        };
        Tree::open(&rule, None, On::Thread).map(Programs).map_err(refused)
    }

    /// What stands at `name`; `None` if there is nothing.
    pub(crate) fn look(&self, name: &[u8]) -> Result<Option<FileType>, FileRefusal> {
        match self.0.open_beneath(&relative(name), SEEN, On::Thread) {
            Ok(found) => match fstat(found) {
                Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
                Err(_) => Err(FileRefusal::Unreadable),
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL) => Ok(None),
            Err(errno) => Err(refusal(errno)),
        }
    }
}
