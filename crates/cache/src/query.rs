//! Requests, as the store looks them up.

use sandarac_message::Fields;
use sandarac_message::caching::RequestDirectives;
use sandarac_message::range::RangeSpec;

/// A request to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Its fields, for matching `Vary`.
    pub fields: Fields<'a>,
    /// Its cache directives.
    pub directives: &'a RequestDirectives,
    /// The part of the representation it requests; `None` for all of it, or for several ranges.
    pub part: Option<RangeSpec>,
    /// What to do on a miss.
    pub intent: Intent,
}

/// What to do on a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// Fetch, or wait for another fetch.
    #[default]
    Fill,
    /// Nothing: the request only uses what is stored, as with `only-if-cached`.
    Peek,
}
