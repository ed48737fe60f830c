//! The snapshot: the objects of a cache in a file, from the orderly end of a process to the start of the next.
//!
//! A process that reads the file removes it first: after a crash, objects would come back that have been purged.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::OFlags;
use sandarac_cache::{Begun, Store};

use super::objects::{self, Amount};
use super::relatives::spawn;
use super::state::Arriving;
use crate::admin::Endpoint;
use crate::human::lasting;
use crate::stderr::print_line;

/// How long a file is good for.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// Notes beside the admin socket, if that is a file, that a process starts. Returns when the last one did.
pub(super) fn note_start(admin: &Endpoint) -> Option<SystemTime> {
    let Endpoint::Unix(socket) = admin else { return None };
    let note = socket.with_added_extension("started");
    let last = fs::metadata(&note).and_then(|about| about.modified()).ok();
    // Where it cannot be written, the age of a snapshot has to do.
    _ = fs::write(&note, format!("{}\n", std::process::id()));
    last
}

/// Removes the file at `path`, if there is one, because this process runs without having read it.
pub(super) fn discard(path: &Path) {
    match take(path) {
        Ok(_) => print_line(format_args!(
            "sandarac: {} is removed: what it holds may have been purged since",
            path.display()
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => print_line(format_args!("sandarac: {} is not removed: {error}", path.display())),
    }
}

/// Moves the objects of a store to the file at `path`, and says so.
pub(super) fn save(store: &Store, path: &Path) {
    let started = Instant::now();
    let unfinished = path.with_added_extension("new");
    let saved = write(store, &unfinished).and_then(|amount| fs::rename(&unfinished, path).map(|()| amount));
    let path = path.display();
    print_line(match saved {
        Ok(amount) => format!("sandarac: the cache is in {path}: {}", amount.said(started.elapsed())),
        Err(error) => {
            _ = fs::remove_file(&unfinished);
            format!(
                "sandarac: the cache is not saved, and the next start begins with an empty one: {path}: {error}"
            )
        }
    });
}

fn write(store: &Store, path: &Path) -> io::Result<Amount> {
    // A process that was killed while it wrote has left it.
    _ = fs::remove_file(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    objects::write(store, file)
}

/// Begins to put the objects from the file at `path` into a store, if there is one. Purges and bans since
/// `begun` apply to them.
///
/// One that is older than [`MAX_AGE`], or than the `last_start` of a process, is not put there: what was purged since is not known.
pub(super) fn begin_reading(
    store: &Arc<Store>,
    path: PathBuf,
    begun: Begun,
    last_start: Option<SystemTime>,
    arriving: Arriving,
) {
    // A process that was killed while it wrote has left it.
    _ = fs::remove_file(path.with_added_extension("new"));
    let recent = take(&path).and_then(|file| {
        let written = file.metadata()?.modified()?;
        let unknown = "and what has been purged since is not known";
        match written.elapsed() {
            _ if last_start.is_some_and(|last| last > written) => {
                Err(io::Error::other(format!("another process has run since it was written, {unknown}")))
            }
            Ok(age) if age > MAX_AGE => {
                let age = lasting(age.as_secs_f64());
                Err(io::Error::other(format!("it was written {age} ago, {unknown}")))
            }
            _ => Ok(file),
        }
    });
    let file = match recent {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            print_line(format_args!("sandarac: the cache is empty: {}: {error}", path.display()));
            return;
        }
    };
    let store = store.clone();
    spawn("snapshot", move || {
        let (started, mut amount) = (Instant::now(), Amount::default());
        let ended = objects::read(&store, file, begun, &mut amount);
        let (path, came) = (path.display(), amount.said(started.elapsed()));
        print_line(match ended {
            Ok(()) => format!("sandarac: the cache is back from {path}: {came}"),
            Err(error) if amount == Amount::default() => {
                format!("sandarac: the cache is empty: {path}: {error}")
            }
            Err(error) => format!("sandarac: the cache is back from {path} in part: {came}; then: {error}"),
        });
        drop(arriving);
    });
}

/// Opens the file and removes it. Whoever can write to it decides what clients get, so that has to be this user
/// or root alone.
fn take(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !about.is_file() {
        return Err(io::Error::other("this is no file"));
    }
    if ![own, 0].contains(&about.uid()) || about.mode() & 0o022 != 0 {
        let (user, mode) = (about.uid(), about.mode() & 0o7777);
        return Err(io::Error::other(format!(
            "others may have written it (user {user}, mode {mode:04o}); it has to belong to user {own}, with mode 0600"
        )));
    }
    fs::remove_file(path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_cache::Settings;
    use sandarac_test_support::TempDir;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> Arc<Store> {
        Arc::new(Store::new(Settings::new(1 << 20)))
    }

    #[test]
    fn a_snapshot_is_for_its_owner_and_is_read_once() {
        let dir = TempDir::new();
        let path = dir.join("cache");
        fs::write(path.with_added_extension("new"), "left by a crash").unwrap();
        save(&store(), &path);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(!path.with_added_extension("new").exists());
        take(&path).unwrap();
        assert_eq!(take(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_others_may_have_written_is_not_read() {
        let dir = TempDir::new();
        let path = dir.join("cache");
        save(&store(), &path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(take(&path).unwrap_err().to_string().contains("mode 0620"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, dir.join("link")).unwrap();
        assert!(take(&dir.join("link")).is_err());
        assert!(take(dir.path()).unwrap_err().to_string().contains("no file"));
        assert!(path.exists());
    }

    #[test]
    fn where_there_is_no_place_nothing_is_left_behind() {
        let dir = TempDir::new();
        save(&store(), &dir.join("none/cache"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
