//! The encoder of HTTP/2: turns responses into header blocks.

use crate::response::{Base, Response};
use sandarac_message::{Field, Fields, Name, StoredHead};
use sandarac_wire::h2::head;
use sandarac_wire::h2::hpack::encode::{self, Strings};

/// Appends the block of a response to `out`, and passes the values of its Priority to `prioritise` (RFC 9218 §8).
pub(super) fn response(out: &mut Vec<u8>, response: &Response<'_>, mut prioritise: impl FnMut(&[u8])) {
    let kept = match response.base {
        Base::Stored(_, place) => place.block(stored),
        _ => None,
    };
    if let Some(block) = kept {
        out.extend_from_slice(block);
        response.for_each_base_field(|id, _, value| {
            if id == Name::Priority {
                prioritise(value);
            }
        });
    } else {
        encode::status(out, response.status);
    }
    let mut put = |id, name: &[u8], value: &[u8]| {
        if id == Name::Priority {
            prioritise(value);
        }
        field(out, id, name, value, Strings::Plain);
    };
    if kept.is_none() {
        response.for_each_base_field(&mut put);
    }
    response.for_each_added_field(&mut put);
    if let Some((status, name)) = &response.cache_status {
        encode::written(out, Name::CacheStatus, |out| status.write(name, out));
    }
}

/// The block of a stored head. Its strings are as short as can be, because it is made once and sent often.
fn stored(head: &StoredHead) -> Vec<u8> {
    let mut block = Vec::new();
    encode::status(&mut block, head.status());
    for Field { id, name, value, .. } in head.shown().iter() {
        field(&mut block, id, name, value, Strings::Shortest);
    }
    block
}

fn field(out: &mut Vec<u8>, id: Name, name: &[u8], value: &[u8], strings: Strings) {
    if !is_of_connection(id, name) {
        encode::field(out, id, name, value, strings);
    }
}

/// Appends the block of a response of these fields.
pub(super) fn bare_response(out: &mut Vec<u8>, status: u16, fields: Fields<'_>) {
    head::encode::response(out, status, fields, Strings::Plain);
}

/// The block of trailers; empty if there are none.
pub(super) fn trailers(fields: Fields<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    head::encode::trailers(&mut block, fields, Strings::Plain);
    block
}

/// Whether a field describes an HTTP/1 connection (RFC 9113 §8.2.2).
fn is_of_connection(id: Name, name: &[u8]) -> bool {
    match id {
        Name::Connection
        | Name::KeepAlive
        | Name::ProxyConnection
        | Name::TransferEncoding
        | Name::Upgrade => true,
        Name::Other => name.eq_ignore_ascii_case(b"http2-settings"),
        _ => false,
    }
}
