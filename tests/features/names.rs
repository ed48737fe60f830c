//! Backends by name: the name is resolved again when its TTL has run out, whatever the traffic.

use std::net::{Ipv4Addr, SocketAddr};

use sandarac_test_support::{Listener, NameServer, Origin, Sandarac, get, reply, within};

use crate::{sandarac, site};

const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// An origin on each of the two addresses, on the same port, which answers with its name.
fn origins() -> (Origin, Origin) {
    let first = Origin::new(|_| reply(200).cache("no-store").body("first"));
    let second = Listener::on_address(SocketAddr::from((SECOND, first.address().port())));
    (first, Origin::on(second, |_| reply(200).cache("no-store").body("second")))
}

fn start(origin: &Origin, names: &NameServer) -> Sandarac {
    let backend = format!("http://app.example:{}", origin.address().port());
    let text = site(&backend, "", &format!("[dns]\nservers = [\"{}\"]", names.address()));
    sandarac().config(format!("threads = 1\n{text}")).start()
}

/// Regression: a name was resolved only for a new connection, and steady traffic never needs one.
#[test]
fn steady_traffic_follows_a_name_to_its_new_address() {
    let (first, second) = origins();
    let names = NameServer::new(&[FIRST], 1);
    let proxy = start(&first, &names);
    let mut client = proxy.connect();
    assert_eq!(client.get("/").expect(200).text(), "first");
    names.move_to(&[SECOND]);
    within("the new address to be used", || (client.get("/").expect(200).text() == "second").then_some(()));
    for _ in 0..20 {
        assert_eq!(client.get("/").expect(200).text(), "second");
    }
    within("the connection to the old address to be closed", || {
        (first.open_connections() == 0).then_some(())
    });
    assert_eq!(first.connections(), 1);
    assert_eq!(second.connections(), 1);
    // At most two questions a second, for A and AAAA.
    assert!(names.questions() <= 20, "{} questions", names.questions());
}

#[test]
fn an_address_that_stays_keeps_its_connections() {
    let (first, second) = origins();
    let names = NameServer::new(&[FIRST], 1);
    let proxy = start(&first, &names);
    let mut client = proxy.connect();
    client.get("/").expect(200);
    names.move_to(&[SECOND, FIRST]);
    let asked = names.questions();
    within("the name to be asked for again", || {
        client.get("/").expect(200);
        (names.questions() >= asked + 4).then_some(())
    });
    assert_eq!(first.connections(), 1);
    assert_eq!(second.count(), 0);
}

#[test]
fn the_last_good_answer_holds_while_the_name_server_is_silent() {
    let (first, _second) = origins();
    let names = NameServer::new(&[FIRST], 1);
    let proxy = start(&first, &names);
    proxy.get("/").expect(200);
    names.fall_silent();
    let asked = names.questions();
    within("the name to be asked for again", || {
        proxy.get("/").expect(200);
        (names.questions() > asked).then_some(())
    });
    first.close_idle();
    assert_eq!(proxy.get("/").expect(200).text(), "first");
}

#[test]
fn a_name_of_several_addresses_is_tried_in_turn() {
    let (first, _second) = origins();
    // Nothing listens there.
    let names = NameServer::new(&[Ipv4Addr::new(127, 0, 0, 3), FIRST], 60);
    let proxy = start(&first, &names);
    assert_eq!(proxy.get("/").expect(200).text(), "first");
    assert_eq!(proxy.exchange(&get("/again")).expect(200).text(), "first");
}

#[test]
fn a_reload_asks_other_name_servers() {
    let (first, _second) = origins();
    let (before, after) = (NameServer::new(&[FIRST], 60), NameServer::new(&[SECOND], 60));
    let proxy = start(&first, &before);
    assert_eq!(proxy.get("/").expect(200).text(), "first");
    let backend = format!("http://app.example:{}", first.address().port());
    let text = site(&backend, "", &format!("[dns]\nservers = \"{}\"", after.address()));
    proxy.reload(&format!("threads = 1\n{text}")).success();
    within("the new address to be used", || (proxy.get("/").expect(200).text() == "second").then_some(()));
}

#[test]
fn a_connection_is_not_used_for_ever() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let text = site(&origin.url(), "", "").replace("[pool.app]", "[pool.app]\nconnection_age = \"1s\"");
    let proxy = sandarac().config(format!("threads = 1\n{text}")).start();
    let mut client = proxy.connect();
    client.get("/").expect(200);
    client.get("/").expect(200);
    assert_eq!(origin.connections(), 1);
    within("a new connection", || {
        client.get("/").expect(200);
        (origin.connections() == 2).then_some(())
    });
    within("the old one to close", || (origin.open_connections() == 1).then_some(()));
}
