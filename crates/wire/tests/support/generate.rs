//! Random messages and parts of messages.

use proptest::prelude::*;
use sandarac_message::{FieldsBuf, MAX_NAME};
use sandarac_wire::h1::BodyFraming;

pub(crate) fn token(len: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("[!#$%&'*+.^_`|~0-9A-Za-z-]{{{},{}}}", len.start, len.end - 1))
        .unwrap()
}

/// A field without effect on framing or the connection.
pub(crate) fn field() -> impl Strategy<Value = (String, Vec<u8>)> {
    let value = proptest::collection::vec(prop_oneof![b' '..=b'~', 0x80..=0xffu8, Just(b'\t')], 0..40);
    (token(1..30), value.prop_map(|value| value.trim_ascii().to_vec())).prop_filter(
        "is ordinary",
        |(name, _)| {
            let special = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "expect"];
            name.len() <= MAX_NAME && !special.contains(&name.to_ascii_lowercase().as_str())
        },
    )
}

pub(crate) fn fields() -> impl Strategy<Value = FieldsBuf> {
    proptest::collection::vec(field(), 0..12).prop_map(FieldsBuf::from_iter)
}

pub(crate) fn target() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![b'!'..=b'~', 0x80..=0xffu8], 1..60)
}

pub(crate) fn reason() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![b' '..=b'~', 0x80..=0xffu8, Just(b'\t')], 0..20)
}

/// A body and how to frame it.
pub(crate) fn body() -> impl Strategy<Value = (BodyFraming, Vec<u8>)> {
    (proptest::collection::vec(any::<u8>(), 0..200), any::<bool>()).prop_map(|(body, chunked)| {
        let framing = if chunked { BodyFraming::Chunked } else { BodyFraming::Length(body.len() as u64) };
        (framing, body)
    })
}

/// Bytes similar to HTTP: pieces of messages, well-formed and not, in any order.
pub(crate) fn near_http() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n",
        b"POST /a HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 204\r\n",
        b"Host: a\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"X: y\r\n",
        b" folded\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\t",
        b":",
        b"X",
        b"abc",
        b"3\r\nabc\r\n",
        b"0\r\n",
        b"0\r\n\r\n",
        b";a=b",
        b",",
        b"Expect: 100-continue\r\n",
        b"HTTP/1.1",
        b"PRI * HTTP/2.0\r\n",
        b"\xff",
        b"\x7f",
    ];
    let piece = prop_oneof![8 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec), 1 => proptest::collection::vec(any::<u8>(), 1..4)];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}
