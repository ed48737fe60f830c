//! Scenarios for the store, each in thousands of orders of its threads.

mod arriving;
mod flights;
mod purges;
mod support;
