//! The right to place an order: one process at a time, over all nodes that share a state directory.
//!
//! The right is a file with its owner and its end. Whoever reads or writes it holds the lock of a second file
//! meanwhile. The end lets others go on when the owner died. An order takes less time than a lease, so that
//! no lease needs to be renewed.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandarac_message::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::files;

/// What a lease lasts beyond the time of an order, for the requests that prepare it and for clocks that differ.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    owner: String,
    /// In seconds since the epoch.
    expires: u64,
}

/// Whether a lease may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    Held { owner: String, until: Timestamp },
}

/// A try to take the lease.
pub(crate) enum Take {
    /// This process has it.
    Taken(Lease),
    /// Another one has it. The owner is unknown while it is reading or writing the file.
    Held { owner: String },
}

/// The lease, which ends when it is dropped.
pub(crate) struct Lease {
    file: PathBuf,
    owner: String,
}

impl Lease {
    /// Takes the lease of a state directory for an order that takes at most `order`.
    pub(crate) fn take(
        directory: &Path,
        owner: &str,
        order: Duration,
        now: Timestamp,
    ) -> Result<Take, Fault> {
        let file = directory.join("lease");
        let Some(_lock) = lock(&directory.join("lease.lock"))? else {
            return Ok(Take::Held { owner: String::new() });
        };
        let lasts = order + MARGIN;
        if let Standing::Held { owner, .. } = standing(read(&file), owner, lasts, now) {
            return Ok(Take::Held { owner });
        }
        let record = Record { owner: owner.to_owned(), expires: now.plus(lasts).as_secs() };
        files::write(&file, &serde_json::to_string(&record).expect("text and a number become JSON"))?;
        Ok(Take::Taken(Lease { file, owner: owner.to_owned() }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If the lease expired meanwhile, the file may be another owner's.
        if read(&self.file).is_some_and(|record| record.owner == self.owner) {
            files::remove(&self.file);
        }
    }
}

/// A lease may be taken if there is none, if it is the taker's own, if it has expired, and if it ends later than
/// any that was just taken, because then a wrong clock wrote it.
fn standing(record: Option<Record>, taker: &str, lasts: Duration, now: Timestamp) -> Standing {
    match record {
        Some(Record { owner, expires }) => {
            let until = Timestamp::from_secs(expires);
            let is_over = until <= now || until > now.plus(lasts + MARGIN);
            if is_over || owner == taker { Standing::Free } else { Standing::Held { owner, until } }
        }
        None => Standing::Free,
    }
}

/// A lease that cannot be read is none.
fn read(file: &Path) -> Option<Record> {
    serde_json::from_str(&files::read(file).ok()??).ok()
}

/// Locks a file for as long as it is open; `None` if another process holds the lock.
fn lock(path: &Path) -> Result<Option<File>, Fault> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(|error| Fault::writing(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Fault::writing(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::TempDir;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
    const ORDER: Duration = Duration::from_secs(60);

    fn later(secs: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(secs))
    }

    #[test]
    fn a_lease_of_another_holds_until_it_expires() {
        let record = |expires| Some(Record { owner: "other".to_owned(), expires: later(expires).as_secs() });
        let free = |record, taker| standing(record, taker, ORDER, NOW) == Standing::Free;
        assert!(free(None, "me"));
        assert!(!free(record(1), "me"));
        assert!(free(record(1), "other"));
        assert!(free(record(0), "me"));
        // A clock that is an hour ahead must not block everybody for an hour.
        assert!(free(record(3600), "me"));
    }

    #[test]
    fn one_taker_at_a_time() {
        let dir = TempDir::new();
        let take =
            |owner: &str, now| Lease::take(dir.path(), owner, ORDER, now).expect("a writable directory");
        let Take::Taken(lease) = take("one", NOW) else { panic!("a free lease was not taken") };
        let Take::Held { owner } = take("two", later(1)) else { panic!("two have the lease") };
        assert_eq!(owner, "one");
        drop(lease);
        assert!(matches!(take("two", later(2)), Take::Taken(_)));
    }

    #[test]
    fn a_dead_owners_lease_ends_and_its_return_does_not_end_the_next_ones() {
        let dir = TempDir::new();
        let take =
            |owner: &str, now| Lease::take(dir.path(), owner, ORDER, now).expect("a writable directory");
        let Take::Taken(hung) = take("hung", NOW) else { panic!("a free lease was not taken") };
        let Take::Taken(_next) = take("next", later(10_000)) else { panic!("the expired lease still holds") };
        drop(hung);
        assert!(matches!(take("third", later(10_001)), Take::Held { .. }));
    }

    #[test]
    fn a_damaged_lease_is_none() {
        let dir = TempDir::new();
        for text in ["", "{", "[]", "{\"owner\": 1}", &"x".repeat(2 << 20)] {
            std::fs::write(dir.join("lease"), text).expect("written");
            assert!(matches!(Lease::take(dir.path(), "me", ORDER, NOW), Ok(Take::Taken(_))));
        }
    }

    #[test]
    fn many_threads_that_take_at_once_get_one_lease() {
        let dir = TempDir::new();
        let taken: Vec<Option<Lease>> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..8)
                .map(|n| {
                    let path = dir.path();
                    scope.spawn(move || match Lease::take(path, &n.to_string(), ORDER, NOW) {
                        Ok(Take::Taken(lease)) => Some(lease),
                        _ => None,
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().expect("no panic")).collect()
        });
        assert_eq!(taken.iter().flatten().count(), 1);
    }
}
