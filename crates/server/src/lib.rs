//! The `sandarac` binary in pieces: command line, demo, admin API and logs.
//!
//! Everything that moves a request lives in the crates below; this one starts it, watches it and reports on it.

pub mod admin;
pub mod calendar;
pub mod demo;
pub mod histogram;
pub mod logs;
#[cfg(test)]
mod test_dir;
