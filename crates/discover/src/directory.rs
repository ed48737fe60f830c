//! A directory of Unix sockets.
//!
//! A runner makes a socket under a name that begins with a dot, listens, and renames it into place. So a name
//! that is present is a worker that accepts. It may be renamed over an older one: the address stays, and its
//! résumé identifies the new worker.

use super::directory_watch::{DirectoryWatch, Settling};
use super::event::EventReporter;
use super::file_thread::on_file_thread;
use super::listing::ListingBuilder;
use super::{IgnoredReason, ListedBackend, Listing, Loss, LossReason, MAX_MEMBERS};
use sandarac_balance::Address;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often to look without an event: a symbolic link on the way to the directory may have changed, or a
/// file system may report nothing.
const RESCAN_INTERVAL: Duration = Duration::from_secs(5);

/// How often to look for an absent directory.
const ABSENCE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Short, so that a worker that has gone gets few requests.
const SETTLING: Settling = Settling { quiet: Duration::from_millis(10), at_most: Duration::from_millis(100) };

/// The most entries that are examined, including those that are not sockets.
const MAX_ENTRIES: usize = 10 * MAX_MEMBERS;

/// Reports the content of the directory until it is lost.
pub(super) async fn follow(directory: &Path, reporter: &mut EventReporter<'_>) -> Loss {
    let Err(loss) = try_follow(directory, reporter).await;
    loss
}

async fn try_follow(directory: &Path, reporter: &mut EventReporter<'_>) -> Result<Infallible, Loss> {
    loop {
        // In this order, so that a change between the two is reported.
        let begin = |directory: &Path| Ok((DirectoryWatch::of(directory, None), identity(directory)?));
        let (changes, which) = read_on_thread(directory, begin).await?;
        loop {
            reporter.listing(read_on_thread(directory, scan).await?);
            changes.wait(RESCAN_INTERVAL, SETTLING).await;
            if read_on_thread(directory, identity).await.ok() != Some(which) {
                // Another directory, not yet watched, or none.
                break;
            }
        }
    }
}

/// Runs `read` on `path` on a thread of its own.
pub(super) async fn read_on_thread<T: Send + 'static>(
    path: &Path,
    read: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, Loss> {
    on_file_thread(path, read).await.flatten().map_err(|error| loss(path, &error))
}

/// Waits `pause` before a directory or file is looked for again, or until something changes where it should
/// be. Looking is cheap, so the pauses need not grow as they do for servers.
pub async fn reappears(path: &Path, pause: Duration) {
    let pause = pause.min(ABSENCE_POLL_INTERVAL);
    let watch = |path: &Path| {
        let nearest = path.ancestors().skip(1).find(|ancestor| ancestor.is_dir())?;
        // Ignores unrelated changes, as in a directory of temporary files.
        let missing = path.strip_prefix(nearest).ok().and_then(|rest| rest.iter().next());
        Some(DirectoryWatch::of(nearest, missing))
    };
    match on_file_thread(path, watch).await {
        Ok(Some(changes)) => changes.wait(pause, SETTLING).await,
        _ => tokio::time::sleep(pause).await,
    }
}

/// The loss for an error of reading `path`.
pub(super) fn loss(path: &Path, error: &io::Error) -> Loss {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => LossReason::Absent,
        _ => LossReason::Unreadable,
    };
    Loss::new(reason, format!("{}: {error}", path.display()))
}

/// Distinguishes a directory or file from another one of the same path.
pub(super) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn scan(directory: &Path) -> io::Result<Listing> {
    let mut builder = ListingBuilder::default();
    let mut names: Vec<OsString> = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        if names.len() == MAX_ENTRIES {
            builder.ignore(IgnoredReason::TooMany, name.as_bytes());
            break;
        }
        // It may be gone by now. A link to a socket counts as one.
        match std::fs::metadata(entry.path()) {
            Ok(metadata) if metadata.file_type().is_socket() => names.push(name),
            Ok(_) => builder.ignore(IgnoredReason::NotASocket, name.as_bytes()),
            Err(_) => {}
        }
    }
    names.sort_unstable();
    for name in names {
        match address(&directory.join(&name)) {
            Ok(address) => builder.add(ListedBackend { address, weight: 1, priority: 0 }, name.as_bytes()),
            Err(reason) => builder.ignore(reason, name.as_bytes()),
        }
    }
    Ok(builder.build())
}

fn address(path: &Path) -> Result<Address, IgnoredReason> {
    let path: PathBuf = std::path::absolute(path).map_err(|_| IgnoredReason::BadAddress)?;
    let path = path.to_str().ok_or(IgnoredReason::NotText)?;
    let text = format!("unix:{path}");
    // Parsing trims white space, which would lead to another socket. Such a name is not an address.
    let address = text.parse().ok().filter(|address: &Address| address.to_string() == text);
    address.ok_or(IgnoredReason::BadAddress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_under_its_name_or_not_at_all() {
        assert_eq!(address(Path::new("/run/a b.sock")).unwrap().to_string(), "unix:/run/a b.sock");
        for path in ["/run/tab\t", "/run/space ", "/run/a\nb", "/run/\u{1b}[2J"] {
            assert_eq!(address(Path::new(path)), Err(IgnoredReason::BadAddress), "{path:?}");
        }
    }
}
