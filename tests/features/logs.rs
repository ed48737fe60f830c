//! The access log.

use std::fs;
use std::path::Path;

use sandarac_test_support::{
    Address, Conn, Gate, Listener, Origin, Port, Sandarac, Signal, get, post, reply, within,
};

use crate::{sandarac, site, stat};

fn lines(path: &Path, count: usize) -> Vec<String> {
    within(&format!("{count} lines in the log"), || {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() >= count && text.ends_with('\n')).then_some(lines)
    })
}

const JSON: &str = "[log]\naccess = \"./access.json\"\nformat = \"json\"";

/// The records of a log in JSON, once there are `count`.
fn records(proxy: &Sandarac, count: usize) -> Vec<serde_json::Value> {
    let lines = lines(&proxy.dir().join("access.json"), count);
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn combined_lines_are_written_to_a_file() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("12345"));
    let proxy = sandarac().config(site(&origin.url(), "", "[log]\naccess = \"./access.log\"")).start();
    let request =
        get("/page?a=b").with("Referer", "http://from.example/").with("User-Agent", "Probe/1 \"quoted\"");
    proxy.exchange(&request);
    proxy.exchange(&request);
    for line in lines(&proxy.dir().join("access.log"), 2) {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(
            line.contains(
                "] \"GET /page?a=b HTTP/1.1\" 200 5 \"http://from.example/\" \"Probe/1 \\\"quoted\\\"\""
            ),
            "{line}"
        );
    }
}

#[test]
fn json_lines_name_the_field_that_keeps_a_request_from_sharing() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let proxy = sandarac().config(site(&origin.url(), "", JSON)).start();
    let mut client = proxy.connect();
    for (name, value) in [("DNT", "1"), ("X-API-Key", "k"), ("HX-Request", "true")] {
        client.exchange(&get("/").with(name, value));
    }
    let told = |name: &str| {
        let records = records(&proxy, 3);
        records.iter().map(|record| record[name].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told("reason"), [None, some("unknown-field"), some("form-field")]);
    assert_eq!(told("field"), [None, some("X-API-Key"), some("HX-Request")]);
}

#[test]
fn json_lines_tell_how_each_answer_came_about() {
    let origin = Origin::new(|request| match request.path() {
        "/chunked" => reply(200).chunked().body("123").body("45"),
        _ => reply(200).cache("max-age=60").body("12345"),
    });
    let proxy = sandarac().config(site(&origin.url(), "", JSON)).start();
    let mut client = proxy.connect();
    client.exchange(&get("/page"));
    client.exchange(&get("/page"));
    proxy.connect().send("GET /broken HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").read_to_end();
    proxy.exchange(&post("/chunked", "x"));
    let records = records(&proxy, 4);
    // The records of one core come in order; those of several cores come in any order.
    let of =
        |outcome: &str| records.iter().find(|record| record["cache"] == outcome).expect("a record of each");
    let (miss, hit, refused, passed) = (of("miss"), of("hit"), of("error"), of("pass"));
    let of_refused = [&refused["method"], &refused["target"], &refused["reason"]].map(|value| value.as_str());
    assert_eq!(of_refused, [Some("GET"), Some("/broken"), Some("repeated-host")]);
    assert!(refused["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{refused}");
    assert_eq!(passed["bytes"].as_u64(), Some(5), "framing is no part of a body");
    assert_eq!(miss["method"].as_str(), Some("GET"));
    assert_eq!(miss["target"].as_str(), Some("/page"));
    assert_eq!(miss["host"].as_str(), Some("www.example"));
    assert_eq!(miss["status"].as_u64(), Some(200));
    assert_eq!(miss["bytes"].as_u64(), Some(5));
    assert!(
        miss["backend"]
            .as_str()
            .is_some_and(|backend| backend.contains(&origin.address().port().to_string())),
        "{miss}"
    );
    assert!(hit["backend"].is_null() && hit["duration_us"].is_u64());
    // One counter numbers sessions, requests and fetches.
    let broken = of("error");
    assert!(miss["session"] == hit["session"] && miss["session"] != broken["session"], "{records:?}");
    assert!(miss["fetch"] == hit["fetch"] && miss["request"] != hit["request"], "{records:?}");
    for record in [miss, hit] {
        let first_byte = record["first_byte_us"].as_u64().expect("a time to the first byte");
        assert!(first_byte <= record["duration_us"].as_u64().unwrap(), "{record}");
    }
    assert!(broken["first_byte_us"].is_null());
}

#[test]
fn a_log_on_standard_output_is_written_there() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[log]\naccess = \"stdout\"")).start();
    proxy.get("/to-stdout");
    within("the line", || proxy.stdout().contains("GET /to-stdout HTTP/1.1").then_some(()));
}

