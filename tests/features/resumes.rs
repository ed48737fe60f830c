//! Résumés that are believed: docs/protocols/resume.md from the balancer's side.

use std::sync::atomic::{AtomicUsize, Ordering};

use sandarac_test_support::{Gate, Listener, Port, Sandarac, TempDir, Worker, get, reply, within};

use crate::{pool, sandarac};

/// The class is the first segment of the path, and there is no random exploration.
pub(crate) const KEYS: &str =
    "balance = \"resume\"\nclass = \"path_segment(1)\"\nresume = { exploration = 0.0 }";

/// A score that no response over a socket reaches: a worker with it gets its class, because any other would take longer.
pub(crate) const BEST: f64 = 1_000_000.0;

/// Also out of reach, but less than [`BEST`].
pub(crate) const GOOD: f64 = 100_000.0;

/// The log line of a start that does not wait any longer.
const LATE: &str = "pool app: starts without the résumés of its workers after waiting 3 s";

/// Five classes at which a worker is best. Observed responses correct a score, so a test that sends several requests uses a new
/// class for each.
pub(crate) const CLASSES: [(&str, f64); 5] =
    [("a", BEST), ("b", BEST), ("c", BEST), ("d", BEST), ("e", BEST)];

/// Sandarac before `workers`, when it knows all their résumés.
pub(crate) fn before(workers: &[&Worker]) -> Sandarac {
    let proxy = sandarac().config(site(workers)).start();
    settle(&proxy, workers);
    proxy
}

pub(crate) fn site(workers: &[&Worker]) -> String {
    pool(&workers.iter().map(|worker| worker.url()).collect::<Vec<_>>(), KEYS)
}

/// Sends requests of unknown classes, which the workers get in turn, until each worker has seen that the balancer knows its
/// current résumé.
pub(crate) fn settle(proxy: &Sandarac, workers: &[&Worker]) {
    let before: Vec<usize> = workers.iter().map(|worker| worker.served().len()).collect();
    within("all résumés to be known", || {
        by_anyone(proxy);
        let known =
            |(worker, before): (&&Worker, &usize)| worker.served().len() > *before && worker.is_known();
        workers.iter().zip(&before).all(known).then_some(())
    });
}

