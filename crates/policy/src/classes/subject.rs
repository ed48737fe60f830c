//! The parts of a request that classifiers use.

use sandarac_message::Fields;

/// The parts of a request that a classifier uses.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The host, in any letter case, with or without a port; empty if the request has none.
    pub host: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// Path and query, as received.
    pub target: &'a [u8],
    /// The fields.
    pub fields: Fields<'a>,
}
