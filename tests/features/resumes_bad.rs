//! Résumés and fields that are not believed: each is counted by reason, logged once, and never costs a
//! request.

use std::time::Instant;

use sandarac_test_support::{Gate, Reply, Sandarac, Worker, reply, within};

use crate::resumes::{BEST, CLASSES, GOOD, KEYS, before, by, by_anyone, settle, site};
use crate::{labelled, pool, sandarac};

/// Waits until something is counted as not believed for `reason`.
#[track_caller]
fn unbelieved(proxy: &Sandarac, reason: &str) {
    within(&format!("something not to be believed for {reason}"), || {
        (labelled(proxy, "resumes_unbelieved", reason) > 0).then_some(())
    });
}

/// Sandarac before a worker that answers requests for its whole résumé by `rule`, which gets the fingerprint.
fn telling(rule: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Sandarac, Worker) {
    let worker = Worker::new("w1", &[]);
    worker
        .tells(move |request| rule(request.target.rsplit_once('=').map_or("", |(_, by)| by)))
        .claims("", "");
    (sandarac().config(site(&[&worker])).start(), worker)
}

/// A whole résumé with one member changed.
fn document(by: &str, member: &str, value: &str) -> String {
    let members = [
        ("id", "\"w1\"".to_owned()),
        ("rev", "1".to_owned()),
        ("by", format!("\"{by}\"")),
        ("inflight", "0".to_owned()),
        ("history", "9999".to_owned()),
        ("skills", "{\"a\":1.5}".to_owned()),
    ];
    let mut members: Vec<String> = members
        .into_iter()
        .filter(|(name, _)| *name != member)
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    if !value.is_empty() {
        members.push(format!("\"{member}\":{value}"));
    }
    format!("{{{}}}", members.join(","))
}

fn json(body: impl AsRef<[u8]>) -> Reply {
    reply(200).with("Content-Type", "application/json").cache("no-store").body(body)
}

/// Asserts that a résumé is not believed for `reason`, that this is logged, and that requests are served.
#[track_caller]
fn is_not_believed(reason: &str, rule: impl Fn(&str) -> Reply + Send + Sync + 'static) {
    let (proxy, worker) = telling(rule);
    proxy.get("/a").expect(200);
    unbelieved(&proxy, reason);
    proxy.says(&worker.url());
    for _ in 0..20 {
        proxy.get("/a").expect(200);
    }
    let served = worker.served().pop().expect("a request");
    assert!(!served.field("request-class").expect("a class").contains("known"), "{served:?}");
    let said = proxy.stderr().lines().filter(|line| line.contains(&worker.url())).count();
    assert!(said <= 2, "{said} lines:\n{}", proxy.stderr());
    assert!(worker.asked().len() <= 10, "asked {} times", worker.asked().len());
}

#[test]
fn what_is_wrong_with_one_worker_does_not_keep_another_out_of_the_log() {
    let workers = [Worker::new("one", &[]), Worker::new("two", &[]), Worker::new("three", &[])];
    let reasons = ["rev", "inflight", "score"];
    workers[0].claims("id=\"one\", rev=0, inflight=0", "");
    workers[1].claims("id=\"two\", rev=1, inflight=-1", "");
    let negative = |by: &str| json(document(by, "skills", "{\"a\":-1}"));
    workers[2]
        .tells(move |request| negative(request.target.rsplit_once('=').map_or("", |(_, by)| by)))
        .claims("", "");
    let workers: Vec<&Worker> = workers.iter().collect();
    let proxy = sandarac().config(site(&workers)).start();
    for (worker, reason) in workers.iter().zip(reasons) {
        within(&format!("{reason} to be counted"), || {
            by_anyone(&proxy);
            (labelled(&proxy, "resumes_unbelieved", reason) > 0).then_some(())
        });
        proxy.says(&worker.url());
    }
}

#[test]
fn a_worker_without_a_resume_is_served_all_the_same() {
    is_not_believed("no-resume", |_| reply(404));
}

#[test]
fn errors_are_no_resumes() {
    is_not_believed("no-resume", |_| reply(500).body("{}"));
    is_not_believed("no-resume", |_| Reply::none());
    is_not_believed("no-resume", |by| reply(301).with("Location", &format!("/elsewhere?by={by}")));
}

