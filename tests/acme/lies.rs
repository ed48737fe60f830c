//! CAs that lie, hang and send garbage. None makes the client panic, hang or grow, and none gets a certificate served that
//! is not for the ordered names and the own key.

use std::time::Duration;

use sandarac_acme::{Fault, Limits, Settings};
use sandarac_message::Timestamp;
use sandarac_test_support::TempDir;
use serde_json::{Value, json};

use crate::ca::{Answer, Ca, Call, settings};
use crate::clock::FakeClock;
use crate::node::{Node, limits};

/// The fault of the first attempt with a CA that is scripted. The attempt after it, with a CA that is honest again, gets a
/// certificate.
#[track_caller]
fn fault(limits: Limits, script: impl FnMut(&Call) -> Option<Answer> + Send + 'static) -> Fault {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(script);
    let node = Node::start(Settings { limits, ..settings(&ca, &dir, &["example.org"]) }, &clock);
    let (fault, next) = node.failure(1);
    assert_eq!(node.count(), 0);
    assert_eq!(node.challenges.http01("token-0-0", clock.now()), None, "the token outlived its order");
    ca.reform();
    clock.pass(next.since(clock.now()) + Duration::from_secs(1));
    node.certificate(1);
    fault
}

/// An answer for one endpoint.
fn at(
    endpoint: &'static str,
    mut answer: impl FnMut(&Call) -> Answer,
) -> impl FnMut(&Call) -> Option<Answer> {
    move |call| (call.endpoint == endpoint).then(|| answer(call))
}

fn text(status: u16, body: &str) -> Answer {
    Answer::Reply(status, Vec::new(), body.as_bytes().to_vec())
}

fn order(call: &Call, change: impl FnOnce(&mut Value)) -> Answer {
    let mut order = json!({
        "status": "pending",
        "authorizations": [format!("{}/authorization/0/0", call.base)],
        "finalize": format!("{}/finalize/0", call.base),
    });
    change(&mut order);
    let fields = vec![("location", format!("{}/state/0", call.base))];
    Answer::Reply(201, fields, order.to_string().into_bytes())
}

const ENDPOINTS: [&str; 9] = [
    "directory",
    "nonce",
    "account",
    "order",
    "authorization",
    "challenge",
    "state",
    "finalize",
    "certificate",
];

#[test]
fn garbage_at_any_step_is_a_named_fault() {
    for endpoint in ENDPOINTS {
        for (status, body) in [
            (200, "<html>"),
            (200, ""),
            (200, "[]"),
            (500, "<html>down\u{1b}[2J"),
            (200, "\u{0}"),
            (404, "{}"),
        ] {
            // An empty HEAD response with 200 is all that a nonce needs.
            if (endpoint, status) == ("nonce", 200) {
                continue;
            }
            let fault = fault(limits(), at(endpoint, move |_| text(status, body)));
            assert!(!fault.to_string().contains('\u{1b}'), "{fault}");
        }
    }
}

#[test]
fn a_ca_that_hangs_is_left() {
    for endpoint in ENDPOINTS {
        let short = Limits { request: Duration::from_millis(150), ..limits() };
        let fault = fault(short, at(endpoint, |_| Answer::Hang));
        assert_eq!(fault.name(), "request_timed_out", "{endpoint}: {fault}");
    }
}

#[test]
fn a_body_without_an_end_is_cut() {
    for endpoint in ["directory", "account", "certificate"] {
        let fault = fault(limits(), at(endpoint, |_| Answer::Endless));
        assert_eq!(fault.name(), "response_too_large", "{endpoint}: {fault}");
    }
}

#[test]
fn an_order_that_is_never_done_is_given_up() {
    let short = || Limits { order: Duration::from_millis(300), ..limits() };
    let fault_of = |status: &'static str| {
        fault(short(), at("state", move |call| order(call, |order| order["status"] = json!(status))))
    };
    assert_eq!(fault_of("pending").name(), "order_timed_out");
    assert_eq!(fault_of("processing").name(), "order_timed_out");
    let nothing =
        fault(limits(), at("state", |call| order(call, |order| order["status"] = json!("invalid"))));
    assert_eq!(nothing.name(), "order_invalid");
    let strange =
        fault(limits(), at("state", |call| order(call, |order| order["status"] = json!("sleeping"))));
    assert_eq!(strange.name(), "bad_response");
}

#[test]
fn an_order_that_is_lost_is_placed_anew() {
    let lost = fault(limits(), at("state", |_| Answer::problem(404, "malformed", "no such order")));
    assert_eq!(lost.name(), "order_lost");
}

#[test]
fn a_certificate_for_other_names_or_another_key_is_not_served() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let authority = ca.authority();
    let request = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut turn = 0;
    let start = clock.now();
    ca.script(move |call| {
        use base64::Engine;
        if call.endpoint == "finalize" {
            let csr = call.payload["csr"].as_str().unwrap_or_default();
            *request.lock().expect("no panic") =
                base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(csr).expect("Base64url");
        }
        (call.endpoint == "certificate").then(|| {
            turn += 1;
            let request = request.lock().expect("no panic");
            let long_ago = Timestamp::from_secs(1_000_000_000);
            text(
                200,
                &match turn {
                    1 => authority.sign(&request, Some(&["evil.example"]), start, 90),
                    2 => authority.certify(&["example.org"]).0,
                    3 => authority.sign(&request, None, long_ago, 90),
                    4 => authority.sign(&request, None, start.plus(Duration::from_secs(30 * 86_400)), 90),
                    5 => "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
                    _ => authority.sign(&request, None, start, 90).repeat(9),
                },
            )
        })
    });
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    for (count, name) in [
        "certificate_lacks_name",
        "certificate_for_another_key",
        "certificate_expired",
        "certificate_not_yet_valid",
        "certificate_unreadable",
        "certificate_unreadable",
    ]
    .into_iter()
    .enumerate()
    {
        let (fault, next) = node.failure(count + 1);
        assert_eq!(fault.name(), name, "{fault}");
        clock.pass(next.since(clock.now()) + Duration::from_secs(1));
    }
    assert_eq!(node.count(), 0);
}

