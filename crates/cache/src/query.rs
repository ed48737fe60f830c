//! Requests, as the store looks them up.

use sandarac_message::Fields;
use sandarac_message::caching::RequestDirectives;
use sandarac_message::range::RangeSpec;

/// A request to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Its fields, for `Vary`.
    pub fields: Fields<'a>,
    /// Its cache directives.
    pub directives: &'a RequestDirectives,
    /// The part of the representation it wants; `None` where that is all of it, or several ranges.
    pub part: Option<RangeSpec>,
    /// What it would do with a miss.
    pub intent: Intent,
}

/// What a request would do with a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// Fetch, or wait for another's fetch.
    #[default]
    Fill,
    /// Nothing: it only wants to know what is there, as with `only-if-cached`.
    Peek,
}