/// A 304 to a request without a condition is wrong.
#[test]
fn a_resume_that_was_never_given_cannot_be_the_same() {
    is_not_believed("no-resume", |_| reply(304).with("ETag", "\"w1.1\""));
}

#[test]
fn a_resume_needs_no_content_type() {
    let worker = Worker::new("w1", &[]);
    worker.tells(|request| {
        let (_, by) = request.target.rsplit_once('=').expect("a fingerprint");
        reply(200).body(document(by, "skills", "{\"a\":7.5}"))
    });
    let proxy = sandarac().config(site(&[&worker])).start();
    within("its skills", || proxy.admin_json(&["pools", "--json"]).to_string().contains("7.5").then_some(()));
}

/// Each response announces a revision that the whole résumé never has: the résumé is fetched only now and
/// then, and this is counted.
#[test]
fn a_worker_that_never_means_what_it_says_is_not_asked_with_every_request() {
    for state in ["id=\"w1\", rev=50, inflight=0", "id=\"other\", rev=1, inflight=0"] {
        let began = Instant::now();
        let (proxy, worker) = telling(|by| json(document(by, "", "")));
        worker.claims(state, "");
        let mut client = proxy.connect();
        within("that to be told", || {
            client.get("/a").expect(200);
            (labelled(&proxy, "resumes_unbelieved", "unsettled") > 0).then_some(())
        });
        for _ in 0..200 {
            client.get("/a").expect(200);
        }
        proxy.says("another instance or revision");
        let most = 5 + began.elapsed().as_secs() as usize;
        assert!(worker.asked().len() <= most, "asked {} times, at most {most}", worker.asked().len());
    }
}

#[test]
fn what_is_not_json_is_not_believed() {
    for body in ["", "not json", "[]", "{\"id\":\"w1\"", "\u{feff}{}", "null"] {
        is_not_believed("syntax", move |_| json(body));
    }
    is_not_believed("syntax", |by| json(document(by, "skills", "{\"a\":NaN}")));
    is_not_believed("syntax", |by| json(document(by, "skills", "{\"a\":Infinity}")));
    is_not_believed("syntax", |by| json(document(by, "", "") + "x"));
}

#[test]
fn scores_out_of_bounds_are_not_believed() {
    for score in ["-1", "0", "-0.0", "1000000001", "1e300", "1e999", "\"5\"", "null", "true", "[1]"] {
        is_not_believed("score", move |by| {
            json(document(by, "skills", &format!("{{\"a\":1.5,\"b\":{score}}}")))
        });
    }
}

#[test]
fn members_that_are_missing_or_wrong_are_named() {
    for (member, value) in [
        ("id", ""),
        ("id", "\"\""),
        ("id", "\"no such letters!\""),
        ("id", "7"),
        ("rev", ""),
        ("rev", "0"),
        ("rev", "-1"),
        ("rev", "1.5"),
        ("rev", "1000000000000000"),
        ("by", ""),
        ("by", "\"0123456789abcdef\""),
        ("inflight", "-1"),
        ("version", "\"\""),
        ("version", "7"),
        ("history", "-5"),
        ("skills", ""),
        ("skills", "[]"),
    ] {
        let (proxy, _worker) = telling(move |by| json(document(by, member, value)));
        within(&format!("{member} {value:?} not to be believed"), || {
            let other = member == "by" && labelled(&proxy, "resumes_unbelieved", "other-classifier") > 0;
            (other || labelled(&proxy, "resumes_unbelieved", member) > 0).then_some(())
        });
        proxy.get("/a").expect(200);
    }
}

#[test]
fn a_class_that_is_too_long_or_badly_written_is_not_believed() {
    let long = "x".repeat(257);
    is_not_believed("class", move |by| json(document(by, "skills", &format!("{{\"{long}\":1.5}}"))));
    is_not_believed("class", |by| json(document(by, "skills", "{\":not base64:\":1.5}")));
    is_not_believed("class", |by| json(document(by, "skills", "{\"caf\u{e9}\":1.5}")));
}

