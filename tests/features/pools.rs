//! Reports about pools, and orders to them, while requests are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandarac_test_support::{
    Address, Conn, Gate, Listener, Origin, Output, Port, Reply, Sandarac, TempDir, get, post, reply, within,
};
use serde_json::Value;

use crate::{pool, sandarac};

/// A pool `app` of these backends, with `settings`; its route bypasses the cache.
fn before(origins: &[&Origin], settings: &str) -> Sandarac {
    let backends: Vec<String> = origins.iter().map(|origin| format!("\"{}\"", origin.url())).collect();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [{}]\n{settings}\n\
         [[route]]\npool = \"app\"\ncache = \"pass\"\n",
        backends.join(", ")
    );
    sandarac().config(text).start()
}

fn plain() -> Origin {
    Origin::new(|_| reply(200))
}

/// A worker with a résumé, skilled in `class`.
fn worker(id: &'static str, class: &'static str, score: f64) -> Origin {
    Origin::new(move |request| match request.target.split_once("/.well-known/worker-resume?by=") {
        Some((_, by)) => {
            let skills = format!("{{\"{class}\":{score}}}");
            let body = format!(
                "{{\"id\":\"{id}\",\"rev\":1,\"by\":\"{by}\",\"version\":\"7\",\"inflight\":0,\"history\":9999,\
                 \"skills\":{skills}}}"
            );
            reply(200)
                .with("Content-Type", "application/json")
                .with("ETag", &format!("\"{id}.1\""))
                .body(body)
        }
        None => told_by(id),
    })
}

fn told_by(id: &str) -> Reply {
    reply(200).with("Worker-State", &format!("id=\"{id}\", rev=1, inflight=0, version=\"7\""))
}

/// The pool as `pools --json` shows it.
fn detail(proxy: &Sandarac, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = ["pools", "--json"].iter().chain(arguments).copied().collect();
    let pools = proxy.admin_json(&arguments);
    let pools = pools["pools"].as_array().expect("a list of pools");
    assert_eq!(pools.len(), 1, "{pools:?}");
    pools[0].clone()
}

fn backend<'a>(pool: &'a Value, origin: &Origin) -> &'a Value {
    let backends = pool["backends"].as_array().expect("a list of backends");
    let found = backends.iter().find(|backend| backend["address"] == origin.url());
    found.unwrap_or_else(|| panic!("{} is not in {pool}", origin.url()))
}

fn state(proxy: &Sandarac, origin: &Origin) -> String {
    backend(&detail(proxy, &[]), origin)["state"].as_str().expect("a state").to_owned()
}

fn addresses(proxy: &Sandarac) -> Vec<String> {
    let pool = detail(proxy, &[]);
    let backends = pool["backends"].as_array().expect("a list of backends");
    backends.iter().map(|backend| backend["address"].as_str().expect("an address").to_owned()).collect()
}

