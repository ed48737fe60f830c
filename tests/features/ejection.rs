//! Passive ejection, slow start, and limits: backends judged by the outcomes of their requests.

use sandarac_test_support::{Gate, Origin, Port, Reply, Sandarac, Worker, get, reply, within};

use crate::resumes::{BEST, settle};
use crate::{pool, sandarac};

fn start(backends: &[String], keys: &str) -> Sandarac {
    sandarac().config(pool(backends, &format!("balance = \"round_robin\"\n{keys}"))).start()
}

fn backend(name: &'static str, status: u16) -> Origin {
    Origin::new(move |_| reply(status).cache("no-store").body(name))
}

/// How many backends are out of service.
fn ejected(proxy: &Sandarac) -> u64 {
    proxy.metric("backend_ejected")
}

#[test]
fn a_backend_that_refuses_connections_is_out_until_it_takes_them() {
    let (a, port) = (backend("a", 200), Port::new());
    let proxy =
        start(&[a.url(), port.url()], "ejection = { failures = 2, first = \"20ms\", longest = \"20ms\" }");
    let mut client = proxy.connect();
    (0..20).for_each(|_| drop(client.get("/").expect(200)));
    let _b = Origin::on(port.listen(), |_| reply(200).cache("no-store").body("b"));
    within("b to be back", || (client.get("/").expect(200).text() == "b").then_some(()));
    within("nobody to be out", || (ejected(&proxy) == 0).then_some(()));
}

/// A backend that fails faster than others answer would attract the load.
#[test]
fn a_backend_that_hangs_up_on_everybody_is_out() {
    for algorithm in ["least_requests", "peak_ewma", "round_robin", "resume"] {
        let (black_hole, well) = (Origin::new(|_| Reply::none()), backend("well", 200));
        let keys = format!("balance = \"{algorithm}\"\nretries = 0");
        let proxy = sandarac().config(pool(&[black_hole.url(), well.url()], &keys)).start();
        let answered = (0..60).filter(|_| proxy.get("/").status == 200).count();
        assert!(black_hole.count() <= 12 && answered >= 48, "{algorithm}: {} asked", black_hole.count());
    }
}

#[test]
fn an_ejection_and_its_end_are_said() {
    let (a, port) = (backend("a", 200), Port::new());
    let proxy =
        start(&[a.url(), port.url()], "ejection = { failures = 2, first = \"20ms\", longest = \"20ms\" }");
    let mut client = proxy.connect();
    (0..20).for_each(|_| drop(client.get("/").expect(200)));
    proxy.says(&format!("pool app: {} is ejected: connections to it fail", port.url()));
    let _b = Origin::on(port.listen(), |_| reply(200).cache("no-store").body("b"));
    within("b to be back", || (client.get("/").expect(200).text() == "b").then_some(()));
    proxy.says(&format!("pool app: {} is back in service after ", port.url()));
    assert_eq!(proxy.metric("backend_ejections"), 1);
}

#[test]
fn as_many_connections_must_fail_as_the_setting_says() {
    let (a, port) = (backend("a", 200), Port::new());
    let proxy =
        start(&[a.url(), port.url()], "ejection = { failures = 4, first = \"1h\", longest = \"1h\" }");
    let mut client = proxy.connect();
    for _ in 0..20 {
        client.get("/").expect(200);
        let failures = proxy.metric("backend_connect_failures");
        assert_eq!(ejected(&proxy), u64::from(failures >= 4), "after {failures} failures");
    }
    assert_eq!(proxy.metric("backend_connect_failures"), 4);
    let _b = Origin::on(port.listen(), |_| reply(200).body("b"));
    (0..10).for_each(|_| assert_eq!(client.get("/").expect(200).text(), "a", "an hour is not over"));
}

#[test]
fn a_backend_whose_answers_fail_is_out_where_that_is_asked_for() {
    let backends = [backend("a", 200), backend("b", 500), backend("c", 200)];
    let proxy = start(
        &backends.each_ref().map(Origin::url),
        "ejection = { fault_percent = 50, first = \"1h\", longest = \"1h\" }",
    );
    let mut client = proxy.connect();
    (0..3 * 64).for_each(|_| drop(client.get("/")));
    assert_eq!(ejected(&proxy), 1);
    assert!(backends[1].count() <= 63, "{} failed meanwhile", backends[1].count());
    (0..30).for_each(|_| drop(client.get("/").expect(200)));
}

#[test]
fn answers_that_fail_eject_nobody_unless_told() {
    let backends = [backend("a", 200), backend("b", 500)];
    let proxy = start(&backends.each_ref().map(Origin::url), "");
    let mut client = proxy.connect();
    (0..200).for_each(|_| drop(client.get("/")));
    assert_eq!(ejected(&proxy), 0);
    assert_eq!(backends[1].count(), 100);
}

#[test]
fn where_all_fail_alike_nobody_is_out() {
    let backends = [backend("a", 500), backend("b", 500)];
    let keys = "ejection = { fault_percent = 50, first = \"1h\", longest = \"1h\" }";
    let proxy = start(&backends.each_ref().map(Origin::url), keys);
    let mut client = proxy.connect();
    (0..200).for_each(|_| drop(client.get("/").expect(500)));
    assert_eq!(backends.each_ref().map(Origin::count), [100, 100]);
}

#[test]
fn no_more_of_a_pool_is_out_than_max_percent_says() {
    let (a, ports) = (backend("a", 200), [Port::new(), Port::new(), Port::new()]);
    let urls = [a.url(), ports[0].url(), ports[1].url(), ports[2].url()];
    let proxy =
        start(&urls, "ejection = { failures = 1, first = \"1h\", longest = \"1h\", max_percent = 50 }");
    let mut client = proxy.connect();
    for _ in 0..30 {
        client.get("/");
        assert!(ejected(&proxy) <= 2, "half of four");
    }
    assert_eq!(ejected(&proxy), 2);
}

