//! The balancing algorithms: properties that always hold of where requests go.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use sandarac_test_support::{Conn, Gate, Origin, Port, Sandarac, get, reply, within};

use crate::{pool, sandarac};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Backends that answer with their names.
fn backends() -> [Origin; 5] {
    NAMES.map(|name| Origin::new(move |_| reply(200).cache("no-store").body(name)))
}

fn urls(backends: &[Origin]) -> Vec<String> {
    backends.iter().map(Origin::url).collect()
}

fn start(urls: &[String], keys: &str) -> Sandarac {
    sandarac().config(pool(urls, keys)).start()
}

/// A pool of backends with weights.
fn weighted(balance: &str, backends: &[(String, u32)]) -> String {
    let tables = backends.iter().map(|(url, weight)| format!("{{ address = \"{url}\", weight = {weight} }}"));
    let tables = tables.collect::<Vec<_>>().join(", ");
    pool(&[], &format!("balance = \"{balance}\"")).replace("backends = []", &format!("backends = [{tables}]"))
}

/// How many of `count` requests each backend answered.
fn shares(client: &mut Conn, count: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for number in 0..count {
        let name = client.get(&format!("/{number}")).expect(200).text();
        *shares.entry(name).or_default() += 1;
    }
    shares
}

/// The name of the backend that answers each of a hundred classes.
fn homes(client: &mut Conn) -> Vec<String> {
    (0..100).map(|class| client.get(&format!("/class-{class}/x")).expect(200).text()).collect()
}

#[test]
fn every_algorithm_serves_and_uses_what_there_is() {
    let backends = backends();
    for algorithm in
        ["least_requests", "resume", "peak_ewma", "round_robin", "random", "consistent_hash", "maglev"]
    {
        let keys = format!("balance = \"{algorithm}\"\nclass = \"path_segment(1)\"");
        let proxy = start(&urls(&backends), &keys);
        let shares = shares(&mut proxy.connect(), 200);
        assert_eq!(shares.len(), 5, "{algorithm}: {shares:?}");
    }
}

#[test]
fn an_algorithm_that_there_is_not_is_an_error() {
    let output =
        sandarac().config(pool(&["http://127.0.0.1:1".into()], "balance = \"resumee\"")).arg("check").run();
    let said = output.failure().stderr;
    assert!(said.contains("resumee") && said.contains("did you mean \"resume\""), "{said}");
}

#[test]
fn round_robin_heeds_weights() {
    let backends = backends();
    let text = weighted("round_robin", &[(backends[0].url(), 3), (backends[1].url(), 1)]);
    let proxy = sandarac().config(text).start();
    let mut client = proxy.connect();
    for _ in 0..5 {
        assert_eq!(shares(&mut client, 4), BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]));
    }
}

#[test]
fn what_is_drawn_at_random_heeds_weights() {
    let backends = backends();
    for algorithm in ["random", "least_requests"] {
        let text = weighted(algorithm, &[(backends[0].url(), 9), (backends[1].url(), 1)]);
        let proxy = sandarac().config(text).start();
        let shares = shares(&mut proxy.connect(), 300);
        // Of 300 draws, a should get 270. 200 would be 13 standard deviations below that.
        assert!(shares["a"] > 200, "{algorithm}: {shares:?}");
        assert!(algorithm != "random" || shares.contains_key("b"), "{shares:?}");
    }
}

#[test]
fn peak_ewma_heeds_weights() {
    // Weights are set against latencies. Both backends are slow on purpose, so that a busy machine cannot make an answer of the
    // one a thousand times as late as an answer of the other.
    let backends = ["a", "b"].map(|name| {
        Origin::new(move |_| {
            thread::sleep(Duration::from_millis(5));
            reply(200).cache("no-store").body(name)
        })
    });
    let text = weighted("peak_ewma", &[(backends[0].url(), 1000), (backends[1].url(), 1)]);
    let proxy = sandarac().config(text).start();
    let shares = shares(&mut proxy.connect(), 100);
    assert!(shares["a"] > 90, "{shares:?}");
}

#[test]
fn hashes_heed_weights() {
    let backends = backends();
    for algorithm in ["consistent_hash", "maglev"] {
        let text = weighted(algorithm, &[(backends[0].url(), 9), (backends[1].url(), 1)]);
        let proxy =
            sandarac().config(text.replace("balance", "class = \"path_segment(1)\"\nbalance")).start();
        // The hash depends on the ports, which differ in each run. With a hundred classes, b gets none in one run of 40 000;
        // with a thousand, practically never.
        let shares = shares(&mut proxy.connect(), 1000);
        assert!(shares["a"] > 700 && shares.contains_key("b"), "{algorithm}: {shares:?}");
    }
}

#[test]
fn fallback_uses_the_first_until_it_is_refused() {
    let (port, backends) = (Port::new(), backends());
    let first = Origin::on(port.listen(), |_| reply(200).cache("no-store").body("first"));
    let keys = "balance = \"fallback\"\nejection = { failures = 1, first = \"20ms\", longest = \"20ms\" }";
    let proxy = start(&[port.url(), backends[0].url(), backends[1].url()], keys);
    let mut client = proxy.connect();
    assert_eq!(shares(&mut client, 20), BTreeMap::from([("first".to_owned(), 20)]));
    first.close_idle();
    drop(first);
    within("the first to be gone", || (client.get("/").expect(200).text() == "a").then_some(()));
    assert_eq!(shares(&mut client, 20), BTreeMap::from([("a".to_owned(), 20)]));
    let _first = Origin::on(port.listen(), |_| reply(200).cache("no-store").body("first"));
    within("the first to be back", || (client.get("/").expect(200).text() == "first").then_some(()));
    assert_eq!(shares(&mut client, 20), BTreeMap::from([("first".to_owned(), 20)]));
}