#[test]
fn pools_tell_who_is_skilled_in_what_and_why_they_chose() {
    let (a, b) = (worker("worker-a", "a.example", 250.0), worker("worker-b", "b.example", 100.0));
    let proxy = before(&[&a, &b], "balance = \"resume\"\nclass = \"host\"");
    within("both résumés", || (detail(&proxy, &[])["skills"]["skills"] == 2).then_some(()));
    for _ in 0..5 {
        proxy.exchange(&get("/").host("www.a.example")).expect(200);
    }
    let pool = detail(&proxy, &["app"]);
    assert_eq!(pool["name"], "app");
    assert_eq!(pool["algorithm"], "resume");
    assert_eq!(pool["classifier"]["text"], "host");
    let fingerprint = pool["classifier"]["fingerprint"].as_str().expect("a fingerprint");
    assert!(fingerprint.len() == 16 && a.requests()[0].target.ends_with(fingerprint), "{fingerprint}");
    assert_eq!(pool["skills"]["by"], "reported");
    assert_eq!(pool["skills"]["classes"], 2);
    assert_eq!(pool["queue"]["waiting"], 0);
    assert_eq!(pool["queue"]["limit"], 1000);
    assert_eq!(pool["sources"], Value::Array(vec![]));
    assert_eq!(pool["removed"], Value::Array(vec![]));

    let first = backend(&pool, &a);
    assert_eq!(first["state"], "healthy");
    assert_eq!(first["weight"], 1);
    assert_eq!(first["skills"], 1);
    assert_eq!(first["version"], "7");
    assert_eq!(first["resume"]["instance"], "worker-a");
    assert_eq!(first["resume"]["revision"], 1);
    assert_eq!(first["picks"], 5);
    for number in ["in_flight", "mean_backlog", "faults", "connect_failures"] {
        assert!(first[number].is_number(), "{number} in {first}");
    }

    let class = &pool["classes"][0];
    assert_eq!(class["name"], "a.example");
    assert_eq!(class["skilled"][0]["backend"], a.url());
    assert_eq!(class["skilled"][0]["by"], "reported");
    assert!(class["share"].as_f64().is_some_and(|share| share > 0.0), "{class}");
    let choices = pool["choices"].as_array().expect("a list of choices");
    assert_eq!(choices.len(), 5);
    for choice in choices {
        assert_eq!(choice["reason"], "best-score");
        assert_eq!(choice["backend"], a.url());
        assert_eq!(choice["class"], "a.example");
        assert_eq!(choice["tried"], 0);
    }

    let named = detail(&proxy, &["--class", "b.example", "--class", "unheard"]);
    assert_eq!(named["classes"].as_array().map(Vec::len), Some(1), "{named}");
    assert_eq!(named["classes"][0]["skilled"][0]["backend"], b.url());
    assert_eq!(detail(&proxy, &["--classes", "1"])["classes"].as_array().map(Vec::len), Some(1));
    let text = proxy.admin(&["pools"]).success().stdout;
    for part in ["pool app: resume, classes by host", "worker-a.1", "best-score", "a.example", &a.url()] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn a_request_that_goes_elsewhere_says_after_how_many() {
    let broken = Origin::new(|_| Reply::none());
    let whole = plain();
    let proxy = before(&[&broken, &whole], "balance = \"fallback\"");
    proxy.get("/").expect(200);
    let pool = detail(&proxy, &[]);
    for (at, (backend, tried)) in [(whole.url(), 1), (broken.url(), 0)].into_iter().enumerate() {
        let choice = &pool["choices"][at];
        assert_eq!(choice["reason"], "first-in-order");
        assert_eq!(choice["backend"], backend);
        assert_eq!(choice["tried"], tried);
    }
}

#[test]
fn a_draining_backend_gets_no_new_requests_and_loses_none() {
    let gate = Gate::new();
    let held = gate.clone();
    let leaving = Origin::new(move |request| match request.path() {
        "/held" => reply(200).hold(&held).body("to its end"),
        _ => reply(200),
    });
    let staying = plain();
    let proxy = before(&[&leaving, &staying], "balance = \"fallback\"");
    let mut waiting = proxy.connect();
    waiting.send(get("/held").to_bytes());
    gate.reached(1);
    let output = proxy.admin(&["pool", "drain", "app", &leaving.url()]).success();
    assert_eq!(output.stdout, format!("{} gets no new requests; 1 request in flight\n", leaving.url()));
    let mut client = proxy.connect();
    (0..20).for_each(|number| drop(client.get(&format!("/{number}")).expect(200)));
    assert_eq!(leaving.count(), 1);
    assert_eq!(staying.count(), 20);
    let pool = detail(&proxy, &[]);
    let told = backend(&pool, &leaving);
    assert_eq!(told["state"], "draining");
    assert_eq!(told["in_flight"], 1);
    assert!(told["oldest_seconds"].is_number() && pool["oldest_seconds"].is_number(), "{pool}");
    gate.open();
    assert_eq!(waiting.response().expect(200).text(), "to its end");

    proxy.admin(&["pool", "drain", "app", &leaving.url(), "--undo"]).success();
    assert_eq!(state(&proxy, &leaving), "healthy");
    client.get("/back").expect(200);
    assert_eq!(leaving.count_of("/back"), 1);
}

#[test]
fn requests_go_on_while_backends_drain_come_and_go() {
    let origins = [plain(), plain(), plain()];
    let proxy = Arc::new(before(&[&origins[0], &origins[1]], ""));
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (proxy, over) = (proxy.clone(), over.clone());
            std::thread::spawn(move || {
                let mut client = proxy.connect();
                let mut served = 0;
                while !over.load(Ordering::Relaxed) {
                    client.get("/").expect(200);
                    served += 1;
                }
                served
            })
        })
        .collect();
    for _ in 0..3 {
        proxy.admin(&["pool", "add", "app", &origins[2].url()]).success();
        proxy.admin(&["pool", "drain", "app", &origins[0].url()]).success();
        proxy.admin(&["pool", "remove", "app", &origins[1].url()]).success();
        let before = origins[2].count();
        within("requests to the one that came", || (origins[2].count() > before).then_some(()));
        proxy.admin(&["pool", "add", "app", &origins[1].url()]).success();
        proxy.admin(&["pool", "drain", "app", &origins[0].url(), "--undo"]).success();
        proxy.admin(&["pool", "remove", "app", &origins[2].url()]).success();
    }
    over.store(true, Ordering::Relaxed);
    let served: usize = clients.into_iter().map(|client| client.join().expect("all were answered 200")).sum();
    assert_eq!(origins.iter().map(Origin::count).sum::<usize>(), served);
}

