//! Encoding of header blocks, with the static table and without a dynamic one.
//!
//! The result does not depend on the connection, so that it can be kept with a stored head.

use super::static_table::{self, ENTRIES};
use super::{huffman, integer};
use crate::h1::scan::find_control;
use sandarac_message::{Name, decimal};

/// Whether strings are Huffman-coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strings {
    /// Never: the least work.
    Plain,
    /// Where it makes them shorter: for what is kept and sent often.
    Shortest,
}

const INDEXED: u8 = 0x80;
const NOT_INDEXED: u8 = 0x00;
const NEVER_INDEXED: u8 = 0x10;

/// `:status` (RFC 9113 §8.3.2). `status` MUST have three digits.
pub fn status(out: &mut Vec<u8>, status: u16) {
    debug_assert!((100..1000).contains(&status));
    let index = match status {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        _ => {
            let mut digits = [0; 20];
            return pseudo(out, 8, decimal::digits(status.into(), &mut digits), Strings::Plain);
        }
    };
    out.push(INDEXED | index);
}

/// `:method` (RFC 9113 §8.3.1).
pub fn method(out: &mut Vec<u8>, method: &[u8], strings: Strings) {
    match method {
        b"GET" => out.push(INDEXED | 2),
        b"POST" => out.push(INDEXED | 3),
        _ => pseudo(out, 2, method, strings),
    }
}

/// `:scheme`.
pub fn scheme(out: &mut Vec<u8>, scheme: &[u8]) {
    match scheme {
        b"http" => out.push(INDEXED | 6),
        b"https" => out.push(INDEXED | 7),
        _ => pseudo(out, 6, scheme, Strings::Plain),
    }
}

/// `:authority`.
pub fn authority(out: &mut Vec<u8>, authority: &[u8], strings: Strings) {
    pseudo(out, 1, authority, strings);
}

/// `:path`.
pub fn path(out: &mut Vec<u8>, path: &[u8], strings: Strings) {
    if path == b"/" {
        return out.push(INDEXED | 4);
    }
    pseudo(out, 4, path, strings);
}

/// `:protocol` (RFC 8441 §4).
pub fn protocol(out: &mut Vec<u8>, protocol: &[u8]) {
    out.push(NOT_INDEXED);
    string(out, b":protocol", Strings::Plain);
    string(out, protocol, Strings::Plain);
}

/// One field; its name is written in lower case. CR, LF and NUL in a value become spaces, so that one field
/// never becomes two at a careless recipient.
#[inline]
pub fn field(out: &mut Vec<u8>, id: Name, name: &[u8], value: &[u8], strings: Strings) {
    let kind = if is_sensitive(id) { NEVER_INDEXED } else { NOT_INDEXED };
    let index = match id {
        Name::Other => 0,
        known => static_table::index_of(known),
    };
    out.reserve(name.len() + value.len() + 12);
    if index > 0 {
        integer::write(out, kind, 4, index.into());
    } else {
        literal_name(out, kind, id, name, strings);
    }
    let at = out.len();
    string(out, value, strings);
    if find_control(value, 0) != value.len() {
        out.truncate(at);
        sanitised(out, value, strings);
    }
}

/// One field whose value `write` appends.
pub fn written(out: &mut Vec<u8>, name: Name, write: impl FnOnce(&mut Vec<u8>)) {
    field(out, name, name.text().as_bytes(), b"", Strings::Plain);
    let at = out.len();
    write(out);
    let len = out.len() - at;
    // Lengths below this take the one byte that is there (RFC 7541 §5.1).
    if len < 0x7f && find_control(&out[at..], 0) == len {
        out[at - 1] = len as u8;
    } else {
        let value = out.split_off(at);
        out.pop();
        sanitised(out, &value, Strings::Plain);
    }
}

#[cold]
fn sanitised(out: &mut Vec<u8>, value: &[u8], strings: Strings) {
    let clean = |&byte: &u8| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte };
    string(out, &value.iter().map(clean).collect::<Vec<u8>>(), strings);
}

/// Whether a field is never put into a table, by any hop (RFC 7541 §7.1.3).
fn is_sensitive(name: Name) -> bool {
    use Name::*;
    matches!(name, Authorization | ProxyAuthorization | Cookie | SetCookie)
}

fn literal_name(out: &mut Vec<u8>, kind: u8, id: Name, name: &[u8], strings: Strings) {
    let start = out.len();
    out.push(kind);
    integer::write(out, 0, 7, name.len());
    let at = out.len();
    out.extend_from_slice(name);
    out[at..].make_ascii_lowercase();
    if id == Name::Other {
        let index = static_table::index_of_other(&out[at..]);
        if index > 0 {
            out.truncate(start);
            return integer::write(out, kind, 4, index.into());
        }
    }
    if strings == Strings::Shortest && huffman::coded_len(&out[at..]) < name.len() {
        out.truncate(start + 1);
        string(out, &name.to_ascii_lowercase(), strings);
    }
}

/// A pseudo-field whose name is that of a static entry.
fn pseudo(out: &mut Vec<u8>, index: u8, value: &[u8], strings: Strings) {
    debug_assert!(ENTRIES[usize::from(index) - 1].0.starts_with(':'));
    integer::write(out, NOT_INDEXED, 4, index.into());
    string(out, value, strings);
}

#[inline]
fn string(out: &mut Vec<u8>, text: &[u8], strings: Strings) {
    if strings == Strings::Shortest {
        let len = huffman::coded_len(text);
        if len < text.len() {
            integer::write(out, 0x80, 7, len);
            return huffman::encode(text, out);
        }
    }
    integer::write(out, 0, 7, text.len());
    out.extend_from_slice(text);
}
