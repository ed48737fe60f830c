//! Origins that take requests and answer none: which requests wait, and which backend gets them instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandarac_test_support::{Gate, Listener, Origin, Reply, Sandarac, get, post, reply, within};

use crate::{labelled, pool, sandarac, site, stat};

/// A page that is stale when it arrives.
fn stale() -> Reply {
    reply(200).cache("max-age=60").with("Age", "100").with("ETag", "\"one\"").body("stale page")
}

/// An origin that sends a stale page. Once it is silenced, it sends nothing, and its checks fail.
fn silent_on_demand() -> (Origin, Arc<AtomicBool>, Gate) {
    let (silent, gate) = (Arc::new(AtomicBool::new(false)), Gate::new());
    let (is_silent, held) = (silent.clone(), gate.clone());
    let origin = Origin::new(move |request| match (request.path(), is_silent.load(Ordering::SeqCst)) {
        ("/check", silent) => reply(if silent { 500 } else { 200 }),
        (_, false) => stale(),
        _ => reply(200).cache("max-age=60").body("new page").hold(&held),
    });
    (origin, silent, gate)
}

fn route(directives: &str) -> String {
    format!("cache = {{ {directives} }}")
}

#[track_caller]
fn expect_stale(proxy: &Sandarac, reason: &str) {
    let response = proxy.get("/page").expect(200);
    assert_eq!(response.text(), "stale page");
    assert_eq!(response.cache_parameter("detail").as_deref(), Some(reason), "{response:?}");
}

fn state(proxy: &Sandarac, at: usize) -> String {
    let status = proxy.admin_json(&["status", "--json"]);
    status["pools"][0]["backends"][at]["state"].as_str().unwrap_or_default().to_owned()
}

/// Regression: each request waited for the whole `first_byte_timeout`.
#[test]
fn where_every_backend_fails_its_checks_a_stale_page_is_served_at_once() {
    let (origin, silent, gate) = silent_on_demand();
    let check = "check = { path = \"/check\", interval = \"20ms\", rise = 1, fall = 1 }";
    let text = site(&origin.url(), &route("stale_if_error = \"1h\""), "");
    let proxy = sandarac().config(text.replace("[[route]]", &format!("{check}\n\n[[route]]"))).start();
    proxy.get("/page").expect(200);
    silent.store(true, Ordering::SeqCst);
    // The pool cannot eject this backend, because it is the last.
    within("the checks to fail", || (state(&proxy, 0) == "failing").then_some(()));
    (0..5).for_each(|_| expect_stale(&proxy, "origin-silent"));
    gate.reached(1);
    assert_eq!(origin.count_of("/page"), 2, "one fetch at a time, in the background");
    gate.open();
    within("the new page", || (proxy.get("/page").text() == "new page").then_some(()));
}

#[test]
fn within_the_operators_window_a_request_waits_for_anothers_fetch_no_longer_than_stale_after() {
    let (origin, silent, gate) = silent_on_demand();
    let keys = route("stale_if_error = \"1h\", stale_after = \"20ms\"");
    let proxy = sandarac().config(site(&origin.url(), &keys, "")).start();
    proxy.get("/page").expect(200);
    silent.store(true, Ordering::SeqCst);
    let mut first = proxy.connect();
    first.send(get("/page").to_bytes());
    gate.reached(1);
    (0..3).for_each(|_| expect_stale(&proxy, "origin-slow"));
    gate.open();
    assert_eq!(first.response().expect(200).text(), "new page");
    assert_eq!(stat(&proxy, "hits_stale"), 3);
}

/// The origin's own `stale-if-error` is for errors, and slowness is no error (RFC 5861 §4). The profile `rfc`
/// has only that.
#[test]
fn elsewhere_a_request_waits_for_anothers_fetch() {
    for (window, profile) in [("stale_after = \"20ms\"", "safe"), ("stale_if_error = \"1h\"", "rfc")] {
        let gate = Gate::new();
        let held = gate.clone();
        let origin = Origin::new(move |request| match request.serial {
            1 => stale().cache(if window.starts_with("stale_after") {
                "max-age=60, stale-if-error=600"
            } else {
                "max-age=60"
            }),
            _ => reply(200).cache("max-age=60").body("new page").hold(&held),
        });
        let text = site(&origin.url(), &route(window), &format!("[cache]\nprofile = \"{profile}\""));
        let proxy = sandarac().config(text).start();
        proxy.get("/page").expect(200);
        let mut clients = [proxy.connect(), proxy.connect()];
        for client in &mut clients {
            client.send(get("/page").to_bytes());
        }
        gate.reached(1);
        within("the second to wait", || (stat(&proxy, "coalesced") == 1).then_some(()));
        gate.open();
        clients
            .iter_mut()
            .for_each(|client| assert_eq!(client.response().expect(200).text(), "new page", "{window}"));
    }
}

#[test]
fn after_a_fetch_without_an_answer_in_time_nobody_waits_until_the_backend_answers_again() {
    let (origin, silent, gate) = silent_on_demand();
    let keys = route("stale_if_error = \"1h\", stale_after = \"10m\"");
    let text =
        site(&origin.url(), &keys, "").replace("[[route]]", "first_byte_timeout = \"300ms\"\n\n[[route]]");
    let proxy = sandarac().config(text).start();
    proxy.get("/page").expect(200);
    silent.store(true, Ordering::SeqCst);
    expect_stale(&proxy, "origin-failed");
    (0..5).for_each(|_| expect_stale(&proxy, "origin-silent"));
    gate.open();
    within("the new page", || (proxy.get("/page").text() == "new page").then_some(()));
}

