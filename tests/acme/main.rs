//! The ACME client against CAs that the tests script: honest ones, and ones that lie, hang, limit and forget.
//!
//! `tests/pebble` has the same client against a real CA.

mod ca;
mod clock;
mod faults;
mod lies;
mod life;
mod node;
mod sharing;
