use super::*;
use crate::written::lines;

fn freshened(stored: &str, update: &str) -> String {
    lines(&freshen(fields(stored).view(), fields(update).view()).unwrap())
}

#[test]
fn a_304_updates_what_rfc_9111_says() {
    // The public tests' list of fields: name, and whether a 304 updates it.
    for (name, updates) in [
        ("Test-Header", true),
        ("X-Test-Header", true),
        ("Content-Foo", true),
        ("X-Content-Foo", true),
        ("Cache-Control", true),
        ("Content-Location", true),
        ("Content-Security-Policy", true),
        ("Clear-Site-Data", true),
        ("Expires", true),
        ("Last-Modified", true),
        ("Public-Key-Pins", true),
        ("Set-Cookie", true),
        ("Set-Cookie2", true),
        ("Vary", true),
        ("X-Frame-Options", true),
        ("X-XSS-Protection", true),
        ("Content-Encoding", false),
        ("Content-Length", false),
        ("Content-MD5", false),
        ("Content-Digest", false),
        ("Content-Range", false),
        ("Content-Type", false),
        ("ETag", false),
        ("Connection", false),
        ("Keep-Alive", false),
        ("Proxy-Authenticate", false),
        ("Proxy-Connection", false),
        ("Transfer-Encoding", false),
        ("Upgrade", false),
    ] {
        let expected = if updates { "new" } else { "old" };
        let result = freshened(&format!("{name}: old"), &format!("{}: new", name.to_ascii_lowercase()));
        assert!(result.to_ascii_lowercase().ends_with(&format!(": {expected}")), "{name}: {result}");
        assert_eq!(result.lines().count(), 1, "{name}");
    }
}

#[test]
fn what_a_304_omits_stays_and_repeated_lines_are_replaced_together() {
    assert_eq!(
        freshened("A: 1\nB: 1\nB: 2\nContent-Type: text/html", "B: 3\nB: 4\nConnection: c\nC: 5"),
        "A: 1\nContent-Type: text/html\nB: 3\nB: 4"
    );
    // Neither the new value nor the old one is stored.
    assert_eq!(
        freshened("A: 1\nB: 1", "Cache-Control: no-cache=\"a\"\nA: 2"),
        "B: 1\nCache-Control: no-cache=\"a\""
    );
}

#[test]
fn parts_have_the_fields_of_the_newer_one_and_the_length_of_both() {
    // RFC 9111 §3.4
    let stored = "Date: old\nAge: 9\nContent-Type: a/b\nContent-Range: bytes 0-4/10\nContent-Length: 5\n\
                  Content-Digest: x\nRepr-Digest: y\nETag: \"v\"\nX: 1";
    let newer = "Date: new\nContent-Range: bytes 5-9/10\nContent-Length: 5\nETag: \"v\"\nX: 2";
    let combined = |last| {
        let range = crate::range::ByteRange { first: 0, last };
        let joined = crate::range::ContentRange::of(range, 10);
        lines(&combine(fields(stored).view(), fields(newer).view(), &joined).unwrap())
    };
    let common = "Content-Type: a/b\nRepr-Digest: y\nETag: \"v\"\nDate: new\nX: 2\nContent-Length:";
    assert_eq!(combined(9), format!("{common} 10"));
    assert_eq!(combined(7), format!("{common} 8\nContent-Range: bytes 0-7/10"));
}

#[test]
fn what_has_come_of_a_response_has_the_fields_of_a_part() {
    // RFC 9111 §3.3
    let sent = "Content-Type: a/b\nContent-Length: 10\nContent-Digest: x\nRepr-Digest: y\nETag: \"v\"";
    let held = |complete| {
        let range = crate::range::ByteRange { first: 0, last: 4 };
        lines(&part_fields(fields(sent), &crate::range::ContentRange { range, complete }).unwrap())
    };
    let common =
        "Content-Type: a/b\nRepr-Digest: y\nETag: \"v\"\nContent-Length: 5\nContent-Range: bytes 0-4/";
    assert_eq!(held(Some(10)), format!("{common}10"));
    assert_eq!(held(None), format!("{common}*"));
}

