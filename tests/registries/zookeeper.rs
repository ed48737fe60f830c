//! ZooKeeper.

use std::net::SocketAddr;
use std::time::Duration;

use sandarac_balance::Host;
use sandarac_config::{Server, Source};
use sandarac_discover::{IgnoredReason, LossReason, MAX_MEMBERS};
use sandarac_test_support::registry::{Registrar, ZooKeeper};

use crate::forwarder::Forwarder;
use crate::watched::Watched;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);

fn watch(servers: &[SocketAddr]) -> Watched {
    Watched::new(Source::ZooKeeper {
        servers: servers.iter().map(|at| Server { host: Host::Ip(at.ip()), port: at.port() }).collect(),
        path: "/shop".into(),
        session_timeout: Duration::from_secs(2),
    })
}

/// A server with a pool of one worker, the session that holds it, and what is told of it.
fn with_one_worker() -> (ZooKeeper, Registrar, Watched) {
    let zookeeper = ZooKeeper::start();
    let mut session = zookeeper.session(LONG);
    session.create("/shop", "");
    session.create("/shop/providers", "");
    session.register("/shop/providers/127.0.0.1:8001", "{\"pid\": 17}");
    let watched = watch(&[zookeeper.address()]);
    watched.lists(&["http://127.0.0.1:8001"]);
    (zookeeper, session, watched)
}

#[test]
fn workers_that_come_and_go_are_followed() {
    let (zookeeper, mut session, watched) = with_one_worker();
    session.register("/shop/providers/worker-2", "{\"address\": \"unix:/run/2.sock\", \"weight\": 3}");
    let listing = watched.lists(&["http://127.0.0.1:8001", "unix:/run/2.sock"]);
    assert_eq!(listing.members[1].weight, 3);
    session.set("/shop/providers/worker-2", "unix:/run/2.sock 5");
    watched.list_until(|listing| (listing.members[1].weight == 5).then_some(()));
    // One whose process dies without a word.
    let mut other = zookeeper.session(LONG);
    other.register("/shop/providers/127.0.0.1:8003", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8003", "unix:/run/2.sock"]);
    other.lives_for(Duration::from_millis(500));
    watched.lists(&["http://127.0.0.1:8001", "unix:/run/2.sock"]);
    session.delete("/shop/providers/127.0.0.1:8001");
    watched.lists(&["unix:/run/2.sock"]);
    // All sessions gone at once is what a broken registry looks like.
    session.close();
    watched.is_emptied();
}

#[test]
fn nodes_that_are_not_there_yet_are_waited_for() {
    let zookeeper = ZooKeeper::start();
    let watched = watch(&[zookeeper.address()]);
    watched.is_lost(LossReason::Absent);
    let mut session = zookeeper.session(LONG);
    session.create("/shop", "{\"variance\": 3}");
    session.create("/shop/providers", "");
    watched.is_back();
    watched.is_emptied();
    session.register("/shop/providers/127.0.0.1:8001", "");
    let listing = watched.lists(&["http://127.0.0.1:8001"]);
    assert_eq!(listing.settings.variance, Some(3.0));
}

#[test]
fn settings_change_live_and_nonsense_is_said() {
    let (_zookeeper, mut session, watched) = with_one_worker();
    session
        .set("/shop", "{\"variance\": 2.5, \"history\": 999, \"backlog_history\": 0, \"colour\": \"red\"}");
    let listing = watched.list_until(|listing| listing.settings.variance.map(|_| listing.clone()));
    assert_eq!(listing.settings.variance, Some(2.5));
    assert_eq!(listing.settings.history, Some(999));
    assert_eq!(listing.settings.backlog_history, None);
    assert_eq!(listing.ignored.count(IgnoredReason::BadSetting), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::UnknownSetting), 1);
    session.set("/shop", "variance = 3");
    let listing = watched.list_until(|listing| Some(listing.clone()));
    assert_eq!(listing.settings.variance, None);
    assert_eq!(listing.ignored.count(IgnoredReason::BadSetting), 1);
}

