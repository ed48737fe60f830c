//! A directory tree, and what is below it. Nothing outside is ever opened.

use super::name::{is_script, relative};
use super::walk::{READ, walk};
use crate::report::file_refusal::FileRefusal;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, open, openat2, readlink, statat,
};
use rustix::io::Errno;
use sandarac_policy::{FileRule, Symlinks};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// File systems whose answers come from another machine or another process: NFS, SMB and CIFS, 9P, Ceph, AFS,
/// Coda, FUSE, Lustre, GFS2, OCFS2 and autofs.
const REMOTE: [u32; 13] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x0102_1997,
    0x00C3_6400,
    0x5346_414F,
    0x7375_7245,
    0x6573_5546,
    0x0BD0_0BD0,
    0x0116_1970,
    0x7461_636F,
    0x0187,
];

/// How often a name is looked up again because directories were moved meanwhile.
const ATTEMPTS: usize = 8;

/// The thread that asks the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    /// A core: nothing may wait. Whatever might ends with [`Absent::Waits`].
    Core,
    /// A thread for this.
    Thread,
}

/// Why there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// The answer may take a while: ask on another thread.
    Waits,
    /// It is refused.
    Refused(FileRefusal),
}

/// What stands at a name.
pub(super) enum Node {
    File(File, Stat),
    Directory,
}

