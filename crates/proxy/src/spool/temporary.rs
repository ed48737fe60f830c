//! Files without a name, for the parts of bodies that do not stay in memory.

use super::block::Block;
use super::space::SpoolDisk;
use rustix::fs::{Mode, OFlags, open, unlink};
use rustix::io::Errno;
use sandarac_message::OpenFile;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A file that belongs to one body. Bytes are added at its end only, and never written again, because the system may still have
/// to send them. It is freed when the last range of it is dropped.
pub(super) struct TemporaryFile {
    file: Option<Arc<OpenFile>>,
    pub(super) disk: SpoolDisk,
}

impl TemporaryFile {
    /// No file yet.
    pub(super) fn new(disk: SpoolDisk) -> TemporaryFile {
        TemporaryFile { file: None, disk }
    }

    pub(super) fn file(&self) -> Option<&Arc<OpenFile>> {
        self.file.as_ref()
    }

    pub(super) fn opened(&mut self, file: Arc<OpenFile>) {
        self.file = Some(file);
    }
}

impl Drop for TemporaryFile {
    /// The last reference frees the blocks of the file, which may take a while.
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            sandarac_net::drop_off_core(file);
        }
    }
}

/// Writes `block` at `at` to `file`, or to a new one in `directory`. MUST NOT be called on a core.
pub(super) fn write(
    file: Option<Arc<OpenFile>>,
    directory: &Path,
    block: &Block,
    at: u64,
) -> io::Result<Arc<OpenFile>> {
    let file = match file {
        Some(file) => file,
        None => Arc::new(create(directory)?.into()),
    };
    file.write_all_at(block.bytes(), at)?;
    Ok(file)
}

/// An empty file that only this process can open.
fn create(directory: &Path) -> io::Result<File> {
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    match open(directory, flags | OFlags::TMPFILE | OFlags::EXCL, mode) {
        // The file system, or the system, does not know files without a name.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {}
        opened => return Ok(opened?.into()),
    }
    let name = format!("sandarac-{:016x}", RandomState::new().hash_one(std::process::id()));
    let path = directory.join(name);
    let file = open(&path, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)?;
    unlink(&path)?;
    Ok(file.into())
}