#[test]
fn garbage_and_more_than_a_thousand_are_left_out() {
    let (_zookeeper, mut session, watched) = with_one_worker();
    session.create("/shop/providers/garbage", "\u{1}\u{2}");
    session.create("/shop/providers/twin", "http://127.0.0.1:8001");
    let listing = watched.list_until(|listing| (listing.ignored.total() == 2).then(|| listing.clone()));
    assert_eq!(listing.members.len(), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::BadAddress), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::DuplicateAddress), 1);
    for port in 0..MAX_MEMBERS {
        session.register(&format!("/shop/providers/10.0.0.1:{}", 1000 + port), "");
    }
    watched.list_until(|listing| {
        // Of all names, the last three are those that were there before.
        let full = listing.members.len() == MAX_MEMBERS;
        (full && listing.ignored.count(IgnoredReason::TooMany) == 3).then_some(())
    });
}

/// Regression: one node that may not be read, which whoever registers can make, was the loss of the source.
#[test]
fn a_worker_that_may_not_be_read_keeps_no_other_out() {
    let (_zookeeper, mut session, watched) = with_one_worker();
    session.create_unreadable("/shop/providers/127.0.0.1:8000");
    let listing = watched.list_until(|listing| (listing.ignored.total() == 1).then(|| listing.clone()));
    assert_eq!(listing.members.len(), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::Denied), 1);
    session.register("/shop/providers/127.0.0.1:8002", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
}

#[test]
fn a_killed_server_freezes_the_list_and_is_followed_when_it_is_back() {
    let (mut zookeeper, mut session, watched) = with_one_worker();
    zookeeper.kill();
    watched.is_lost(LossReason::Unreachable);
    zookeeper.restart();
    watched.is_back();
    // The sessions of workers outlive it.
    session.reconnect();
    session.register("/shop/providers/127.0.0.1:8002", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
}

#[test]
fn a_server_that_hangs_is_lost_in_time() {
    let (zookeeper, _session, watched) = with_one_worker();
    zookeeper.freeze();
    watched.is_lost(LossReason::TimedOut);
    zookeeper.thaw();
    watched.is_back();
}

#[test]
fn a_server_that_fails_is_followed_by_another_and_nothing_is_lost() {
    let (zookeeper, mut session, _) = with_one_worker();
    let mut forwarders = vec![Forwarder::to(zookeeper.address()), Forwarder::to(zookeeper.address())];
    let servers: Vec<SocketAddr> = forwarders.iter().map(Forwarder::address).collect();
    let watched = watch(&servers);
    watched.lists(&["http://127.0.0.1:8001"]);
    // A connection that lasted for a while, not one that breaks as soon as it is there.
    watched.is_silent_for(Duration::from_millis(1500));
    let used = forwarders.iter().position(Forwarder::is_used).expect("one of them is used");
    drop(forwarders.remove(used));
    session.register("/shop/providers/127.0.0.1:8002", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
    drop(forwarders);
    watched.is_lost(LossReason::Unreachable);
}

#[test]
fn a_server_set_up_anew_is_followed() {
    let (zookeeper, _session, _) = with_one_worker();
    let forwarder = Forwarder::to(zookeeper.address());
    let watched = watch(&[forwarder.address()]);
    watched.lists(&["http://127.0.0.1:8001"]);
    let address = forwarder.address();
    drop(forwarder);
    watched.is_lost(LossReason::Unreachable);
    // It knows none of the transactions that were seen, and is at the old address.
    let other = ZooKeeper::start();
    let mut session = other.session(LONG);
    session.create("/shop", "");
    session.create("/shop/providers", "");
    session.register("/shop/providers/127.0.0.1:9001", "");
    let _forwarder = Forwarder::at(address, other.address());
    watched.is_back();
    watched.lists(&["http://127.0.0.1:9001"]);
}
