//! `single_version`: among backends that announce a version, only the largest group of one version serves.

use std::collections::BTreeSet;

use sandarac_test_support::{
    Gate, Listener, Sandarac, TempDir, Worker, eventually, get, post, reply, within,
};

use crate::resumes::{KEYS, by, by_anyone, settle};
use crate::{pool, sandarac};

/// Workers that run these versions.
fn workers(versions: &[&str]) -> Vec<Worker> {
    let begun = versions.iter().enumerate().map(|(at, version)| {
        let worker = Worker::new(&format!("w{at}"), &[]);
        worker.runs(version);
        worker
    });
    begun.collect()
}

fn start(workers: &[Worker], keys: &str) -> Sandarac {
    let urls: Vec<String> = workers.iter().map(Worker::url).collect();
    // The proxy waits for a worker's version, however slow the worker is on a busy machine.
    let patience = if keys.contains("connect_timeout") { "" } else { "connect_timeout = \"60s\"" };
    sandarac().config(pool(&urls, &format!("{KEYS}\n{patience}\n{keys}"))).start()
}

/// The workers that answer 24 requests of unknown classes.
fn serving(proxy: &Sandarac) -> BTreeSet<String> {
    (0..24).map(|_| by_anyone(proxy)).collect()
}

/// Waits until all of `names` serve and no other worker does, and checks that this lasts. A worker that comes back gets more
/// requests than the others until it has as many classes.
#[track_caller]
fn serve(proxy: &Sandarac, names: &[&str]) {
    let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut seen = BTreeSet::new();
    eventually(&format!("{names:?} to serve"), || {
        let serving = serving(proxy);
        if serving.is_subset(&names) {
            seen.extend(serving);
        } else {
            seen.clear();
        }
        (seen == names).then_some(())
    });
    assert!(serving(proxy).is_subset(&names));
}

#[test]
fn the_largest_group_of_one_version_serves() {
    let workers = workers(&["2", "1", "2", "3"]);
    let proxy = start(&workers, "single_version = true");
    serve(&proxy, &["w0", "w2"]);
}

#[test]
fn without_single_version_all_serve() {
    let workers = workers(&["2", "1", "2", "3"]);
    let proxy = start(&workers, "");
    settle(&proxy, &workers.iter().collect::<Vec<_>>());
    serve(&proxy, &["w0", "w1", "w2", "w3"]);
}

#[test]
fn a_deploy_changes_over_when_the_new_version_is_the_larger() {
    let workers = workers(&["1", "1", "1"]);
    let proxy = start(&workers, "single_version = true");
    settle(&proxy, &workers.iter().collect::<Vec<_>>());
    proxy.says("pool app: version \"1\" serves: ");
    workers[0].restarts("w0-2", &[]).runs("2");
    serve(&proxy, &["w1", "w2"]);
    workers[1].restarts("w1-2", &[]).runs("2");
    serve(&proxy, &["w0", "w1"]);
    workers[2].restarts("w2-2", &[]).runs("2");
    // The worker gets no requests, so it cannot announce the version in a response.
    serve(&proxy, &["w0", "w1", "w2"]);
    proxy.says("pool app: version \"2\" serves now instead of \"1\": ");
}

#[test]
fn a_tie_keeps_the_version_in_service() {
    let workers = workers(&["1", "1"]);
    let proxy = start(&workers, "single_version = true");
    settle(&proxy, &workers.iter().collect::<Vec<_>>());
    workers[0].restarts("w0-2", &[]).runs("2");
    serve(&proxy, &["w1"]);
    workers[1].restarts("w1-2", &[]).runs("2");
    serve(&proxy, &["w0", "w1"]);
}

/// Workers of version 1, each of which closes a connection after one request of a client.
fn one_request_a_connection(count: usize) -> Vec<Worker> {
    let workers = workers(&vec!["1"; count]);
    for (at, worker) in workers.iter().enumerate() {
        worker.answers(move |_| {
            reply(200).cache("no-store").with("Connection", "close").body(format!("w{at}"))
        });
    }
    workers
}

#[test]
fn a_worker_that_restarted_as_another_version_answers_nobody_before_that_is_known() {
    let workers = one_request_a_connection(3);
    let proxy = start(&workers, "single_version = true");
    serve(&proxy, &["w0", "w1", "w2"]);
    workers[0].restarts("w0-2", &[]).runs("2");
    let served = workers[0].served().len();
    assert!(serving(&proxy).is_subset(&["w1", "w2"].map(str::to_owned).into()));
    assert_eq!(workers[0].served().len(), served);
    // When the second worker announces it, the new version has the larger group, and no request goes to the old one from then
    // on.
    workers[1].restarts("w1-2", &[]).runs("2");
    let mut seen = Vec::new();
    within("the new version to serve", || {
        seen.push(by_anyone(&proxy));
        (seen.last()? != "w2").then_some(())
    });
    serve(&proxy, &["w0", "w1"]);
}

