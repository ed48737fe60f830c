//! A file system that does not answer.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::left_out::unless_left_out;

/// A file system, as one of the network is whose server has gone: whoever asks it anything waits, until this is dropped.
pub struct HungFileSystem {
    at: PathBuf,
    /// Whoever holds it is asked, by FUSE, and says nothing.
    _asked: File,
}

impl HungFileSystem {
    /// Mounts it on an empty directory. `None` where such tests are left out.
    pub fn on(directory: &Path) -> Option<HungFileSystem> {
        std::fs::create_dir_all(directory).expect("a directory can be made");
        let asked = unless_left_out(OpenOptions::new().read(true).write(true).open("/dev/fuse"))?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0\0", asked.as_raw_fd());
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).expect("one that ends in 0");
        unless_left_out(mount("hung", directory, "fuse", MountFlags::empty(), options))?;
        Some(HungFileSystem { at: directory.to_owned(), _asked: asked })
    }
}

impl Drop for HungFileSystem {
    fn drop(&mut self) {
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}
