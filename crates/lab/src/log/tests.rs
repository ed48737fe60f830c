use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

const COMBINED: &str = "192.0.2.7 - - [21/Nov/2026:13:55:36 +0000] \"GET /a?q=1 HTTP/1.1\" 200 8192 \"http://a.example/\" \"curl/8\"\n";

fn open(bytes: impl Into<Vec<u8>>) -> Log {
    let options = LogOptions { head: false, host: "default.example".to_owned() };
    Log::new(Cursor::new(bytes.into()), options).unwrap()
}

fn all(log: &mut Log) -> Result<Vec<LogRequest>, LogError> {
    std::iter::from_fn(|| log.next_request().transpose()).collect()
}

/// The request in a log of this one line.
fn one(line: &str) -> LogRequest {
    let requests = all(&mut open(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(requests.len(), 1, "{line}");
    requests.into_iter().next().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn combined_is_read_whole() {
    let request = one(COMBINED);
    assert_eq!(text(&request.host), "default.example");
    assert_eq!(text(&request.target), "/a?q=1");
    assert_eq!(request.referer.as_deref(), Some(&b"http://a.example/"[..]));
    assert_eq!(request.user_agent.as_deref(), Some(&b"curl/8"[..]));
    assert_eq!(request.at, Duration::ZERO);
    assert!(!request.head);
}

#[test]
fn the_host_is_told_in_several_ways() {
    let line = |before: &str, target: &str| {
        format!("{before} [21/Nov/2026:13:55:36 +0000] \"GET {target} HTTP/1.1\" 200 -")
    };
    for (before, target, host) in [
        ("192.0.2.7 - -", "/", "default.example"),
        ("client.example.net - -", "/", "default.example"),
        ("2001:db8::1 - -", "/", "default.example"),
        ("a.example:80 192.0.2.7 - -", "/", "a.example"),
        ("a.example:8443 192.0.2.7 - -", "/", "a.example:8443"),
        ("a.example:443 client.example.net - -", "/", "a.example"),
        ("a.example 2001:db8::1 - -", "/", "a.example"),
        ("192.0.2.1 192.0.2.7 - -", "/", "192.0.2.1"),
        ("[::1]:80 192.0.2.7 - john smith", "/", "[::1]"),
        ("192.0.2.7 - john smith", "/", "default.example"),
        ("2001:db8::1 - john [x] smith", "/", "default.example"),
        ("192.0.2.7 - -", "http://b.example:80/", "b.example"),
        ("a.example:80 192.0.2.7 - -", "HTTPS://b.example", "b.example"),
    ] {
        let request = one(&line(before, target));
        assert_eq!(text(&request.host), host, "{before} {target}");
        assert_eq!(text(&request.target), "/", "{before} {target}");
    }
    let request = one(&line("192.0.2.7 - -", "http://b.example?q"));
    assert_eq!(text(&request.target), "/?q");
}

#[test]
fn escapes_are_undone_and_nothing_breaks_out_of_its_place() {
    let request = one(
        r#"192.0.2.7 - - [21/Nov/2026:13:55:36 +0000] "GET /\xC3\xa9\"\\x HTTP/1.1" 200 5 "a\"b" "x\x0d\x0aEvil: 1""#,
    );
    assert_eq!(request.target, b"/\xc3\xa9\"\\x");
    assert_eq!(request.referer.as_deref(), Some(&b"a\"b"[..]));
    assert_eq!(request.user_agent, None, "a line end is no part of a field");
}

#[test]
fn a_fragment_is_not_replayed_beside_its_page() {
    let line = |target: &str, page: &str| {
        format!(
            "{{\"time\":\"2026-11-21T13:55:36.042Z\",\"session\":1,\"request\":2,{page}\"method\":\"GET\",\"host\":\"a\",\
             \"target\":\"{target}\"}}\n"
        )
    };
    let mut log = open([line("/fragment", "\"page\":1,"), line("/", "")].concat());
    let requests = all(&mut log).unwrap();
    assert_eq!(requests.iter().map(|request| text(&request.target)).collect::<Vec<_>>(), ["/"]);
    assert_eq!(log.tally().others, 1);
}

#[test]
fn our_own_json_is_read_to_the_millisecond() {
    let line = |time: &str, target: &str| {
        format!(
            "{{\"time\":\"2026-11-21T13:55:{time}Z\",\"session\":4,\"method\":\"GET\",\"host\":\"a.example\",\"target\":\"{target}\",\"status\":200}}\n"
        )
    };
    let mut log = open([line("36.042", "/a"), line("36.300", "/\\\\xff")].concat());
    let requests = all(&mut log).unwrap();
    assert_eq!(requests[1].at, Duration::from_millis(258));
    assert_eq!(text(&requests[0].host), "a.example");
    assert_eq!(&requests[1].target[..], &b"/\xff"[..]);
}

#[test]
fn only_gets_are_played_unless_head_is_asked_for_and_the_rest_is_counted() {
    let lines = ["GET", "POST", "HEAD", "OPTIONS"].map(|method| COMBINED.replace("GET", method)).concat();
    let lines = format!("{lines}\n  \n{}", COMBINED.replace("GET /a?q=1", "CONNECT a.example:443"));
    let mut log = open(lines.clone());
    assert_eq!(all(&mut log).unwrap().len(), 1);
    assert_eq!(log.tally().lines, 5);
    assert_eq!(log.tally().requests, 1);
    assert_eq!(log.tally().others, 4);
    let mut log = Log::new(Cursor::new(lines), LogOptions { head: true, host: "a".to_owned() }).unwrap();
    let heads: Vec<bool> = all(&mut log).unwrap().iter().map(|request| request.head).collect();
    assert_eq!(heads, [false, true]);
}

#[test]
fn what_cannot_be_played_is_counted_by_reason_with_its_line() {
    let bad = [
        ("nonsense".to_owned(), Malformed::Format),
        (COMBINED.replace("21/Nov", "31/Nov"), Malformed::Time),
        (COMBINED.replace("GET /a?q=1 HTTP/1.1", "\\x16\\x03\\x01"), Malformed::Request),
        (COMBINED.replace("GET /a?q=1 HTTP/1.1", ""), Malformed::Request),
        (COMBINED.replace("GET /a?q=1 HTTP/1.1", "GET /a"), Malformed::Request),
        (COMBINED.replace("/a?q=1", "/a b"), Malformed::Target),
        (COMBINED.replace("/a?q=1", "/a\\x00"), Malformed::Target),
        (COMBINED.replace("/a?q=1", "ftp://a/"), Malformed::Target),
        (format!("a@b:80 {COMBINED}"), Malformed::Host),
        (COMBINED.replace(" 200 ", " OK "), Malformed::Format),
        (COMBINED.replace("HTTP/1.1\"", "HTTP/1.1"), Malformed::Format),
        ("{\"time\":\"2026-11-21T13:55:36Z\"}".to_owned(), Malformed::Format),
        (format!("{}{COMBINED}", "x".repeat(200_000)), Malformed::TooLong),
    ];
    for (line, why) in bad {
        let mut log = open(format!("{COMBINED}{}\n{COMBINED}", line.trim_end()));
        assert_eq!(all(&mut log).unwrap().len(), 2, "{line}");
        assert_eq!(log.tally().reasons().collect::<Vec<_>>(), [(why, 1, vec![2])], "{line}");
    }
}

#[test]
fn gzip_is_known_by_its_bytes_and_may_have_several_members() {
    let members = [gzip(COMBINED.as_bytes()), gzip(COMBINED.as_bytes())].concat();
    assert_eq!(all(&mut open(members.clone())).unwrap().len(), 2);
    let cut = &members[..members.len() - 12];
    let error = all(&mut open(cut)).unwrap_err();
    assert!(matches!(error, LogError::Read { .. }), "{error}");
}

/// Regression: this was an error, and no request that had been read was replayed.
#[test]
fn what_follows_gzip_is_left_out() {
    for trailing in [&[0; 512][..], b"x"] {
        let mut log = open([&gzip(COMBINED.as_bytes())[..], &gzip(COMBINED.as_bytes()), trailing].concat());
        assert_eq!(all(&mut log).unwrap().len(), 2);
        assert!(log.tally().trailing);
    }
    let mut log = open(gzip(COMBINED.as_bytes()));
    assert_eq!(all(&mut log).unwrap().len(), 1);
    assert!(!log.tally().trailing);
}

#[test]
fn what_is_no_log_is_told_and_not_read_to_its_end() {
    let told = |bytes: &[u8]| all(&mut open(bytes)).unwrap_err().to_string();
    assert_eq!(told(b""), "it is empty");
    assert_eq!(told(b"\n\n"), "it is empty");
    assert!(told(b"{}").contains("line 1 is not in a format"));
    assert_eq!(told(COMBINED.replace("GET", "PUT").as_bytes()), "no request in it is a GET");
    let mut log = open("x\n".repeat(5000));
    assert!(all(&mut log).is_err());
    assert_eq!(log.tally().lines, 1000);
    assert_eq!(log.next_request().unwrap(), None, "it has ended");
}

#[test]
fn a_second_with_very_many_requests_takes_no_more_memory() {
    let mut log = open(COMBINED.repeat(3 * GROUP));
    let mut last = Duration::ZERO;
    for _ in 0..3 * GROUP {
        let at = log.next_request().unwrap().unwrap().at;
        assert!(at >= last && at < Duration::from_secs(1) && log.group.len() < GROUP);
        last = at;
    }
    assert_eq!(log.next_request().unwrap(), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(lines in prop::collection::vec(any::<Vec<u8>>(), 0..20), compressed: bool) {
        let bytes = lines.join(&b'\n');
        let _ = all(&mut open(if compressed { gzip(&bytes) } else { bytes }));
    }

    #[test]
    fn no_damage_makes_it_panic_or_give_out_what_cannot_be_sent(at in 0..COMBINED.len(), with: Vec<u8>) {
        for whole in [COMBINED.to_owned(), format!("a.example:80 {COMBINED}")] {
            let mut bytes = whole.into_bytes();
            bytes.splice(at..at + 1, with.iter().copied());
            let Ok(requests) = all(&mut open(bytes)) else { continue };
            for request in requests {
                prop_assert!(request.target.starts_with(b"/"));
                prop_assert!(request.target.iter().all(|&byte| byte > b' ' && byte != 0x7f));
                prop_assert!(sandarac_message::target::Authority::parse(&request.host).is_some());
                for value in [&request.referer, &request.user_agent].into_iter().flatten() {
                    prop_assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
                }
            }
        }
    }
}