/// Regression: a hung backend was never ejected automatically.
#[test]
fn three_requests_in_a_row_without_an_answer_in_time_eject_a_backend() {
    let gate = Gate::new();
    let held = gate.clone();
    let (hung, well) =
        (Origin::new(move |_| reply(200).hold(&held)), Origin::new(|_| reply(200).cache("no-store")));
    let keys = "balance = \"round_robin\"\nfirst_byte_timeout = \"100ms\"\nejection = { first = \"1h\", longest = \"1h\" }";
    let proxy = sandarac().config(pool(&[hung.url(), well.url()], keys)).start();
    let late = (0..40).filter(|_| proxy.get("/").status == 504).count();
    assert_eq!(late, 3);
    assert_eq!(hung.count(), 3);
    assert_eq!(proxy.metric("backend_ejected"), 1);
    gate.open();
}

/// Regression: a page that hangs was sent to one worker after another, and each of them was still picked.
#[test]
fn a_page_that_hangs_takes_one_worker_which_is_avoided_before_any_time_is_over() {
    for algorithm in ["least_requests", "resume"] {
        let gate = Gate::new();
        let workers: Vec<Origin> = (0..4)
            .map(|_| {
                let held = gate.clone();
                Origin::new(move |request| match request.path() {
                    "/hang" => reply(200).hold(&held),
                    _ => reply(200).cache("no-store"),
                })
            })
            .collect();
        let urls: Vec<String> = workers.iter().map(Origin::url).collect();
        let proxy = sandarac().config(pool(&urls, &format!("balance = \"{algorithm}\""))).start();
        let mut client = proxy.connect();
        client.send(get("/hang").to_bytes());
        gate.reached(1);
        drop(client);
        let hung = workers.iter().position(|worker| worker.count_of("/hang") == 1).expect("one was asked");
        within("it to be known as silent", || (state(&proxy, hung) == "silent").then_some(()));
        (0..80).for_each(|_| drop(proxy.get("/quick").expect(200)));
        let quick: Vec<usize> = workers.iter().map(|worker| worker.count_of("/quick")).collect();
        assert!(
            quick[hung] == 0 && quick.iter().sum::<usize>() == 80,
            "{algorithm}: {quick:?}, {hung} hangs"
        );
        assert_eq!(workers.iter().map(|worker| worker.count_of("/hang")).sum::<usize>(), 1, "{algorithm}");
        gate.open();
    }
}

/// Regression: a few clients that uploaded slowly took idle backends out of service.
#[test]
fn a_backend_that_waits_for_a_clients_body_is_not_silent() {
    let gate = Gate::new();
    let held = gate.clone();
    let (idle, hung) = (Listener::new(), Origin::new(move |_| reply(200).hold(&held)));
    let proxy = sandarac().config(pool(&[idle.url(), hung.url()], "balance = \"round_robin\"")).start();
    let mut upload = proxy.connect();
    upload.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf ");
    let mut origin = idle.accept();
    origin.request_head();
    let mut page = proxy.connect();
    page.send(get("/").to_bytes());
    gate.reached(1);
    within("the other to be silent", || (state(&proxy, 1) == "silent").then_some(()));
    assert_eq!(state(&proxy, 0), "untried", "its request is older, and not whole");
    gate.open();
    upload.send("more.");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    upload.response().expect(200);
}

#[test]
fn what_had_no_answer_in_time_is_tried_at_another_backend_only_where_the_pool_says_so() {
    for (key, asked) in [("", 1), ("retry_timeouts = true", 2)] {
        let gate = Gate::new();
        let [one, other] = [(); 2].map(|()| {
            let held = gate.clone();
            Origin::new(move |_| reply(200).hold(&held))
        });
        let keys = format!("first_byte_timeout = \"100ms\"\n{key}");
        let proxy = sandarac().config(pool(&[one.url(), other.url()], &keys)).start();
        proxy.get("/").expect(504);
        assert_eq!(one.count() + other.count(), asked, "{key}");
        gate.open();
    }
}

/// Regression: a client that had closed its connection kept its place in the queue, and its request was sent
/// to the backend.
#[test]
fn a_client_that_has_gone_does_not_keep_its_place() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let answer = reply(200).cache("no-store");
        if request.path() == "/slow" { answer.hold(&held) } else { answer }
    });
    let proxy = sandarac().config(pool(&[origin.url()], "max_in_flight = 1")).start();
    let mut first = proxy.connect();
    first.send(post("/slow", "x").to_bytes());
    gate.reached(1);
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let mut client = proxy.connect();
            client.send(post("/gone", "x").to_bytes());
            client
        })
        .collect();
    proxy.counts("pool_queue", 5);
    drop(waiting);
    proxy.counts("pool_queue", 0);
    gate.open();
    first.response().expect(200);
    proxy.get("/last").expect(200);
    assert_eq!(origin.count_of("/gone"), 0);
    assert_eq!(labelled(&proxy, "failed", "client-gone"), 5);
}

#[test]
fn a_request_whose_client_closes_is_given_up_unless_the_pool_says_otherwise() {
    for aborts in [true, false] {
        let listener = Listener::new();
        let keys = format!("abort_on_close = {aborts}");
        let proxy = sandarac().config(pool(&[listener.url()], &keys)).start();
        let mut client = proxy.connect();
        client.send(get("/page").to_bytes());
        let mut origin = listener.accept();
        origin.request();
        client.finish();
        if aborts {
            origin.expect_end();
            client.expect_end();
        } else {
            origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            assert_eq!(client.response().expect(200).text(), "ok");
        }
    }
}