#[test]
fn backends_are_added_and_removed_until_the_process_ends() {
    let (first, second) = (plain(), plain());
    let proxy = before(&[&first], "balance = \"fallback\"");
    let output = proxy.admin(&["pool", "add", "app", &second.url(), "--weight", "3"]).success();
    assert_eq!(output.stdout, format!("{} is in pool app, which has 2 backends now\n", second.url()));
    assert_eq!(backend(&detail(&proxy, &[]), &second)["weight"], 3);
    let output = proxy.admin(&["pool", "remove", "app", &first.url()]).success();
    assert_eq!(output.stdout, format!("{} is no longer in pool app, which has 1 backend now\n", first.url()));
    proxy.get("/").expect(200);
    assert_eq!(first.count(), 0);
    assert_eq!(second.count(), 1);

    let text = std::fs::read_to_string(proxy.dir().join("sandarac.toml")).expect("the configuration");
    proxy.reload(&text).success();
    assert_eq!(addresses(&proxy), [second.url()]);
    assert_eq!(detail(&proxy, &[])["removed"], serde_json::json!([first.url()]));
    let added = proxy.admin_json(&["pool", "add", "app", &first.url(), "--json"]);
    assert_eq!(added["backend"], first.url());
    assert_eq!(added["backends"], 2);
    assert_eq!(detail(&proxy, &[])["removed"], serde_json::json!([]));
}

#[test]
fn orders_that_cannot_be_carried_out_say_what_could() {
    let (first, second) = (plain(), plain());
    let proxy = before(&[&first, &second], "");
    let (one, two) = (first.url(), second.url());
    let refused = |arguments: &[&str]| {
        let output = proxy.admin(arguments).failure();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        output.stderr
    };
    let said = refused(&["pool", "drain", "ap", &one]);
    assert!(said.contains("there is no pool \"ap\"") && said.contains("did you mean \"app\"?"), "{said}");
    let said = refused(&["pools", "elsewhere"]);
    assert!(said.contains("there is no pool \"elsewhere\"") && said.contains("there is app"), "{said}");
    for order in ["drain", "remove"] {
        let said = refused(&["pool", order, "app", "http://192.0.2.1"]);
        assert!(said.contains("the pool has no such backend"), "{said}");
        assert!(said.contains(&one) && said.contains(&two), "{said}");
    }
    assert!(refused(&["pool", "add", "app", &one]).contains("has this backend already"));
    assert!(refused(&["pool", "add", "app", "ftp://a"]).contains("not an address of a backend"));
    proxy.admin(&["pool", "drain", "app", &one]).success();
    for order in ["drain", "remove"] {
        let said = refused(&["pool", order, "app", &two]);
        assert!(said.contains("all the other backends of the pool are draining"), "{said}");
    }
    proxy.admin(&["pool", "remove", "app", &one]).success();
    assert!(refused(&["pool", "remove", "app", &two]).contains("the last backend"));
    proxy.get("/").expect(200);
}

