//! What the running process can be asked and told over its admin socket.

use std::os::unix::fs::PermissionsExt;

use sandarac_test_support::{Address, Conn, Gate, Origin, get, post, reply, within};
use serde_json::Value;

use crate::{cache, numbered, sandarac, site};

#[test]
fn the_admin_socket_is_its_owners_alone() {
    let (proxy, _origin) = cache(|_| reply(200));
    let mode = std::fs::metadata(proxy.admin_path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn status_tells_the_addresses_really_bound() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().before(&origin).option("--memory", "64MiB").option("--threads", "2").rfc().start();
    let status = proxy.admin_json(&["status", "--json"]);
    assert_eq!(status["listeners"], serde_json::json!([proxy.address().to_string()]));
    assert_eq!(status["pid"].as_u64(), Some(proxy.pid().into()));
    assert_eq!(status["threads"], 2);
    assert_eq!(status["profile"], "rfc");
    assert_eq!(status["cache"]["limit_bytes"].as_u64(), Some(64 << 20));
    assert_eq!(status["pools"][0]["backends"].as_array().map(Vec::len), Some(1));
    let text = proxy.admin(&["status"]).success().stdout;
    assert!(text.contains(&proxy.address().to_string()), "{text}");
}

#[test]
fn stats_count_what_happens() {
    let (proxy, _origin) = cache(|request| match request.path() {
        "/stored" => reply(200).cache("max-age=60"),
        _ => reply(200).cache("no-store"),
    });
    for path in ["/stored", "/stored", "/stored", "/other"] {
        proxy.get(path);
    }
    let sum = |stats: &Value, part: &str| -> u64 {
        let metrics = stats["metrics"].as_array().expect("metrics").iter();
        metrics
            .filter(|metric| metric.to_string().contains(part))
            .filter_map(|metric| metric["value"].as_u64())
            .sum()
    };
    let stats = within("four requests to be counted", || {
        let stats = proxy.admin_json(&["stats", "--json"]);
        (sum(&stats, "request") >= 4).then_some(stats)
    });
    assert!(sum(&stats, "hit") >= 2, "{stats}");
    assert!(sum(&stats, "miss") >= 2, "{stats}");
}

#[test]
fn a_url_is_purged_with_all_its_variants() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo"));
    let ask = |foo: &str| proxy.exchange(&get("/a?b").with("Foo", foo)).text();
    assert_eq!([ask("1"), ask("2"), proxy.get("/other").text()], ["1", "2", "3"]);
    proxy.admin(&["purge", "http://www.example/a?b"]).success();
    assert_eq!([ask("1"), ask("2"), proxy.get("/other").text()], ["4", "5", "3"]);
    proxy.admin(&["purge", "http://www.example/not-there"]).success();
    proxy.admin(&["purge", "not a url"]).failure();
}

#[test]
fn everything_is_purged() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    let ask = || ["/a", "/b", "/c"].map(|path| proxy.get(path).text());
    assert_eq!((ask(), ask()), (["1", "2", "3"].map(str::to_owned), ["1", "2", "3"].map(str::to_owned)));
    proxy.admin(&["purge", "--all"]).success();
    assert_eq!(ask(), ["4", "5", "6"]);
}

#[test]
fn purge_says_what_is_missing() {
    let (proxy, _origin) = cache(|_| reply(200));
    let output = proxy.admin(&["purge"]).failure();
    assert!(output.stderr.contains("--all"), "{output:?}");
}

#[test]
fn a_soft_purge_makes_stale_and_keeps() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(numbered(move |request| {
        let page = reply(200).cache("max-age=60").with("Surrogate-Key", "tag");
        if request.serial == 1 { page } else { page.hold(&held) }
    }));
    let proxy = sandarac().before(&origin).rfc().option("--grace", "10m").start();
    proxy.get("/");
    proxy.admin(&["purge", "--tag", "tag", "--soft"]).success();
    assert_eq!(proxy.get("/").text(), "1", "grace applies");
    origin.reached(2);
    gate.open();
    within("the new page", || (proxy.get("/").text() == "2").then_some(()));
    for arguments in [&["purge", "--soft", "http://www.example/"][..], &["purge", "--soft", "--all"]] {
        let before = origin.count();
        proxy.admin(arguments).success();
        within("another page", || {
            proxy.get("/").expect(200);
            (origin.count() > before).then_some(())
        });
    }
}

#[test]
fn a_soft_purge_without_grace_means_validation() {
    let (proxy, origin) = cache(|request| match request.field("if-none-match") {
        None => reply(200).cache("max-age=60").with("ETag", "\"v\""),
        Some(_) => reply(304).cache("max-age=60").with("ETag", "\"v\""),
    });
    proxy.get("/");
    proxy.admin(&["purge", "--soft", "--all"]).success();
    assert_eq!(proxy.get("/").text(), "1");
    assert_eq!(origin.last().field("if-none-match"), Some("\"v\""));
    proxy.get("/");
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_fill_begun_before_a_purge_is_served_to_nobody_later() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = cache(move |request| {
        let page = reply(200).cache("max-age=60");
        if request.serial == 1 { page.hold(&held) } else { page }
    });
    let mut waiting = proxy.connect();
    waiting.send(get("/").to_bytes());
    gate.reached(1);
    proxy.admin(&["purge", "--all"]).success();
    gate.open();
    assert_eq!(waiting.response().expect(200).text(), "1");
    assert_eq!(proxy.get("/").text(), "2");
}

