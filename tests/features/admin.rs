//! The admin socket: queries and commands to the running process.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use sandarac_test_support::{
    Address, Conn, Gate, Origin, Req, Sandarac, Signal, eventually, get, post, reply, within,
};

use crate::{before, cache, numbered, sandarac, site};

#[test]
fn the_admin_socket_is_its_owners_alone() {
    let (proxy, _origin) = cache(|_| reply(200));
    let mode = std::fs::metadata(proxy.admin_path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_admin_socket_may_be_opened_by_a_group() {
    let origin = Origin::new(|_| reply(200));
    let group = std::fs::metadata("/proc/self").unwrap().gid();
    for (keys, mode) in [
        (format!("group = \"{group}\""), 0o660),
        ("mode = \"0660\"".to_owned(), 0o660),
        (format!("mode = \"0640\"\ngroup = \"{group}\""), 0o640),
    ] {
        let proxy = sandarac().config(site(&origin.url(), "", &format!("[admin]\n{keys}"))).start();
        let metadata = std::fs::metadata(proxy.admin_path()).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{keys}");
        assert_eq!(metadata.gid(), group, "{keys}");
    }
}

#[test]
fn a_configuration_that_is_named_goes_before_the_environment() {
    let origin = Origin::new(|_| reply(200));
    let other = sandarac().config(site(&origin.url(), "", "")).start();
    let named = sandarac().config(site(&origin.url(), "", "")).start();
    let file = named.dir().join("named.toml");
    let text = site(&origin.url(), "", &format!("[admin]\nlisten = \"{}\"", named.admin_path().display()));
    std::fs::write(&file, text).unwrap();
    let status = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandarac"));
        command.arg("status").args(arguments).env("SANDARAC_ADMIN", other.admin_path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(status(&[]).contains(&other.address().to_string()));
    assert!(status(&["-c", file.to_str().unwrap()]).contains(&named.address().to_string()));
}

#[test]
fn an_admin_socket_for_everybody_or_for_nobody_is_refused() {
    let origin = Origin::new(|_| reply(200));
    let run = |keys: &str| {
        let text = site(&origin.url(), "", &format!("[admin]\n{keys}"));
        sandarac().config(text).option("--admin", "./admin").run().failure().stderr
    };
    let said = run("mode = \"0666\"");
    assert!(said.contains("mode = \"0666\" lets every user of the machine purge and reload"), "{said}");
    let said = run("group = \"no-such-group\"");
    assert!(said.contains("there is no group called \"no-such-group\""), "{said}");
}

#[test]
fn a_token_that_may_only_read_neither_purges_nor_reloads() {
    const READ: &str = "fedcba9876543210fedcba9876543210";
    let origin = Origin::new(|_| reply(200));
    for token in [format!("token = \"{TOKEN}\"\n"), String::new()] {
        let tables = format!("[admin]\nlisten = \"127.0.0.1:0\"\n{token}read_token = \"{READ}\"");
        let proxy = sandarac().without_admin().config(site(&origin.url(), "", &tables)).start();
        let address = Address::parse(&admin_address(&proxy));
        let asked = |request: Req, token: &str| {
            Conn::to(&address).exchange(&request.with("Authorization", &format!("Bearer {token}")))
        };
        for target in ["/status", "/stats", "/metrics", "/pools"] {
            asked(get(target), READ).expect(200);
        }
        for target in ["/purge", "/ban", "/reload", "/pool/add"] {
            let refused = asked(post(target, "{\"all\": true}"), READ).expect(403);
            assert!(refused.text().contains("this token may only read"), "{}", refused.text());
        }
        let may = if token.is_empty() { 401 } else { 200 };
        asked(post("/purge", "{\"all\": true}"), TOKEN).expect(may);
    }
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
    let counts = [("requests", 4), ("hits", 2), ("misses", 2)];
    for (name, count) in counts {
        proxy.counts(name, count);
    }
    let stats = proxy.admin_json(&["stats", "--json"]);
    for (name, count) in counts {
        let told = stats["metrics"].as_array().expect("metrics").iter().find(|metric| metric["name"] == name);
        assert_eq!(told.expect("every metric is told")["value"], count, "{name}");
    }
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
    assert_eq!(ask(), ["1", "2", "3"]);
    assert_eq!(ask(), ["1", "2", "3"]);
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
        let named = line.starts_with("sandarac_") || line.starts_with("process_");
        assert!(named && value.parse::<f64>().is_ok(), "{line}");
    }
}

/// Regression: no metric counted error responses of the application, and none measured the process itself.
#[test]
fn metrics_tell_of_responses_origins_and_the_process() {
    let (proxy, _origin) = cache(|request| match request.path() {
        "/error" => reply(500),
        _ => reply(200).cache("max-age=60"),
    });
    ["/", "/", "/error", "/moved"].iter().for_each(|target| _ = proxy.get(target));
    proxy.connect().send("GET / HTTP/1.1\r\n\r\n").read_to_end();
    within("all to be counted", || (proxy.metric("responses") == 5).then_some(()));
    let text = metrics(&proxy);
    for line in [
        "sandarac_responses_total{class=\"2xx\"} 3",
        "sandarac_responses_total{class=\"4xx\"} 1",
        "sandarac_responses_total{class=\"5xx\"} 1",
        "sandarac_origin_duration_seconds_count{pool=\"default\"} 3",
        "sandarac_origin_duration_seconds_bucket{pool=\"default\",le=\"+Inf\"} 3",
        concat!("sandarac_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.lines().any(|other| other == line), "no {line} in {text}");
    }
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    assert!(value("process_start_time_seconds") > 1.7e9 && value("process_cpu_seconds_total") >= 0.0);
    let resident = value("process_resident_memory_bytes") / proxy.resident_bytes() as f64;
    assert!((0.5..2.0).contains(&resident), "{resident}");
    let open = value("process_open_fds");
    assert!(open > 5.0 && open < value("process_max_fds") && value("process_virtual_memory_bytes") > 1e6);
}

/// The dashboard and the alert rules use only metrics that exist.
#[test]
fn dashboard_and_alert_rules_name_metrics_that_exist() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.get("/");
    let text = metrics(&proxy);
    let mut known: Vec<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    // Only listeners with TLS have it; the tests of TLS look for it.
    known.push("sandarac_certificate_expiry_timestamp_seconds");
    // Likewise those with ACME.
    known.push("sandarac_acme_failed_attempts");
    known.push("sandarac_acme_failures_total");
    known.push("sandarac_acme_next_order_timestamp_seconds");
    known.push("sandarac_acme_certificate_expiry_timestamp_seconds");
    let dashboard = include_str!("../../docs/monitoring/grafana.json");
    let parsed: serde_json::Value = serde_json::from_str(dashboard).expect("JSON");
    let panels = parsed["panels"].as_array().expect("panels");
    assert!(panels.iter().all(|panel| panel["type"] == "row" || panel["targets"][0]["expr"].is_string()));
    for shown in ["sandarac_purges_total", "sandarac_purges_denied_total", "sandarac_cache_bans"] {
        assert!(dashboard.contains(shown), "no panel shows {shown}");
    }
    for text in [dashboard, include_str!("../../docs/monitoring/alerts.yml")] {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let named: Vec<&str> =
            words.filter(|word| word.starts_with("sandarac_") || word.starts_with("process_")).collect();
        assert!(named.len() > 10);
        for name in named {
            assert!(known.contains(&name), "no metric is called {name}");
        }
    }
}

fn metrics(proxy: &Sandarac) -> String {
    Conn::to(&Address::Unix(proxy.admin_path())).get("/metrics").expect(200).text()
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
    let text = metrics(&proxy);
    for line in [
        "sandarac_misses_total{reason=\"uri-miss\"} 2",
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
    let tables = format!("[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\"");
    let proxy = sandarac().without_admin().config(site(&origin.url(), "", &tables)).start();
    let address = admin_address(&proxy);
    Conn::to(&Address::parse(&address)).get("/status").expect(401);
    assert_eq!(asked_with(&address, "wrong"), 401);
    assert_eq!(asked_with(&address, TOKEN), 200);
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The admin address that a process logged at its start.
fn admin_address(proxy: &Sandarac) -> String {
    let told = proxy.stderr();
    let line = told.lines().find_map(|line| line.strip_prefix("sandarac: admin on "));
    line.expect("a line that tells the admin address").to_owned()
}

/// The status with which the admin interface at `address` answers a caller with `token`.
fn asked_with(address: &str, token: &str) -> u16 {
    let request = get("/status").with("Authorization", &format!("Bearer {token}"));
    Conn::to(&Address::parse(address)).exchange(&request).status
}

#[test]
fn an_admin_interface_over_tcp_is_had_with_flags_alone() {
    let origin = Origin::new(|_| reply(200));
    let start = || sandarac().without_admin().before(&origin).option("--admin", "127.0.0.1:0");
    let from_variable = start().variable("SANDARAC_TOKEN", TOKEN).start();
    let setup = start();
    std::fs::write(setup.dir().join("token"), format!("{TOKEN}\n")).unwrap();
    let from_file = setup.option("--admin-token-file", "./token").start();
    for proxy in [from_variable, from_file] {
        let address = admin_address(&proxy);
        assert_eq!(asked_with(&address, TOKEN), 200);
        assert_eq!(asked_with(&address, "another"), 401);
        let status = || sandarac().arg("status").option("--admin", &address);
        status().variable("SANDARAC_TOKEN", TOKEN).run().success();
        let said = status().run().failure().stderr;
        assert!(said.contains("--token-file") && said.contains("SANDARAC_TOKEN"), "{said}");
    }
}

#[test]
fn a_token_that_cannot_be_used_is_told_by_where_it_came_from() {
    let origin = Origin::new(|_| reply(200));
    let start = || sandarac().before(&origin).option("--admin", "127.0.0.1:0");
    let said = start().variable("SANDARAC_TOKEN", "short").run().failure().stderr;
    assert!(said.contains("SANDARAC_TOKEN: a token has at least 16 characters"), "{said}");
    let said = start().option("--admin-token-file", "./nowhere").run().failure().stderr;
    assert!(said.contains("--admin-token-file ./nowhere"), "{said}");
}

#[test]
fn a_reload_takes_up_a_new_token() {
    let origin = Origin::new(|_| reply(200));
    let text = |token: &str| {
        site(&origin.url(), "", &format!("[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"{token}\""))
    };
    let proxy = sandarac().without_admin().config(text(TOKEN)).start();
    let address = admin_address(&proxy);
    let other = "fedcba9876543210fedcba9876543210";
    proxy.write_config(&text(other));
    proxy.signal(Signal::Hangup);
    proxy.says("reloaded");
    assert_eq!(asked_with(&address, TOKEN), 401);
    assert_eq!(asked_with(&address, other), 200);
}

const READ_TOKEN: &str = "fedcba9876543210fedcba9876543210";

/// A process whose admin interface on TCP takes both tokens; its address; and its configuration as a function of the second
/// token.
fn with_both_tokens(origin: &Origin) -> (Sandarac, Address, impl Fn(&str) -> String) {
    let url = origin.url();
    let text = move |read: &str| {
        let tables =
            format!("[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\"\nread_token = \"{read}\"");
        site(&url, "", &tables)
    };
    let proxy = sandarac().without_admin().config(text(READ_TOKEN)).start();
    let address = Address::parse(&admin_address(&proxy));
    (proxy, address, text)
}

/// A connection that has requested the log with `token`, and the status of the response.
fn watching(address: &Address, token: &str) -> (Conn, u16) {
    let mut watcher = Conn::to(address);
    watcher.send(get("/log").with("Authorization", &format!("Bearer {token}")).to_bytes());
    let status = watcher.response_head().status;
    (watcher, status)
}

/// Regression: a caller that had the log open kept it open after its token was revoked.
#[test]
fn a_token_that_a_reload_revokes_watches_the_log_no_longer() {
    let origin = Origin::new(|_| reply(200));
    let (proxy, address, text) = with_both_tokens(&origin);
    let (mut reader, seen) = watching(&address, READ_TOKEN);
    let (mut operator, also) = watching(&address, TOKEN);
    assert_eq!(seen, 200);
    assert_eq!(also, 200);
    proxy.write_config(&text("0000000000000000ffffffffffffffff"));
    proxy.signal(Signal::Hangup);
    proxy.says("reloaded");
    let rest = reader.read_through("0\r\n\r\n");
    assert!(!String::from_utf8_lossy(&rest).contains("target"), "nothing happened before it was closed");
    assert_eq!(watching(&address, READ_TOKEN).1, 401);
    proxy.get("/later").expect(200);
    operator.read_through("/later");
}

/// Regression: callers with the read token took all places, and none was left for the full token.
#[test]
fn readers_of_the_log_leave_places_to_the_full_token() {
    let origin = Origin::new(|_| reply(200));
    let (_proxy, address, _) = with_both_tokens(&origin);
    let readers: Vec<(Conn, u16)> = (0..16).map(|_| watching(&address, READ_TOKEN)).collect();
    let served = readers.iter().filter(|(_, status)| *status == 200).count();
    assert_eq!(served, 12);
    let operators: Vec<(Conn, u16)> = (0..4).map(|_| watching(&address, TOKEN)).collect();
    assert!(operators.iter().all(|(_, status)| *status == 200));
    assert_eq!(watching(&address, TOKEN).1, 500, "sixteen watch");
}

/// Regression: a command with the read token in the environment reported an error in the configuration.
#[test]
fn a_command_with_a_configuration_presents_the_read_token_of_the_environment() {
    let origin = Origin::new(|_| reply(200));
    let (proxy, address, text) = with_both_tokens(&origin);
    let status = |token: &str| {
        let text = text(READ_TOKEN).replace("listen = \"127.0.0.1:0\"", &format!("listen = \"{address}\""));
        std::fs::write(proxy.dir().join("sandarac.toml"), text).unwrap();
        let command =
            sandarac().arg("status").option("-c", proxy.dir().join("sandarac.toml").display().to_string());
        command.variable("SANDARAC_TOKEN", token).run()
    };
    status(READ_TOKEN).success();
    status(TOKEN).success();
    let said = status("another-token-of-24-chars").failure().stderr;
    assert!(said.contains("the token is not the right one"), "{said}");
    // A server process would take it as the full token.
    let check = sandarac().arg("check").option("-c", proxy.dir().join("sandarac.toml").display().to_string());
    let said = check.variable("SANDARAC_TOKEN", READ_TOKEN).run().failure().stderr;
    assert!(
        said.contains("SANDARAC_TOKEN: this is the `read_token` of [admin], which may only read"),
        "{said}"
    );
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
    for way in ["--admin-token-file FILE", "SANDARAC_TOKEN", "[admin] token"] {
        assert!(output.stderr.contains(way), "{output:?}");
    }
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
fn the_log_is_shown_of_what_somebody_asks_for() {
    let (proxy, _origin) = cache(|request| reply(if request.target == "/gone" { 404 } else { 200 }));
    let mut admin = Conn::to(&Address::Unix(proxy.admin_path()));
    admin.send(get("/log?status=4xx&path=/g*&host=www.*").to_bytes());
    assert_eq!(admin.response_head().status, 200);
    proxy.get("/good").expect(200);
    proxy.get("/gone").expect(404);
    let seen = String::from_utf8(admin.read_through("/gone")).unwrap();
    assert!(!seen.contains("/good"), "{seen}");
    let said = proxy.admin(&["log", "--status", "4x"]).failure();
    assert!(said.stderr.contains("\"4x\" is not a status, such as 404"), "{said:?}");
    assert_eq!(said.status.code(), Some(2));
}

#[test]
fn top_shows_what_goes_on_until_a_key_ends_it() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    for key in ["q", "\u{3}"] {
        let mut top = proxy.admin_terminal(&["top"]);
        top.shows("(q quits)", 1);
        assert!(!top.is_by_line(), "a key counts at once");
        let target = format!("/watched-{}", u32::from(key == "q"));
        eventually("the busiest URL", || {
            proxy.get(&target);
            top.text().contains(&target).then_some(())
        });
        // Each picture is drawn over the previous one, and each line is cleared to its end.
        top.shows("\u{1b}[H", 2);
        let text = top.text();
        let lines = text.split("\u{1b}[H").flat_map(|picture| picture.split("\u{1b}[K\r\n"));
        let widest = lines.map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 110), "{widest:?}");
        top.press(key);
        assert!(top.wait().success());
        assert!(top.is_by_line(), "the terminal is as it was");
    }
}

#[test]
fn stats_are_watched_second_by_second() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    let watch = proxy.admin_terminal(&["stats", "--watch"]);
    let counted = || {
        let text = watch.text();
        let lines = text.lines().filter(|line| line.split_whitespace().nth(1) == Some("requests"));
        lines.filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok()).sum::<u32>()
    };
    watch.shows("cache_limit_bytes", 1);
    assert_eq!(counted(), 0, "what did not happen is left out");
    for _ in 0..7 {
        proxy.get("/counted");
    }
    eventually("them to be told", || (counted() == 7).then_some(()));
    let looks = watch.text().matches("cache_limit_bytes").count();
    watch.shows("cache_limit_bytes", looks + 1);
    assert_eq!(counted(), 7, "each second tells its own");
    assert!(watch.text().contains("latency p50"));
}