#[test]
fn a_drain_that_leaves_no_healthy_backend_is_warned_of() {
    let (only, port) = (plain(), Port::new());
    let text = pool(
        &[only.url(), port.url()],
        "balance = \"fallback\"\n[pool.app.check]\npath = \"/\"\ninterval = \"20ms\"",
    );
    let proxy = sandarac().config(text).start();
    let drain = |undo: &[&str]| {
        let (app, url) = ("app", only.url());
        proxy.admin(&[&["pool", "drain", app, &url], undo].concat()).success()
    };
    within("the other backend to be down", || (proxy.metric("backend_down") == 1).then_some(()));
    let output = drain(&[]);
    assert!(output.stdout.ends_with("gets no new requests; 0 requests in flight\n"), "{output:?}");
    assert_eq!(
        output.stderr,
        format!(
            "sandarac: warning: no other backend of pool app is healthy, so that requests may fail; \
                 `sandarac pool drain app {} --undo` gives this one requests again\n",
            only.url()
        )
    );
    assert_eq!(drain(&["--undo"]).stderr, "");

    let _other = Origin::on(port.listen(), |_| reply(200));
    within("the other backend to be back", || (proxy.metric("backend_down") == 0).then_some(()));
    assert_eq!(drain(&[]).stderr, "");
}

#[test]
fn pools_are_told_and_ordered_over_http_too() {
    let (first, second) = (plain(), plain());
    let proxy = before(&[&first], "");
    let mut admin = Conn::to(&Address::Unix(proxy.admin_path()));
    let order = format!("{{\"pool\": \"app\", \"backend\": \"{}\"}}", second.url());
    for (target, status) in [
        ("/pool/add", 200),
        ("/pool/add", 400),
        ("/pool/drain", 200),
        ("/pool/remove", 200),
        ("/pool/remove", 400),
    ] {
        admin.exchange(&post(target, &order)).expect(status);
    }
    let pools: Value =
        serde_json::from_slice(&admin.get("/pools?pool=app&classes=3").expect(200).body).unwrap();
    assert_eq!(pools["pools"][0]["backends"][0]["address"], first.url());
    admin.get("/pools?pool=other").expect(400);
}

/// The output of `check-pool`, and its exit status.
fn checked(proxy: &Sandarac, arguments: &[&str]) -> (String, Option<i32>) {
    let arguments: Vec<&str> = ["check-pool"].iter().chain(arguments).copied().collect();
    let Output { status, stdout, .. } = proxy.admin(&arguments);
    assert_eq!(stdout.lines().count(), 1, "{stdout:?}");
    (stdout, status.code())
}

#[test]
fn check_pool_tells_monitoring_systems_how_a_pool_is() {
    let gate = Gate::new();
    let held = gate.clone();
    let (first, second) = (Origin::new(move |_| reply(200).hold(&held)), plain());
    let proxy = before(&[&first, &second], "balance = \"fallback\"");
    let (said, code) = checked(&proxy, &[]);
    assert_eq!(code, Some(0), "{said}");
    let (text, numbers) = said.split_once(" | ").expect("performance data");
    assert_eq!(text, "POOL OK - app: 2 of 2 workers, mean backlog 0, max backlog 0, oldest request 0s");
    assert!(numbers.starts_with("'app workers'=2;;1:;0;2 'app mean_backlog'=0;10;50;0 "), "{numbers}");

    proxy.admin(&["pool", "drain", "app", &second.url()]).success();
    let (said, code) = checked(&proxy, &["app", "--warn", "workers=2"]);
    assert!(said.starts_with("POOL WARNING - app: 1 of 2 workers (below 2), ") && code == Some(1), "{said}");
    assert_eq!(checked(&proxy, &["--warn", "workers=3", "--error", "workers=2"]).1, Some(2));

    let mut clients = [proxy.connect(), proxy.connect()];
    for client in &mut clients {
        client.send(get("/").to_bytes());
    }
    gate.reached(2);
    for (levels, code) in [
        (["--warn", "max-backlog=1"], 1),
        (["--error", "max-backlog=1"], 2),
        (["--warn", "max-backlog=2"], 0),
        (["--error", "mean-backlog=0.5"], 2),
        (["--error", "mean-backlog=1"], 0),
    ] {
        let (said, told) = checked(&proxy, &levels);
        assert_eq!(told, Some(code), "{levels:?}: {said}");
    }
    within("a request that is old", || {
        (checked(&proxy, &["--error", "oldest=50ms"]).1 == Some(2)).then_some(())
    });
    assert_eq!(checked(&proxy, &["--error", "oldest=1h", "--warn", "oldest=off"]).1, Some(0));
    gate.open();
}