#[test]
fn a_rotated_log_is_opened_anew() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[log]\naccess = \"./access.log\"")).start();
    let (log, old) = (proxy.dir().join("access.log"), proxy.dir().join("access.log.1"));
    proxy.get("/before");
    lines(&log, 1);
    fs::rename(&log, &old).unwrap();
    proxy.signal(Signal::Hangup);
    within("the new file", || log.exists().then_some(()));
    proxy.get("/after");
    assert!(lines(&log, 1)[0].contains("/after"));
    assert_eq!(lines(&old, 1).len(), 1);
}

#[test]
fn what_a_client_sends_cannot_forge_a_line() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[log]\naccess = \"./access.log\"")).start();
    let mut client = proxy.connect();
    client.send(b"GET /\x1b[2J\"x HTTP/1.1\r\nHost: www.example\r\nUser-Agent: \xe9\x1f\r\n\r\n");
    client.read_to_end();
    proxy.exchange(&get("/\"q").with("User-Agent", "a\tb \" 200 0 \"-\" \"forged"));
    let written = lines(&proxy.dir().join("access.log"), 2);
    let line = written.iter().find(|line| line.contains("q HTTP/1.1")).expect("a line of the second request");
    assert!(line.contains("/\\\"q HTTP/1.1") && line.contains("\\\" 200 0 \\\"-\\\" \\\"forged"), "{line}");
    assert!(written.iter().all(|line| line.bytes().all(|byte| (b' '..=b'~').contains(&byte))));
}

#[test]
fn a_reload_exchanges_the_log() {
    let origin = Origin::new(|_| reply(200));
    let text = |log: &str| site(&origin.url(), "", log);
    let proxy = sandarac().config(text("[log]\naccess = \"./one.log\"")).start();
    let (one, two) = (proxy.dir().join("one.log"), proxy.dir().join("two.log"));
    proxy.get("/first");
    proxy.reload(&text("[log]\naccess = \"./two.log\"")).success();
    proxy.get("/second");
    assert!(lines(&two, 1)[0].contains("/second"));
    assert!(lines(&one, 1).iter().all(|line| line.contains("/first")));
    proxy.reload(&text("[log]\naccess = \"./two.log\"\nformat = \"json\"")).success();
    proxy.get("/third");
    let record: serde_json::Value = serde_json::from_str(&lines(&two, 2)[1]).unwrap();
    assert_eq!(record["target"], "/third");
    proxy.reload(&text("")).success();
    proxy.get("/unlogged");
    proxy.reload(&text("[log]\naccess = \"./one.log\"")).success();
    proxy.get("/fourth");
    assert!(lines(&one, 2)[1].contains("/fourth"));
    assert_eq!(lines(&two, 2).len(), 2);
}

