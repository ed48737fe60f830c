//! Backends that registries name: the real ZooKeeper and etcd, killed and started again.
//!
//! They are Debian packages, which `./check` installs; without them this fails and names them. `cargo test` of the workspace
//! leaves it out; `cargo test -p sandarac-discover --test registries` runs it.

mod etcd;
mod forwarder;
#[path = "../discovery/watched.rs"]
mod watched;
mod zookeeper;
