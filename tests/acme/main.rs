//! The ACME client against CAs that the tests script: honest ones, and ones that lie, hang, limit and forget.
//!
//! `tests/pebble` has the same client against a real CA.

mod ca;
#[allow(dead_code)] // A part is for real CAs.
mod clock;
mod faults;
mod lies;
mod life;
mod node;
mod sharing;
