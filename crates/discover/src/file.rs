//! A file of addresses.
//!
//! One address a line, `http://host:port`, `host:port` or `unix:/path`, then a weight if it is not 1; `#` begins a
//! comment. The best way to change it is to write another file and to rename that over it. A file written in
//! place is read when its writer has paused. If a file changes while it is read, or ends within a line, it is
//! read again later, and not applied until then. If a writer pauses longer than that at the end of a line,
//! the incomplete list cannot be distinguished from a shorter one.

use super::directory::{identity, loss, read_on_thread};
use super::directory_watch::{DirectoryWatch, Settling};
use super::event::EventReporter;
use super::listing::{ListingBuilder, address as address_of, weight};
use super::{IgnoredReason, ListedBackend, Listing, Loss, LossReason, MAX_ENTRY_BYTES};
use std::convert::Infallible;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// The longest file that is read, in bytes: a thousand lines of a thousand.
const MAX_BYTES: u64 = 1024 * 1024;

/// How often to look without an event: the path may lead over symbolic links, or a file system may report
/// nothing.
const RESCAN_INTERVAL: Duration = Duration::from_secs(5);

/// Longer than an editor pauses between two writes.
const SETTLING: Settling = Settling { quiet: Duration::from_millis(50), at_most: Duration::from_secs(2) };

/// How long a file must be unchanged for an unterminated last line to count.
const UNFINISHED_LINE_DELAY: Duration = Duration::from_secs(1);

/// Reports the content of the file until it is lost.
pub(super) async fn follow(path: &Path, reporter: &mut EventReporter<'_>) -> Loss {
    follow_text(path, MAX_BYTES, |text| reporter.listing(list(text))).await
}

/// Passes the content of a file of at most `most` bytes to `tell`, repeatedly and soon after each change,
/// until the file is lost.
pub async fn follow_text(path: &Path, most: u64, tell: impl FnMut(&[u8])) -> Loss {
    let Err(loss) = try_follow(path, most, tell).await;
    loss
}

async fn try_follow(path: &Path, most: u64, mut tell: impl FnMut(&[u8])) -> Result<Infallible, Loss> {
    let (mut directory, mut changes) = read_on_thread(path, |path| Ok(watch(path))).await?;
    // A file that ends within a line, and when it was first seen like that.
    let mut unfinished: Option<(Look, Instant)> = None;
    let mut told: Option<Look> = None;
    loop {
        let Reading { text, look } =
            read_on_thread(path, move |path| Ok(read(path, most))).await.flatten()?;
        let patience = match look {
            // It changed during the read.
            None => SETTLING.quiet,
            Some(look) => {
                let since = match unfinished {
                    Some((before, since)) if before == look => since,
                    _ => Instant::now(),
                };
                if text.last().is_none_or(|last| *last == b'\n') || since.elapsed() >= UNFINISHED_LINE_DELAY {
                    if told != Some(look) {
                        told = Some(look);
                        tell(&text);
                    }
                    RESCAN_INTERVAL
                } else {
                    unfinished = Some((look, since));
                    UNFINISHED_LINE_DELAY
                }
            }
        };
        changes.wait(patience, SETTLING).await;
        if read_on_thread(path, |path| Ok(identity(parent(path)).ok())).await? != directory {
            // Another directory, not yet watched.
            (directory, changes) = read_on_thread(path, |path| Ok(watch(path))).await?;
        }
    }
}

/// The directory that a file is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The identity of a file's directory, and a watch on its changes from now on.
fn watch(path: &Path) -> (Option<(u64, u64)>, DirectoryWatch) {
    (identity(parent(path)).ok(), DirectoryWatch::of(parent(path), path.file_name()))
}

/// Distinguishes one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Look {
    fn of(metadata: &Metadata) -> Look {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Look { inode: metadata.ino(), size: metadata.size(), modified }
    }
}

struct Reading {
    text: Vec<u8>,
    /// The file's state, if it was the same before and after reading.
    look: Option<Look>,
}