/// The root of a directory tree, held open.
pub(super) struct Tree {
    pub(super) rule: Arc<FileRule>,
    pub(super) root: OwnedFd,
    /// The device and the number of the root.
    id: (u64, u64),
    /// Whether the file system is of this machine.
    pub(super) is_local: bool,
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Tree {
    /// Opens the root. On a core, only what was open `before` can be confirmed.
    pub(super) fn open(
        rule: &Arc<FileRule>,
        before: Option<&Arc<Tree>>,
        on: On,
    ) -> Result<Arc<Tree>, Absent> {
        let before = before.filter(|before| Arc::ptr_eq(&before.rule, rule));
        let root = match on {
            On::Core if before.is_none_or(|before| !before.is_local) => return Err(Absent::Waits),
            On::Core => openat2(CWD, &rule.root, DIRECTORY, Mode::empty(), ResolveFlags::CACHED)
                .map_err(|_| Absent::Waits)?,
            On::Thread => open(&rule.root, DIRECTORY, Mode::empty()).map_err(|errno| match errno {
                Errno::MFILE | Errno::NFILE => Absent::Refused(FileRefusal::NoDescriptors),
                _ => Absent::Refused(FileRefusal::NoTree),
            })?,
        };
        let id = fstat(&root).map(|stat| id(&stat)).map_err(|_| Absent::Refused(FileRefusal::NoTree))?;
        match before.filter(|before| before.id == id) {
            Some(before) => Ok(before.clone()),
            None if on == On::Core => Err(Absent::Waits),
            None => Ok(Arc::new(Tree { rule: rule.clone(), is_local: is_local(&root), root, id })),
        }
    }

    /// What stands at `name`; `None` if there is nothing.
    pub(super) fn look(&self, name: &[u8], on: On) -> Result<Option<Node>, Absent> {
        let name = relative(name);
        let opened = match self.open_beneath(&name, READ, on) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL) => return Ok(None),
            Err(Errno::AGAIN) => return Err(Absent::Waits),
            // A directory that may be entered and not read.
            Err(Errno::ACCESS) if self.is_directory(&name) => return Ok(Some(Node::Directory)),
            Err(errno) => return Err(Absent::Refused(refusal(errno))),
        };
        let stat = fstat(&opened).map_err(|_| Absent::Refused(FileRefusal::Unreadable))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => match self.refusal_of_real_name(&name, &opened) {
                Some(why) => Err(Absent::Refused(why)),
                None => Ok(Some(Node::File(File::from(opened), stat))),
            },
            FileType::Directory => Ok(Some(Node::Directory)),
            _ => Err(Absent::Refused(FileRefusal::NotRegular)),
        }
    }

    /// Opens what is below the root, with these flags. Fails with `AGAIN` if that may wait.
    pub(super) fn open_beneath(&self, name: &[u8], flags: OFlags, on: On) -> Result<OwnedFd, Errno> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if self.rule.symlinks == Symlinks::Never {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        if on == On::Core {
            // Another file system may be of another machine.
            resolve |= ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
            return openat2(&self.root, name, flags, Mode::empty(), resolve).map_err(|errno| match errno {
                Errno::XDEV | Errno::LOOP | Errno::NOSYS | Errno::INVAL => Errno::AGAIN,
                errno => errno,
            });
        }
        for _ in 0..ATTEMPTS {
            match openat2(&self.root, name, flags, Mode::empty(), resolve) {
                // A directory was moved meanwhile.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A link that leads out, or to an absolute path, which may be inside; or a system without
                // this call.
                Err(Errno::XDEV | Errno::NOSYS) => break,
                opened => return opened,
            }
        }
        walk(&self.root, &self.rule, name, flags)
    }

    /// Why an open file may not be sent under `name`: links lead to a program of PHP, whose own name the
    /// caller judges. A link whose target is unknown leads nowhere.
    fn refusal_of_real_name(&self, name: &[u8], opened: &OwnedFd) -> Option<FileRefusal> {
        if self.rule.symlinks == Symlinks::Never || is_script(name) {
            return None;
        }
        if let Some(real) = real_name(opened) {
            return is_script(&real).then_some(FileRefusal::Script);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let without_links = openat2(&self.root, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
        without_links.is_err().then_some(FileRefusal::Link)
    }

    /// Whether `name` is a directory, links not followed. Only for one that could not be opened.
    fn is_directory(&self, name: &[u8]) -> bool {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
        openat2(&self.root, name, DIRECTORY, Mode::empty(), resolve).is_ok()
    }

    /// Whether sending this file may wait for a disk or another machine.
    pub(super) fn may_wait(&self, stat: &Stat, file: &File) -> bool {
        let is_local = if stat.st_dev == self.id.0 { self.is_local } else { is_local(file) };
        !is_local || knows_what_is_in_memory(file)
    }
}

/// The path of an open file without links, from memory; `None` where /proc is not mounted. That of a file
/// which was replaced since is the path at which it was.
fn real_name(opened: &OwnedFd) -> Option<Vec<u8>> {
    let path = readlink(format!("/proc/self/fd/{}", opened.as_raw_fd()), Vec::new()).ok()?.into_bytes();
    Some(path.strip_suffix(b" (deleted)").map_or_else(|| path.clone(), <[u8]>::to_vec))
}

/// Whether the system can tell what of the file is in memory. Where it cannot, on a local file system, memory
/// holds all.
fn knows_what_is_in_memory(file: &File) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let into = &mut [std::io::IoSliceMut::new(&mut [])];
    preadv2(file, into, 0, ReadWriteFlags::NOWAIT) != Err(Errno::OPNOTSUPP)
}

/// The device and the number of a file.
pub(super) fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn is_local(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|about| !REMOTE.contains(&(about.f_type as u32)))
}

/// The reason why a thread, which waits for what it asks, gets nothing.
pub(super) fn refused(absent: Absent) -> FileRefusal {
    match absent {
        Absent::Refused(refusal) => refusal,
        Absent::Waits => FileRefusal::Unreadable,
    }
}

/// The reason of a failure to open something.
pub(super) fn refusal(errno: Errno) -> FileRefusal {
    match errno {
        Errno::ACCESS | Errno::PERM => FileRefusal::Denied,
        Errno::LOOP | Errno::XDEV => FileRefusal::Link,
        Errno::NXIO | Errno::NODEV => FileRefusal::NotRegular,
        Errno::MFILE | Errno::NFILE => FileRefusal::NoDescriptors,
        _ => FileRefusal::Unreadable,
    }
}

/// The state of a name in an open directory, links not followed.
pub(super) fn stat_in(directory: impl AsFd, name: &[u8]) -> Result<Stat, Errno> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}
