//! A certificate from its first order to its renewals.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandarac_acme::{ChallengeKind, Event, Settings};
use sandarac_test_support::{TempDir, within};

use crate::ca::{Answer, Ca, settings};
use crate::clock::FakeClock;
use crate::node::{Node, files};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn the_first_certificate_replaces_a_stand_in_and_a_restart_finds_it() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let names = ["www.example.org", "example.org"];
    let node = Node::start(settings(&ca, &dir, &names), &clock);
    assert!(node.began_with_stand_in);
    let certificate = node.certificate(1);
    assert!(node.heard.was_kept.load(Ordering::Relaxed), "a process that ends now would order another");
    let terms = node.event("the terms", |event| matches!(event, Event::TermsAccepted { .. })).to_string();
    assert!(terms.contains("accept the terms of service") && terms.ends_with("/terms"), "{terms}");
    node.event("the stand-in", |event| matches!(event, Event::StandIn { .. }));
    drop(node);

    let state = dir.join("state");
    let kept = files(&state.join("certificates"), "example.org-");
    let text = std::fs::read_to_string(&kept[0]).expect("the certificate");
    assert_eq!(text, format!("{}{}", certificate.chain_pem, certificate.key_pem));
    assert_eq!(kept[0].metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(state.metadata().expect("a directory").permissions().mode() & 0o777, 0o700);

    let again = Node::start(settings(&ca, &dir, &names), &clock);
    assert!(!again.began_with_stand_in);
    again.event("the kept certificate", |event| matches!(event, Event::Found { .. }));
    assert_eq!((ca.count("account"), ca.count("order")), (1, 1));
}

#[test]
fn http_01_is_answered_while_the_order_is_pending_only() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let (seen, now) = (Arc::clone(&answers), clock.now());
    let challenges = sandarac_acme::Challenges::new(&dir.join("state"));
    ca.script(move |call| {
        if call.endpoint == "challenge" {
            seen.lock().expect("no panic").push(challenges.http01("token-0-0", now));
        }
        None
    });
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.certificate(1);
    let answers = answers.lock().expect("no panic").clone();
    assert!(answers.len() == 1 && answers[0].as_ref().is_some_and(|text| text.starts_with("token-0-0.")));
    assert_eq!(node.challenges.http01("token-0-0", now), None);
}

#[test]
fn a_failed_attempt_is_followed_by_the_other_challenge() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| {
        (call.endpoint == "challenge" && call.count == 1)
            .then(|| Answer::problem(400, "connection", "port 80 is closed"))
    });
    let both = vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01];
    let node = Node::start(Settings { challenges: both, ..settings(&ca, &dir, &["example.org"]) }, &clock);
    let (_, next) = node.failure(1);
    assert!(next > clock.now());
    clock.pass(Duration::from_secs(120));
    node.certificate(1);
    node.event("the other challenge", |event| {
        matches!(event, Event::Ordering { challenge: ChallengeKind::TlsAlpn01, .. })
    });
    within("the challenge certificate to go", || {
        let shown = node.heard.shown.lock().expect("no panic");
        (shown.1 == 1 && shown.0.is_empty()).then_some(())
    });
}

#[test]
fn a_certificate_is_renewed_at_two_thirds_of_its_life() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    let first = node.certificate(1);
    clock.pass(56 * DAY);
    // A second node's start is a sign that the first has had its turns.
    let other = TempDir::new();
    Node::start(settings(&ca, &other, &["other.example"]), &clock).certificate(1);
    assert_eq!(node.count(), 1);
    clock.pass(4 * DAY);
    assert_ne!(node.certificate(2), first);
}

#[test]
fn the_ca_may_suggest_an_earlier_renewal() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let start = clock.now().plus(20 * DAY);
    ca.suggests(start, start.plus(DAY));
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.certificate(1);
    within("the window to be asked for", || (ca.count("renewal") == 1).then_some(()));
    clock.pass(21 * DAY);
    node.certificate(2);
    let replaced = ca.replaced();
    assert!(replaced[0].is_none() && replaced[1].as_ref().is_some_and(|id| id.contains('.')), "{replaced:?}");
}

#[test]
fn a_certificate_that_cannot_be_renewed_is_warned_of_once_a_day() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.certificate(1);
    ca.script(|_| Some(Answer::Reply(503, Vec::new(), b"down".to_vec())));
    clock.pass(85 * DAY);
    node.failure(1);
    node.event("a warning", |event| matches!(event, Event::Expiring { .. }));
    clock.pass(DAY);
    node.failure(2);
    within("two warnings", || {
        let events = node.heard.events.lock().expect("no panic");
        let count = events.iter().filter(|event| matches!(event, Event::Expiring { .. })).count();
        assert!(count <= 2);
        (count == 2).then_some(())
    });
    ca.reform();
    clock.pass(DAY);
    node.certificate(2);
}

#[test]
fn refused_nonces_cost_no_attempt() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| {
        let is_first = call.count == 1 && !["directory", "nonce"].contains(&call.endpoint.as_str());
        is_first.then(|| Answer::problem(400, "badNonce", "stale"))
    });
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.certificate(1);
    assert!(ca.count("order") == 2 && ca.count("certificate") == 2);
}

#[test]
fn a_new_contact_is_sent_to_the_ca() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let contacts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&contacts);
    ca.script(move |call| {
        if call.endpoint == "account" {
            seen.lock().expect("no panic").push(call.payload["contact"].to_string());
        }
        None
    });
    for (contact, name) in [("a@example.org", "a.example"), ("b@example.org", "b.example")] {
        let settings = Settings { contact: Some(contact.to_owned()), ..settings(&ca, &dir, &[name]) };
        Node::start(settings, &clock).certificate(1);
    }
    let contacts = contacts.lock().expect("no panic");
    assert_eq!(*contacts, [r#"["mailto:a@example.org"]"#, r#"["mailto:b@example.org"]"#]);
}

#[test]
fn progress_and_inspection_know_what_failed_and_what_is_kept() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    ca.script(|call| (call.endpoint == "order").then(|| Answer::problem(429, "rateLimited", "slow down")));
    let settings = settings(&ca, &dir, &["example.org"]);
    let kept = || sandarac_acme::inspect(settings.clone(), clock.now()).expect("settings that work");
    assert_eq!(kept().kept, sandarac_acme::Kept::Nothing);
    assert!(!dir.join("state").exists());

    let node = Node::start(settings.clone(), &clock);
    node.failure(1);
    let report = within("the failure to be reported", || {
        Some(node.progress.report()).filter(|report| report.failed_attempts == 1)
    });
    assert_eq!((report.orders, report.failures.get("rate_limited")), (1, Some(&1)));
    assert!(report.next_order >= clock.now().plus(Duration::from_secs(3600)), "{report:?}");
    assert_eq!((report.not_after, kept().failed_attempts), (None, 1));
    assert!(kept().last_fault.is_some_and(|fault| fault.starts_with("rate_limited: ")));

    ca.reform();
    clock.pass(DAY);
    node.certificate(1);
    let report = within("success", || {
        Some(node.progress.report())
            .filter(|report| report.failed_attempts == 0 && report.not_after.is_some())
    });
    assert_eq!((report.orders, report.last_fault.as_deref()), (2, None));
    assert!(report.next_order > clock.now().plus(30 * DAY), "{report:?}");
    assert_eq!(kept().kept, sandarac_acme::Kept::Until(report.not_after.expect("an end")));

    let file = &files(&dir.join("state/certificates"), "example.org-")[0];
    std::fs::write(file, "rubbish").expect("written");
    assert!(matches!(kept().kept, sandarac_acme::Kept::Unusable(_)));
}
