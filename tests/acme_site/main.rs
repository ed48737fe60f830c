//! Sites that get their certificates by ACME: the real binary, and pebble as the CA.
//!
//! Pebble is built by `./check`, which needs Go 1.24 or later; without it this fails and says so. `cargo test` of the workspace
//! leaves it out; `cargo test -p sandarac-server --test acme-site` runs it.

// The rest is for the tests of the crate `acme`.
#[allow(dead_code)]
#[path = "../pebble/server.rs"]
mod server;
mod site;
mod visitor;