#[test]
fn least_requests_leaves_the_busier_of_two_alone() {
    let gate = Gate::new();
    let held = gate.clone();
    let rule = move |name: &'static str, held: Gate| {
        Origin::new(move |request| {
            let answer = reply(200).cache("no-store").body(name);
            if request.path() == "/held" { answer.hold(&held) } else { answer }
        })
    };
    let origins = [rule("a", held.clone()), rule("b", held)];
    let proxy = start(&urls(&origins), "balance = \"least_requests\"");
    let mut busy = proxy.connect();
    busy.send(get("/held").to_bytes());
    gate.reached(1);
    let (free, _) = if origins[0].count() == 1 { ("b", "a") } else { ("a", "b") };
    assert_eq!(shares(&mut proxy.connect(), 30), BTreeMap::from([(free.to_owned(), 30)]));
    gate.open();
    busy.response().expect(200);
}

#[test]
fn peak_ewma_leaves_a_slow_backend_alone() {
    // Slow on purpose, by more than a busy machine delays an answer of the fast backend.
    let slow = Origin::new(|_| {
        thread::sleep(Duration::from_secs(1));
        reply(200).cache("no-store").body("slow")
    });
    let fast = Origin::new(|_| reply(200).cache("no-store").body("fast"));
    let proxy = start(&[slow.url(), fast.url()], "balance = \"peak_ewma\"");
    let shares = shares(&mut proxy.connect(), 50);
    assert!(shares["fast"] >= 40, "{shares:?}");
}

#[test]
fn a_class_stays_where_its_hash_puts_it() {
    let backends = backends();
    for algorithm in ["consistent_hash", "maglev"] {
        let keys = format!("balance = \"{algorithm}\"\nclass = \"path_segment(1)\"");
        let proxy = start(&urls(&backends), &keys);
        let mut client = proxy.connect();
        let first = homes(&mut client);
        assert_eq!(homes(&mut client), first, "{algorithm}");
        let turned: Vec<String> = urls(&backends).into_iter().rev().collect();
        let other = start(&turned, &keys);
        assert_eq!(homes(&mut other.connect()), first, "{algorithm}: another balancer finds the same");
    }
}

#[test]
fn few_classes_move_when_a_backend_goes() {
    let backends = backends();
    // On a ring no other class moves; in Maglev's table a few do.
    for (algorithm, others) in [("consistent_hash", 0), ("maglev", 20)] {
        let keys = format!("balance = \"{algorithm}\"\nclass = \"path_segment(1)\"");
        let proxy = start(&urls(&backends), &keys);
        let mut client = proxy.connect();
        let before = homes(&mut client);
        proxy.reload(&pool(&urls(&backends[..4]), &keys)).success();
        let after = homes(&mut client);
        let moved =
            before.iter().zip(&after).filter(|(before, after)| *before != "e" && before != after).count();
        assert!(moved <= others, "{algorithm}: {moved} classes moved that were not at the one that went");
        assert!(after.iter().all(|name| name != "e"));
        proxy.reload(&pool(&urls(&backends), &keys)).success();
        assert_eq!(homes(&mut client), before, "{algorithm}: and go back when it comes back");
    }
}

#[test]
fn a_backend_that_dies_takes_no_class_with_it() {
    let (port, backends) = (Port::new(), backends());
    for algorithm in ["consistent_hash", "maglev", "resume"] {
        let keys = format!("balance = \"{algorithm}\"\nclass = \"path_segment(1)\"");
        let proxy = start(&[port.url(), backends[0].url(), backends[1].url()], &keys);
        let homes = homes(&mut proxy.connect());
        assert!(homes.iter().any(|name| name == "a") && homes.iter().any(|name| name == "b"), "{homes:?}");
    }
}

#[test]
fn one_class_does_not_overload_its_backend_where_load_is_bounded() {
    let gate = Gate::new();
    let held = |name: &'static str| {
        let gate = gate.clone();
        Origin::new(move |_| reply(200).cache("no-store").body(name).hold(&gate))
    };
    let origins = [held("a"), held("b"), held("c"), held("d")];
    for (balance, least) in [("consistent_hash", 4), ("maglev", 1)] {
        let before = origins.each_ref().map(Origin::count);
        let proxy = start(&urls(&origins), &format!("balance = \"{balance}\"\nclass = \"host\""));
        let mut clients: Vec<Conn> = (0..16).map(|_| proxy.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(get("/").to_bytes());
            within("the request at a backend", || {
                let count: usize =
                    origins.iter().zip(before).map(|(origin, before)| origin.count() - before).sum();
                (count > number).then_some(())
            });
        }
        let loads: Vec<usize> =
            origins.iter().zip(before).map(|(origin, before)| origin.count() - before).collect();
        let used = loads.iter().filter(|&&load| load > 0).count();
        assert_eq!(used, least, "{balance}: {loads:?}");
        // 16 requests over 4 backends; each takes at most 1.25 times its share.
        assert!(balance == "maglev" || loads.iter().all(|&load| load <= 5), "{balance}: {loads:?}");
    }
    gate.open();
}

#[test]
fn requests_of_no_class_are_served_too() {
    let backends = backends();
    for algorithm in ["consistent_hash", "maglev", "resume"] {
        let proxy =
            start(&urls(&backends), &format!("balance = \"{algorithm}\"\nclass = \"path_segment(1)\""));
        let mut client = proxy.connect();
        (0..20).for_each(|_| drop(client.get("/").expect(200)));
        proxy.counts("unclassified", 20);
    }
}
