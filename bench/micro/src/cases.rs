//! The steps: reading a head, making the key, looking up, judging and writing a head.

use crate::samples::{BODY, BROWSER_REQUEST, RESPONSE, SHORT_REQUEST};
use sandarac_cache::{Intent, Key, Lookup, NewObject, Query, Settings, Store};
use sandarac_message::caching::{
    Policy, RequestDirectives, Storability, lookup_bypass, storability, stored_fields,
};
use sandarac_message::hop::is_standing;
use sandarac_message::target::{Scheme, Target};
use sandarac_message::vary::{VaryRule, VarySpec};
use sandarac_message::{
    Fields, FieldsBuf, Method, RequestHead, ResponseHead, Span, StoredHead, Timestamp, decimal,
};
use sandarac_wire::h1::encode;
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, request, response};
use std::hint::black_box;
use std::sync::Arc;

/// A name, and what runs the step so many times.
pub(crate) type Case = (&'static str, fn(usize));

/// All cases. A name is the key in `baseline.json`.
pub(crate) const CASES: &[Case] = &[
    ("parse-request-short", |times| parse_request(SHORT_REQUEST, times)),
    ("parse-request-browser", |times| parse_request(BROWSER_REQUEST, times)),
    ("parse-response", parse_response),
    ("target-and-key", target_and_key),
    ("lookup-hit-alone", |times| lookup_hit(1, times)),
    ("lookup-hit-of-100000", |times| lookup_hit(100_000, times)),
    ("lookup-bypass", bypass),
    ("vary-same", |times| match_variant("gzip, deflate, br", "gzip, deflate, br", true, times)),
    ("vary-respelled", |times| match_variant("gzip, deflate, br", "br, gzip, deflate", true, times)),
    ("vary-other", |times| match_variant("gzip, deflate, br", "gzip", false, times)),
    ("storability", judge),
    ("encode-hit-head", encode_hit),
    ("encode-forwarded-request", encode_request),
    ("encode-forwarded-response", encode_response),
    ("hit", hit),
];

const NOW: Timestamp = Timestamp::from_secs(1_795_248_012);
const LATER: Timestamp = Timestamp::from_secs(1_795_248_024);

fn with_request<T>(bytes: &[u8], spans: &mut Vec<Span>, then: impl FnOnce(request::Request<'_>) -> T) -> T {
    match request::parse(bytes, &Limits::default(), spans) {
        Ok(Parsed::Complete(request)) => then(request),
        other => unreachable!("the sample is a whole request: {other:?}"),
    }
}

fn with_response<T>(spans: &mut Vec<Span>, then: impl FnOnce(response::Response<'_>) -> T) -> T {
    match response::parse(black_box(RESPONSE), &Limits::default(), spans, Method::Get) {
        Ok(Parsed::Complete(response)) => then(response),
        other => unreachable!("the sample is a whole response: {other:?}"),
    }
}

fn parse_request(bytes: &[u8], times: usize) {
    let mut spans = Vec::new();
    for _ in 0..times {
        with_request(black_box(bytes), &mut spans, |request| _ = black_box(request));
    }
}

fn parse_response(times: usize) {
    let mut spans = Vec::new();
    for _ in 0..times {
        with_response(&mut spans, |response| _ = black_box(response));
    }
}

fn key_of(request: &RequestHead<'_>) -> Key {
    let target = Target::of(request).expect("the sample has a valid target");
    let host = target.authority.expect("the sample has a host").normalised(Scheme::Http);
    Key::of(Scheme::Http.text().as_bytes(), &host, target.path_and_query)
}

fn target_and_key(times: usize) {
    with_request(BROWSER_REQUEST, &mut Vec::new(), |request| {
        for _ in 0..times {
            black_box(key_of(black_box(&request.head)));
        }
    });
}

/// A store of so many objects of 1 KB, the one of the short request among them.
fn store_of(objects: usize) -> Arc<Store> {
    let store = Arc::new(Store::new(Settings::new(1 << 30)));
    let directives = RequestDirectives::default();
    with_request(SHORT_REQUEST, &mut Vec::new(), |request| {
        with_response(&mut Vec::new(), |response| {
            let fields = stored_fields(response.head.fields);
            let policy = Policy::safe();
            let Storability::Store(lifetimes) =
                storability(&request.head, &response.head, None, &policy, NOW, NOW)
            else {
                unreachable!("the sample may be stored");
            };
            let vary = VarySpec::of(response.head.fields, &VaryRule::default());
            for number in 0..objects {
                let path = format!("/{number}");
                let key =
                    if number == 0 { key_of(&request.head) } else { Key::of(b"http", b"a", path.as_bytes()) };
                let Lookup::Miss(flight) = store.lookup(key, &query(request.head.fields, &directives), NOW)
                else {
                    unreachable!("every key is new");
                };
                let new_object = NewObject {
                    head: stored_head(&response.head, &fields),
                    lifetimes,
                    vary: &vary,
                    request: request.head.fields,
                    host: b"127.0.0.1:8080",
                    path: path.as_bytes(),
                    tags: &[],
                    range: None,
                    len: Some(BODY.len() as u64),
                    limit: None,
                    resumable: false,
                    copy: None,
                    transaction: number as u64,
                };
                flight.store_complete(new_object, &[&BODY], None);
            }
        });
    });
    store
}

fn stored_head(head: &ResponseHead<'_>, fields: &FieldsBuf) -> StoredHead {
    StoredHead::new(head.status, head.reason, fields).expect("the sample is small")
}

fn query<'a>(fields: Fields<'a>, directives: &'a RequestDirectives) -> Query<'a> {
    Query { fields, directives, part: None, intent: Intent::Fill }
}

/// Whether a variant stored for a request with one Accept-Encoding answers a request with another.
fn match_variant(stored: &str, asked: &str, answers: bool, times: usize) {
    let request = |codings: &str| -> FieldsBuf {
        let fields = [("Host", "example.org"), ("Accept-Encoding", codings), ("User-Agent", "micro")];
        fields.into_iter().collect()
    };
    let vary: FieldsBuf = [("Vary", "Accept-Encoding")].into_iter().collect();
    let key = VarySpec::of(vary.view(), &VaryRule::default()).key(request(stored).view());
    let asked = request(asked);
    for _ in 0..times {
        assert_eq!(black_box(&key).matches(asked.view()), answers);
    }
}

fn lookup_hit(objects: usize, times: usize) {
    let store = store_of(objects);
    let directives = RequestDirectives::default();
    with_request(SHORT_REQUEST, &mut Vec::new(), |request| {
        let key = key_of(&request.head);
        for _ in 0..times {
            match store.lookup(black_box(key), &query(request.head.fields, &directives), LATER) {
                Lookup::Hit(object) => _ = black_box(object),
                _ => unreachable!("the object is fresh"),
            }
        }
    });
}

fn bypass(times: usize) {
    let policy = Policy::safe();
    with_request(BROWSER_REQUEST, &mut Vec::new(), |request| {
        for _ in 0..times {
            black_box(lookup_bypass(black_box(&request.head), &policy));
        }
    });
}

fn judge(times: usize) {
    let policy = Policy::safe();
    with_request(BROWSER_REQUEST, &mut Vec::new(), |request| {
        with_response(&mut Vec::new(), |response| {
            for _ in 0..times {
                black_box(storability(black_box(&request.head), &response.head, None, &policy, NOW, NOW));
            }
        });
    });
}

/// What a hit sends before the body: the stored head and the lines that change.
fn put_hit_head(out: &mut Vec<u8>, head: &StoredHead, age: u64) {
    out.extend_from_slice(head.encoded());
    out.extend_from_slice(b"Age: ");
    decimal::append(out, age);
    out.extend_from_slice(b"\r\nVia: 1.1 sandarac\r\nCache-Status: sandarac; hit; ttl=");
    decimal::append(out, 3600 - age);
    out.extend_from_slice(b"\r\n\r\n");
}

fn encode_hit(times: usize) {
    let mut out = Vec::with_capacity(4096);
    with_response(&mut Vec::new(), |response| {
        let head = stored_head(&response.head, &stored_fields(response.head.fields));
        for _ in 0..times {
            out.clear();
            put_hit_head(&mut out, black_box(&head), black_box(12));
            black_box(&out);
        }
    });
}

/// The head of a forwarded request, from the parsed one: what goes on, behind a request line.
fn encode_request(times: usize) {
    with_request(BROWSER_REQUEST, &mut Vec::new(), |request| {
        for _ in 0..times {
            let mut first_line = Vec::with_capacity(4096);
            encode::request_line(&mut first_line, request.head.method_text, request.head.target);
            black_box(forwarded(first_line, black_box(request.head.fields), request.framing));
        }
    });
}

/// The same of a response.
fn encode_response(times: usize) {
    with_response(&mut Vec::new(), |response| {
        for _ in 0..times {
            let mut first_line = Vec::with_capacity(4096);
            encode::status_line(&mut first_line, response.head.status, response.head.reason);
            black_box(forwarded(first_line, black_box(response.head.fields), response.framing));
        }
    });
}

/// As the proxy makes a head: collected without what belongs to the connection, then framed.
fn forwarded(first_line: Vec<u8>, fields: Fields<'_>, framing: BodyFraming) -> Vec<u8> {
    let mut kept = FieldsBuf::after(first_line, fields.len() + 8);
    kept.extend(fields, |field| !is_standing(field.id)).expect("the sample is small");
    let mut head = encode::lines(kept, framing);
    head.extend_from_slice(encode::CRLF);
    head
}

/// All of a hit that needs no socket.
fn hit(times: usize) {
    let store = store_of(1000);
    let policy = Policy::safe();
    let mut spans = Vec::new();
    let mut out = Vec::with_capacity(4096);
    for _ in 0..times {
        with_request(black_box(SHORT_REQUEST), &mut spans, |request| {
            let key = key_of(&request.head);
            black_box(lookup_bypass(&request.head, &policy));
            let directives = policy.directives(request.head.fields);
            let Lookup::Hit(object) = store.lookup(key, &query(request.head.fields, &directives), LATER)
            else {
                unreachable!("the object is fresh");
            };
            out.clear();
            put_hit_head(&mut out, object.head(), object.lifetimes().age(LATER).as_secs());
            black_box((&out, object.body().len()));
        });
    }
}
