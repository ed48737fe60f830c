//! Servers of the shared tier that answer, but too slowly, or without what the tier needs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sandarac_test_support::{Memcached, Origin, Sandarac, reply, within};

use crate::{sandarac, site};

const DEADLINE: Duration = Duration::from_millis(300);

fn node(origin: &Origin, server: &str, settings: &str) -> Sandarac {
    let tables = format!(
        "[cache.shared]\nservers = [\"{server}\"]\nlocal_ttl = \"300ms\"\ntimeout = \"300ms\"\n{settings}"
    );
    sandarac().config(site(&origin.url(), "", &tables)).start()
}

/// The line of `status` about the server.
fn status(node: &Sandarac) -> String {
    let text = node.admin(&["status"]).success().stdout;
    text.lines().find(|line| line.starts_with("shared tier")).expect("a line").to_owned()
}

/// A way to a server that can be slowed down to one byte of its answers every 40 ms.
struct Drip {
    address: SocketAddr,
    is_slow: Arc<AtomicBool>,
    is_stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Drip {
    fn before(server: &Memcached) -> Drip {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let [is_slow, is_stopping] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (slow, stopping, socket) = (is_slow.clone(), is_stopping.clone(), server.socket());
        let accepting = thread::spawn(move || {
            for client in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                relay(client, &socket, &slow);
            }
        });
        Drip { address, is_slow, is_stopping, accepting: Some(accepting) }
    }
}

/// Relays a connection in two threads, until one side closes it.
fn relay(mut client: TcpStream, socket: &Path, slow: &Arc<AtomicBool>) {
    let mut server = UnixStream::connect(socket).expect("the server");
    let (mut to_server, mut to_client) =
        (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
    let slow = slow.clone();
    thread::spawn(move || {
        let _ = std::io::copy(&mut client, &mut to_server);
        let _ = to_server.shutdown(std::net::Shutdown::Both);
    });
    thread::spawn(move || {
        let mut received = [0; 4096];
        while let Ok(count @ 1..) = server.read(&mut received) {
            let mut rest = &received[..count];
            while !rest.is_empty() {
                let is_slow = slow.load(Ordering::SeqCst);
                let (piece, later) = rest.split_at(if is_slow { 1 } else { rest.len() });
                if to_client.write_all(piece).is_err() {
                    return;
                }
                rest = later;
                if is_slow {
                    thread::sleep(Duration::from_millis(40));
                }
            }
        }
    });
}

impl Drop for Drip {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

/// Regression: bytes that moved, however few, put off the deadline of a value, and requests waited behind it.
#[test]
fn a_server_that_sends_a_byte_now_and_then_is_ejected() {
    const PAGES: usize = 40;
    let origin = Origin::new(|request| reply(200).cache("max-age=600").body(request.target.repeat(100)));
    let server = Memcached::start(&[]);
    let drip = Drip::before(&server);
    let long = "ejection = { failures = 3, first = \"10m\", longest = \"10m\" }";
    let filling = node(&origin, &server.url(), long);
    let reading = node(&origin, &drip.address.to_string(), long);
    let target = |number: usize| format!("/{number}");
    (0..PAGES).for_each(|number| drop(filling.get(&target(number)).expect(200)));
    within("the entries", || (server.items("sandarac:e1:").len() == PAGES).then_some(()));
    within("a hit", || reading.get(&target(0)).expect(200).is_hit().then_some(()));
    drip.is_slow.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    for number in 1..PAGES {
        let response = reading.get(&target(number)).expect(200);
        assert_eq!(response.text(), target(number).repeat(100));
    }
    let took = begun.elapsed();
    assert!(took < DEADLINE * PAGES as u32 / 4, "{took:?}");
    within("the ejection", || status(&reading).contains("ejected").then_some(()));
}

/// Regression: a connection on which an answer had got stuck was used again after an ejection.
#[test]
fn a_server_that_was_slow_is_used_again() {
    let origin = Origin::new(|request| reply(200).cache("max-age=600").body(request.target.repeat(1000)));
    let server = Memcached::start(&[]);
    let drip = Drip::before(&server);
    let short = "ejection = { failures = 1, first = \"100ms\", longest = \"200ms\" }\ncompression = false";
    let filling = node(&origin, &server.url(), short);
    let reading = node(&origin, &drip.address.to_string(), short);
    let mut number = 0;
    let mut shares = || {
        within("a hit in the shared tier", || {
            number += 1;
            let target = format!("/{number}");
            filling.get(&target).expect(200);
            within("the entry", || server.items("sandarac:f1:").is_empty().then_some(()));
            reading.get(&target).expect(200).is_hit().then_some(())
        });
    };
    shares();
    drip.is_slow.store(true, Ordering::SeqCst);
    filling.get("/slow").expect(200);
    within("the entry", || server.items("sandarac:f1:").is_empty().then_some(()));
    assert!(!reading.get("/slow").expect(200).is_hit());
    within("the ejection", || status(&reading).contains("ejected").then_some(()));
    // What is stuck on its connection would take minutes.
    drip.is_slow.store(false, Ordering::SeqCst);
    shares();
}

/// Regression: only the first reason was logged, and a path that does not exist was not named.
#[test]
fn each_reason_why_a_server_is_not_used_is_logged_once() {
    let origin = Origin::new(|request| reply(200).cache("max-age=600").body(&request.target));
    let mut server = Memcached::start(&[]);
    let settings = "ejection = { first = \"100ms\", longest = \"200ms\" }";
    let node = node(&origin, &server.url(), settings);
    within("the server", || status(&node).contains("  used  ").then_some(()));
    node.get("/page").expect(200);
    assert!(status(&node).contains("0 hits, 1 miss,"), "{}", status(&node));
    server.freeze();
    within("the ejection", || status(&node).contains("ejected").then_some(()));
    node.says("no answer within the deadline");
    server.kill();
    std::fs::remove_file(server.socket()).expect("the socket");
    let path = server.socket().display().to_string();
    node.says(&format!("cannot connect: there is no socket {path}"));
    within("trials", || (node.metric("tier_failures") > 12).then_some(()));
    for reason in ["no answer within the deadline", "there is no socket"] {
        assert_eq!(node.stderr().matches(reason).count(), 1, "{}", node.stderr());
    }
}

/// Regression: purges could not be delivered to it, were tried again all the time, and no reason was given.
#[test]
fn a_server_without_cas_is_named_with_what_to_do() {
    let origin = Origin::new(|request| reply(200).cache("max-age=600").body(&request.target));
    let server = Memcached::start(&["-C"]);
    let settings = "ejection = { first = \"100ms\", longest = \"200ms\" }";
    let node = node(&origin, &server.url(), settings);
    assert!(!node.get("/page").expect(200).is_hit());
    within("the reason", || status(&node).contains("start memcached without -C").then_some(()));
    node.says("start memcached without -C");
    assert!(node.get("/page").expect(200).is_hit());
    node.admin(&["purge", "http://www.example/page"]).success();
    let failures = || node.metric("tier_failures");
    let before = failures();
    // Several trials later.
    within("trials", || (failures() >= before + 3).then_some(()));
    assert_eq!(node.stderr().matches("without -C").count(), 1, "{}", node.stderr());
    assert!(status(&node).contains("without -C"), "{}", status(&node));
}
