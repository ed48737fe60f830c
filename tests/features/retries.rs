//! Retries: only where it is safe, and within limits.

use sandarac_test_support::{
    Gate, Listener, Origin, Port, Reply, Sandarac, get, head, post, reply, request, within,
};

use crate::{holding, pool, sandarac};

/// Sandarac before a backend that takes requests and dies, and then one that answers.
fn start(dying: &Origin, other: &Origin, keys: &str) -> Sandarac {
    let keys = format!("balance = \"fallback\"\n{keys}");
    sandarac().config(pool(&[dying.url(), other.url()], &keys)).start()
}

fn dying() -> Origin {
    Origin::new(|_| Reply::none())
}

fn answering() -> Origin {
    Origin::new(|_| reply(200).cache("no-store").body("ok"))
}

#[test]
fn a_get_whose_worker_dies_without_output_goes_elsewhere() {
    let (dying, other) = (dying(), answering());
    let proxy = start(&dying, &other, "");
    for number in 0..10 {
        assert_eq!(proxy.get(&format!("/{number}")).expect(200).text(), "ok");
        proxy.exchange(&head(&format!("/{number}"))).expect(200);
    }
    assert_eq!(other.count(), 20);
    assert!((3..20).contains(&dying.count()), "it is left out after three: {}", dying.count());
}

#[test]
fn a_backend_that_came_meanwhile_is_tried_too() {
    let (listener, other) = (Listener::new(), answering());
    let proxy = sandarac().config(pool(&[listener.url()], "")).start();
    let mut client = proxy.connect();
    client.send(get("/x").to_bytes());
    let mut lost = listener.accept();
    assert_eq!(lost.request().target, "/x");
    proxy.admin(&["pool", "add", "app", &other.url()]).success();
    drop(lost);
    assert_eq!(client.response().expect(200).text(), "ok");
    assert_eq!(other.count(), 1);
}

#[test]
fn idempotent_requests_go_elsewhere_with_their_bodies() {
    let (dying, other) = (dying(), answering());
    let proxy = start(&dying, &other, "");
    for method in ["PUT", "DELETE", "OPTIONS"] {
        proxy.exchange(&request(method, "/x").body("body")).expect(200);
        assert_eq!(other.last().method, method);
        assert_eq!(other.last().text(), "body");
    }
}

/// Regression: the last chunk of an empty body was sent only to the first backend.
#[test]
fn an_empty_body_in_chunks_goes_elsewhere_with_its_end() {
    let (dying, other) = (dying(), answering());
    let proxy = start(&dying, &other, "");
    let mut client = proxy.connect();
    client.send("PUT /x HTTP/1.1\r\nHost: www.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    client.response().expect(200);
    assert!(other.last().whole);
}

#[test]
fn what_is_not_idempotent_is_asked_once() {
    let (dying, other) = (dying(), answering());
    let proxy = start(&dying, &other, "ejection = { failures = 5 }");
    proxy.exchange(&post("/x", "body")).expect(502);
    proxy.exchange(&request("POST", "/x")).expect(502);
    proxy.exchange(&request("PATCH", "/x").body("body")).expect(502);
    proxy.exchange(&request("UNKNOWN", "/x")).expect(502);
    assert_eq!(dying.count(), 4);
    assert_eq!(other.count(), 0);
}

#[test]
fn a_response_that_has_begun_is_not_begun_anew() {
    let cut = Origin::new(|_| reply(200).length(10).body("half").cut());
    let other = answering();
    let proxy = start(&cut, &other, "");
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    assert_eq!(client.response_head().field("content-length"), Some("10"));
    assert_eq!(client.read_to_end(), b"half");
    assert_eq!(other.count(), 0);
}

#[test]
fn a_request_is_tried_again_as_often_as_retries_says() {
    let origins = [dying(), dying(), dying(), dying()];
    let urls = origins.each_ref().map(Origin::url);
    let tried = |keys: &str| {
        let before: usize = origins.iter().map(Origin::count).sum();
        let proxy = sandarac().config(pool(&urls, &format!("balance = \"round_robin\"\n{keys}"))).start();
        proxy.get("/").expect(502);
        origins.iter().map(Origin::count).sum::<usize>() - before
    };
    assert_eq!(["", "retries = 1", "retries = 0"].map(tried), [3, 2, 1]);
    assert!(origins.iter().all(|origin| origin.count() <= 3), "each retry went to another");
}

/// The loss of one worker is no reason to limit retries at others.
#[test]
fn a_worker_that_is_lost_counts_in_no_budget() {
    let (dying, other) = (dying(), answering());
    let proxy = start(&dying, &other, "retry_budget = { percent = 0, per_second = 0 }");
    proxy.get("/").expect(200);
    let port = Port::new();
    let proxy = sandarac()
        .config(pool(
            &[port.url(), other.url()],
            "balance = \"fallback\"\nretry_budget = { percent = 0, per_second = 0 }",
        ))
        .start();
    (0..20).for_each(|_| drop(proxy.exchange(&post("/", "x")).expect(200)));
}

/// If every backend takes requests and dies, retries multiply the load only until the budget is used up.
#[test]
fn a_pool_that_goes_on_dying_is_tried_again_within_the_budget() {
    let origins = [dying(), dying(), dying()];
    let urls = origins.each_ref().map(Origin::url);
    let keys = "retry_budget = { percent = 10, per_second = 0 }\nejection = { failures = 1000000 }";
    let proxy = sandarac().config(pool(&urls, keys)).start();
    for _ in 0..400 {
        proxy.get("/").expect(502);
    }
    let tried: usize = origins.iter().map(Origin::count).sum();
    // The budget is full at first, with the savings of a thousand requests, and the first loss at each backend is free.
    assert!((401..=400 + 40 + 100 + 3).contains(&tried), "{tried} for 400");
    assert!(proxy.metric("retries_refused") > 0);
}

#[test]
fn a_backend_that_does_not_answer_in_time_is_tried_elsewhere_within_the_budget() {
    let silent = Origin::new(|_| reply(200).hold(&Gate::new()));
    let other = answering();
    // The other backend has no more time than this either.
    let keys = |budget: &str| {
        format!("first_byte_timeout = \"1s\"\nretry_timeouts = true\nretry_budget = {{ {budget} }}")
    };
    let proxy = start(&silent, &other, &keys("percent = 0, per_second = 0"));
    proxy.get("/").expect(504);
    assert_eq!(other.count(), 0, "nothing is left to try again with");
    let proxy = start(&silent, &other, &keys("percent = 0, per_second = 10"));
    proxy.get("/").expect(200);
    assert_eq!(other.count(), 1);
}

#[test]
fn a_client_that_aborts_takes_its_request_with_it() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).hold(&held));
    let other = answering();
    let proxy = start(&origin, &other, "");
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    gate.reached(1);
    assert_eq!(proxy.metric("backend_in_flight"), 1);
    client.reset();
    within("the place at the backend to be free", || (proxy.metric("backend_in_flight") == 0).then_some(()));
    gate.open();
    assert_eq!(other.count(), 0, "and it is not tried elsewhere");
}

/// Regression: over a kept connection, the request was sent again, and the backend did the work twice.
#[test]
fn a_backend_that_does_not_answer_in_time_is_not_asked_again() {
    let (origin, gate) = holding();
    let keys = "first_byte_timeout = \"200ms\"";
    let proxy = sandarac().config(pool(&[origin.url()], keys)).start();
    let mut client = proxy.connect();
    client.get("/").expect(200);
    client.send(request("PUT", "/hold").to_bytes());
    client.response().expect(504);
    gate.open();
    assert_eq!(origin.count_of("/hold"), 1);
}
