//! The attempts after faults: how often, and what a restart and a full disk change.

use std::time::Duration;

use sandarac_acme::{Event, Fault, Limits, Settings};
use sandarac_test_support::{Listener, Port, TempDir, within};

use crate::ca::{Answer, Ca, settings};
use crate::clock::FakeClock;
use crate::node::{Node, files, limits};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_pauses_between_attempts_grow_to_hours() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| (call.endpoint == "order").then(|| Answer::problem(403, "rejectedIdentifier", "no")));
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    let mut pauses = Vec::new();
    for count in 1..=6 {
        let (_, next) = node.failure(count);
        let pause = next.since(clock.now());
        pauses.push(pause.as_secs());
        clock.pass(pause + Duration::from_secs(1));
    }
    for (pause, least) in pauses.iter().zip([60, 300, 900, 3600, 7200, 14400]) {
        assert!((least - 1..=least * 11 / 10).contains(pause), "{pauses:?}");
    }
}

#[test]
fn a_rate_limit_is_respected_by_a_restarted_process_too() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| {
        (call.endpoint == "order")
            .then(|| Answer::problem(429, "rateLimited", "too many\u{1b}[2J").after("7200"))
    });
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    let (fault, next) = node.failure(1);
    assert!(matches!(&fault, Fault::RateLimited(said) if said.contains(r"too many\u{1b}[2J")), "{fault:?}");
    assert!(next.since(clock.now()) >= 119 * MINUTE, "{:?}", next.since(clock.now()));
    drop(node);
    ca.reform();
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    // Another certificate is not held up, and its arrival is a sign that the first had its turns.
    Node::start(settings(&ca, &dir, &["other.example"]), &clock).certificate(1);
    assert_eq!((node.count(), ca.count("order")), (0, 2));
    clock.pass(150 * MINUTE);
    node.certificate(1);
}

#[test]
fn an_operator_who_removes_the_record_is_served_at_once() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| (call.endpoint == "order").then(|| Answer::problem(429, "rateLimited", "no")));
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.failure(1);
    ca.reform();
    let record = files(&dir.join("state"), "attempts-");
    std::fs::remove_file(&record[0]).expect("the record");
    node.certificate(1);
}

#[test]
fn an_account_that_the_ca_forgot_is_made_anew() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    Node::start(settings(&ca, &dir, &["example.org"]), &clock).certificate(1);
    ca.script(|call| {
        (call.endpoint == "order" && call.count == 2)
            .then(|| Answer::problem(400, "accountDoesNotExist", "who?"))
    });
    let node = Node::start(settings(&ca, &dir, &["other.example"]), &clock);
    assert_eq!(node.failure(1).0.name(), "account_unknown");
    clock.pass(2 * MINUTE);
    node.certificate(1);
    assert_eq!(ca.count("account"), 2);
}

#[test]
fn what_the_ca_wants_of_the_owner_is_named() {
    for (kind, name) in
        [("externalAccountRequired", "external_account_required"), ("userActionRequired", "action_required")]
    {
        let (clock, dir) = (FakeClock::new(), TempDir::new());
        let ca = Ca::new(&clock);
        ca.script(move |call| (call.endpoint == "account").then(|| Answer::problem(403, kind, "see above")));
        let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
        let (fault, _) = node.failure(1);
        assert_eq!(fault.name(), name);
        assert!(fault.to_string().contains("see above"));
    }
}

