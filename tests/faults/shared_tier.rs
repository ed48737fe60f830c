//! Servers of the shared tier that die, stop, forget, or reply with nonsense. No client sees an error or a wrong body.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sandarac_test_support::{Listener, Memcached, Origin, Port, Response, Sandarac, reply, within};

use crate::{sandarac, site};

/// Servers have time to reply, and are tried again soon.
const PATIENT: &str = "timeout = \"5s\"\nejection = { first = \"200ms\", longest = \"400ms\" }";

/// A server that does not reply soon is ejected, and tried again soon.
const QUICK: &str = "timeout = \"200ms\"\nejection = { first = \"200ms\", longest = \"400ms\" }";

/// A server that does not reply soon is ejected for longer than a test lasts.
const EJECTING: &str = "timeout = \"300ms\"\nejection = { failures = 3, first = \"10m\", longest = \"10m\" }";

/// The timeout in [`EJECTING`].
const DEADLINE: Duration = Duration::from_millis(300);

/// An origin whose pages name themselves, and the number of the request.
fn origin() -> Origin {
    Origin::new(|request| {
        reply(200).cache("max-age=600").body(format!("{} {}", request.target, request.serial))
    })
}

fn node(origin: &Origin, servers: &[String], settings: &str) -> Sandarac {
    let tables = format!("[cache.shared]\nservers = {servers:?}\nlocal_ttl = \"300ms\"\n{settings}");
    sandarac().config(site(&origin.url(), "", &tables)).start()
}

/// Two nodes before one origin, with `N` servers between them.
struct Fleet<const N: usize> {
    first: Sandarac,
    second: Sandarac,
    servers: [Memcached; N],
    origin: Origin,
}

impl<const N: usize> Fleet<N> {
    fn new(settings: &str) -> Fleet<N> {
        let (origin, servers) = (origin(), std::array::from_fn(|_| Memcached::start(&[])));
        let names = servers.each_ref().map(Memcached::url);
        let node = || node(&origin, &names, settings);
        Fleet { first: node(), second: node(), servers, origin }
    }

    /// Has the first node fetch the pages 0 to `count`, and waits until the tier has them.
    #[track_caller]
    fn fill(&self, count: usize) {
        pages(&self.first, count);
        within("the entries", || {
            let claims: usize = self.servers.iter().map(|server| server.items("sandarac:f1:").len()).sum();
            let entries: usize = self.servers.iter().map(entries).sum();
            (claims == 0 && entries == count).then_some(())
        });
        assert_eq!(self.origin.count(), count);
    }
}

/// The number of entries on the server.
fn entries(server: &Memcached) -> usize {
    server.items("sandarac:e1:").len()
}

/// Gets the page at `target`, which is right.
#[track_caller]
fn page(node: &Sandarac, target: &str) -> Response {
    let response = node.get(target).expect(200);
    assert_eq!(response.text().split(' ').next(), Some(target), "{response:?}");
    response
}

/// Gets the pages 0 to `count`, and returns the number of those that were hits.
#[track_caller]
fn pages(node: &Sandarac, count: usize) -> usize {
    (0..count).filter(|number| page(node, &format!("/{number}")).is_hit()).count()
}

/// Waits until `second` has from the tier what `first` fetched, for a page of this server.
#[track_caller]
fn is_used_again(server: &Memcached, first: &Sandarac, second: &Sandarac) {
    let mut number = 0;
    within("the server to be used again", || {
        number += 1;
        let before = entries(server);
        let target = format!("/again/{number}");
        let fetched = page(first, &target).text();
        let is_shared = page(second, &target).text() == fetched;
        (is_shared && entries(server) > before).then_some(())
    });
}

#[test]
fn a_server_killed_under_load_is_no_error_for_any_client() {
    let Fleet { first, second, servers: [mut killed, _other], origin: _origin } = Fleet::new(PATIENT);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients = [&first, &second].map(|node| {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut rounds = 0;
                while !is_over.load(Ordering::Relaxed) {
                    (0..20).for_each(|number| drop(page(node, &format!("/{rounds}/{number}"))));
                    (0..20).for_each(|number| drop(page(node, &format!("/{number}"))));
                    rounds += 1;
                }
                rounds
            })
        });
        for _ in 0..2 {
            within("entries on the server", || (entries(&killed) > 10).then_some(()));
            killed.kill();
            killed.restart();
        }
        within("entries on the server", || (entries(&killed) > 10).then_some(()));
        is_over.store(true, Ordering::Relaxed);
        assert!(clients.into_iter().all(|client| client.join().expect("no client sees an error") > 0));
    });
}

