//! The queue before a pool that classifies requests: which requests wait for which backend.

use sandarac_test_support::{Conn, Gate, Origin, Sandarac, Worker, get, post, reply, request};

use crate::{holding, labelled, pool, sandarac};

/// Longer than any test: for half of it, a request waits for its own backend only.
const LONG: &str = "queue_timeout = \"2m\"";

/// Two backends that hold the response to `/…/hold` until the gate is open.
fn backends() -> ([Origin; 2], Gate) {
    let gate = Gate::new();
    let origins = ["one", "two"].map(|name| {
        let gate = gate.clone();
        Origin::new(move |request| {
            let answer = reply(200).cache("no-store").body(name);
            if request.path().ends_with("/hold") { answer.hold(&gate) } else { answer }
        })
    });
    (origins, gate)
}

/// Sandarac before `origins`, each with one request at a time. The first segment of a path is the class. Unless `keys` has a
/// limit, requests wait for [`LONG`].
fn before(origins: &[Origin; 2], keys: &str) -> Sandarac {
    let timeout = if keys.contains("queue_timeout") { "" } else { LONG };
    let keys = format!("class = \"path_segment(1)\"\nmax_in_flight = 1\n{timeout}\n{keys}");
    sandarac().config(pool(&origins.each_ref().map(Origin::url), &keys)).start()
}

/// A class whose home is the backend `name`.
fn class_of(proxy: &Sandarac, name: &str) -> String {
    let mut classes = (0..1000).map(|number| format!("class-{number}"));
    classes.find(|class| proxy.get(&format!("/{class}/x")).text() == name).expect("a class at each backend")
}

fn send(proxy: &Sandarac, class: &str, path: &str) -> Conn {
    let mut client = proxy.connect();
    client.send(get(&format!("/{class}/{path}")).to_bytes());
    client
}

#[test]
fn a_class_waits_for_its_backend_while_another_has_places() {
    for balance in ["consistent_hash\"\nload_factor = 4.0", "maglev\""] {
        let (origins, gate) = backends();
        let proxy = before(&origins, &format!("balance = \"{balance}"));
        let (one, two) = (class_of(&proxy, "one"), class_of(&proxy, "two"));
        let mut held = send(&proxy, &one, "hold");
        gate.reached(1);
        let mut waiting = send(&proxy, &one, "waiting");
        proxy.counts("fetches_queued", 1);
        // Requests of other classes are served meanwhile.
        assert_eq!(proxy.get(&format!("/{two}/x")).expect(200).text(), "two");
        gate.open();
        assert_eq!(
            [&mut held, &mut waiting].map(|client| client.response().expect(200).text()),
            ["one", "one"]
        );
    }
}

#[test]
fn a_place_goes_to_the_class_that_is_at_home_there() {
    let (origins, gate) = backends();
    let proxy = before(&origins, "balance = \"maglev\"");
    let classes = ["one", "two"].map(|name| class_of(&proxy, name));
    let held = classes.each_ref().map(|class| send(&proxy, class, "hold"));
    gate.reached(2);
    // Requests of the two classes come in turn.
    let mut waiting = Vec::new();
    for (count, at) in [1, 0, 1, 0].into_iter().enumerate() {
        waiting.push((at, send(&proxy, &classes[at], "waiting")));
        proxy.counts("fetches_queued", count as u64 + 1);
    }
    gate.open();
    for (at, client) in held.into_iter().enumerate().chain(waiting) {
        let mut client = client;
        assert_eq!(client.response().expect(200).text(), ["one", "two"][at]);
    }
}

#[test]
fn half_of_the_time_in_the_queue_is_for_any_place() {
    let (origins, gate) = backends();
    let proxy = before(&origins, "balance = \"maglev\"\nqueue_timeout = \"2s\"");
    let one = class_of(&proxy, "one");
    let mut held = send(&proxy, &one, "hold");
    gate.reached(1);
    // The other backend has been idle all the time, so the request goes there in the end.
    assert_eq!(proxy.get(&format!("/{one}/x")).expect(200).text(), "two");
    gate.open();
    assert_eq!(held.response().expect(200).text(), "one");
}

#[test]
fn where_none_may_wait_a_class_goes_to_another_backend_at_once() {
    let (origins, gate) = backends();
    let proxy = before(&origins, "balance = \"maglev\"\nqueue = 0");
    let one = class_of(&proxy, "one");
    let mut held = send(&proxy, &one, "hold");
    gate.reached(1);
    assert_eq!(proxy.get(&format!("/{one}/x")).expect(200).text(), "two");
    proxy.counts("fetches_queued", 0);
    gate.open();
    held.response().expect(200);
}

#[test]
fn a_request_for_which_the_queue_has_no_room_is_refused_by_that_name() {
    let (origins, gate) = backends();
    let proxy = before(&origins, "balance = \"maglev\"\nqueue = 0");
    let mut held = [send(&proxy, "a", "hold"), send(&proxy, "b", "hold")];
    gate.reached(2);
    let refused = proxy.get("/c").expect(503);
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
    assert_eq!(labelled(&proxy, "failed", "queue-full"), 1);
    gate.open();
    for held in &mut held {
        held.response().expect(200);
    }
}

#[test]
fn a_skilled_worker_that_is_full_is_waited_for() {
    let gate = Gate::new();
    let workers = [Worker::new("w1", &[("a", 100.0)]), Worker::new("w2", &[("b", 100.0)])];
    for worker in &workers {
        let gate = gate.clone();
        worker.answers(move |request| {
            let answer = reply(200).cache("no-store");
            if request.path().ends_with("/hold") { answer.hold(&gate) } else { answer }
        });
    }
    let keys = format!("balance = \"resume\"\nclass = \"path_segment(1)\"\nmax_in_flight = 1\n{LONG}");
    let proxy = sandarac().config(pool(&workers.each_ref().map(Worker::url), &keys)).start();
    let mut held = send(&proxy, "a", "hold");
    gate.reached(1);
    let mut waiting = send(&proxy, "a", "waiting");
    proxy.counts("fetches_queued", 1);
    proxy.get("/b/x").expect(200);
    gate.open();
    held.response().expect(200);
    waiting.response().expect(200);
    assert_eq!(workers.each_ref().map(|worker| worker.served().len()), [2, 1]);
}

/// Regression: a request kept its place in the queue and was sent to the backend, although its client had left.
#[test]
fn a_client_that_is_gone_does_not_wait() {
    let (origin, gate) = holding();
    let keys = format!("max_in_flight = 1\n{LONG}");
    let proxy = sandarac().config(pool(&[origin.url()], &keys)).start();
    let mut held = proxy.connect();
    held.send(get("/hold").to_bytes());
    gate.reached(1);
    let ghosts = [get("/ghost"), post("/ghost", "buy"), request("PUT", "/ghost").with("Content-Length", "9")];
    let ghosts = ghosts.map(|request| {
        let mut client = proxy.connect();
        client.send(request.to_bytes());
        client
    });
    proxy.counts("pool_queue", 3);
    ghosts.into_iter().for_each(Conn::reset);
    proxy.counts("pool_queue", 0);
    gate.open();
    held.response().expect(200);
    proxy.get("/next").expect(200);
    assert_eq!(origin.count_of("/ghost"), 0);
    assert_eq!(origin.count(), 2);
}
