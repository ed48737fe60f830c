//! Balancers and workers that are killed under load: the real binary before the real workers of `python/`, found in
//! directories, in files and by the real ZooKeeper.
//!
//! Whatever dies, every GET of a client that does what clients do is answered with 200 and a whole page, that of the site and
//! path it asked for. Only a response that a worker was already streaming when it died breaks off, and says so.
//!
//! It needs Python with kazoo, in the environment that `python/run-tests` makes, and Debian's ZooKeeper, which `./check`
//! installs. `cargo test` of the workspace leaves it out; `cargo test -p sandarac-server --test workers` runs it.

mod balancers;
mod fleet;
mod killed;
mod load;
mod registry;
mod replaced;

use sandarac_test_support::{Sandarac, Setup};

/// The binary under test with one pool, `app`, balanced by résumés and classes of hosts: `pool` are more of its settings.
pub(crate) fn balancer(pool: &str) -> Sandarac {
    balancer_at("127.0.0.1:0", pool)
}

/// The same, listening on `address`. It answers nothing from memory.
pub(crate) fn balancer_at(address: &str, pool: &str) -> Sandarac {
    Setup::new(env!("CARGO_BIN_EXE_sandarac")).config(configuration(address, "pass", pool)).start()
}

/// The configuration of such a binary, with what its route does with the cache.
pub(crate) fn configuration(address: &str, cache: &str, pool: &str) -> String {
    format!(
        "threads = 2\n[[listen]]\naddress = \"{address}\"\n[pool.app]\nbalance = \"resume\"\n{pool}\n\
         [[route]]\npool = \"app\"\ncache = \"{cache}\"\n"
    )
}
