//! A directory of sockets.

use std::fs;
use std::os::unix::net::UnixListener;

use sandarac_config::Source;
use sandarac_discover::{Event, IgnoredReason, LossReason};
use sandarac_test_support::TempDir;

use crate::watched::Watched;

/// Where the sockets of a runner are, and what they are called there.
struct Sockets(TempDir);

impl Sockets {
    fn new() -> Sockets {
        Sockets(TempDir::new())
    }

    fn watch(&self) -> Watched {
        Watched::new(Source::Directory(self.0.join("sockets")))
    }

    fn make_directory(&self) {
        fs::create_dir(self.0.join("sockets")).unwrap();
    }

    /// As the runner does: a socket that listens is renamed into place.
    fn add(&self, name: &str) -> UnixListener {
        let hidden = self.0.join("sockets").join(format!(".{name}"));
        let listener = UnixListener::bind(&hidden).unwrap();
        fs::rename(hidden, self.0.join("sockets").join(name)).unwrap();
        listener
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join("sockets").join(name)).unwrap();
    }

    fn address(&self, name: &str) -> String {
        format!("unix:{}", self.0.join("sockets").join(name).display())
    }
}

#[test]
fn sockets_that_come_and_go_are_followed() {
    let sockets = Sockets::new();
    sockets.make_directory();
    let _first = sockets.add("worker-0.sock");
    let watched = sockets.watch();
    watched.lists(&[&sockets.address("worker-0.sock")]);
    let _second = sockets.add("worker-1.sock");
    watched.lists(&[&sockets.address("worker-0.sock"), &sockets.address("worker-1.sock")]);
    sockets.remove("worker-0.sock");
    watched.lists(&[&sockets.address("worker-1.sock")]);
}

#[test]
fn what_is_hidden_or_no_socket_is_no_backend() {
    let sockets = Sockets::new();
    sockets.make_directory();
    let hidden = sockets.0.join("sockets").join(".lock");
    fs::write(hidden, "").unwrap();
    fs::write(sockets.0.join("sockets").join("notes.txt"), "").unwrap();
    let _worker = sockets.add("worker-0.sock");
    let listing = sockets.watch().lists(&[&sockets.address("worker-0.sock")]);
    assert_eq!(listing.ignored.total(), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::NotASocket), 1);
    assert_eq!(listing.ignored.examples()[0].text, "notes.txt");
}

#[test]
fn a_directory_that_is_not_there_yet_is_waited_for() {
    let sockets = Sockets::new();
    let watched = sockets.watch();
    watched.is_lost(LossReason::Absent);
    sockets.make_directory();
    watched.is_back();
    watched.is_emptied();
    let _worker = sockets.add("worker-0.sock");
    watched.lists(&[&sockets.address("worker-0.sock")]);
}

#[test]
fn a_cleared_directory_empties_no_list_and_a_removed_one_freezes_it() {
    let sockets = Sockets::new();
    sockets.make_directory();
    let _first = sockets.add("worker-0.sock");
    let watched = sockets.watch();
    watched.lists(&[&sockets.address("worker-0.sock")]);
    sockets.remove("worker-0.sock");
    watched.is_emptied();
    fs::remove_dir(sockets.0.join("sockets")).unwrap();
    watched.is_lost(LossReason::Absent);
    // Another directory of the same name.
    sockets.make_directory();
    let _second = sockets.add("worker-1.sock");
    watched.is_back();
    match watched.next() {
        // The directory was seen before the socket was in it: nothing new to tell, and then the socket.
        Event::Listing(listing) => assert_eq!(listing.members.len(), 1),
        other => panic!("told {other:?}"),
    }
}

#[test]
fn a_directory_put_in_the_place_of_another_is_followed() {
    let sockets = Sockets::new();
    sockets.make_directory();
    let _first = sockets.add("worker-0.sock");
    let watched = sockets.watch();
    watched.lists(&[&sockets.address("worker-0.sock")]);
    let next = sockets.0.join("next");
    fs::create_dir(&next).unwrap();
    let _other = UnixListener::bind(next.join("worker-7.sock")).unwrap();
    fs::rename(sockets.0.join("sockets"), sockets.0.join("old")).unwrap();
    fs::rename(next, sockets.0.join("sockets")).unwrap();
    // It may have been seen in between that there is none.
    loop {
        match watched.next() {
            Event::Lost(loss) => assert_eq!(loss.reason, LossReason::Absent),
            Event::Back => {}
            Event::Listing(listing) => {
                assert_eq!(listing.members[0].address.to_string(), sockets.address("worker-7.sock"));
                break;
            }
            other => panic!("told {other:?}"),
        }
    }
    let _third = sockets.add("worker-8.sock");
    watched.lists(&[&sockets.address("worker-7.sock"), &sockets.address("worker-8.sock")]);
}
