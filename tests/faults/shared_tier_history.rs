//! Requests and purges at two nodes at once. Every response carries its version, which is compared with the purges that had
//! been made when the request began (the guarantees in docs/protocols/shared-tier.md).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sandarac_test_support::{Memcached, Origin, Sandarac, get, reply};

use crate::{sandarac, site};

const PAGES: usize = 8;
const LOCAL_TTL: Duration = Duration::from_millis(300);
/// How late a node may be beyond `local_ttl`, because the machine is busy with other tests.
const SLACK: Duration = Duration::from_secs(1);
const LENGTH: Duration = Duration::from_secs(4);

/// A purge that a node has confirmed.
struct Purge {
    node: usize,
    page: usize,
    version: u64,
    at: Instant,
    /// Whether all servers had it.
    is_acknowledged: bool,
}

struct History {
    nodes: [Sandarac; 2],
    versions: &'static [AtomicU64; PAGES],
    purges: Mutex<Vec<Purge>>,
    is_over: AtomicBool,
    /// Whether servers lose what they have been told. Then the other node learns of a purge when the purging node reaches the
    /// server.
    is_lossy: bool,
    _origin: Origin,
}

impl History {
    fn new(servers: &[Memcached], is_lossy: bool) -> History {
        // The rule of an origin outlives the test that made it.
        let versions: &'static [AtomicU64; PAGES] = Box::leak(Box::default());
        let origin = Origin::new(move |request| {
            let page: usize = request.path()[1..].parse().expect("the number of a page");
            reply(200).cache("max-age=600").body(format!("{page} {}", versions[page].load(Ordering::SeqCst)))
        });
        let names: Vec<String> = servers.iter().map(Memcached::url).collect();
        let tables = format!(
            "[cache.shared]\nservers = {names:?}\nlocal_ttl = \"300ms\"\ntimeout = \"5s\"\n\
             ejection = {{ first = \"100ms\", longest = \"200ms\" }}"
        );
        let nodes = [(); 2].map(|()| sandarac().config(site(&origin.url(), "", &tables)).start());
        let is_over = AtomicBool::new(false);
        History { nodes, versions, purges: Mutex::default(), is_over, is_lossy, _origin: origin }
    }

    /// Requests pages of a node until the end, and compares each with the purges. Returns the number of hits.
    fn request(&self, node: usize, mut state: u64) -> u64 {
        let (mut client, mut hits) = (self.nodes[node].connect(), 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let page = random(&mut state);
            let began = Instant::now();
            let response = client.exchange(&get(&format!("/{page}"))).expect(200);
            let text = response.text();
            let (of, version) = text.split_once(' ').expect("a page");
            assert_eq!(of, page.to_string(), "the page of another URL");
            let version: u64 = version.parse().expect("a version");
            hits += u64::from(response.is_hit());
            for purge in self.purges.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                let until = if purge.node == node { purge.at } else { purge.at + LOCAL_TTL + SLACK };
                let is_due = purge.node == node || purge.is_acknowledged && !self.is_lossy;
                if purge.page == page && is_due && began > until {
                    assert!(
                        version >= purge.version,
                        "node {node} served version {version} of page {page}, {:?} after node {} had purged what was before \
                         version {}: {response:?}",
                        began - purge.at,
                        purge.node,
                        purge.version
                    );
                }
            }
        }
        hits
    }

    /// Changes pages and purges them at a node until the end. Returns the number of purges.
    fn purge(&self, node: usize, mut state: u64) -> usize {
        let mut count = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let page = random(&mut state);
            let version = self.versions[page].fetch_add(1, Ordering::SeqCst) + 1;
            let url = format!("http://www.example/{page}");
            let output = self.nodes[node].admin(&["purge", &url]).success();
            let is_acknowledged = !format!("{output:?}").contains("not reached");
            let purge = Purge { node, page, version, at: Instant::now(), is_acknowledged };
            self.purges.lock().unwrap_or_else(PoisonError::into_inner).push(purge);
            count += 1;
            thread::sleep(Duration::from_millis(30));
        }
        count
    }

    /// Lets clients and purges run while `meanwhile` does.
    fn run(&self, meanwhile: impl FnOnce()) {
        thread::scope(|scope| {
            let clients: Vec<_> = (0..4_u8)
                .map(|client| scope.spawn(move || self.request(client as usize % 2, client.into())))
                .collect();
            let purging = [0, 1].map(|node| scope.spawn(move || self.purge(node, 100 + node as u64)));
            meanwhile();
            self.is_over.store(true, Ordering::Relaxed);
            assert!(clients.into_iter().all(|client| client.join().expect("a right history") > 0));
            assert!(purging.into_iter().all(|purging| purging.join().expect("purges") > 0));
        });
    }
}

fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % PAGES
}

#[test]
fn purges_hold_on_both_nodes() {
    let servers = [(); 2].map(|()| Memcached::start(&[]));
    History::new(&servers, false).run(|| thread::sleep(LENGTH));
}

#[test]
fn purges_hold_where_they_were_made_while_servers_die_and_forget() {
    let mut servers = [(); 2].map(|()| Memcached::start(&[]));
    let history = History::new(&servers, true);
    history.run(|| {
        for round in 0..4 {
            thread::sleep(LENGTH / 8);
            servers[round % 2].kill();
            servers[round % 2].restart();
            thread::sleep(LENGTH / 8);
            servers[(round + 1) % 2].ask("flush_all\r\n", "OK\r\n");
        }
    });
}

/// `SANDARAC_REAL_HISTORIES` histories with faults drawn from their number; one, unless it has another number.
#[test]
fn purges_hold_where_they_were_made_whatever_servers_do() {
    let count = std::env::var("SANDARAC_REAL_HISTORIES").map(|count| count.parse().expect("a number"));
    for seed in 0..count.unwrap_or(1_u64) {
        println!("history {seed}");
        let mut servers = [(); 2].map(|()| Memcached::start(&[]));
        let history = History::new(&servers, true);
        history.run(|| {
            let mut state = seed;
            for _ in 0..8 {
                let length = LENGTH / 16 * (1 + random(&mut state) as u32 % 3);
                let server = &mut servers[random(&mut state) % 2];
                match random(&mut state) % 4 {
                    0 => {
                        server.kill();
                        thread::sleep(length);
                        server.restart();
                    }
                    1 => {
                        server.freeze();
                        thread::sleep(length);
                        server.thaw();
                    }
                    2 => drop(server.ask("flush_all\r\n", "OK\r\n")),
                    _ => thread::sleep(length),
                }
            }
        });
    }
}