#[test]
fn a_resume_of_too_many_classes_is_not_believed() {
    let classes: Vec<String> = (0..100_001).map(|class| format!("\"{class}\":1")).collect();
    let skills = format!("{{{}}}", classes.join(","));
    is_not_believed("too-many", move |by| json(document(by, "skills", &skills)));
}

#[test]
fn a_resume_beyond_the_limit_is_not_read() {
    is_not_believed("too-large", |_| reply(200).length(41 << 20).body("{").hang());
}

#[test]
fn a_resume_that_grows_beyond_the_limit_is_not_kept() {
    let (proxy, worker) = telling(|_| {
        let spaces = vec![b' '; 1 << 20];
        (0..44).fold(reply(200).chunked(), |answer, _| answer.body(&spaces))
    });
    proxy.get("/a").expect(200);
    unbelieved(&proxy, "too-large");
    proxy.get("/a").expect(200);
    drop(worker);
}

#[test]
fn a_worker_that_does_not_answer_for_its_resume_holds_nobody_up() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, worker) = telling(move |_| reply(404).hold(&held));
    gate.reached(1);
    for _ in 0..20 {
        proxy.get("/a").expect(200);
    }
    assert_eq!(worker.asked().len(), 1);
    gate.open();
    unbelieved(&proxy, "no-resume");
}

#[test]
fn a_resume_that_trickles_holds_nobody_up() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _worker) = telling(move |_| reply(200).length(100).body("{").pause(&held).cut());
    gate.reached(1);
    (0..20).for_each(|_| drop(proxy.get("/a").expect(200)));
    gate.open();
    unbelieved(&proxy, "no-resume");
}

#[test]
fn bad_words_in_a_field_are_named() {
    let worker = Worker::new("w1", &[("a", 5.0)]);
    let proxy = before(&[&worker]);
    let long = "x".repeat(1030);
    let state = "id=\"w1\", rev=2, inflight=0";
    for (reason, state, skills) in [
        ("syntax", "id=\"w1", ""),
        ("syntax", "id=\"w1\", rev=2, inflight=0,", ""),
        ("id", "rev=2, inflight=0", ""),
        ("id", "id=w1, rev=2, inflight=0", ""),
        ("rev", "id=\"w1\", rev=0, inflight=0", ""),
        ("inflight", "id=\"w1\", rev=2, inflight=-1", ""),
        ("version", "id=\"w1\", rev=2, inflight=0, version=\"\"", ""),
        ("too-large", &format!("id=\"w1\", rev=2, inflight=0, note=\"{long}\""), ""),
        ("score", state, "\"a\";score=NaN"),
        ("score", state, "\"a\";score=-1"),
        ("score", state, "\"a\";score=1000000001"),
        ("score", state, "\"a\""),
        ("class", state, "a;score=1"),
    ] {
        let before = labelled(&proxy, "resumes_unbelieved", reason);
        worker.claims(state, skills);
        proxy.get("/a").expect(200);
        within(&format!("{state:?} {skills:?} not to be believed for {reason}"), || {
            (labelled(&proxy, "resumes_unbelieved", reason) > before).then_some(())
        });
        worker.is_honest();
        proxy.get("/a").expect(200);
    }
}

#[test]
fn of_skills_that_are_half_wrong_nothing_is_believed() {
    let (one, two) = (Worker::new("one", &CLASSES), Worker::new("two", &[]));
    let proxy = before(&[&one, &two]);
    // A refused field may cause a request for the whole résumé, which does not have these skills either.
    two.claims("id=\"two\", rev=2, inflight=0", "\"a\";score=1000000, \"b\";score=-1");
    within("it not to be believed", || {
        by_anyone(&proxy);
        (labelled(&proxy, "resumes_unbelieved", "score") > 0).then_some(())
    });
    CLASSES.iter().for_each(|(class, _)| assert_eq!(by(&proxy, class), "one"));
}

/// A field of more than 4096 bytes is not read; the whole résumé has the skills.
#[test]
fn skills_that_are_too_long_for_a_field_are_fetched() {
    let (one, two) = (Worker::new("one", &[("a", GOOD)]), Worker::new("two", &[]));
    let proxy = before(&[&one, &two]);
    let long: Vec<String> = (0..200).map(|class| format!("\"class-number-{class}\";score=1.5")).collect();
    two.learns("a", BEST).claims("id=\"two\", rev=2, inflight=0", &long.join(", "));
    settle(&proxy, &[&one, &two]);
    assert!(two.asked().len() >= 2);
    assert_eq!(proxy.get("/a").expect(200).text(), "two");
}

