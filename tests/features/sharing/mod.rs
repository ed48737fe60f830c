//! Sharing, under the profile `safe` with its defaults (docs/manual/caching.md).

mod corpus;
mod fields;
mod lifetimes;
mod probe;

use sandarac_test_support::{Req, get};

/// A request for `target` with these fields.
fn with(target: &str, fields: &[(&str, &str)]) -> Req {
    fields.iter().fold(get(target), |request, (name, value)| request.with(name, value))
}
