//! Heads into header blocks: names in lower case, without the fields of a connection.

use super::super::hpack::encode::{self, Strings};
use sandarac_message::hop::HopByHop;
use sandarac_message::{Field, Fields, Name, is_tchar};

/// What a request has in pseudo-fields.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    /// The method.
    pub method: &'a [u8],
    /// `http` or `https`; unused by CONNECT without a protocol.
    pub scheme: &'a [u8],
    /// The host, with a port if it is not the usual one.
    pub authority: &'a [u8],
    /// Path and query; unused by CONNECT without a protocol.
    pub path: &'a [u8],
    /// The protocol of an extended CONNECT (RFC 8441 §4).
    pub protocol: Option<&'a [u8]>,
}

/// Appends the block of a request. Host in `fields` is omitted, because the authority stands for it.
pub fn request(out: &mut Vec<u8>, line: &RequestLine<'_>, fields: Fields<'_>, strings: Strings) {
    encode::method(out, line.method, strings);
    if line.method != b"CONNECT" || line.protocol.is_some() {
        encode::scheme(out, line.scheme);
        encode::path(out, line.path, strings);
    }
    encode::authority(out, line.authority, strings);
    if let Some(protocol) = line.protocol {
        encode::protocol(out, protocol);
    }
    forwarded(out, fields, strings, |field| match field.id {
        Name::Host => false,
        Name::Te => field.value.eq_ignore_ascii_case(b"trailers"),
        _ => true,
    });
}

/// Appends the block of a response. More fields may follow by [`field`].
pub fn response(out: &mut Vec<u8>, status: u16, fields: Fields<'_>, strings: Strings) {
    encode::status(out, status);
    forwarded(out, fields, strings, |field| field.id != Name::Te);
}

/// Appends the block of trailers.
pub fn trailers(out: &mut Vec<u8>, fields: Fields<'_>, strings: Strings) {
    forwarded(out, fields, strings, |field| field.id != Name::Te);
}

/// Appends one field to a block. `name` MUST be a token; otherwise the field is omitted.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(name.iter().all(|&byte| is_tchar(byte)) && !name.is_empty());
    if name.iter().all(|&byte| is_tchar(byte)) && !name.is_empty() {
        encode::field(out, Name::of(name), name, value, Strings::Plain);
    }
}

/// Appends one field of a known name to a block.
pub fn known(out: &mut Vec<u8>, name: Name, value: &[u8]) {
    encode::field(out, name, name.text().as_bytes(), value, Strings::Plain);
}

fn forwarded<'a>(out: &mut Vec<u8>, fields: Fields<'a>, strings: Strings, keep: impl Fn(&Field<'a>) -> bool) {
    let named = fields.has(Name::Connection).then(|| HopByHop::of(fields));
    for field in fields.iter() {
        let of_connection = match field.id {
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => true,
            Name::Other => field.is(b"HTTP2-Settings"),
            _ => false,
        };
        if of_connection || !keep(&field) || named.as_ref().is_some_and(|named| named.names(&field)) {
            continue;
        }
        encode::field(out, field.id, field.name, field.value, strings);
    }
}
