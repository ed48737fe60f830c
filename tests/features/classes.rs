//! The classes of requests, as workers see them in `Request-Class` (docs/protocols/resume.md).

use std::fs;
use std::time::{Duration, Instant};

use sandarac_test_support::{Origin, Req, Sandarac, TempDir, Worker, get, head, post, reply, within};

use crate::{pool, sandarac, stat};

/// Sandarac before a worker, with `class` for its classifier.
fn classified(class: &str) -> (Sandarac, Worker) {
    let worker = Worker::new("w1", &[]);
    (sandarac().config(site(&worker, class)).start(), worker)
}

fn site(worker: &Worker, class: &str) -> String {
    pool(&[worker.url()], &format!("balance = \"resume\"\nclass = {class}"))
}

/// The `Request-Class` that the worker received for `request`.
fn told(proxy: &Sandarac, worker: &Worker, request: &Req) -> Option<String> {
    proxy.exchange(request).expect(200);
    let served = worker.served().pop().expect("a request at the worker");
    assert!(served.fields.all("request-class").len() <= 1, "{served:?}");
    served.field("request-class").map(str::to_owned)
}

/// The class of `request`, as written in the field.
fn class(proxy: &Sandarac, worker: &Worker, request: &Req) -> Option<String> {
    let field = told(proxy, worker, request)?;
    let end = [";by=", ";known="].into_iter().filter_map(|parameter| field.find(parameter)).min();
    Some(field[..end.expect("a fingerprint")].to_owned())
}

/// The fingerprint in the parameter `by` of a class.
fn fingerprint(proxy: &Sandarac, worker: &Worker, request: &Req) -> String {
    let field = told(proxy, worker, request).expect("a class");
    let (_, rest) = field.split_once(";by=\"").expect("a fingerprint");
    rest.split_once('"').expect("a string").0.to_owned()
}

/// Asserts that `request` is of the class `expected`.
#[track_caller]
fn is(proxy: &Sandarac, worker: &Worker, request: &Req, expected: &str) {
    assert_eq!(class(proxy, worker, request).as_deref(), Some(expected), "{request:?}");
}

/// Asserts that `request` has no class, and is counted as unclassified.
#[track_caller]
fn is_of_none(proxy: &Sandarac, worker: &Worker, request: &Req) {
    let before = stat(proxy, "unclassified");
    assert_eq!(told(proxy, worker, request), None, "{request:?}");
    proxy.counts("unclassified", before + 1);
}

#[test]
fn a_class_for_each_request_is_said_with_what_to_look_at() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let keys =
        "balance = \"resume\"\nclass = \"{path}\"\nresume = { max_classes = 10, skills = \"inferred\" }";
    let proxy = sandarac().config(pool(&[origin.url()], keys)).start();
    let mut client = proxy.connect();
    (0..1200).for_each(|n| drop(client.get(&format!("/{n}")).expect(200)));
    proxy.says("requests were of a class that was not among the 10 remembered");
    proxy.says("see whether [pool.app] class makes a class per request, and [pool.app.resume] max_classes");
    assert_eq!(proxy.metric("pool_classes"), 10);
}

#[test]
fn the_host_is_the_class_unless_told_otherwise() {
    let worker = Worker::new("w1", &[]);
    let proxy = sandarac().config(pool(&[worker.url()], "balance = \"resume\"")).start();
    for host in ["example.com", "www.example.com", "WWW.Example.COM:8080", "example.com:80"] {
        is(&proxy, &worker, &get("/").host(host), "\"example.com\"");
    }
    is(&proxy, &worker, &get("http://www.other.example:99/x").host("example.com"), "\"other.example\"");
    is(&proxy, &worker, &get("/").host("www2.example.com"), "\"www2.example.com\"");
    is(&proxy, &worker, &get("/").host("127.0.0.1:8000"), "\"127.0.0.1\"");
}