#[test]
fn a_request_that_cannot_be_repeated_is_not_lost_to_another_version() {
    let workers = one_request_a_connection(2);
    let proxy = start(&workers, "single_version = true");
    serve(&proxy, &["w0", "w1"]);
    workers[0].restarts("w0-2", &[]).runs("2");
    for _ in 0..4 {
        assert_eq!(proxy.exchange(&post("/new", "x")).expect(200).text(), "w1");
    }
}

/// An old process may finish a request long after its successor has answered. The state it announces then is outdated, and its
/// connection is not used again.
#[test]
fn an_old_process_is_not_spoken_to_when_its_successor_was_heard() {
    let dir = TempDir::new();
    let on = |at: usize, id: &str, version: &str| {
        let worker = Worker::on(Listener::on_unix(&dir.join(&format!("w{at}.sock"))), id, &[]);
        worker.runs(version);
        worker
    };
    let mut old: Vec<Worker> = (0..3).map(|at| on(at, &format!("old{at}"), "1")).collect();
    let gate = Gate::new();
    for (at, worker) in old.iter().enumerate() {
        let gate = gate.clone();
        worker.answers(move |request| {
            let reply = reply(200).cache("no-store").body(format!("old{at}"));
            if request.path() == "/slow" { reply.hold(&gate) } else { reply }
        });
    }
    let proxy = start(&old, "single_version = true");
    settle(&proxy, &old.iter().collect::<Vec<_>>());
    let mut slow = proxy.connect();
    slow.send(get("/slow").to_bytes());
    gate.reached(1);
    let busy = old.iter().position(|worker| worker.served().iter().any(|request| request.path() == "/slow"));
    let busy = busy.expect("somebody has it");
    let other = (busy + 1) % 3;
    let mut new = vec![on(busy, "new-busy", "2")];
    // The old worker and its connections are gone before its successor starts.
    old[other] = Worker::new("nobody", &[]);
    new.push(on(other, "new-other", "2"));
    serve(&proxy, &["new-busy", "new-other"]);
    gate.open();
    assert_eq!(slow.response().expect(200).text(), format!("old{busy}"));
    for _ in 0..3 {
        assert!(serving(&proxy).is_subset(&["new-busy", "new-other"].map(str::to_owned).into()));
    }
}

#[test]
fn a_connection_is_asked_once_and_only_where_versions_count() {
    let workers = workers(&["1", "1"]);
    let ask = |keys: &str| {
        let proxy = start(&workers, keys);
        settle(&proxy, &workers.iter().collect::<Vec<_>>());
        let mut client = proxy.connect();
        let mut request = |n: usize| client.exchange(&get(&format!("/{n}"))).expect(200);
        // After these requests, the client's core has a connection to both workers.
        let first: BTreeSet<String> = (0..8).map(|n| request(n).text()).collect();
        assert_eq!(first.len(), 2);
        let met = || workers.iter().map(Worker::met).sum::<usize>();
        let before = met();
        (8..40).for_each(|n| drop(request(n)));
        assert_eq!(met(), before, "{keys}");
        before
    };
    assert_eq!(ask("slow_start = \"0s\""), 0);
    assert!(ask("single_version = true") > 0);
}

#[test]
fn a_worker_that_does_not_tell_its_version_is_served_as_ever() {
    let workers = one_request_a_connection(1);
    let gate = Gate::new();
    let never = gate.clone();
    workers[0].tells(move |_| reply(200).hold(&never));
    let proxy = start(&workers, "single_version = true\nconnect_timeout = \"100ms\"");
    // The proxy does not wait for the version on every connection.
    for _ in 0..5 {
        assert_eq!(by_anyone(&proxy), "w0");
    }
    assert_eq!(workers[0].met(), 1);
    gate.open();
}

#[test]
fn a_worker_that_ends_each_connection_is_served_as_ever() {
    let workers = one_request_a_connection(1);
    workers[0].tells(|_| reply(200).with("Connection", "close"));
    let proxy = start(&workers, "single_version = true");
    for class in ["a", "b", "c"] {
        assert_eq!(by(&proxy, class), "w0");
    }
}
