//! Opening a name step by step, without following links blindly: for links to absolute paths inside a tree, for links from one
//! tree to another, and for systems without `openat2`.

use super::name::parts;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat, readlinkat};
use rustix::io::Errno;
use sandarac_policy::{FileRule, Symlinks};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The most links on the way to one file, as for the kernel.
const MAX_LINKS: usize = 40;

/// The most steps to one file: each link may add many.
const MAX_STEPS: usize = 4096;

/// The flags to open what is served. Opening a FIFO or a device does not wait.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens `name` with `flags`, relative to the `root` of `rule`, which is open. Every step opens one name in a directory
/// that is held open, and no step follows a link, so that whatever others rename meanwhile, nothing outside the trees is
/// reached.
pub(super) fn walk(root: &OwnedFd, rule: &FileRule, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut at = Position { root, rule, flags, within: rule.root.clone(), base: None, stack: Vec::new() };
    let mut ahead: VecDeque<Vec<u8>> = parts(name).map(<[u8]>::to_vec).collect();
    let mut links = 0;
    for _ in 0..MAX_STEPS {
        let Some(part) = ahead.pop_front() else { return at.open() };
        if part == b"." {
            continue;
        }
        if part == b".." {
            if at.stack.pop().is_none() {
                let above = real(&at.within)?.parent().map(Path::to_owned).ok_or(Errno::XDEV)?;
                at.enter(above, &mut ahead)?;
            }
            continue;
        }
        let found = openat(at.directory(), &part[..], STEP, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&found)?.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS || rule.symlinks == Symlinks::Never {
                    return Err(Errno::LOOP);
                }
                let target = readlinkat(&found, "", Vec::new())?;
                let target = target.to_bytes();
                for part in parts(target).collect::<Vec<_>>().into_iter().rev() {
                    ahead.push_front(part.to_vec());
                }
                if target.first() == Some(&b'/') {
                    at.enter(PathBuf::from("/"), &mut ahead)?;
                }
            }
            FileType::Directory => at.stack.push((part, found)),
            _ if ahead.is_empty() => return at.open_file(&part),
            _ => return Err(Errno::NOTDIR),
        }
    }
    Err(Errno::LOOP)
}

/// A directory on the way.
struct Position<'t> {
    /// The root of the first tree.
    root: &'t OwnedFd,
    rule: &'t FileRule,
    /// How the end of the way is opened.
    flags: OFlags,
    /// The path of the tree that it is in.
    within: PathBuf,
    /// The root of that tree, unless it is the first.
    base: Option<OwnedFd>,
    /// The directories below the root, with their names.
    stack: Vec<(Vec<u8>, OwnedFd)>,
}

impl Position<'_> {
    fn directory(&self) -> &OwnedFd {
        self.stack.last().map_or_else(|| self.base.as_ref().unwrap_or(self.root), |(_, last)| last)
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        openat(self.directory(), ".", self.flags, Mode::empty())
    }

    fn open_file(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        openat(self.directory(), name, self.flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// Goes on at the root of the tree in which `from` followed by `ahead` lies, and keeps in `ahead` what is below that root.
    fn enter(&mut self, from: PathBuf, ahead: &mut VecDeque<Vec<u8>>) -> Result<(), Errno> {
        let mut path = from;
        for part in ahead.iter() {
            match &part[..] {
                b"." => {}
                b".." => _ = path.pop(),
                part => path.push(OsStr::from_bytes(part)),
            }
        }
        let rule = self.rule;
        for root in std::iter::once(&rule.root).chain(&rule.also) {
            let Some(below) = below(&path, root) else { continue };
            *ahead = below;
            self.stack.clear();
            self.within.clone_from(root);
            self.base = match *root == rule.root {
                true => None,
                false => Some(open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?),
            };
            return Ok(());
        }
        Err(Errno::XDEV)
    }
}

/// The parts of `path` below `root`, by the name of the root as configured or by its real one.
fn below(path: &Path, root: &Path) -> Option<VecDeque<Vec<u8>>> {
    let below = path.strip_prefix(root).ok().or_else(|| path.strip_prefix(real(root).ok()?).ok())?;
    let names = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_bytes().to_vec()),
        _ => None,
    });
    Some(names.collect())
}

fn real(path: &Path) -> Result<PathBuf, Errno> {
    path.canonicalize().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT))
}
