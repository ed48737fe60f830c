//! The ACME client against pebble, Let's Encrypt's CA for tests, which verifies HTTP-01 and TLS-ALPN-01 for real.
//!
//! Pebble is built by `./check`, which needs Go 1.24 or later; without it this fails and says so. `cargo test` of the workspace
//! leaves it out; `cargo test -p sandarac-acme --test pebble` runs it.

// Half of these is for scripted CAs.
#[allow(dead_code)]
#[path = "../acme/clock.rs"]
mod clock;
#[allow(dead_code)]
#[path = "../acme/node.rs"]
mod node;
mod orders;
// The rest is for sites.
#[allow(dead_code)]
mod server;
mod settings;
mod validated;