#[test]
fn a_dead_server_costs_its_keys_and_nothing_more() {
    const PAGES: usize = 40;
    let Fleet { first, second, servers: [mut dead, alive], origin } = {
        let fleet = Fleet::new(PATIENT);
        fleet.fill(PAGES);
        fleet
    };
    let lost = entries(&dead);
    dead.kill();
    assert_eq!(pages(&second, PAGES), PAGES - lost);
    assert_eq!(origin.count(), PAGES + lost);
    assert_eq!(entries(&alive), PAGES - lost, "its keys are not written elsewhere");
    // Copies in memory are served within their freshness.
    assert_eq!(pages(&first, PAGES), PAGES);
    assert_eq!(pages(&second, PAGES), PAGES);
    assert_eq!(origin.count(), PAGES + lost);
    dead.restart();
    is_used_again(&dead, &first, &second);
}

#[test]
fn a_server_that_stops_delays_a_few_requests_until_it_is_ejected() {
    const PAGES: usize = 60;
    let fleet = Fleet::<2>::new(EJECTING);
    fleet.fill(PAGES);
    let stopped = entries(&fleet.servers[0]);
    fleet.servers[0].freeze();
    for node in [&fleet.second, &fleet.first] {
        let begun = Instant::now();
        pages(node, PAGES);
        let took = begun.elapsed();
        assert!(took < DEADLINE * stopped as u32 / 2, "{stopped} pages of the server, {took:?}");
    }
    assert_eq!(fleet.origin.count(), PAGES + stopped);
    fleet.servers[0].thaw();
}

#[test]
fn a_server_that_continues_is_used_again() {
    const PAGES: usize = 20;
    let fleet = Fleet::<2>::new(QUICK);
    fleet.fill(PAGES);
    fleet.servers[0].freeze();
    pages(&fleet.second, PAGES);
    pages(&fleet.first, PAGES);
    fleet.servers[0].thaw();
    is_used_again(&fleet.servers[0], &fleet.first, &fleet.second);
}

/// A server that has lost everything gets it back from the memory of the first node, without a request at the origin.
#[track_caller]
fn is_refilled(lose: impl FnOnce(&mut Memcached)) {
    const PAGES: usize = 10;
    let mut fleet = Fleet::<1>::new(PATIENT);
    fleet.fill(PAGES);
    lose(&mut fleet.servers[0]);
    within("the server to be refilled", || {
        assert_eq!(pages(&fleet.first, PAGES), PAGES);
        (entries(&fleet.servers[0]) == PAGES).then_some(())
    });
    assert_eq!(pages(&fleet.second, PAGES), PAGES);
    assert_eq!(fleet.origin.count(), PAGES);
}

#[test]
fn a_server_restarted_empty_is_refilled_from_memory() {
    is_refilled(|server| {
        server.kill();
        server.restart();
    });
}

#[test]
fn a_server_that_was_flushed_is_refilled_from_memory() {
    is_refilled(|server| drop(server.ask("flush_all\r\n", "OK\r\n")));
}

#[test]
fn entries_that_were_deleted_are_written_back() {
    is_refilled(|server| {
        for item in server.items("sandarac:e1:") {
            server.ask(format!("md {}\r\n", item.key), "HD\r\n");
        }
    });
}