#[test]
fn check_pool_tells_a_process_that_is_gone_from_a_question_that_is_wrong() {
    let origin = plain();
    let proxy = before(&[&origin], "");
    for (arguments, said) in [
        (&["ap"][..], "did you mean \"app\"?"),
        (&["--warn", "worker=3"], "did you mean workers?"),
        (&["--error", "oldest=soon"], "a time such as 30s"),
        (&["--wran", "workers=3"], "unexpected argument"),
    ] {
        let (told, code) = checked(&proxy, arguments);
        assert!(told.starts_with("POOL UNKNOWN - ") && told.contains(said) && code == Some(3), "{told}");
    }
    // Help is no status of a pool.
    let help = proxy.admin(&["check-pool", "--help"]).success();
    assert!(help.stdout.contains("--warn") && !help.stdout.contains("POOL UNKNOWN"), "{help:?}");
    let gone = sandarac().arg("check-pool").option("--admin", "./nobody-here").run().failure();
    assert_eq!(gone.status.code(), Some(2), "{gone:?}");
    assert!(gone.stdout.starts_with("POOL CRITICAL - no sandarac answers at "), "{gone:?}");
}

/// Regression: each byte restarted the timeout.
#[test]
fn check_pool_takes_no_longer_than_it_may_however_slowly_the_answer_comes() {
    let dir = TempDir::new();
    let path = dir.join("admin");
    let listener = Listener::on_unix(&path);
    std::thread::spawn(move || {
        let mut slow = listener.accept();
        // Slow on purpose: a byte at a time, for far longer than the caller waits.
        for byte in "HTTP/1.0 200 OK\r\n".bytes().chain([b'x'; 100]) {
            if slow.try_send([byte]).is_err() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    let path = path.display().to_string();
    let said = sandarac().arg("check-pool").option("--admin", path).option("--timeout", "1").run().failure();
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert_eq!(said.stdout.trim_end(), "POOL CRITICAL - the process does not answer in time");
}

#[test]
fn metrics_tell_of_pools_and_backends() {
    let (a, b) = (worker("worker-a", "a.example", 250.0), worker("worker-b", "b.example", 100.0));
    let proxy = before(&[&a, &b], "balance = \"resume\"\nclass = \"host\"");
    proxy.counts("pool_skills", 2);
    proxy.exchange(&get("/").host("a.example")).expect(200);
    proxy.exchange(&get("/").host("a.example")).expect(200);
    proxy.admin(&["pool", "drain", "app", &b.url()]).success();
    let text = Conn::to(&Address::Unix(proxy.admin_path())).get("/metrics").expect(200).text();
    let of = |origin: &Origin| format!("{{pool=\"app\",backend=\"{}\"}}", origin.url());
    for line in [
        format!("sandarac_backend_requests_total{} 2", of(&a)),
        format!("sandarac_backend_healthy{} 1", of(&a)),
        format!("sandarac_backend_draining{} 1", of(&b)),
        format!("sandarac_backend_healthy{} 0", of(&b)),
        format!("sandarac_backend_fault_ratio{} 0", of(&a)),
        format!("sandarac_backend_oldest_request_seconds{} 0", of(&a)),
        "sandarac_pool_backends{pool=\"app\"} 2".to_owned(),
        "sandarac_pool_classes{pool=\"app\"} 2".to_owned(),
        "sandarac_pool_choices_total{pool=\"app\",reason=\"best-score\"} 2".to_owned(),
        "sandarac_pool_queue{pool=\"app\"} 0".to_owned(),
        "sandarac_pool_mean_backlog{pool=\"app\"} 0".to_owned(),
    ] {
        assert!(text.lines().any(|other| other == line), "no {line} in {text}");
    }
    let stats = proxy.admin(&["stats"]).success().stdout;
    assert!(stats.contains("pool_choices pool=app reason=best-score"), "{stats}");
    let all = proxy.admin(&["stats", "--all"]).success().stdout;
    assert!(
        !stats.contains("reason=method-not-allowed") && all.contains("reason=method-not-allowed"),
        "{stats}"
    );
}
