//! etcd.

use std::net::SocketAddr;
use std::time::Duration;

use sandarac_config::Source;
use sandarac_discover::{IgnoredReason, LossReason};
use sandarac_test_support::registry::{Etcd, base64};
use serde_json::json;

use crate::forwarder::Forwarder;
use crate::watched::Watched;

fn watch(endpoints: &[SocketAddr], user: Option<(&str, &str)>) -> Watched {
    Watched::new(Source::Etcd {
        endpoints: endpoints.iter().map(|address| format!("http://{address}").parse().unwrap()).collect(),
        prefix: "/shop/".into(),
        login: user.map(|(name, password)| (name.to_owned(), password.to_owned().into())),
    })
}

/// A server with a pool of one worker, and what is told of it.
fn with_one_worker() -> (Etcd, Watched) {
    let etcd = Etcd::start();
    etcd.put("/shop/providers/127.0.0.1:8001", "");
    let watched = watch(&[etcd.address()], None);
    watched.lists(&["http://127.0.0.1:8001"]);
    (etcd, watched)
}

#[test]
fn workers_that_come_and_go_are_followed() {
    let (etcd, watched) = with_one_worker();
    etcd.put("/shop/providers/worker-2", "{\"address\": \"unix:/run/2.sock\", \"weight\": 3}");
    let listing = watched.lists(&["http://127.0.0.1:8001", "unix:/run/2.sock"]);
    assert_eq!(listing.members[1].weight, 3);
    // One whose process dies without a word.
    let lease = etcd.lease(5);
    etcd.put_with_lease("/shop/providers/127.0.0.1:8003", "", &lease);
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8003", "unix:/run/2.sock"]);
    watched.lists(&["http://127.0.0.1:8001", "unix:/run/2.sock"]);
    etcd.delete("/shop/providers/worker-2");
    watched.lists(&["http://127.0.0.1:8001"]);
    etcd.delete("/shop/providers/127.0.0.1:8001");
    watched.is_emptied();
}

#[test]
fn settings_change_live_and_nonsense_is_said() {
    let (etcd, watched) = with_one_worker();
    etcd.put("/shop/settings", "{\"variance\": 2.5, \"history\": 999}");
    let listing = watched.list_until(|listing| listing.settings.variance.map(|_| listing.clone()));
    assert_eq!(listing.settings.variance, Some(2.5));
    assert_eq!(listing.settings.history, Some(999));
    etcd.put("/shop/providers/nobody", "");
    etcd.put("/shop/providers/twin", "http://127.0.0.1:8001");
    // Of another pool, and of nobody's.
    etcd.put("/shop2/providers/127.0.0.1:8002", "");
    etcd.put("/shop/locks/1", "");
    let listing = watched.list_until(|listing| (listing.ignored.total() == 2).then(|| listing.clone()));
    assert_eq!(listing.members.len(), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::BadAddress), 1);
    assert_eq!(listing.ignored.count(IgnoredReason::DuplicateAddress), 1);
    etcd.delete("/shop/settings");
    watched.list_until(|listing| listing.settings.variance.is_none().then_some(()));
}

/// Regression: they were read first, and beyond 2000 keys no worker and no setting was seen.
#[test]
fn keys_of_the_application_hide_no_worker() {
    let etcd = Etcd::start();
    for hundred in 0..21 {
        let put = |one: u32| {
            let key = base64(&format!("/shop/locks/{:05}", hundred * 100 + one));
            json!({"request_put": {"key": key, "value": base64("held")}})
        };
        etcd.call("kv/txn", &json!({"success": (0..100).map(put).collect::<Vec<_>>()}));
    }
    etcd.put("/shop/providers/127.0.0.1:8001", "");
    etcd.put("/shop/settings", "{\"variance\": 2.5}");
    let watched = watch(&[etcd.address()], None);
    let listing = watched.lists(&["http://127.0.0.1:8001"]);
    assert_eq!(listing.settings.variance, Some(2.5));
    assert_eq!(listing.ignored.total(), 0);
    etcd.put("/shop/providers/127.0.0.1:8002", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
    etcd.put("/shop/settings", "{\"variance\": 3.5}");
    watched.list_until(|listing| (listing.settings.variance == Some(3.5)).then_some(()));
}

#[test]
fn a_killed_server_freezes_the_list_and_is_followed_when_it_is_back() {
    let (mut etcd, watched) = with_one_worker();
    etcd.kill();
    watched.is_lost(LossReason::Unreachable);
    etcd.restart();
    watched.is_back();
    etcd.put("/shop/providers/127.0.0.1:8002", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
}

#[test]
fn a_server_that_hangs_is_lost_in_time() {
    let etcd = Etcd::start();
    etcd.put("/shop/providers/127.0.0.1:8001", "");
    let watched = watch(&[etcd.address()], None);
    watched.lists(&["http://127.0.0.1:8001"]);
    etcd.freeze();
    // It is seen when everything is read again, and that is not answered.
    watched.is_lost(LossReason::TimedOut);
    etcd.thaw();
    watched.is_back();
}

#[test]
fn a_forgotten_past_is_no_loss() {
    let (etcd, _) = with_one_worker();
    let forwarder = Forwarder::to(etcd.address());
    let address = forwarder.address();
    let watched = watch(&[address], None);
    watched.lists(&["http://127.0.0.1:8001"]);
    drop(forwarder);
    watched.is_lost(LossReason::Unreachable);
    // What was seen last is no longer known when the watch is begun again.
    etcd.put("/shop/providers/127.0.0.1:8002", "");
    let revision = etcd.put("/shop/providers/127.0.0.1:8003", "");
    etcd.compact(revision);
    let _forwarder = Forwarder::at(address, etcd.address());
    watched.is_back();
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002", "http://127.0.0.1:8003"]);
}

#[test]
fn an_endpoint_that_fails_is_followed_by_another_and_nothing_is_lost() {
    let (etcd, _) = with_one_worker();
    let mut forwarders = vec![Forwarder::to(etcd.address()), Forwarder::to(etcd.address())];
    let endpoints: Vec<SocketAddr> = forwarders.iter().map(Forwarder::address).collect();
    let watched = watch(&endpoints, None);
    watched.lists(&["http://127.0.0.1:8001"]);
    // A connection that lasted for a while, not one that breaks as soon as it is there.
    watched.is_silent_for(Duration::from_millis(1500));
    let used = forwarders.iter().position(Forwarder::is_used).expect("one of them is used");
    drop(forwarders.remove(used));
    etcd.put("/shop/providers/127.0.0.1:8002", "");
    watched.lists(&["http://127.0.0.1:8001", "http://127.0.0.1:8002"]);
}

#[test]
fn a_user_is_let_in_again_when_the_token_expires_and_others_are_not() {
    let etcd = Etcd::start();
    etcd.put("/shop/providers/127.0.0.1:8001", "");
    etcd.call("auth/user/add", &json!({"name": "root", "password": "secret"}));
    etcd.call("auth/role/add", &json!({"name": "root"}));
    etcd.call("auth/user/grant", &json!({"user": "root", "role": "root"}));
    let watched = watch(&[etcd.address()], Some(("root", "secret")));
    watched.is_lost(LossReason::Failed);
    etcd.call("auth/enable", &json!({}));
    watched.is_back();
    watched.lists(&["http://127.0.0.1:8001"]);
    watch(&[etcd.address()], None).is_lost(LossReason::Denied);
    watch(&[etcd.address()], Some(("root", "wrong"))).is_lost(LossReason::Denied);
    // Everything is read again after five seconds, when the token is worth nothing.
    watched.is_silent_for(Duration::from_secs(7));
}