#[test]
fn a_log_that_cannot_be_opened_refuses_the_reload() {
    let (old, new) =
        (Origin::new(|_| reply(200).body("old")), Origin::new(|_| reply(200).cache("no-store").body("new")));
    let proxy = sandarac().config(site(&old.url(), "", "[log]\naccess = \"./kept.log\"")).start();
    for path in ["./no/such/dir/a.log", "/tmp"] {
        let log = format!("[log]\naccess = \"{path}\"");
        let output = proxy.reload(&site(&new.url(), "", &log)).failure();
        assert!(output.stderr.contains(path) && output.stderr.contains("access log"), "{output:?}");
        proxy.signal(Signal::Hangup);
        proxy.says(path);
    }
    assert_eq!(proxy.get("/kept").text(), "old");
    assert!(lines(&proxy.dir().join("kept.log"), 1)[0].contains("/kept"));
}

/// Regression: a reload that did not change the path did not check whether the log could still be written
/// there.
#[test]
fn a_reload_is_refused_when_the_log_can_no_longer_be_opened() {
    let (old, new) =
        (Origin::new(|_| reply(200).body("old")), Origin::new(|_| reply(200).cache("no-store").body("new")));
    let log = "[log]\naccess = \"./logs/access.log\"";
    let setup = sandarac().config(site(&old.url(), "", log));
    fs::create_dir(setup.dir().join("logs")).unwrap();
    let proxy = setup.start();
    fs::rename(proxy.dir().join("logs"), proxy.dir().join("moved")).unwrap();
    let output = proxy.reload(&site(&new.url(), "", log)).failure();
    assert!(output.stderr.contains("cannot write the access log ./logs/access.log"), "{output:?}");
    assert_eq!(proxy.get("/kept").text(), "old");
    assert!(lines(&proxy.dir().join("moved/access.log"), 1)[0].contains("/kept"));
    fs::create_dir(proxy.dir().join("logs")).unwrap();
    proxy.reload(&site(&new.url(), "", log)).success();
    assert_eq!(proxy.get("/new").text(), "new");
    assert!(lines(&proxy.dir().join("logs/access.log"), 1)[0].contains("/new"));
}

#[test]
fn a_log_that_cannot_be_opened_stops_the_start_by_name() {
    let origin = Origin::new(|_| reply(200));
    let output =
        sandarac().before(&origin).option("--listen", "127.0.0.1:0").arg("--access-log=./no/a.log").run();
    let output = output.failure();
    assert!(output.stderr.contains("cannot write the access log ./no/a.log"), "{output:?}");
}

/// Regression: an IPv4 client of a listener for IPv4 and IPv6 was logged as `::ffff:127.0.0.1`.
#[test]
fn an_ipv4_client_of_an_ipv6_listener_is_logged_by_its_ipv4_address() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "[log]\naccess = \"./access.log\"").replace("127.0.0.1:0", "[::]:0");
    let proxy = sandarac().config(text).start();
    let Address::Tcp(listening) = proxy.address() else { panic!("a TCP listener") };
    Conn::to(&Address::Tcp(([127, 0, 0, 1], listening.port()).into())).get("/").expect(200);
    assert!(lines(&proxy.dir().join("access.log"), 1)[0].starts_with("127.0.0.1 - - ["));
}

