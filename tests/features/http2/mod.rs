//! HTTP/2 to clients, frame by frame.

mod attacks;
mod bodies;
mod endings;
mod flow;
mod heads;
mod messages;
mod resets;
mod tunnels;

use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Origin, Reply, Request, Sandarac};

use crate::{sandarac, site};

/// Sandarac with a listener in clear that takes HTTP/2, before an origin that answers by `rule`.
fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    before_with("", rule)
}

/// The same with more tables.
fn before_with(tables: &str, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().config(config(&origin, tables)).start(), origin)
}

fn config(origin: &Origin, tables: &str) -> String {
    let site = site(&origin.url(), "", tables);
    format!("threads = 1\n{}", site.replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true"))
}

fn connect(proxy: &Sandarac) -> Http2 {
    Http2::to(proxy.address())
}