#[test]
fn a_name_that_does_not_lead_here_is_named_with_the_cas_words() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| {
        let problem = serde_json::json!({"type": "urn:ietf:params:acme:error:dns", "detail": "NXDOMAIN"});
        match call.endpoint.as_str() {
            "state" => Some(Answer::json(&serde_json::json!({
                "status": "invalid",
                "authorizations": [format!("{}/authorization/0/0", call.base)],
                "finalize": format!("{}/finalize/0", call.base),
            }))),
            "authorization" if call.count > 1 => Some(Answer::json(&serde_json::json!({
                "identifier": {"type": "dns", "value": "example.org"},
                "status": "invalid",
                "challenges": [
                    {"type": "http-01", "url": call.base, "token": "t", "status": "invalid", "error": problem}
                ],
            }))),
            "challenge" => Some(Answer::json(&serde_json::json!(
                {"type": "http-01", "url": call.base, "token": "t", "status": "pending"}
            ))),
            _ => None,
        }
    });
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    let (fault, _) = node.failure(1);
    let Fault::NotVerified { name, challenge, why } = &fault else { panic!("{fault:?}") };
    assert_eq!((name.as_str(), *challenge), ("example.org", "http-01"));
    assert!(why.contains("NXDOMAIN") && fault.to_string().contains("port 80"), "{fault}");
}

#[test]
fn a_ca_that_cannot_be_reached_or_verified_is_named() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let (ca, stranger) = (Ca::new(&clock), Ca::new(&clock));
    let closed = Port::new();
    let nowhere = format!("https://{}/directory", closed.address());
    for (directory, root, part) in
        [(nowhere, ca.root(), "refused"), (ca.directory(), stranger.root(), "certificate")]
    {
        let dir = TempDir::new();
        let settings = Settings { directory, ca: Some(root), ..settings(&ca, &dir, &["example.org"]) };
        let node = Node::start(settings, &clock);
        let (fault, _) = node.failure(1);
        assert!(fault.name() == "unreachable" && fault.to_string().contains(part), "{fault}");
    }
    std::fs::write(dir.join("empty.pem"), "").expect("written");
    let settings = Settings { ca: Some(dir.join("empty.pem")), ..settings(&ca, &dir, &["example.org"]) };
    let (fault, _) = Node::start(settings, &clock).failure(1);
    assert!(fault.to_string().contains("no certificate in PEM"), "{fault}");
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_left() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let (ca, silent) = (Ca::new(&clock), Listener::new());
    let directory = format!("https://{}/directory", silent.address());
    let limits = Limits { request: Duration::from_millis(150), ..limits() };
    let settings = Settings { directory, limits, ..settings(&ca, &dir, &["example.org"]) };
    assert_eq!(Node::start(settings, &clock).failure(1).0.name(), "request_timed_out");
}

#[test]
fn a_certificate_that_cannot_be_written_is_served_and_written_later() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let state = dir.join("state");
    // A directory of the file's name cannot be replaced by a file, for root neither.
    drop(Node::start(settings(&ca, &dir, &["example.org"]), &clock).certificate(1));
    let file = files(&state.join("certificates"), ".pem").pop().expect("the file");
    std::fs::remove_dir_all(&state).expect("removed");
    std::fs::create_dir_all(file.join("occupied")).expect("a directory");
    for directory in [&state, &state.join("certificates")] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(directory, mode).expect("permissions");
    }
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    let certificate = node.certificate(1);
    node.event(
        "trouble",
        |event| matches!(event, Event::Trouble(Fault::CannotWrite(path, _)) if *path == file),
    );
    std::fs::remove_dir_all(&file).expect("removed");
    let text = within("the file", || std::fs::read_to_string(&file).ok());
    assert!(text.starts_with(&certificate.chain_pem));
    assert_eq!((node.count(), ca.count("order")), (1, 2));
}

#[test]
fn a_state_directory_that_cannot_be_used_is_refused_at_the_start() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    std::fs::write(dir.join("state"), "a file").expect("written");
    let fault = Node::try_start(settings(&ca, &dir, &["example.org"]), &clock).err().expect("a fault");
    assert_eq!(fault.name(), "cannot_write");
    let open = TempDir::new();
    std::fs::create_dir(open.join("state")).expect("a directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(open.join("state"), mode).expect("permissions");
    let fault = Node::try_start(settings(&ca, &open, &["example.org"]), &clock).err().expect("a fault");
    assert_eq!(fault.name(), "open_directory");
}
