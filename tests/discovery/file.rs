//! A file of addresses.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sandarac_config::Source;
use sandarac_discover::{IgnoredReason, LossReason};
use sandarac_test_support::TempDir;

use crate::watched::Watched;

struct Addresses(TempDir);

impl Addresses {
    fn new() -> Addresses {
        Addresses(TempDir::new())
    }

    fn path(&self) -> PathBuf {
        self.0.join("addresses")
    }

    /// As the runner does: another file takes its place.
    fn replace(&self, text: &str) {
        let other = self.0.join("addresses.tmp");
        fs::write(&other, text).unwrap();
        fs::rename(other, self.path()).unwrap();
    }

    fn watch(&self) -> Watched {
        Watched::new(Source::File(self.path()))
    }
}

#[test]
fn a_file_is_followed_when_another_takes_its_place() {
    let file = Addresses::new();
    let watched = file.watch();
    watched.is_lost(LossReason::Absent);
    file.replace("# two\nhttp://127.0.0.1:8001\nunix:/run/app.sock 3\n");
    watched.is_back();
    let listing = watched.lists(&["http://127.0.0.1:8001", "unix:/run/app.sock"]);
    assert_eq!(listing.members.iter().map(|member| member.weight).collect::<Vec<_>>(), [1, 3]);
    file.replace("http://127.0.0.1:8002\n");
    watched.lists(&["http://127.0.0.1:8002"]);
    fs::remove_file(file.path()).unwrap();
    watched.is_lost(LossReason::Absent);
    file.replace("http://127.0.0.1:8003\n");
    watched.is_back();
    watched.lists(&["http://127.0.0.1:8003"]);
}

#[test]
fn a_file_that_is_written_in_place_is_not_taken_half_written() {
    let file = Addresses::new();
    file.replace("http://127.0.0.1:8001\n");
    let watched = file.watch();
    watched.lists(&["http://127.0.0.1:8001"]);
    // Truncated, then written in pieces that end where an address could.
    let mut writer = File::create(file.path()).unwrap();
    watched.is_emptied();
    let begun = Instant::now();
    writer.write_all(b"http://127.0.0.1:8002\nhttp://127.0.0.1:80").unwrap();
    // For longer than changes take to be looked at: nothing is told, unless the machine has let the file rest for so long that
    // its last line counts.
    let told = watched.within(Duration::from_millis(200));
    assert!(told.is_none() || begun.elapsed() >= Duration::from_secs(1), "{told:?}");
    writer.write_all(b"03\n").unwrap();
    watched.lists(&["http://127.0.0.1:8002", "http://127.0.0.1:8003"]);
}

#[test]
fn a_last_line_without_an_end_counts_once_the_file_rests() {
    let file = Addresses::new();
    file.replace("http://127.0.0.1:8001\nhttp://127.0.0.1:8002");
    file.watch().lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
}

#[test]
fn what_makes_no_sense_is_said_and_the_rest_is_taken() {
    let file = Addresses::new();
    file.replace("http://127.0.0.1:8001\n127.0.0.1\n127.0.0.1:8002\nhttp://127.0.0.1:8001\n");
    let listing = file.watch().lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
    assert_eq!(listing.ignored.count(IgnoredReason::BadAddress), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::DuplicateAddress), 1);
}

#[test]
fn a_file_that_is_none_or_too_big_is_lost() {
    let file = Addresses::new();
    fs::create_dir(file.path()).unwrap();
    let watched = file.watch();
    watched.is_lost(LossReason::Unreadable);
    fs::remove_dir(file.path()).unwrap();
    watched.is_lost(LossReason::Absent);
    file.replace(&"#".repeat(1024 * 1024 + 1));
    watched.is_lost(LossReason::TooBig);
    file.replace("http://127.0.0.1:8001\n");
    watched.is_back();
    watched.lists(&["http://127.0.0.1:8001"]);
}
