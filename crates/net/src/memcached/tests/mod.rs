//! Tests of the connection: its order of operations with time as an argument, against scripted servers, and
//! against the real memcached.

mod pipeline;
mod real;
mod scripted;

use super::*;
use std::path::PathBuf;

/// A deadline that no test reaches.
const AMPLE: Deadline = Deadline::Total(Duration::from_secs(10));

/// A deadline that is meant to be reached.
const SHORT: Deadline = Deadline::Total(Duration::from_millis(30));

/// Runs a test in the runtime of a core, for at most half a minute.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test = async {
        tokio::time::timeout(Duration::from_secs(30), test).await.expect("the test ends");
    };
    runtime.block_on(tokio::task::LocalSet::new().run_until(test));
}

fn settings(address: ServerAddress) -> Settings {
    Settings { address, login: None, connect_timeout: Duration::from_secs(5), limits: QueueLimits::default() }
}

fn unix(path: PathBuf) -> Settings {
    settings(ServerAddress::Unix(path))
}

fn key(name: &str) -> ServerKey {
    ServerKey::new(name.to_owned()).unwrap()
}

/// A request for a value.
fn value_of(name: &str) -> Get {
    Get { value: true, ..Get::new(key(name)) }
}

fn minute(name: &str) -> Set {
    Set::new(key(name), Ttl::seconds(60))
}

fn bytes(text: &'static str) -> Vec<Bytes> {
    vec![Bytes::from_static(text.as_bytes())]
}

/// Waits until a request has been sent.
async fn sent(connection: &Connection) {
    while connection.silence().is_none() {
        tokio::task::yield_now().await;
    }
}