#[test]
fn a_lost_purge_log_does_not_bring_back_what_was_purged() {
    let fleet = Fleet::<1>::new(PATIENT);
    fleet.fill(3);
    assert_eq!(pages(&fleet.second, 3), 3);
    let log = fleet.servers[0].items("sandarac:l1:").remove(0).key;
    // The second node has not read the purge when the log is lost.
    fleet.second.paused(|| {
        fleet.first.admin(&["purge", "http://www.example/1"]).success();
        fleet.servers[0].ask(format!("md {log}\r\n"), "HD\r\n");
    });
    assert_eq!(page(&fleet.first, "/1").text(), "/1 4");
    let followed = within("the second node to follow", || {
        Some(page(&fleet.second, "/1").text()).filter(|text| text != "/1 2")
    });
    assert!(followed == "/1 4" || followed == "/1 5", "{followed}");
    for number in [0, 2] {
        let kept = format!("/{number} {}", number + 1);
        assert_eq!(page(&fleet.first, &format!("/{number}")).text(), kept);
        assert_eq!(page(&fleet.second, &format!("/{number}")).text(), kept);
    }
}

#[test]
fn a_purge_names_the_server_that_it_has_not_reached_and_reaches_it_later() {
    for command in [["purge", "http://www.example/0"], ["ban", "path == \"/0\""]] {
        let fleet = Fleet::<1>::new(QUICK);
        fleet.fill(1);
        assert_eq!(pages(&fleet.second, 1), 1);
        fleet.servers[0].freeze();
        let warned = fleet.first.admin(&command).success();
        let text = format!("{}{}", warned.stdout, warned.stderr);
        let name = fleet.servers[0].url();
        assert!(text.contains("not reached") && text.contains(&name), "{warned:?}");
        assert_eq!(page(&fleet.first, "/0").text(), "/0 2", "effective here");
        fleet.servers[0].thaw();
        within("the second node to follow", || (page(&fleet.second, "/0").text() != "/0 1").then_some(()));
        let told = fleet.first.admin(&["purge", "http://www.example/1"]).success();
        assert!(!format!("{}{}", told.stdout, told.stderr).contains("not reached"), "{told:?}");
    }
}

#[test]
fn a_page_purged_while_the_server_was_gone_is_not_read_from_it_later() {
    let fleet = Fleet::<1>::new(QUICK);
    fleet.fill(2);
    fleet.servers[0].freeze();
    fleet.first.admin(&["purge", "http://www.example/0"]).success();
    fleet.servers[0].thaw();
    // The entry is still on the server, and neither node has a copy of it.
    within("the server to be used again", || {
        let text = page(&fleet.first, "/0").text();
        assert_ne!(text, "/0 1");
        let other = page(&fleet.second, "/1");
        (other.text() == "/1 2").then_some(())
    });
    within("the second node to follow", || (page(&fleet.second, "/0").text() != "/0 1").then_some(()));
    assert_ne!(page(&fleet.second, "/0").text(), "/0 1");
}

#[test]
fn a_server_that_never_answers_is_ejected() {
    const PAGES: usize = 30;
    let (origin, hung) = (origin(), Listener::new());
    let node = node(&origin, &[hung.address().to_string()], EJECTING);
    let begun = Instant::now();
    assert_eq!(pages(&node, PAGES), 0);
    let took = begun.elapsed();
    assert!(took < DEADLINE * PAGES as u32 / 2, "{took:?}");
    assert_eq!(pages(&node, PAGES), PAGES);
    assert_eq!(origin.count(), PAGES);
}

#[test]
fn a_node_starts_and_serves_without_any_server() {
    let (origin, nobody) = (origin(), Port::new());
    let node = node(&origin, &[nobody.address().to_string(), "unix:/nowhere/memcached".to_owned()], QUICK);
    assert_eq!(pages(&node, 10), 0);
    assert_eq!(pages(&node, 10), 10);
    let warned = node.admin(&["purge", "--all"]).success();
    assert!(format!("{warned:?}").contains(&nobody.address().to_string()), "{warned:?}");
    assert_eq!(pages(&node, 10), 0);
}

/// A server that sends the same bytes whenever something arrives, and then closes the connection or waits.
struct Scripted {
    address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Scripted {
    fn new(bytes: &[u8], closes: bool) -> Scripted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (stopping, bytes) = (is_stopping.clone(), bytes.to_vec());
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(mut stream), bytes) = (stream, bytes.clone()) else { continue };
                thread::spawn(move || {
                    let mut received = [0; 4096];
                    while stream.read(&mut received).is_ok_and(|count| count > 0) {
                        if stream.write_all(&bytes).is_err() || closes {
                            return;
                        }
                    }
                });
            }
        });
        Scripted { address, is_stopping, accepting: Some(accepting) }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