#[test]
fn bans_strike_what_they_describe() {
    let (proxy, _origin) = cache(|request| match request.path() {
        "/news/gone" => reply(404).cache("max-age=60"),
        _ => reply(200).cache("max-age=60").with("X-Kind", "page"),
    });
    let on = |host: &str, path: &str| proxy.exchange(&get(path).host(host)).text();
    let all = || {
        [
            on("a.example", "/news/1"),
            on("b.example", "/news/1"),
            on("a.example", "/shop"),
            on("a.example", "/news/gone"),
        ]
    };
    assert_eq!(all(), ["1", "2", "3", "4"]);
    proxy.admin(&["ban", "host == \"a.example\" && path ~ \"^/news/\""]).success();
    assert_eq!(all(), ["5", "2", "3", "6"]);
    proxy.admin(&["ban", "status == 404"]).success();
    assert_eq!(all(), ["5", "2", "3", "7"]);
    proxy.admin(&["ban", "field.X-Kind == \"page\" && !(path == \"/shop\")"]).success();
    assert_eq!(all(), ["8", "9", "3", "7"]);
    let output = proxy.admin(&["ban", "hots == \"a.example\""]).failure();
    assert!(output.stderr.contains("hots") && output.stderr.contains("host"), "{output:?}");
}

#[test]
fn metrics_are_there_for_prometheus() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.get("/");
    let mut admin = Conn::to(&Address::Unix(proxy.admin_path()));
    let response = admin.get("/metrics").expect(200);
    let text = response.text();
    assert!(response.field("content-type").unwrap().starts_with("text/plain"), "{response:?}");
    assert!(text.contains("# TYPE sandarac_") && text.contains("# HELP sandarac_"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(line.starts_with("sandarac_") && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn metrics_name_the_reasons() {
    let (proxy, _origin) = cache(|request| match request.path() {
        "/private" => reply(200).cache("private"),
        "/gone" => sandarac_test_support::Reply::none(),
        _ => reply(200).cache("max-age=60"),
    });
    for target in ["/", "/private", "/private", "/gone"] {
        proxy.get(target);
    }
    proxy.exchange(&post("/", "x"));
    proxy.connect().send("GET / HTTP/1.1\r\n\r\n").read_to_end();
    let text = Conn::to(&Address::Unix(proxy.admin_path())).get("/metrics").expect(200).text();
    for line in [
        "sandarac_misses_total{reason=\"uri-miss\"} 3",
        "sandarac_misses_total{reason=\"hit-for-miss\"} 1",
        "sandarac_misses_total{reason=\"stale\"} 0",
        "sandarac_passes_total{reason=\"method\"} 1",
        "sandarac_unstored_total{reason=\"private\"} 2",
        "sandarac_refused_total{reason=\"missing-host\"} 1",
        "sandarac_failed_total{reason=\"no-response\"} 1",
    ] {
        assert!(text.lines().any(|other| other == line), "no {line} in {text}");
    }
}

#[test]
fn an_admin_interface_over_tcp_wants_its_token() {
    let origin = Origin::new(|_| reply(200));
    let tables = "[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"0123456789abcdef0123456789abcdef\"";
    let proxy = sandarac().without_admin().config(site(&origin.url(), "", tables)).start();
    let line = proxy.stderr().lines().find(|line| line.contains("admin")).map(str::to_owned);
    let address = line
        .as_deref()
        .and_then(|line| line.rsplit(' ').next())
        .expect("a line that tells the admin address")
        .to_owned();
    let mut client = Conn::to(&Address::parse(&address));
    client.get("/status").expect(401);
    let with = |token: &str| get("/status").with("Authorization", &format!("Bearer {token}"));
    assert_eq!(Conn::to(&Address::parse(&address)).exchange(&with("wrong")).status, 401);
    Conn::to(&Address::parse(&address)).exchange(&with("0123456789abcdef0123456789abcdef")).expect(200);
}

#[test]
fn an_admin_interface_over_tcp_without_a_token_is_refused() {
    let origin = Origin::new(|_| reply(200));
    let output = sandarac()
        .before(&origin)
        .option("--listen", "127.0.0.1:0")
        .option("--admin", "127.0.0.1:0")
        .run()
        .failure();
    assert!(output.stderr.contains("token"), "{output:?}");
}

#[test]
fn the_log_is_shown_live() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    let mut admin = Conn::to(&Address::Unix(proxy.admin_path()));
    admin.send(get("/log").to_bytes());
    assert_eq!(admin.response_head().status, 200);
    proxy.get("/seen-live");
    admin.read_through("/seen-live");
}

#[test]
fn commands_say_so_when_nothing_runs() {
    let output = sandarac().arg("status").option("--admin", "./nobody-here").run().failure();
    assert!(output.stderr.contains("nobody-here"), "{output:?}");
}
