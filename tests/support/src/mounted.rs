//! A file system that can be taken away.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::left_out::unless_left_out;

/// A file system in memory, mounted on a directory until this is dropped. What is open in it stays usable.
pub struct MountedFileSystem {
    at: PathBuf,
}

impl MountedFileSystem {
    /// Mounts it, empty, over a directory. `None` where such tests are left out.
    pub fn on(directory: &Path) -> Option<MountedFileSystem> {
        std::fs::create_dir_all(directory).expect("a directory can be made");
        unless_left_out(mount("mounted", directory, "tmpfs", MountFlags::empty(), c"size=64m"))?;
        Some(MountedFileSystem { at: directory.to_owned() })
    }
}

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}
