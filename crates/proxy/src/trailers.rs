//! Forwarding of trailers: they pass the same edits and filters as fields, or are dropped.
//!
//! Servers treat a trailer section differently. Some leave it unread on a kept connection and parse it as the
//! next request (cheroot, eventlet); some merge it into the fields (uvicorn with httptools, PHP). Therefore
//! trailers of requests are forwarded only if the pool is configured so, and those of responses only to
//! clients that read them (RFC 9110 §6.5.1).

use crate::request::unkeyed::is_suspect;
use sandarac_message::tags::is_for_proxies;
use sandarac_message::{Field, FieldsBuf};
use sandarac_wire::h1::encode;

/// Which trailers of a message are forwarded: those that no edit removes or replaces. Fields for framing,
/// routing or authentication are dropped when they are read ([`sandarac_message::hop::is_trailer`]).
#[derive(Clone, Debug)]
pub(crate) struct TrailerRule {
    edited: Vec<Box<[u8]>>,
}

impl TrailerRule {
    /// A rule for edits that remove or replace fields of these names.
    pub(crate) fn new<'n>(edited: impl Iterator<Item = &'n [u8]>) -> TrailerRule {
        TrailerRule { edited: edited.map(Box::from).collect() }
    }

    fn admits(&self, field: &Field<'_>) -> bool {
        !self.edited.iter().any(|name| field.is(name))
    }
}

/// Writes the end of a chunked request body, with the trailers that `rule` allows.
pub(crate) fn end_request(out: &mut Vec<u8>, trailers: &FieldsBuf, rule: Option<&TrailerRule>) {
    encode::last_chunk(out, of_request(trailers, rule).view());
}

/// The trailers of a request that `rule` allows.
pub(crate) fn of_request(trailers: &FieldsBuf, rule: Option<&TrailerRule>) -> FieldsBuf {
    kept(trailers, |field| rule.is_some_and(|rule| rule.admits(field)) && !is_suspect(field))
}

/// The trailers of a response that `rule` allows for the client.
pub(crate) fn for_client(trailers: &FieldsBuf, rule: Option<&TrailerRule>) -> FieldsBuf {
    kept(trailers, |field| rule.is_some_and(|rule| rule.admits(field)) && !is_for_proxies(field))
}

fn kept(trailers: &FieldsBuf, goes_on: impl Fn(&Field<'_>) -> bool) -> FieldsBuf {
    if trailers.view().is_empty() {
        return FieldsBuf::new();
    }
    let mut kept = FieldsBuf::copy_of(trailers.view());
    kept.retain(|field| goes_on(&field));
    kept
}
