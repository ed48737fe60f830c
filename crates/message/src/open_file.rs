//! An open file that is shared by all who send parts of it.

use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};

/// An open file, and what has to be kept as long as it is open: a counted place, for example.
pub struct OpenFile {
    file: File,
    _kept: Option<Box<dyn Send + Sync>>,
}

impl OpenFile {
    /// `file`, with which `kept` is dropped.
    pub fn with(file: File, kept: impl Send + Sync + 'static) -> OpenFile {
        OpenFile { file, _kept: Some(Box::new(kept)) }
    }
}

impl From<File> for OpenFile {
    fn from(file: File) -> OpenFile {
        OpenFile { file, _kept: None }
    }
}

impl Deref for OpenFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_kept_lives_as_long_as_the_file_is_open() {
        let kept = Arc::new(());
        let file = Arc::new(OpenFile::with(File::open("/dev/null").unwrap(), kept.clone()));
        let other = file.clone();
        drop(file);
        assert_eq!(Arc::strong_count(&kept), 2);
        drop(other);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