#[test]
fn a_server_that_replies_with_nonsense_is_no_error_for_any_client() {
    let long = [b'x'; 100_000];
    let nonsense: [&[u8]; 12] = [
        b"garbage\r\n",
        b"\0\xff\xfe\r\n\0",
        b"HD\r\n",
        b"EN\r\n",
        b"MN\r\n",
        b"NS\r\n",
        b"VA 5 c1 f1 s5 t60\r\nhello\r\n",
        b"VA 1000 c1 f1 s1000 t60\r\ncut",
        b"VA 99999999999999999999 c1\r\n",
        b"SERVER_ERROR out of memory\r\n",
        b"VERSION 1.6.18\r\nMN\r\nMN\r\n",
        &long,
    ];
    for bytes in nonsense {
        for closes in [false, true] {
            let (origin, server) = (origin(), Scripted::new(bytes, closes));
            let mut node = node(&origin, &[server.address.to_string()], QUICK);
            assert_eq!(pages(&node, 6), 0);
            assert_eq!(pages(&node, 6), 6);
            assert_eq!(origin.count(), 6, "{:?}", String::from_utf8_lossy(bytes));
            assert!(node.is_running());
        }
    }
}

#[test]
fn values_that_were_changed_on_the_server_are_not_served() {
    let fleet = Fleet::<1>::new(PATIENT);
    fleet.fill(6);
    let server = &fleet.servers[0];
    let keys: Vec<String> = server.items("sandarac:e1:").into_iter().map(|item| item.key).collect();
    let values: Vec<Vec<u8>> = keys.iter().map(|key| server.value(key).expect("an entry")).collect();
    let mut changed = values.clone();
    // The value of another page, cut off, with more behind it, with one bit changed, nothing, and something else.
    changed.swap(0, 1);
    changed[2].pop();
    changed[3].push(b'x');
    *changed[4].last_mut().expect("a body") ^= 1;
    changed[5] = b"<html>".to_vec();
    for (key, value) in keys.iter().zip(&changed) {
        server.replace_value(key, value);
    }
    assert_eq!(pages(&fleet.second, 6), 0);
    assert_eq!(fleet.origin.count(), 12);
    // What was fetched replaces what was wrong.
    let third = node(&fleet.origin, &[server.url()], PATIENT);
    within("the entries to be right again", || {
        (keys.iter().zip(&changed).all(|(key, changed)| server.value(key).as_ref() != Some(changed)))
            .then_some(())
    });
    assert_eq!(pages(&third, 6), 6);
    assert_eq!(fleet.origin.count(), 12);
}

#[test]
fn a_damaged_purge_log_is_replaced() {
    let fleet = Fleet::<1>::new(PATIENT);
    fleet.fill(2);
    let log = fleet.servers[0].items("sandarac:l1:").remove(0).key;
    fleet.servers[0].replace_value(&log, b"no log at all");
    within("the log to be replaced", || {
        page(&fleet.first, "/0");
        (fleet.servers[0].value(&log).as_deref() != Some(b"no log at all")).then_some(())
    });
    is_used_again(&fleet.servers[0], &fleet.first, &fleet.second);
}

#[test]
fn a_full_server_that_evicts_everything_is_no_error_for_any_client() {
    const PAGES: usize = 60;
    let body = |target: &str| {
        let mut state = target.len() as u64 + target.bytes().map(u64::from).sum::<u64>();
        let mut bytes = format!("{target} ").into_bytes();
        bytes.resize_with(100_000, || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        bytes
    };
    let origin = Origin::new(move |request| reply(200).cache("max-age=600").body(body(&request.target)));
    let server = Memcached::start(&["-m", "2"]);
    let nodes = [(); 2].map(|()| node(&origin, &[server.url()], PATIENT));
    for round in 0..2 {
        for node in &nodes {
            for number in 0..PAGES {
                let target = format!("/{number}");
                assert!(node.get(&target).expect(200).body == body(&target), "{target} in round {round}");
            }
        }
    }
    assert!(entries(&server) < PAGES, "nothing was evicted");
}