#[test]
fn commands_say_so_when_nothing_runs() {
    let output = sandarac().arg("status").option("--admin", "./nobody-here").run().failure();
    assert!(output.stderr.contains("nobody-here"), "{output:?}");
}

/// Regression: 64 silent callers shut out every other caller for a minute or longer.
#[test]
fn callers_that_say_nothing_are_no_hindrance() {
    let (proxy, _origin) = before(|_| reply(200));
    let connect = || Conn::to(&Address::Unix(proxy.admin_path()));
    let silent: Vec<Conn> = (0..80).map(|_| connect()).collect();
    let half: Vec<Conn> = (0..80)
        .map(|_| {
            let mut caller = connect();
            let _ = caller.try_send("GET /status HTTP/1.1\r\nHo");
            caller
        })
        .collect();
    let asked = std::time::Instant::now();
    proxy.admin(&["status"]).success();
    assert!(asked.elapsed().as_secs() < 4, "{:?}", asked.elapsed());
    drop((silent, half));
}

/// Regression: the connection was kept, so that a caller without a token could hold a place.
#[test]
fn a_caller_without_a_token_is_let_go() {
    let origin = Origin::new(|_| reply(200));
    let start = sandarac().before(&origin).option("--admin", "127.0.0.1:0");
    let proxy = start.without_admin().variable("SANDARAC_TOKEN", TOKEN).start();
    let mut caller = Conn::to(&Address::parse(&admin_address(&proxy)));
    assert_eq!(caller.get("/status").expect(401).field("connection"), Some("close"));
    caller.expect_end();
}

/// Regression: each byte extended the deadline by a minute.
#[test]
fn a_callers_request_that_comes_in_drops_gets_no_more_time() {
    let (proxy, _origin) = before(|_| reply(200));
    let mut caller = Conn::to(&Address::Unix(proxy.admin_path()));
    caller.send("GET /status HTTP/1.1\r\nX: ");
    within("the connection to end", || caller.try_send("y").is_err().then_some(()));
}

/// Regression: 64 callers who had been answered and stayed kept everybody else out.
#[test]
fn callers_who_stay_give_way_to_new_ones() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().before(&origin).start();
    let admin = Address::Unix(proxy.admin_path());
    let watcher = proxy.admin_terminal(&["log"]);
    let mut staying = Vec::new();
    for _ in 0..140 {
        let mut caller = Conn::to(&admin);
        caller.get("/status").expect(200);
        staying.push(caller);
    }
    proxy.admin(&["status"]).success();
    // Whoever watches the log is served all the time, and stays.
    within("the log to be watched", || {
        proxy.get("/seen");
        watcher.text().contains("/seen").then_some(())
    });
}
