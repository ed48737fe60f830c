//! Names that have addresses and SRV records.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use sandarac_config::{NameServer as Server, Source};
use sandarac_discover::{Event, LossReason, Memory};
use sandarac_test_support::{NameServer, within};

use crate::watched::Watched;

const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn watch_addresses(server: &NameServer) -> Watched {
    let source = Source::Dns { name: "app.example.com.".into(), port: 8000 };
    Watched::asking(source, vec![Server(server.address())])
}

fn watch_services(server: &NameServer) -> Watched {
    let source = Source::Srv("_http._tcp.app.example.com.".into());
    Watched::asking(source, vec![Server(server.address())])
}

#[test]
fn addresses_are_followed_at_their_ttl() {
    let server = NameServer::new(&[TWO, ONE], 1);
    let watched = watch_addresses(&server);
    // In an order of their own, whatever the answer's.
    watched.lists(&["http://10.0.0.1:8000", "http://10.0.0.2:8000"]);
    server.move_to(&[TWO]);
    watched.lists(&["http://10.0.0.2:8000"]);
}

#[test]
fn a_name_that_is_gone_empties_no_list() {
    let server = NameServer::new(&[ONE], 1);
    let watched = watch_addresses(&server);
    watched.lists(&["http://10.0.0.1:8000"]);
    // That there is no such name.
    server.answer_with(3);
    watched.is_emptied();
}

#[test]
fn a_name_without_addresses_empties_no_list() {
    let server = NameServer::new(&[ONE], 1);
    let watched = watch_addresses(&server);
    watched.lists(&["http://10.0.0.1:8000"]);
    server.move_to(&[]);
    watched.is_emptied();
}

#[test]
fn a_name_server_that_fails_freezes_the_list() {
    let server = NameServer::new(&[ONE], 1);
    let watched = watch_addresses(&server);
    watched.lists(&["http://10.0.0.1:8000"]);
    server.answer_with(2);
    match watched.next() {
        Event::Lost(loss) => assert_eq!(loss.reason, LossReason::Failed, "{loss}"),
        other => panic!("told {other:?}"),
    }
    server.move_to(&[TWO]);
    server.answer_with(0);
    watched.is_back();
    watched.lists(&["http://10.0.0.2:8000"]);
}

/// Regression: a reload forgot what it was, and obeyed the rest as the whole list.
#[test]
fn a_family_that_is_not_answered_is_what_it_was_for_the_next_to_watch_too() {
    let server = NameServer::new(&[ONE], 1);
    server.serve_ipv6(&[Ipv6Addr::LOCALHOST]);
    let source = Source::Dns { name: "app.example.com.".into(), port: 8000 };
    let memory = Memory::default();
    let watch = || Watched::remembering(source.clone(), vec![Server(server.address())], memory.clone());
    let both = ["http://10.0.0.1:8000", "http://[::1]:8000"];
    watch().lists(&both);
    server.lose_ipv4();
    match watch().next() {
        Event::Listing(listing) => assert_eq!(listing.members.len(), both.len(), "{listing:?}"),
        other => panic!("told {other:?}"),
    }
}

#[test]
fn answers_that_make_no_sense_freeze_the_list_and_are_called_malformed() {
    let server = NameServer::new(&[ONE], 1);
    let watched = watch_addresses(&server);
    watched.lists(&["http://10.0.0.1:8000"]);
    server.garble(true);
    watched.is_lost(LossReason::Malformed);
    // Asked for again and again, and nothing is new: there are two questions to an attempt.
    let asked = server.questions();
    within("more attempts", || (server.questions() >= asked + 8).then_some(()));
    watched.is_silent_for(Duration::ZERO);
    server.move_to(&[TWO]);
    server.garble(false);
    watched.is_back();
    watched.lists(&["http://10.0.0.2:8000"]);
}

#[test]
fn services_have_priorities_weights_and_ports() {
    let server = NameServer::new(&[], 1);
    server.serve_at(&[
        (20, 1, 9000, "standby.example.com."),
        (10, 60000, 8001, "big.example.com."),
        (10, 30000, 8001, "half.example.com."),
        (10, 0, 8002, "small.example.com."),
    ]);
    let watched = watch_services(&server);
    let listing = watched.list_until(|listing| Some(listing.clone()));
    let members: Vec<_> = listing
        .members
        .iter()
        .map(|member| (member.priority, member.address.to_string(), member.weight))
        .collect();
    assert_eq!(
        members,
        [
            (10, "http://big.example.com:8001".to_owned(), 1000),
            (10, "http://half.example.com:8001".to_owned(), 500),
            (10, "http://small.example.com:8002".to_owned(), 1),
            (20, "http://standby.example.com:9000".to_owned(), 1),
        ]
    );
    assert_eq!(listing.preferred().len(), 3);
    // The service is decidedly not there.
    server.serve_at(&[(0, 0, 0, ".")]);
    watched.is_emptied();
}
