//! The files of Unix sockets that the process has made.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sandarac_net::{Inherited, ListenAddress, Listener};

use super::listeners::is_at;

/// Device and inode. As long as a socket is open, no other file has those of its own.
pub(super) type FileIdentity = (u64, u64);

/// The identity of the file at a path, if there is one.
pub(super) fn identity(path: &Path) -> Option<FileIdentity> {
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The files of those of the sockets `bound` that were not passed to the process.
pub(super) fn socket_files(bound: &[Listener], inherited: &Inherited) -> HashMap<PathBuf, FileIdentity> {
    let made = bound.iter().filter_map(|listener| match &listener.address {
        ListenAddress::Unix(path, _) if !inherited.addresses().any(|passed| is_at(passed, path)) => {
            Some((path.clone(), identity(path)?))
        }
        _ => None,
    });
    made.collect()
}