#[test]
fn every_method_has_a_class() {
    let (proxy, worker) = classified("\"host\"");
    is(&proxy, &worker, &head("/").host("a.example"), "\"a.example\"");
    is(&proxy, &worker, &post("/", "x").host("a.example"), "\"a.example\"");
}

#[test]
fn a_request_without_a_host_is_of_no_class_by_host() {
    let (proxy, worker) = classified("\"host\"");
    is_of_none(&proxy, &worker, &get("/").http10().without_host());
}

#[test]
fn a_segment_of_the_path_is_a_class() {
    let (proxy, worker) = classified("\"path_segment(2)\"");
    is(&proxy, &worker, &get("/shop/shoes/1?size=42"), "\"shoes\"");
    is(&proxy, &worker, &get("/shop/shoes?x=/y/z"), "\"shoes\"");
    is_of_none(&proxy, &worker, &get("/shop"));
    is_of_none(&proxy, &worker, &get("/?a/b/c"));
}

#[test]
fn a_template_makes_a_class_of_parts() {
    let (proxy, worker) = classified("\"{host}/{segment:1}/{header:X-Lang}/{cookie:site}/{query:id}\"");
    let request = get("/shop/shoes?id=7&size=42").host("www.a.example:81").with("X-Lang", "de");
    is(&proxy, &worker, &request.with("Cookie", "a=b; site=x"), "\"a.example/shop/de/x/7\"");
}

#[test]
fn a_template_may_name_method_path_and_query() {
    let (proxy, worker) = classified("\"{method} {path} {query} {target}\"");
    is(&proxy, &worker, &get("/a/b?c=d"), "\"GET /a/b c=d /a/b?c=d\"");
}

#[test]
fn an_expression_finds_the_class_in_the_path() {
    let (proxy, worker) = classified("{ regex = '^/(?<class>[a-z]+)/' }");
    is(&proxy, &worker, &get("/news/1"), "\"news\"");
    is(&proxy, &worker, &get("/n%65ws/1"), "\"news\"");
    is_of_none(&proxy, &worker, &get("/NEWS/1"));
}

#[test]
fn an_expression_finds_the_class_in_other_parts_of_a_request() {
    let request = get("/?site=q").host("www.h.example").with("X-Site", "id=f;").with("Cookie", "site=c-1");
    for (of, regex, expected) in [
        ("host", "^(?<class>[a-z]+)", "\"h\""),
        ("query", "(?:^|&)site=(?<class>[^&]+)", "\"q\""),
        ("header:x-site", "id=(?<class>[^;]+)", "\"f\""),
        ("cookie:site", "^(?<class>[a-z]+)-", "\"c\""),
    ] {
        let (proxy, worker) = classified(&format!("{{ regex = '{regex}', of = \"{of}\" }}"));
        is(&proxy, &worker, &request, expected);
        is_of_none(&proxy, &worker, &get("/").host("1.example"));
    }
}

#[test]
fn a_table_names_the_classes_and_is_watched() {
    let dir = TempDir::new();
    let path = dir.join("classes");
    fs::write(&path, "# sites\nexample.com front\nexample.com/blog blog\n/api api\n").expect("written");
    let (proxy, worker) = classified(&format!("{{ file = {path:?} }}"));
    is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");
    is(&proxy, &worker, &get("/blog/1").host("example.com"), "\"blog\"");
    is(&proxy, &worker, &get("/api/x").host("other.example"), "\"api\"");
    is_of_none(&proxy, &worker, &get("/").host("other.example"));
    let before = fingerprint(&proxy, &worker, &get("/api/x"));

    let new = dir.join("classes.new");
    fs::write(&new, "example.com site\n/api api\n").expect("written");
    fs::rename(&new, &path).expect("replaced");
    within("the new table to be in force", || {
        (class(&proxy, &worker, &get("/").host("example.com")).as_deref() == Some("\"site\"")).then_some(())
    });
    assert_ne!(fingerprint(&proxy, &worker, &get("/api/x")), before, "these are other classes");
}

