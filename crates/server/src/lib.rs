//! The parts of the `sandarac` binary: command line, demo, admin API and logs.
//!
//! The crates below handle requests; this one starts, monitors and reports on them.

// They panic if nothing can be written; see [`stderr::print_line`].
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod acme;
mod acme_check;
pub mod admin;
mod asked_takeover;
pub mod check;
pub mod cli;
pub mod commands;
pub mod demo;
pub mod failure;
mod fastcgi_check;
mod http_service;
pub mod human;
pub mod intermediary;
mod load_client;
pub mod logs;
mod panic_report;
mod php_fpm;
mod predecessor;
pub mod probe;
pub mod process;
pub mod recorder;
pub mod replay;
pub mod run;
mod service_manager;
pub mod signals;
pub mod simulate;
pub mod startup_messages;
pub mod stderr;
mod takeover;
mod tls;
pub mod top;
mod user;
pub mod vcl;