#[test]
fn skills_without_a_state_are_not_believed() {
    let (one, two) = (Worker::new("one", &CLASSES), Worker::new("two", &[]));
    let proxy = before(&[&one, &two]);
    two.claims("", "\"a\";score=1000000");
    let twos = (0..20).filter(|_| by_anyone(&proxy) == "two").count();
    assert!(twos >= 5, "two said so {twos} times");
    CLASSES.iter().for_each(|(class, _)| assert_eq!(by(&proxy, class), "one"));
}

/// The worker that had an id first keeps it, and another worker with the same id is not believed.
#[test]
fn a_worker_that_says_it_is_another_is_not_believed() {
    let (one, two) = (Worker::new("one", &CLASSES), Worker::new("two", &[]));
    let proxy = before(&[&one, &two]);
    two.restarts("one", &[("a", BEST)]);
    two.answers(|_| reply(200).cache("no-store").body("two"));
    within("it not to be believed", || {
        by_anyone(&proxy);
        (labelled(&proxy, "resumes_unbelieved", "elsewhere") > 0).then_some(())
    });
    CLASSES.iter().for_each(|(class, _)| assert_eq!(by(&proxy, class), "one"));
    proxy.says(&two.url());
}

#[test]
fn two_addresses_of_one_worker_are_served() {
    let (one, two) = (Worker::new("same", &[("a", 5.0)]), Worker::new("same", &[("a", 5.0)]));
    let proxy = sandarac().config(site(&[&one, &two])).start();
    unbelieved(&proxy, "elsewhere");
    (0..20).for_each(|_| drop(by_anyone(&proxy)));
    assert!(!one.served().is_empty() && !two.served().is_empty());
}

#[test]
fn a_backend_of_a_pool_without_resumes_is_not_heard() {
    for keys in [
        "balance = \"round_robin\"",
        "balance = \"least_requests\"",
        &KEYS.replace("exploration", "skills = \"inferred\", exploration"),
    ] {
        let worker = Worker::new("w1", &[("a", BEST)]);
        worker.claims("nonsense;;", "nonsense;;");
        let proxy = sandarac().config(pool(&[worker.url()], keys)).start();
        for _ in 0..5 {
            let response = proxy.get("/a").expect(200);
            assert!(!response.fields.has("worker-state") && !response.fields.has("worker-skills"));
        }
        let reasons = proxy.admin_json(&["stats", "--json"])["metrics"].as_array().expect("metrics").clone();
        let counted = reasons.iter().filter(|metric| metric["name"] == "resumes_unbelieved");
        assert_eq!(counted.filter_map(|metric| metric["value"].as_u64()).sum::<u64>(), 0, "{keys}: unread");
        assert!(
            worker.asked().is_empty()
                && worker.served().iter().all(|request| !request.fields.has("request-class"))
        );
    }
}

/// Regression: what was being read was charged nowhere; twenty workers took 436 MB.
#[test]
fn long_resumes_of_many_workers_are_read_within_what_may_be_held() {
    const LENGTH: usize = 20 << 20;
    let workers: Vec<Worker> = (0..8).map(|number| Worker::new(&format!("w{number}"), &[])).collect();
    for worker in &workers {
        worker.tells(|_| json(vec![b' '; LENGTH])).claims("", "");
    }
    let workers: Vec<&Worker> = workers.iter().collect();
    let proxy = sandarac().config(format!("{}\n[cache]\nmemory = \"8MiB\"\n", site(&workers))).start();
    proxy.says("there is no memory for it");
    for _ in 0..20 {
        proxy.get("/a").expect(200);
    }
    // Of 20 MiB that may be held, three quarters, in the body and what is made of it; and the pages of a
    // build that is not optimised.
    let peak = proxy.peak_resident_bytes() >> 20;
    assert!(peak < 8 + 48 + 16, "{peak} MiB");
    within("all to be returned", || (proxy.metric_of("held_bytes", "resumes") == 0).then_some(()));
}