#[test]
fn a_token_that_is_a_path_is_not_written() {
    for token in ["../../../escaped", "a/b", "", "a.b", &"a".repeat(200), "a\u{0}"] {
        let token = token.to_owned();
        let fault = fault(
            limits(),
            at("authorization", move |call| {
                let url = format!("{}/challenge/0/0", call.base);
                Answer::json(&json!({
                    "identifier": {"type": "dns", "value": "example.org"},
                    "status": "pending",
                    "challenges": [{"type": "http-01", "url": url, "token": token, "status": "pending"}],
                }))
            }),
        );
        assert_eq!(fault.name(), "bad_token");
    }
}

#[test]
fn an_order_with_other_names_or_unusable_challenges_is_not_answered() {
    let authorization = |name: &'static str, kind: &'static str, status: &'static str| {
        at("authorization", move |call| {
            let challenge = json!({"type": kind, "url": format!("{}/challenge/0/0", call.base), "token": "t", "status": "pending"});
            let identifier = json!({"type": "dns", "value": name});
            Answer::json(&json!({"identifier": identifier, "status": status, "challenges": [challenge]}))
        })
    };
    for (name, kind, status, expected) in [
        ("evil.example", "http-01", "pending", "other_names_ordered"),
        ("example.org", "dns-01", "pending", "no_usable_challenge"),
        ("example.org", "new-02", "pending", "no_usable_challenge"),
        ("example.org", "http-01", "revoked", "order_invalid"),
    ] {
        let fault = fault(limits(), authorization(name, kind, status));
        assert_eq!(fault.name(), expected, "{fault}");
    }
    let many = fault(
        limits(),
        at("order", |call| {
            order(call, |order| {
                let url = order["authorizations"][0].clone();
                order["authorizations"] = json!(vec![url; 500]);
            })
        }),
    );
    assert_eq!(many.name(), "order_invalid");
}

#[test]
fn urls_that_are_not_of_https_are_refused() {
    for url in [
        "http://127.0.0.1:1/",
        "file:///etc/passwd",
        "not a url \u{7f}",
        "",
        "https://",
        "//x",
        "https://u@h/",
    ] {
        // instant-acme panics on some of these.
        let directory = at("directory", move |call| {
            Answer::json(&json!({
                "newNonce": url, "newAccount": format!("{}/account", call.base), "newOrder": call.base,
            }))
        });
        assert_eq!(fault(limits(), directory).name(), "not_https", "{url}");
    }
    let finalize = fault(
        limits(),
        at("state", |call| {
            order(call, |order| {
                order["status"] = json!("ready");
                order["finalize"] = json!("http://127.0.0.1:1/");
            })
        }),
    );
    assert_eq!(finalize.name(), "not_https");
    let redirect = fault(
        limits(),
        at("directory", |_| {
            Answer::Reply(301, vec![("location", "https://elsewhere.example/".to_owned())], Vec::new())
        }),
    );
    assert!(redirect.to_string().contains("301 leads to https://elsewhere.example/"), "{redirect}");
}

#[test]
fn an_absurd_retry_after_neither_panics_nor_lasts() {
    // The times would overflow in instant-acme.
    for value in
        ["18446744073709551615", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "x", ""]
    {
        let (clock, dir) = (FakeClock::new(), TempDir::new());
        let ca = Ca::new(&clock);
        ca.script(at("order", move |_| Answer::problem(429, "rateLimited", "later").after(value)));
        let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
        let (_, next) = node.failure(1);
        assert!(next.since(clock.now()) <= Duration::from_secs(86_400), "{value}");
        // In a response that is no refusal, it bounds the pause before the next question.
        let other = TempDir::new();
        let ca = Ca::new(&clock);
        let short = Limits { order: Duration::from_millis(300), ..limits() };
        ca.script(at("state", move |call| order(call, |_| {}).after(value)));
        let settings = Settings { limits: short, ..settings(&ca, &other, &["example.org"]) };
        assert_eq!(Node::start(settings, &clock).failure(1).0.name(), "order_timed_out");
    }
}

#[test]
fn a_ca_whose_certificates_are_always_due_is_not_asked_again_at_once() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    // At noon, more than a third of this life is over, and the window is always past.
    ca.certifies_for_days(1);
    ca.suggests(Timestamp::from_secs(0), Timestamp::from_secs(1));
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.certificate(1);
    Node::start(settings(&ca, &dir, &["other.example"]), &clock).certificate(1);
    clock.pass(Duration::from_secs(30 * 60));
    Node::start(settings(&ca, &dir, &["third.example"]), &clock).certificate(1);
    assert_eq!(node.count(), 1);
    clock.pass(Duration::from_secs(3 * 3600));
    node.certificate(2);
}
