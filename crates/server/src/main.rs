//! The `sandarac` binary.
fn main() {}
