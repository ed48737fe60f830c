//! The files of Unix sockets created by the process.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open};
use sandarac_net::{Inherited, ListenAddress, Listener};

/// Device and inode. While a socket is open, no other file has the same.
pub(super) type FileIdentity = (u64, u64);

/// The identity of the file at a path, if there is one.
pub(super) fn identity(path: &Path) -> Option<FileIdentity> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Sets the permission bits of a socket's file.
///
/// # Errors
/// If another file, or a link, has replaced it: that file is left unchanged.
pub(super) fn set_mode(path: &Path, file: FileIdentity, mode: u32) -> io::Result<()> {
    let opened = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&opened)?;
    if (stat.st_dev, stat.st_ino) != file {
        return Err(io::Error::other("another file has taken its place"));
    }
    // A descriptor of this kind can be changed only through its link.
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    fs::set_permissions(link, fs::Permissions::from_mode(mode))
}

/// The files of the sockets in `bound` that were not passed to the process.
pub(super) fn socket_files(bound: &[Listener], inherited: &Inherited) -> HashMap<PathBuf, FileIdentity> {
    let made = bound.iter().filter_map(|listener| match &listener.address {
        ListenAddress::Unix(path, _) if !inherited.has(&listener.address) => {
            Some((path.clone(), identity(path)?))
        }
        _ => None,
    });
    made.collect()
}