#[test]
fn what_breaks_off_is_resumable_by_a_strong_validator() {
    let early = format!("Date: {}\nLast-Modified: {}", at(0), at(-60));
    let late = format!("Date: {}\nLast-Modified: {}", at(0), at(0));
    for (method, status, response, expected) in [
        (Method::Get, 200, "ETag: \"v\"", true),
        (Method::Get, 206, "ETag: \"v\"", true),
        (Method::Get, 200, &early, true),
        (Method::Get, 200, &late, false),
        (Method::Get, 200, "ETag: W/\"v\"", false),
        (Method::Get, 200, "Content-Type: a/b", false),
        (Method::Get, 404, "ETag: \"v\"", false),
        (Method::Post, 200, "ETag: \"v\"", false),
        (Method::Get, 200, "ETag: \"v\"\nAccept-Ranges: bytes", true),
        (Method::Get, 200, "ETag: \"v\"\nAccept-Ranges: none", false),
    ] {
        let (request, sent) = (FieldsBuf::new(), fields(response));
        let version = Version::Http11;
        let request = RequestHead { method, method_text: b"", target: b"/", version, fields: request.view() };
        let sent = ResponseHead { status, reason: b"", version, fields: sent.view() };
        assert_eq!(resumable(&request, &sent, NOW), expected, "{method:?} {status} {response}");
    }
}

#[test]
fn ages_of_the_older_receipt_go() {
    assert_eq!(freshened("Age: 100\nDate: old\nA: 1", "B: 2"), "A: 1\nB: 2");
    assert_eq!(freshened("Age: 100\nDate: old", "Age: 3\nDate: new"), "Age: 3\nDate: new");
}

#[test]
fn a_freshened_response_is_judged_by_its_new_fields() {
    let merged = freshened("Cache-Control: max-age=1\nAge: 50\nETag: \"a\"", "Cache-Control: max-age=3600");
    assert_eq!(rfc().lifetimes(&merged).ttl(NOW), 3600);
    let merged = freshened("Cache-Control: max-age=1\nETag: \"a\"", "Cache-Control: no-store");
    assert_eq!(rfc().reason(&merged), Reason::NoStore);
}

#[test]
fn a_head_that_disagrees_outdates_the_stored_response() {
    // RFC 9111 §4.3.5
    let stored = "ETag: \"a\"\nLast-Modified: x\nContent-Length: 5";
    for (head, expected) in [
        ("A: 1", None),
        ("Content-Length: 5", None),
        ("Content-Length: 6", Some(false)),
        ("ETag: \"a\"\nContent-Length: 5", Some(true)),
        ("ETag: \"b\"\nContent-Length: 5", Some(false)),
        ("ETag: \"a\"\nContent-Length: 6", Some(false)),
        ("Last-Modified: y", Some(false)),
    ] {
        assert_eq!(head_agrees(fields(stored).view(), fields(head).view()), expected, "{head}");
    }
}

#[test]
fn connection_fields_are_not_stored() {
    // RFC 9111 §3.1
    let response = "Connection: a, B, Cache-Control\nKeep-Alive: 1\nProxy-Authenticate: x\nProxy-Authorization: x\n\
                    Proxy-Authentication-Info: x\nProxy-Connection: x\nTE: x\nTransfer-Encoding: chunked\n\
                    Upgrade: x\na: 1\nb: 2\nc: 3\nCache-Control: max-age=3600\nSet-Cookie: a=b";
    assert_eq!(
        lines(&stored_fields(fields(response).view())),
        "c: 3\nCache-Control: max-age=3600\nSet-Cookie: a=b"
    );
}

#[test]
fn unsafe_requests_invalidate_unless_they_fail() {
    // RFC 9111 §4.4
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
        let method = Method::of(method.as_bytes());
        assert!(invalidates(method, 200) && invalidates(method, 204) && invalidates(method, 303));
        assert!(!invalidates(method, 404) && !invalidates(method, 500));
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PURGE"] {
        assert!(!invalidates(Method::of(method.as_bytes()), 200), "{method}");
    }
}
