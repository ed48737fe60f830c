//! Directories for tests, removed when the test is over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A directory of one test.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    /// Makes a new, empty one.
    pub(crate) fn new() -> TestDir {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("sandarac-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        TestDir(path)
    }

    /// The path of something in it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
