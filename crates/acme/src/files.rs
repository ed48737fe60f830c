//! Files of the state directory. A file is either its old or its new content, also after a crash or on a full disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::Fault;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The end of the names of files that are being written.
const UNFINISHED: &str = ".unfinished";

/// Makes a directory that only this user may enter. One that is there must already be so.
pub(crate) fn make_directory(path: &Path) -> Result<(), Fault> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| Fault::writing(path, &error))?;
    check_directory(path)
}

/// Checks that only this user may enter a directory, if it is there.
pub(crate) fn check_directory(path: &Path) -> Result<(), Fault> {
    let mode = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Fault::reading(path, &error)),
    };
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(Fault::OpenDirectory(path.to_owned(), mode)),
    }
}

/// The text of a file, `None` if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Fault> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Fault::reading(path, &error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| Fault::reading(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Fault::BadFile(path.to_owned(), format!("it has more than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| Fault::BadFile(path.to_owned(), "it is not text".to_owned()))
}

/// Replaces a file by one that only this user may read: writes it beside, flushes it to the disk, and renames it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let beside = beside(path);
    let written = write_through(&beside, path, text);
    if written.is_err() {
        remove(&beside);
    }
    written.map_err(|error| Fault::writing(path, &error))
}

fn write_through(beside: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // Without this, a crash could lose the rename.
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// A name that no other process or thread uses, in the same directory.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}{UNFINISHED}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) {
    _ = fs::remove_file(path);
}

/// Removes the files of a directory that crashed processes left unfinished, or that `is_over` says are.
pub(crate) fn clean(directory: &Path, is_over: impl Fn(&Path) -> bool) {
    let unfinished = |path: &Path| {
        let is_old = || fs::metadata(path).and_then(|data| data.modified()).ok()?.elapsed().ok();
        path.to_string_lossy().ends_with(UNFINISHED) && is_old().is_some_and(|age| age.as_secs() > 3600)
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_file() && (unfinished(&path) || is_over(&path)) {
            remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::TempDir;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).expect("a directory").count()
    }

    #[test]
    fn files_and_directories_are_for_this_user_only() {
        let dir = TempDir::new();
        let state = dir.join("a/state");
        make_directory(&state).expect("a directory");
        let file = state.join("file");
        write(&file, "one").expect("written");
        write(&file, "two").expect("written");
        assert_eq!((mode(&state), mode(&file)), (0o700, 0o600));
        assert_eq!(read(&file), Ok(Some("two".to_owned())));
        assert_eq!(count(&state), 1);
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("permissions");
        let fault = make_directory(&state).expect_err("an open directory");
        assert_eq!(fault, Fault::OpenDirectory(state.clone(), 0o755));
        assert!(fault.to_string().contains("chmod 700"), "{fault}");
    }

    #[test]
    fn a_full_disk_loses_nothing_and_is_named() {
        let Some(disk) = TempDir::with_room_for(64 << 10) else { return };
        fs::set_permissions(disk.path(), fs::Permissions::from_mode(0o700)).expect("permissions");
        let file = disk.join("file");
        write(&file, "old").expect("written");
        let fault = write(&file, &"x".repeat(1 << 20)).expect_err("more than fits");
        assert_eq!(fault, Fault::DiskFull(file.clone()));
        assert_eq!(read(&file), Ok(Some("old".to_owned())));
        assert_eq!(count(disk.path()), 1);
    }

    #[test]
    fn a_file_that_is_too_large_or_no_text_is_named() {
        let dir = TempDir::new();
        assert_eq!(read(&dir.join("none")), Ok(None));
        fs::write(dir.join("large"), vec![b'x'; (MAX_BYTES + 1) as usize]).expect("written");
        fs::write(dir.join("binary"), [0xff, 0xfe]).expect("written");
        for name in ["large", "binary"] {
            assert!(matches!(read(&dir.join(name)), Err(Fault::BadFile(..))), "{name}");
        }
    }

    #[test]
    fn only_old_unfinished_files_are_removed() {
        let dir = TempDir::new();
        for name in ["kept", "over", "x.1-1.unfinished", "y.1-2.unfinished"] {
            fs::write(dir.join(name), "").expect("written");
        }
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
        let old = File::options().write(true).open(dir.join("x.1-1.unfinished")).expect("a file");
        old.set_modified(long_ago).expect("a time");
        clean(dir.path(), |path| path.ends_with("over"));
        assert!(dir.join("kept").exists() && dir.join("y.1-2.unfinished").exists());
        assert_eq!(count(dir.path()), 2);
    }
}
