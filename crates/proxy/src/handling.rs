//! How an exchange was handled, as Cache-Status, the log and the counters tell it.

use crate::record::Outcome;
use crate::step::receive::PassReason;
use crate::tally::MissReason;
use sandarac_message::status_fields::{CacheStatus, Forward};

/// What became of a request on its way through the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handling {
    pub(crate) outcome: Outcome,
    /// Why it led a fetch, if it did.
    pub(crate) miss: Option<MissReason>,
    /// Why it went past the store, if it did.
    pub(crate) pass: Option<PassReason>,
    /// The named reason of a miss, bypass, stale answer or refusal to store.
    pub(crate) reason: Option<&'static str>,
    /// Why the request was forwarded, if it was.
    pub(crate) forward: Option<Forward>,
    /// The status that the origin answered, where the response has another one.
    pub(crate) forward_status: Option<u16>,
    /// Seconds of freshness left.
    pub(crate) ttl: Option<i64>,
    /// Whether the response was stored.
    pub(crate) stored: bool,
    /// Whether it got the response to another request's fetch.
    pub(crate) collapsed: bool,
}

impl Handling {
    pub(crate) const fn new(outcome: Outcome) -> Handling {
        Handling {
            outcome,
            miss: None,
            pass: None,
            reason: None,
            forward: None,
            forward_status: None,
            ttl: None,
            stored: false,
            collapsed: false,
        }
    }

    /// Whether the response comes from the store without the origin having been asked for it just now, so that it must
    /// carry an Age (RFC 9111 §5.1).
    pub(crate) fn is_reuse(&self) -> bool {
        matches!(self.outcome, Outcome::Hit | Outcome::Stale)
    }

    /// Writes the Cache-Status line.
    pub(crate) fn encode(&self, name: &str, out: &mut Vec<u8>) {
        let status = CacheStatus {
            hit: self.is_reuse() && self.forward.is_none(),
            forward: self.forward,
            forward_status: self.forward_status,
            ttl: self.ttl,
            stored: self.stored,
            collapsed: self.collapsed.then_some(true),
            key: None,
            detail: self.reason,
        };
        out.extend_from_slice(b"Cache-Status: ");
        status.write(name, out);
        out.extend_from_slice(b"\r\n");
    }
}
