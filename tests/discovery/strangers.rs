//! Registries where something else answers, or nobody. Real ones are in `tests/registries`.

use std::net::SocketAddr;
use std::time::Duration;

use sandarac_balance::Host;
use sandarac_config::{Server, Source};
use sandarac_discover::{Event, LossReason};
use sandarac_test_support::{Address, Listener, Port};

use crate::watched::Watched;

fn etcd_at(address: SocketAddr) -> Watched {
    Watched::new(Source::Etcd {
        endpoints: vec![format!("http://{address}").parse().unwrap()],
        prefix: "/shop/".into(),
        login: None,
    })
}

fn zookeeper_at(address: SocketAddr) -> Watched {
    Watched::new(Source::ZooKeeper {
        servers: vec![Server { host: Host::Ip(address.ip()), port: address.port() }],
        path: "/shop".into(),
        session_timeout: Duration::from_secs(3),
    })
}

/// What is said of the source, which is lost for this reason.
fn loss(watched: &Watched, reason: LossReason) -> String {
    match watched.next() {
        Event::Lost(loss) if loss.reason == reason => loss.to_string(),
        other => panic!("told {other:?}"),
    }
}

#[test]
fn what_is_no_etcd_is_called_malformed_and_always_alike() {
    let listener = Listener::new();
    let &Address::Tcp(address) = listener.address() else { panic!("it listens on TCP") };
    let watched = etcd_at(address);
    // Kept open, so that nothing but what was sent ends an attempt.
    let mut connections = Vec::new();
    for answer in [
        "\u{7f}\u{0}\u{1}garbage\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let mut connection = listener.accept();
        connection.request();
        connection.send(answer);
        connections.push(connection);
        if connections.len() == 1 {
            let expected = format!("malformed: http://{address}: this is not an answer of etcd's gateway");
            assert_eq!(loss(&watched, LossReason::Malformed), expected);
        }
    }
    // The attempt after the last has begun.
    connections.push(listener.accept());
    watched.is_silent_for(Duration::ZERO);
}

#[test]
fn a_greeting_before_the_question_is_malformed_as_well() {
    let listener = Listener::new();
    let &Address::Tcp(address) = listener.address() else { panic!("it listens on TCP") };
    let watched = etcd_at(address);
    let mut connection = listener.accept();
    connection.send("220 mail.example ESMTP\r\n");
    watched.is_lost(LossReason::Malformed);
}

#[test]
fn a_server_that_is_not_there_is_named_once() {
    for watch in [etcd_at, zookeeper_at] {
        let port = Port::new();
        let said = loss(&watch(port.address()), LossReason::Unreachable);
        assert_eq!(said.matches(&port.address().to_string()).count(), 1, "{said}");
    }
}
