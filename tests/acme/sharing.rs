//! Nodes that share a state directory.

use std::time::Duration;

use sandarac_acme::Event;
use sandarac_test_support::{Gate, TempDir, within};

use crate::ca::{Ca, settings};
use crate::clock::FakeClock;
use crate::node::{Node, files};

#[test]
fn one_node_orders_and_the_others_serve_what_it_got() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let nodes: Vec<Node> =
        (0..4).map(|_| Node::start(settings(&ca, &dir, &["example.org"]), &clock)).collect();
    let first = nodes[0].certificate(1);
    for node in &nodes {
        assert_eq!(node.certificate(1), first);
    }
    assert_eq!(ca.count("order"), 1);
    assert!(files(&dir.join("state"), "unfinished").is_empty());
}

#[test]
fn every_node_answers_the_challenges_of_the_one_that_orders() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let gate = Gate::new();
    let held = gate.clone();
    ca.script(move |call| {
        if call.endpoint == "challenge" {
            held.wait();
        }
        None
    });
    let first = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    gate.reached(1);
    let second = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    let answer = within("the token", || second.challenges.http01("token-0-0", clock.now()));
    assert!(answer.starts_with("token-0-0."));
    second.event("the other's order", |event| matches!(event, Event::OtherOrders { .. }));
    gate.open();
    assert_eq!(first.certificate(1), second.certificate(1));
    assert_eq!(ca.count("order"), 1);
}

#[test]
fn a_node_that_died_while_ordering_is_replaced_when_its_lease_ends() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    drop(Node::start(settings(&ca, &dir, &["other.example"]), &clock));
    let lease = dir.join("state/lease");
    let expires = clock.now().plus(Duration::from_secs(200)).as_secs();
    std::fs::write(&lease, format!(r#"{{"owner": "dead", "expires": {expires}}}"#)).expect("written");
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.event("the other's order", |event| matches!(event, Event::OtherOrders { .. }));
    assert_eq!(node.count(), 0);
    clock.pass(Duration::from_secs(201));
    node.certificate(1);
    within("the lease to end", || (!lease.exists()).then_some(()));
}

#[test]
fn certificates_for_other_names_share_the_directory_and_the_account() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let nodes = [["a.example"], ["b.example"]].map(|names| Node::start(settings(&ca, &dir, &names), &clock));
    assert_ne!(nodes[0].certificate(1), nodes[1].certificate(1));
    assert_eq!((ca.count("account"), ca.count("order")), (1, 2));
}

#[test]
fn a_damaged_certificate_of_another_node_is_named_and_not_served() {
    let (clock, dir) = (FakeClock::new(), TempDir::new());
    let ca = Ca::new(&clock);
    let node = Node::start(settings(&ca, &dir, &["example.org"]), &clock);
    node.certificate(1);
    let file = within("the file", || files(&dir.join("state/certificates"), ".pem").pop());
    std::fs::write(&file, "rubbish").expect("written");
    let event = node.event("trouble", |event| matches!(event, Event::Trouble(_))).to_string();
    assert!(event.contains("is damaged") && event.contains("example.org"), "{event}");
    assert_eq!(node.count(), 1);
}
