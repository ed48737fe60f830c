//! The encoder of HTTP/2: turns responses into header blocks.

use crate::response::Response;
use sandarac_message::{Fields, Name};
use sandarac_wire::h2::head;
use sandarac_wire::h2::hpack::encode::{self, Strings};

/// Appends the block of a response to `out`, and passes the values of its Priority to `prioritise` (RFC 9218 §8).
pub(super) fn response(out: &mut Vec<u8>, response: &Response<'_>, mut prioritise: impl FnMut(&[u8])) {
    encode::status(out, response.status);
    response.for_each_field(|id, name, value| {
        if is_of_connection(id, name) {
            return;
        }
        if id == Name::Other && name.eq_ignore_ascii_case(b"priority") {
            prioritise(value);
        }
        encode::field(out, id, name, value, Strings::Plain);
    });
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