#[test]
fn a_table_that_is_spoilt_leaves_the_last_one_in_force() {
    let dir = TempDir::new();
    let path = dir.join("classes");
    fs::write(&path, "example.com front\n").expect("written");
    let (proxy, worker) = classified(&format!("{{ file = {path:?} }}"));
    is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");
    fs::write(&path, "example.com\n").expect("written");
    proxy.says("classes:1");
    is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");
    fs::write(&path, "example.com mended\n").expect("written");
    within("the mended table to be in force", || {
        (class(&proxy, &worker, &get("/").host("example.com")).as_deref() == Some("\"mended\"")).then_some(())
    });
}

#[test]
fn a_table_without_a_class_is_a_mistake_and_takes_no_class_away() {
    let dir = TempDir::new();
    let path = dir.join("classes");
    fs::write(&path, "example.com front\n").expect("written");
    let (proxy, worker) = classified(&format!("{{ file = {path:?} }}"));
    // The file is empty for a while, as when a program truncates it and writes it later.
    for empty in ["", "# sites\n"] {
        fs::write(&path, empty).expect("written");
        within("it to be told of", || (proxy.metric("pool_table_lost") == 1).then_some(()));
        is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");
        fs::write(&path, "example.com front\n/x x\n").expect("written");
        proxy.counts("pool_table_lost", 0);
    }
    proxy.says("no line of the file has a class; the one before stays in force");
}

#[test]
fn a_table_that_is_lost_is_seen_by_those_who_look() {
    let dir = TempDir::new();
    let path = dir.join("classes");
    let (proxy, worker) = classified(&format!("{{ file = {path:?} }}"));
    let table = || proxy.admin_json(&["pools", "--json"])["pools"][0]["classifier"]["table"].clone();
    proxy.says("its table of classes is lost: absent");
    proxy.says("requests have no class until there is one");
    assert!(!proxy.stderr().contains("the one before"), "{}", proxy.stderr());
    let shown = table();
    assert_eq!(shown["lines"], 0);
    assert!(shown["lost"].as_str().is_some_and(|why| why.starts_with("absent")), "{shown}");
    assert_eq!(proxy.metric("pool_table_lines"), 0);
    assert_eq!(proxy.metric("pool_table_lost"), 1);

    let new = dir.join("classes.new");
    fs::write(&new, "example.com front\n/api api\n").expect("written");
    fs::rename(&new, &path).expect("replaced");
    proxy.counts("pool_table_lost", 0);
    assert_eq!(table(), serde_json::json!({"lines": 2, "lost": null}));
    is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");

    fs::remove_file(&path).expect("removed");
    proxy.counts("pool_table_lost", 1);
    proxy.says("; the one before stays in force");
    let text = proxy.admin(&["pools"]).success().stdout;
    assert!(
        text.contains("table of classes: 2 lines in force; LOST, the one before stays: absent"),
        "{text}"
    );
    is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");
}

/// Regression: a table that had been absent for a while was read only after a back-off of up to 10 s.
#[test]
fn a_table_that_was_lost_time_and_again_is_noticed_as_soon_as_it_appears() {
    let dir = TempDir::new();
    let (path, new) = (dir.join("classes"), dir.join("classes.new"));
    let (proxy, worker) = classified(&format!("{{ file = {path:?} }}"));
    let lost_as = |reason: &str| {
        within(&format!("the table to be {reason}"), || {
            let pools = proxy.admin_json(&["pools", "--json"]);
            let lost = pools["pools"][0]["classifier"]["table"]["lost"].as_str()?;
            lost.starts_with(reason).then_some(())
        });
    };
    lost_as("absent");
    // Each loss lengthens the back-off: after these it lasts at least 5 s.
    for _ in 0..4 {
        fs::create_dir(&path).expect("made");
        lost_as("unreadable");
        fs::remove_dir(&path).expect("removed");
        lost_as("absent");
    }
    fs::write(&new, "example.com front\n").expect("written");
    fs::rename(&new, &path).expect("put in place");
    let appeared = Instant::now();
    proxy.counts("pool_table_lost", 0);
    assert!(appeared.elapsed() < Duration::from_secs(4), "noticed only after {:?}", appeared.elapsed());
    is(&proxy, &worker, &get("/").host("example.com"), "\"front\"");
}

