//! Directories that go when their owner goes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::left_out::unless_left_out;

/// A fresh directory, removed with all it holds when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    is_mounted: bool,
}

impl TempDir {
    /// A new, empty directory.
    #[allow(clippy::new_without_default)]
    pub fn new() -> TempDir {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sandarac-test-{}-{serial}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        TempDir { path, is_mounted: false }
    }

    /// A new, empty directory on a file system of its own with room for `bytes`. `None` where such tests are left
    /// out.
    pub fn with_room_for(bytes: u64) -> Option<TempDir> {
        let mut dir = TempDir::new();
        let options = std::ffi::CString::new(format!("size={bytes}")).expect("there is no NUL");
        unless_left_out(mount("tmpfs", &dir.path, "tmpfs", MountFlags::empty(), &*options))?;
        dir.is_mounted = true;
        Some(dir)
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` in the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = unmount(&self.path, UnmountFlags::DETACH);
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
