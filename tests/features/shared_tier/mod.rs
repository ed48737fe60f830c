//! The shared tier: two nodes that share one cache in memcached (docs/protocols/shared-tier.md).

mod fetches;
mod hits;
mod inspection;
mod purges;
mod settings;
mod unsafe_methods;
mod unshared;

use std::time::Duration;

use sandarac_test_support::{Memcached, Origin, Reply, Request, Response, Sandarac, within};

use crate::{sandarac, site};

/// The settings of the tier in most tests. A copy is checked soon, so that a test does not take long; a server may take long to
/// reply, so that a busy machine is not a server that does not answer.
const SHARED: &str = "local_ttl = \"300ms\"\ntimeout = \"5s\"";

/// The `local_ttl` in [`SHARED`].
const LOCAL_TTL: Duration = Duration::from_millis(300);

/// What differs between the nodes of a test.
struct Settings<'a> {
    /// Keys of the route.
    route: &'a str,
    /// Keys of `[cache]`.
    cache: &'a str,
    /// Keys of `[cache.shared]`, in addition to `servers`.
    shared: &'a str,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings { route: "", cache: "", shared: SHARED }
    }
}

/// Two nodes before one origin, with a server between them.
struct Fleet {
    first: Sandarac,
    second: Sandarac,
    server: Memcached,
    origin: Origin,
}

impl Fleet {
    fn new(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Fleet {
        Fleet::with(&Settings::default(), rule)
    }

    fn with(settings: &Settings<'_>, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Fleet {
        let (origin, server) = (Origin::new(rule), Memcached::start(&[]));
        let node = || node(&origin, &[&server], settings);
        Fleet { first: node(), second: node(), server, origin }
    }

    /// Has both nodes keep the page `target` in memory.
    #[track_caller]
    fn load(&self, target: &str) {
        let entries = entries(&self.server);
        let page = self.first.get(target).expect(200);
        has_entries(&self.server, entries + 1);
        assert_eq!(self.second.get(target).expect(200).body, page.body);
    }

    /// Waits until the page `target` of the second node is no longer `text`, and returns the new one.
    #[track_caller]
    fn follows(&self, target: &str, text: &str) -> String {
        within("the other node to follow", || {
            Some(self.second.get(target).expect(200).text()).filter(|now| now != text)
        })
    }
}

fn config(origin: &Origin, servers: &[&Memcached], settings: &Settings<'_>) -> String {
    let servers: Vec<String> = servers.iter().map(|server| server.url()).collect();
    let Settings { route, cache, shared } = settings;
    let tables = format!(
        "[purge]\nallow = [\"127.0.0.1\"]\n\n[cache]\n{cache}\n\n[cache.shared]\nservers = {servers:?}\n{shared}"
    );
    site(&origin.url(), route, &tables)
}

fn node(origin: &Origin, servers: &[&Memcached], settings: &Settings<'_>) -> Sandarac {
    sandarac().config(config(origin, servers, settings)).start()
}

/// The number of entries and variants on the server, marks among them.
fn entries(server: &Memcached) -> usize {
    ["sandarac:e1:", "sandarac:v1:"].iter().map(|prefix| server.items(prefix).len()).sum()
}

/// Waits until the server has `count` entries and variants, and no node fetches any more. A response is stored behind the
/// client's back.
#[track_caller]
fn has_entries(server: &Memcached, count: usize) {
    within(&format!("{count} entries"), || {
        (server.items("sandarac:f1:").is_empty() && entries(server) == count).then_some(())
    });
}

/// Whether Cache-Status tells of a hit in the shared tier.
fn is_shared(response: &Response) -> bool {
    response.is_hit() && response.cache_parameter("detail").as_deref() == Some("shared-tier")
}

/// Whether Cache-Status tells of a hit in memory.
fn is_local(response: &Response) -> bool {
    response.is_hit() && response.cache_parameter("detail").is_none()
}