fn read(path: &Path, most: u64) -> Result<Reading, Loss> {
    let lost = |error: io::Error| loss(path, &error);
    let (file, before) = open(path).map_err(lost)?;
    if !before.is_file() {
        return Err(Loss::new(LossReason::Unreadable, format!("{}: this is not a file", path.display())));
    }
    let mut text = Vec::new();
    (&file).take(most + 1).read_to_end(&mut text).map_err(lost)?;
    if text.len() as u64 > most {
        let detail = format!("{}: more than {most} bytes", path.display());
        return Err(Loss::new(LossReason::TooBig, detail));
    }
    let before = Look::of(&before);
    let after = Look::of(&file.metadata().map_err(lost)?);
    Ok(Reading { look: (before == after && after.size == text.len() as u64).then_some(after), text })
}

/// Opens without blocking, in case it is a pipe without a writer.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn list(text: &[u8]) -> Listing {
    let mut builder = ListingBuilder::default();
    // Editors on other systems write a byte order mark first.
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for entry in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        match line(entry) {
            Ok(Some(member)) => builder.add(member, entry),
            Ok(None) => {}
            Err(reason) => builder.ignore(reason, entry),
        }
    }
    builder.build()
}

/// A member as given by a line of text: an address, and a weight if it is not 1; `None` if there is only a
/// comment.
pub(super) fn line(entry: &[u8]) -> Result<Option<ListedBackend>, IgnoredReason> {
    if entry.len() > MAX_ENTRY_BYTES {
        return Err(IgnoredReason::TooLong);
    }
    let entry = str::from_utf8(entry).map_err(|_| IgnoredReason::NotText)?;
    let mut words = entry.split_whitespace().take_while(|word| !word.starts_with('#'));
    let Some(address) = words.next() else { return Ok(None) };
    let address = address_of(address)?;
    let weight = words.next().map_or(Ok(1), weight)?;
    if words.next().is_some() {
        return Err(IgnoredReason::BadWeight);
    }
    Ok(Some(ListedBackend { address, weight, priority: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_address_and_a_weight_and_the_rest_is_said() {
        let text = b"# workers\nhttp://10.0.0.1:8080\n  unix:/run/shop/worker-0.sock 3 # the big one\n10.0.0.5:8080\r\n\n\
            10.0.0.2\nhttp://10.0.0.3:80 0\nhttp://10.0.0.4 2 3\nhttp://10.0.0.1:8080 7\n\xff\n";
        let listing = list(text);
        let members: Vec<_> =
            listing.members.iter().map(|member| (member.address.to_string(), member.weight)).collect();
        assert_eq!(
            members,
            [
                ("http://10.0.0.1:8080".to_owned(), 1),
                ("unix:/run/shop/worker-0.sock".to_owned(), 3),
                ("http://10.0.0.5:8080".to_owned(), 1)
            ]
        );
        for (reason, count) in [
            (IgnoredReason::BadAddress, 1),
            (IgnoredReason::BadWeight, 2),
            (IgnoredReason::DuplicateAddress, 1),
            (IgnoredReason::NotText, 1),
        ] {
            assert_eq!(listing.ignored.count(reason), count, "{reason}");
        }
        assert_eq!(listing.ignored.total(), 5);
        assert_eq!(listing.ignored.examples()[0].text, "10.0.0.2");
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_part_of_the_first_line() {
        let listing = list("\u{feff}http://10.0.0.1:8080\r\n".as_bytes());
        assert_eq!((listing.members.len(), listing.ignored.total()), (1, 0));
    }

    #[test]
    fn a_thousand_are_taken_and_no_more() {
        let text: String = (0..1200).map(|port| format!("http://10.0.0.1:{}\n", 1000 + port)).collect();
        let listing = list(text.as_bytes());
        assert_eq!(listing.members.len(), crate::MAX_MEMBERS);
        assert_eq!(listing.ignored.count(IgnoredReason::TooMany), 200);
        assert_eq!(listing.ignored.examples().len(), 16);
    }
}