#[test]
fn a_class_is_a_string_where_it_can_be_and_bytes_where_not() {
    let (proxy, worker) = classified("\"{header:X-Class}\"");
    is(&proxy, &worker, &get("/").with("X-Class", "a \"b\" \\c"), r#""a \"b\" \\c""#);
    let mut client = proxy.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Class: caf\xc3\xa9\r\n\r\n");
    client.response().expect(200);
    let field = worker.served().pop().and_then(|request| request.field("request-class").map(str::to_owned));
    assert!(field.as_ref().is_some_and(|field| field.starts_with(":Y2Fmw6k=:;")), "{field:?}");
}

#[test]
fn a_class_of_more_than_256_bytes_is_none() {
    let (proxy, worker) = classified("\"{header:X-Class}\"");
    let longest = "x".repeat(256);
    is(&proxy, &worker, &get("/").with("X-Class", &longest), &format!("\"{longest}\""));
    is_of_none(&proxy, &worker, &get("/").with("X-Class", &format!("{longest}x")));
    is_of_none(&proxy, &worker, &get("/"));
}

#[test]
fn a_fingerprint_is_that_of_the_classifier_and_of_nothing_else() {
    let worker = Worker::new("w1", &[]);
    let print = |class: &str| {
        let proxy = sandarac().config(site(&worker, class)).start();
        fingerprint(&proxy, &worker, &get("/a/b").host("a.example").with("Cookie", "a=b"))
    };
    let classifiers = [
        "\"host\"",
        "\"path_segment(1)\"",
        "\"path_segment(2)\"",
        "\"{host}/{segment:1}\"",
        "{ regex = '^/(?<class>.)' }",
        "{ regex = '(?<class>[a-z])' }",
        "{ regex = '(?<class>[a-z])', of = \"host\" }",
    ];
    let prints: Vec<String> = classifiers.iter().map(|class| print(class)).collect();
    for (at, one) in prints.iter().enumerate() {
        let digits = one.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        assert!(one.len() == 16 && digits, "{one}");
        assert_eq!(prints.iter().position(|other| other == one), Some(at), "{prints:?}");
    }
    let again: Vec<String> = classifiers.iter().map(|class| print(class)).collect();
    assert_eq!(again, prints, "a restart changes no fingerprint");
}

#[test]
fn known_says_which_resume_the_balancer_holds() {
    let (proxy, worker) = classified("\"host\"");
    let request = get("/").host("a.example");
    let known = || {
        let field = told(&proxy, &worker, &request).expect("a class");
        field.split_once(";known=\"").map(|(_, known)| known.trim_end_matches('"').to_owned())
    };
    let becomes = |expected: &str| {
        within(&format!("{expected} to be known"), || (known().as_deref() == Some(expected)).then_some(()))
    };
    becomes("w1.1");
    worker.learns("a.example", 20.0);
    assert_eq!(known().as_deref(), Some("w1.1"), "this request's response brings the news");
    assert_eq!(known().as_deref(), Some("w1.2"));
    worker.restarts("w2", &[]);
    becomes("w2.1");
}

#[test]
fn nothing_is_known_of_a_worker_that_tells_no_resume() {
    let worker = Worker::new("w1", &[]);
    worker.tells(|_| reply(404)).claims("", "");
    let proxy = sandarac().config(site(&worker, "\"host\"")).start();
    for _ in 0..3 {
        let field = told(&proxy, &worker, &get("/").host("a.example")).expect("a class");
        assert!(field.starts_with("\"a.example\";by=\"") && !field.contains("known"), "{field}");
    }
}
