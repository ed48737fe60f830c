//! `hedge_after`: a request that waits is sent to a second backend as well.

use std::time::Duration;

use sandarac_test_support::{
    Gate, Listener, Origin, PATIENCE, Request, Sandarac, Trouble, get, head, post, reply, request, within,
};

use crate::{pool, sandarac};

/// How long a test waits for a response that must not come.
const AWHILE: Duration = Duration::from_millis(300);

/// A backend that holds its responses until the gate is open. They contain its name and the path of the request.
fn held(name: &'static str) -> (Origin, Gate) {
    let gate = Gate::new();
    let before = gate.clone();
    let rule = move |request: &Request| {
        reply(200).cache("no-store").body(format!("{name}{}", request.path())).hold(&before)
    };
    (Origin::new(rule), gate)
}

fn start(origins: &[&Origin], keys: &str) -> Sandarac {
    let urls: Vec<String> = origins.iter().map(|origin| origin.url()).collect();
    sandarac().config(pool(&urls, &format!("balance = \"fallback\"\n{keys}"))).start()
}

#[test]
fn a_second_backend_answers_for_one_that_is_slow() {
    let (slow, gate) = held("slow");
    let fast = Origin::new(|_| reply(200).cache("no-store").body("fast"));
    let proxy = start(&[&slow, &fast], "hedge_after = \"30ms\"");
    assert_eq!(proxy.get("/a?b").expect(200).text(), "fast");
    // The request to the slow backend was sent first, but may be read last.
    gate.reached(1);
    assert_eq!(slow.count_of("/a?b"), 1);
    assert_eq!(fast.count_of("/a?b"), 1);
    proxy.exchange(&head("/a")).expect(200);
    assert_eq!(fast.last().method, "HEAD");
    within("the slow one to be let go", || (proxy.metric("backend_in_flight") == 0).then_some(()));
    gate.open();
}

#[test]
fn the_first_answer_counts_whoever_gives_it() {
    let ((first, one), (second, two)) = (held("first"), held("second"));
    let proxy = start(&[&first, &second], "hedge_after = \"10ms\"");
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    two.reached(1);
    one.open();
    assert_eq!(client.response().expect(200).text(), "first/");
    two.open();
    let next = client.get("/next").expect(200).text();
    assert!(next.ends_with("/next"), "the other answer has gone: {next}");
}

#[test]
fn a_second_backend_is_asked_only_when_the_time_is_over() {
    let fast = Origin::new(|_| reply(200).cache("no-store"));
    let (second, _gate) = held("second");
    let proxy = start(&[&fast, &second], "hedge_after = \"1h\"");
    (0..20).for_each(|_| drop(proxy.get("/").expect(200)));
    assert_eq!(fast.count(), 20);
    assert_eq!(second.count(), 0);
}

#[test]
fn nothing_is_hedged_unless_told() {
    let (slow, gate) = held("slow");
    let other = Origin::new(|_| reply(200).body("other"));
    let proxy = start(&[&slow, &other], "");
    let mut client = proxy.connect().patient_for(AWHILE);
    client.send(get("/").to_bytes());
    gate.reached(1);
    assert_eq!(client.try_response("GET").err(), Some(Trouble::TimedOut));
    gate.open();
    assert_eq!(client.patient_for(PATIENCE).response().expect(200).text(), "slow/");
    assert_eq!(other.count(), 0);
}

#[test]
fn only_get_and_head_are_hedged() {
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let (slow, gate) = held("slow");
        let other = Origin::new(|_| reply(200).body("other"));
        let proxy = start(&[&slow, &other], "hedge_after = \"10ms\"");
        let mut client = proxy.connect().patient_for(AWHILE);
        client.send(request(method, "/").body("x").to_bytes());
        gate.reached(1);
        assert_eq!(client.try_response(method).err(), Some(Trouble::TimedOut), "{method}");
        gate.open();
        assert_eq!(client.patient_for(PATIENCE).response_to(method).expect(200).text(), "slow/");
        assert_eq!(slow.count(), 1, "{method}");
        assert_eq!(other.count(), 0, "{method}");
    }
}

#[test]
fn a_second_backend_that_dies_is_no_loss() {
    let (slow, gate) = held("slow");
    let dying = Listener::new();
    let text =
        pool(&[slow.url(), dying.url()], "balance = \"fallback\"\nhedge_after = \"10ms\"\nretries = 0");
    let proxy = sandarac().config(text).start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut hedge = dying.accept();
    hedge.request();
    drop(hedge);
    gate.open();
    assert_eq!(client.response().expect(200).text(), "slow/");
}

#[test]
fn a_pool_of_one_asks_nobody_twice() {
    let (slow, gate) = held("slow");
    let proxy = start(&[&slow], "hedge_after = \"10ms\"");
    let mut client = proxy.connect().patient_for(AWHILE);
    client.send(get("/").to_bytes());
    gate.reached(1);
    assert_eq!(client.try_response("GET").err(), Some(Trouble::TimedOut));
    gate.open();
    client.patient_for(PATIENCE).response().expect(200);
    assert_eq!(slow.count(), 1);
}

#[test]
fn a_client_that_aborts_takes_both_requests_with_it() {
    let ((first, one), (second, two)) = (held("first"), held("second"));
    let proxy = start(&[&first, &second], "hedge_after = \"10ms\"");
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    one.reached(1);
    two.reached(1);
    client.reset();
    within("both places to be free", || (proxy.metric("backend_in_flight") == 0).then_some(()));
    one.open();
    two.open();
    proxy.exchange(&post("/", "x")).expect(200);
}

/// Regression: the latency of a backend was not learnt when another had answered first, so that it was still picked first.
#[test]
fn a_backend_that_never_wins_is_known_to_be_slow() {
    let (slow, gate) = held("slow");
    let fast = Origin::new(|_| reply(200).cache("no-store").body("fast"));
    let urls = [slow.url(), fast.url()];
    let keys = "balance = \"peak_ewma\"\nhedge_after = \"100ms\"";
    let proxy = sandarac().config(pool(&urls, keys)).start();
    within("the slow one to be asked", || {
        proxy.get("/").expect(200);
        (slow.count() > 0).then_some(())
    });
    (0..20).for_each(|_| drop(proxy.get("/").expect(200)));
    assert_eq!(slow.count(), 1);
    gate.open();
}