#[test]
fn never_are_all_backends_ejected() {
    let ports = [Port::new(), Port::new()];
    let keys = "ejection = { failures = 1, first = \"1h\", longest = \"1h\" }\nretries = 2";
    let proxy = start(&ports.each_ref().map(Port::url), keys);
    (0..10).for_each(|_| drop(proxy.get("/").expect(502)));
    assert_eq!(ejected(&proxy), 1);
    let _back = ports.each_ref().map(|port| Origin::on(port.listen(), |_| reply(200).body("back")));
    assert_eq!(proxy.get("/").expect(200).text(), "back");
}

#[test]
fn a_newcomer_is_given_its_share_slowly_where_that_is_asked_for() {
    let (old, new) = (backend("old", 200), backend("new", 200));
    for (slow_start, least, most) in [("slow_start = \"1h\"", 0, 60), ("", 90, 110)] {
        let proxy = start(&[old.url()], slow_start);
        let mut client = proxy.connect();
        (0..10).for_each(|_| drop(client.get("/").expect(200)));
        proxy
            .reload(&pool(&[old.url(), new.url()], &format!("balance = \"round_robin\"\n{slow_start}")))
            .success();
        let got = (0..200).filter(|_| client.get("/").expect(200).text() == "new").count();
        assert!((least..=most).contains(&got), "{slow_start}: the newcomer got {got} of 200");
    }
}

const ONE_EACH: &str = "balance = \"resume\"\nclass = \"path_segment(1)\"\nmax_in_flight = 1\nqueue = 1\nqueue_timeout = \"50ms\"\n\
                        resume = { exploration = 0.0 }";

#[test]
fn a_worker_that_is_full_is_passed_over_however_good_it_is() {
    let (one, two) = (Worker::new("one", &[("a", BEST)]), Worker::new("two", &[]));
    let proxy = sandarac().config(pool(&[one.url(), two.url()], ONE_EACH)).start();
    settle(&proxy, &[&one, &two]);
    let gate = Gate::new();
    let held = gate.clone();
    one.answers(move |_| reply(200).body("one").hold(&held));
    let mut first = proxy.connect();
    first.send(get("/a").to_bytes());
    gate.reached(1);
    assert_eq!(proxy.get("/a").expect(200).text(), "two");
    gate.open();
    assert_eq!(first.response().expect(200).text(), "one");
}

#[test]
fn where_all_workers_are_full_requests_wait_and_are_refused_in_the_end() {
    let worker = Worker::new("one", &[("a", BEST)]);
    let proxy = sandarac().config(pool(&[worker.url()], ONE_EACH)).start();
    settle(&proxy, &[&worker]);
    let gate = Gate::new();
    let held = gate.clone();
    worker.answers(move |_| reply(200).body("one").hold(&held));
    let mut first = proxy.connect();
    first.send(get("/a").to_bytes());
    gate.reached(1);
    let refused = proxy.get("/a").expect(503);
    assert!(refused.fields.has("retry-after") && refused.fields.has("proxy-status"), "{refused:?}");
    gate.open();
    first.response().expect(200);
    proxy.get("/a").expect(200);
}

#[test]
fn a_backend_may_have_a_limit_of_its_own() {
    let gate = Gate::new();
    let held = gate.clone();
    let narrow = Origin::new(move |_| reply(200).body("narrow").hold(&held));
    let wide = backend("wide", 200);
    let text = pool(&[], "balance = \"fallback\"").replace(
        "backends = []",
        &format!("backends = [{{ address = \"{}\", max_in_flight = 1 }}, \"{}\"]", narrow.url(), wide.url()),
    );
    let proxy = sandarac().config(text).start();
    let mut first = proxy.connect();
    first.send(get("/").to_bytes());
    gate.reached(1);
    (0..5).for_each(|_| assert_eq!(proxy.get("/").expect(200).text(), "wide"));
    gate.open();
    assert_eq!(first.response().expect(200).text(), "narrow");
}

#[test]
fn no_more_connections_are_opened_than_requests_may_be_in_flight() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("no-store").hold(&held));
    let proxy = start(&[origin.url()], "max_in_flight = 2");
    let mut clients: Vec<_> = (0..6).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send(get("/").to_bytes());
    }
    gate.reached(2);
    proxy.counts("requests", 6);
    assert_eq!(origin.connections(), 2);
    gate.open();
    for client in &mut clients {
        client.response().expect(200);
    }
    assert_eq!(origin.connections(), 2);
}

/// Regression: a response whose client had left counted as broken off by its backend.
#[test]
fn a_response_that_nobody_wants_any_more_is_not_held_against_the_backend() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| {
        reply(200)
            .cache("max-age=60")
            .length(16 << 20)
            .body(vec![b'x'; 8 << 20])
            .pause(&held)
            .body(vec![b'x'; 8 << 20])
    });
    // The object is too large for the store, so that it streams to its one client.
    let text = pool(&[origin.url()], "").replace("cache = \"pass\"", "cache = { max_object = \"1MiB\" }");
    let proxy = sandarac().config(text).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes()).read(2 << 20);
    client.reset();
    gate.open();
    within("the fetch to end", || (origin.open_connections() == 0).then_some(()));
    let stats = proxy.admin_json(&["stats", "--json"]);
    let metrics = stats["metrics"].as_array().expect("metrics");
    let ratio = metrics.iter().find(|metric| metric["name"] == "backend_fault_ratio").expect("a ratio");
    assert_eq!(ratio["value"].as_f64(), Some(0.0));
}
