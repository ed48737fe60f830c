//! HTTP/2 to backends, frame by frame.

mod endings;
mod faults;
mod flow;
mod messages;
mod sharing;
mod tls;
mod upgrades;

use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Http2Server, Listener, Sandarac};

use crate::sandarac;

/// The window of a response in bytes: by the settings, where there is room for it, and once a long one is
/// read.
const LEAST_WINDOW: usize = 8 << 10;
pub(crate) const FIRST_WINDOW: usize = 64 << 10;
const WIDE: i64 = 256 << 10;

/// The URL of a listener as that of a backend that speaks HTTP/2 in clear.
fn url(listener: &Listener) -> String {
    listener.url().replace("http://", "h2://")
}

/// Sandarac on one core, with a listener that takes HTTP/2 as well, before these backends. `keys` are
/// settings of the pool,
/// `cache` that of the route.
fn proxy(backends: &[&Listener], keys: &str, cache: &str) -> Sandarac {
    proxy_with(backends, keys, cache, "")
}

/// The same with `more` settings.
fn proxy_with(backends: &[&Listener], keys: &str, cache: &str, more: &str) -> Sandarac {
    let backends: Vec<String> = backends.iter().map(|listener| url(listener)).collect();
    sandarac()
        .config(format!(
            "threads = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n[pool.app]\nbackends = {backends:?}\n{keys}\n\n\
             [[route]]\npool = \"app\"\ncache = \"{cache}\"\n{more}"
        ))
        .start()
}

/// A proxy past the cache before one backend, which accepts a connection when it is asked for one.
fn before(keys: &str) -> (Sandarac, Listener) {
    let listener = Listener::new();
    (proxy(&[&listener], keys, "pass"), listener)
}

/// A client that speaks HTTP/2.
fn client(proxy: &Sandarac) -> Http2 {
    Http2::to(proxy.address())
}

/// Accepts a connection, with the usual settings.
#[track_caller]
fn accept(listener: &Listener) -> Http2Server {
    Http2Server::accept(listener)
}