/// Regression: lines of failed fetches named no backend, and lines of stale responses no error.
#[test]
fn a_failed_fetch_is_logged_with_its_backend_and_its_error() {
    let origin = Origin::new(|request| match request.serial {
        1..=2 => reply(200).cache("max-age=1").with("Age", "5").with("ETag", "\"1\""),
        _ => reply(503),
    });
    let keys = "cache = { stale_if_error = \"1h\" }";
    let proxy = sandarac().config(site(&origin.url(), keys, JSON)).start();
    ["/stale", "/late"].iter().for_each(|path| _ = proxy.get(path).expect(200));
    proxy.get("/late").expect(200);
    let backend = origin.url().trim_start_matches("http://").to_owned();
    drop(origin);
    proxy.get("/stale").expect(200);
    proxy.get("/none").expect(502);
    let records = records(&proxy, 5);
    let failed = |target: &str, cache: &str| {
        let record = records.iter().find(|record| record["target"] == target && record["cache"] == cache);
        let record = record.unwrap_or_else(|| panic!("{cache} of {target}: {records:?}"));
        assert!(record["backend"].as_str().is_some_and(|asked| asked.ends_with(&backend)), "{record}");
        record["error"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(failed("/late", "stale"), "the backend answered 503");
    assert_eq!(failed("/stale", "stale"), "no connection to the backend: connection refused");
    assert_eq!(failed("/none", "error"), "no connection to the backend: connection refused");
}

/// Regression: the log line looked like that of any other 200.
#[test]
fn a_response_that_broke_off_at_the_backend_is_logged_so() {
    for cache in ["max-age=60", "no-store"] {
        let listener = Listener::new();
        let log = "[log]\naccess = \"stdout\"\nformat = \"json\"";
        let proxy = sandarac().config(site(&listener.url(), "", log)).start();
        let mut client = proxy.connect();
        client.send(get("/").to_bytes());
        let mut origin = listener.accept();
        origin.request();
        origin.send(format!("HTTP/1.1 200 OK\r\nCache-Control: {cache}\r\nContent-Length: 100\r\n\r\nabc"));
        client.read_through("abc");
        drop(origin);
        within("the line", || (!proxy.stdout().is_empty()).then_some(()));
        let line = proxy.stdout();
        assert!(line.contains("\"reason\":\"origin-broke-off\""), "{cache}: {line}");
        assert!(line.contains("\"error\":\"the response broke off at the backend\""), "{cache}: {line}");
    }
}

/// Regression: such a request was logged with the status of the response that nobody read, or with none.
#[test]
fn a_client_that_left_before_its_response_is_logged_as_499() {
    for cache in ["max-age=60", "no-store"] {
        let gate = Gate::new();
        let held = gate.clone();
        let origin = Origin::new(move |_| reply(200).cache(cache).hold(&held));
        let proxy = sandarac().config(site(&origin.url(), "", JSON)).start();
        let mut client = proxy.connect();
        client.send(get("/page").to_bytes());
        gate.reached(1);
        drop(client);
        // Otherwise the response may be there before the end of the client is.
        within("the client's end to be noticed", || (stat(&proxy, "connections_open") == 0).then_some(()));
        gate.open();
        let record = &records(&proxy, 1)[0];
        assert_eq!(record["status"], 499, "{cache}: {record}");
    }
}

/// Regression: neither failure was logged anywhere.
#[test]
fn a_backend_that_cannot_be_reached_is_named_on_standard_error() {
    let port = Port::new();
    for (backend, why) in [
        (port.url(), "no connection to the backend: connection refused"),
        ("http://nowhere.invalid:8080".to_owned(), "the backend's name has no address"),
    ] {
        let proxy = sandarac().config(site(&backend, "", "")).start();
        (0..3).for_each(|_| _ = proxy.get("/"));
        let line = format!("sandarac: pool app: {backend}: {why}");
        within("the line", || proxy.stderr().contains(&line).then_some(()));
        assert_eq!(proxy.stderr().matches(&line).count(), 1, "{}", proxy.stderr());
    }
}

/// Regression: it was logged as sent when it began, and a client that left counted as one that is too slow.
#[test]
fn a_long_stored_response_is_logged_when_it_has_ended() {
    const LEN: usize = 12 << 20;
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body(vec![b'x'; LEN]));
    let proxy = sandarac().config(site(&origin.url(), "", JSON)).start();
    assert_eq!(proxy.get("/").expect(200).body.len(), LEN);
    records(&proxy, 1);
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send(get("/").to_bytes());
    assert!(client.response_head().expect(200).is_hit());
    client.reset();
    let record = &records(&proxy, 2)[1];
    assert!(record["bytes"].as_u64().unwrap() < LEN as u64, "{record}");
    assert_eq!(proxy.metric("clients_slow"), 0);
}
