//! Trailers on their way: they pass the edits and filters that fields pass, or none at all.
//!
//! Servers differ in what they make of a trailer section. Some leave it unread on a kept connection, where it is taken for
//! the next request (cheroot, eventlet); some merge it into the fields (uvicorn with httptools, PHP). So trailers of
//! requests go on only where the pool asks for them, those of responses to clients that read them (RFC 9110 §6.5.1).

use crate::unkeyed::is_suspect;
use sandarac_message::tags::is_surrogate_only;
use sandarac_message::{Field, FieldsBuf};
use sandarac_wire::h1::encode;

/// Which trailers of a message go on: those that no edit removes or replaces. What frames, routes or authenticates is
/// dropped where they are read ([`sandarac_message::hop::is_trailer`]).
#[derive(Clone, Debug)]
pub(crate) struct TrailerRule {
    edited: Vec<Box<[u8]>>,
}

impl TrailerRule {
    /// Where edits of the message's fields remove or replace those of these names.
    pub(crate) fn new<'n>(edited: impl Iterator<Item = &'n [u8]>) -> TrailerRule {
        TrailerRule { edited: edited.map(Box::from).collect() }
    }

    fn admits(&self, field: &Field<'_>) -> bool {
        !self.edited.iter().any(|name| field.is(name))
    }
}

/// Writes the end of a request body in chunks, with the trailers that `rule` lets through.
pub(crate) fn end_request(out: &mut Vec<u8>, trailers: &FieldsBuf, rule: Option<&TrailerRule>) {
    let kept = kept(trailers, |field| rule.is_some_and(|rule| rule.admits(field)) && !is_suspect(field));
    encode::last_chunk(out, kept.view());
}

/// Those trailers of a response that `rule` lets through to the client.
pub(crate) fn for_client(trailers: &FieldsBuf, rule: Option<&TrailerRule>) -> FieldsBuf {
    kept(trailers, |field| rule.is_some_and(|rule| rule.admits(field)) && !is_surrogate_only(field.id))
}

fn kept(trailers: &FieldsBuf, goes_on: impl Fn(&Field<'_>) -> bool) -> FieldsBuf {
    if trailers.view().is_empty() {
        return FieldsBuf::new();
    }
    let mut kept = FieldsBuf::copy_of(trailers.view());
    kept.retain(|field| goes_on(&field));
    kept
}