/// The worker that answers a request of a class that is in no résumé yet.
pub(crate) fn by_anyone(proxy: &Sandarac) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    by(proxy, &format!("new-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// The worker that answers a request of `class`.
pub(crate) fn by(proxy: &Sandarac, class: &str) -> String {
    proxy.get(&format!("/{class}")).expect(200).text()
}

#[test]
fn the_whole_resume_is_asked_for_at_the_start() {
    let worker = Worker::new("w1", &[]);
    let proxy = before(&[&worker]);
    let asked = worker.is_asked(1);
    assert_eq!(asked.method, "GET");
    assert_eq!(asked.version, "HTTP/1.1");
    assert_eq!(asked.fields.all("host").len(), 1);
    assert!(!asked.fields.has("if-none-match"), "{asked:?}");
    proxy.get("/a").expect(200);
    let class = worker.served().pop().expect("a request").field("request-class").map(str::to_owned);
    let (_, fingerprint) = asked.target.split_once("/.well-known/worker-resume?by=").expect("the resource");
    assert!(class.expect("a class").contains(&format!(";by=\"{fingerprint}\"")));
    assert_eq!(worker.told_whole(), 1, "once is enough");
}

#[test]
fn the_first_request_of_all_goes_where_its_class_is_known() {
    let others: Vec<Worker> = (0..7).map(|number| Worker::new(&format!("w{number}"), &[])).collect();
    let best = Worker::new("best", &[("a", BEST)]);
    let workers: Vec<&Worker> = others.iter().chain([&best]).collect();
    // A start waits for résumés for a limited time, which may be too short on a busy machine; then it logs [`LATE`].
    within("a start that is in time", || {
        let proxy = sandarac().config(site(&workers)).start();
        let first = by(&proxy, "a");
        (!proxy.stderr().contains(LATE)).then(|| assert_eq!(first, "best"))
    });
}

#[test]
fn a_worker_that_does_not_tell_its_resume_keeps_no_one_waiting_for_long() {
    let mute = Worker::new("mute", &[]);
    mute.tells(|_| reply(200).length(10).hang());
    let proxy = sandarac().config(site(&[&mute])).start();
    proxy.says(LATE);
    assert_eq!(by(&proxy, "a"), "mute");
}

#[test]
fn a_worker_on_a_unix_socket_is_asked_too() {
    let dir = TempDir::new();
    let worker = Worker::on(Listener::on_unix(&dir.join("w1.sock")), "w1", &[("a", 9.0)]);
    let _proxy = before(&[&worker]);
    assert_eq!(worker.told_whole(), 1);
}

/// A balancer has no state to lose, because the skills are in the workers.
#[test]
fn a_restarted_balancer_sends_each_class_to_the_worker_that_is_best_at_it() {
    let one = Worker::new("one", &[("a", BEST), ("b", 1.0), ("c", BEST)]);
    let two = Worker::new("two", &[("a", 1.0), ("b", BEST), ("c", GOOD)]);
    let three = Worker::new("three", &[("d", GOOD)]);
    for _ in 0..2 {
        let proxy = before(&[&one, &two, &three]);
        let steered = ["a", "b", "c", "d"].map(|class| by(&proxy, class));
        assert_eq!(steered, ["one", "two", "one", "three"]);
    }
}

#[test]
fn classes_that_are_no_text_are_steered_as_well() {
    let one = Worker::new("one", &[(":Y2Fmw6k=:", BEST), ("::", 1.0)]);
    let two = Worker::new("two", &[(":Y2Fmw6k=:", 1.0), (":Og==:", BEST)]);
    one.learns("::", 0.0);
    let keys = KEYS.replace("path_segment(1)", "{header:X-Class}");
    let proxy = sandarac().config(pool(&[one.url(), two.url()], &keys)).start();
    within("the résumés to be known", || {
        let class = format!("{}{}", one.served().len(), two.served().len());
        proxy.exchange(&get("/").with("X-Class", &class)).expect(200);
        (one.is_known() && two.is_known()).then_some(())
    });
    let mut client = proxy.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Class: caf\xc3\xa9\r\n\r\n");
    assert_eq!(client.response().expect(200).text(), "one");
    assert_eq!(client.exchange(&get("/").with("X-Class", ":")).expect(200).text(), "two");
}

#[test]
fn what_a_worker_learns_steers_the_next_request() {
    let (one, two) = (Worker::new("one", &[("a", GOOD)]), Worker::new("two", &[("a", 1.0)]));
    let proxy = before(&[&one, &two]);
    assert_eq!(by(&proxy, "a"), "one");
    two.learns("a", BEST);
    settle(&proxy, &[&one, &two]);
    assert_eq!(by(&proxy, "a"), "two");
    assert!(proxy.metric("resume_changes") > 0, "the news came with a response");
}

#[test]
fn a_class_that_a_worker_dropped_is_not_its_own_any_more() {
    let (one, two) = (Worker::new("one", &[("a", BEST)]), Worker::new("two", &[("a", GOOD)]));
    let proxy = before(&[&one, &two]);
    one.learns("a", 0.0);
    settle(&proxy, &[&one, &two]);
    assert_eq!(by(&proxy, "a"), "two");
}

#[test]
fn two_balancers_agree_without_talking_to_each_other() {
    let (one, two) = (Worker::new("one", &[("a", GOOD)]), Worker::new("two", &[("a", 1.0)]));
    let balancers = [before(&[&one, &two]), before(&[&one, &two])];
    two.learns("a", BEST);
    for balancer in &balancers {
        settle(balancer, &[&one, &two]);
    }
    assert_eq!(balancers.each_ref().map(|balancer| by(balancer, "a")), ["two", "two"]);
}

#[test]
fn a_new_instance_is_asked_for_its_whole_resume() {
    let (one, two) = (Worker::new("one", &[("a", BEST)]), Worker::new("two", &[("b", BEST)]));
    let proxy = before(&[&one, &two]);
    one.restarts("one-again", &[("b", BEST)]);
    two.restarts("two-again", &[("a", BEST)]);
    settle(&proxy, &[&one, &two]);
    assert!(one.asked().len() >= 2 && two.asked().len() >= 2);
    assert_eq!([by(&proxy, "a"), by(&proxy, "b")], ["two", "one"], "and what the old ones knew is forgotten");
}

#[test]
fn a_revision_that_nobody_told_of_is_fetched() {
    let (one, two) = (Worker::new("one", &[("a", GOOD)]), Worker::new("two", &[("a", 1.0)]));
    let proxy = before(&[&one, &two]);
    two.learns("a", BEST).claims("id=\"two\", rev=2, inflight=0", "");
    settle(&proxy, &[&one, &two]);
    assert!(two.asked().iter().any(|asked| asked.field("if-none-match") == Some("\"two.1\"")));
    assert_eq!(by(&proxy, "a"), "two");
}

#[test]
fn a_resume_that_has_not_changed_is_kept() {
    let (one, two) = (Worker::new("one", &CLASSES), Worker::new("two", &[]));
    let proxy = before(&[&one, &two]);
    let answered = Gate::new();
    let gate = answered.clone();
    one.tells(move |_| reply(304).with("ETag", "\"one.1\"").cache("no-store").hold(&gate));
    one.claims("id=\"one\", rev=2, inflight=0", "");
    assert_eq!(by(&proxy, "a"), "one");
    answered.reached(1);
    answered.open();
    assert!(one.asked().iter().any(|asked| asked.field("if-none-match") == Some("\"one.1\"")));
    one.is_honest();
    for class in ["b", "c", "d", "e"] {
        assert_eq!(by(&proxy, class), "one");
    }
}

#[test]
fn a_worker_is_asked_one_question_at_a_time() {
    let worker = Worker::new("w1", &[]);
    let proxy = before(&[&worker]);
    let gate = Gate::new();
    let held = gate.clone();
    worker.tells(move |_| reply(500).hold(&held));
    worker.claims("id=\"w1\", rev=7, inflight=0", "");
    proxy.get("/a").expect(200);
    gate.reached(1);
    let asked = worker.asked().len();
    for _ in 0..20 {
        proxy.get("/a").expect(200);
    }
    assert_eq!(worker.asked().len(), asked);
    gate.open();
}

#[test]
fn a_worker_that_comes_late_is_heard_when_it_comes() {
    let port = Port::new();
    let one = Worker::new("one", &[("a", GOOD)]);
    let text = pool(
        &[one.url(), port.url()],
        &format!("{KEYS}\nejection = {{ first = \"20ms\", longest = \"20ms\" }}"),
    );
    let proxy = sandarac().config(text).start();
    settle(&proxy, &[&one]);
    assert_eq!(by(&proxy, "a"), "one");
    let two = Worker::on(port.listen(), "two", &[("a", BEST)]);
    settle(&proxy, &[&one, &two]);
    // Its earlier failures are forgiven as it answers requests.
    within("two to get its class", || {
        by_anyone(&proxy);
        (by(&proxy, "a") == "two").then_some(())
    });
}

/// The balancer learns the load that others put on a worker from `inflight` in its responses.
#[test]
fn a_worker_that_others_keep_busy_is_spared() {
    // However slow one is on a busy machine, the score of two is lower still; a million requests in flight outweigh that.
    let (one, two) = (Worker::new("one", &[("a", BEST)]), Worker::new("two", &[("a", 1.0)]));
    let proxy = before(&[&one, &two]);
    assert_eq!(by(&proxy, "a"), "one");
    one.is_busy_with(1_000_000);
    assert_eq!([by(&proxy, "a"), by(&proxy, "a")], ["one", "two"]);
}

#[test]
fn a_reload_that_changes_nothing_forgets_nothing() {
    let (one, two) = (Worker::new("one", &[("a", BEST)]), Worker::new("two", &[("b", BEST)]));
    let proxy = before(&[&one, &two]);
    proxy.reload(&site(&[&one, &two])).success();
    assert_eq!([by(&proxy, "a"), by(&proxy, "b")], ["one", "two"]);
    assert!(one.is_known() && two.is_known());
    assert_eq!(one.told_whole(), 1);
    assert_eq!(two.told_whole(), 1);
}

#[test]
fn another_classifier_starts_without_skills_at_once() {
    let skills: Vec<(String, f64)> = (0..20).map(|class| (format!("c{class}"), BEST)).collect();
    let skills: Vec<(&str, f64)> = skills.iter().map(|(class, score)| (class.as_str(), *score)).collect();
    let (one, two) = (Worker::new("one", &skills), Worker::new("two", &[]));
    let proxy = before(&[&one, &two]);
    let steered = |classes: std::ops::Range<usize>, prefix: &str| {
        classes.filter(|class| by(&proxy, &format!("{prefix}c{class}")) == "one").count()
    };
    assert_eq!(steered(0..10, ""), 10);
    proxy.reload(&site(&[&one, &two]).replace("path_segment(1)", "path_segment(2)")).success();
    let ones = steered(0..20, "x/");
    assert!((5..=15).contains(&ones), "one got {ones} of 20 classes that nobody knows");
    let first = one.asked().remove(0).target;
    within("it to be asked under another fingerprint", || {
        one.asked().iter().any(|asked| asked.target != first).then_some(())
    });
    proxy.reload(&site(&[&one, &two])).success();
    settle(&proxy, &[&one, &two]);
    assert_eq!(steered(10..20, ""), 10);
    assert_eq!(one.asked().pop().map(|asked| asked.target), Some(first));
}

#[test]
fn a_backend_that_a_reload_adds_is_heard() {
    let (one, two) = (Worker::new("one", &[("a", GOOD)]), Worker::new("two", &[("a", BEST)]));
    let proxy = before(&[&one]);
    assert_eq!(by(&proxy, "a"), "one");
    proxy.reload(&site(&[&one, &two])).success();
    settle(&proxy, &[&one, &two]);
    assert_eq!(by(&proxy, "a"), "two");
    assert_eq!(one.told_whole(), 1, "what was known is kept");
}
