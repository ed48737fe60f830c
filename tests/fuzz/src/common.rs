//! Parts that the fuzz targets share.

use sandarac_message::{Fields, is_token};
use sandarac_wire::entry::EntryKey;
use sandarac_wire::h1::chunked::{Decoder, Event};
use sandarac_wire::h1::{BodyFraming, Refusal};
use std::collections::BTreeSet;

/// A reader that notes faults instead of refusing: the oracle of the codec's own tests.
#[allow(dead_code, reason = "what it makes of a message beside the faults")]
#[path = "../../../crates/wire/tests/support/relaxed.rs"]
mod relaxed;

/// Items of the shared tier with any content, as the codec's own tests write them.
#[path = "../../../crates/wire/tests/entry/forge.rs"]
mod forge;

/// The faults that the relaxed reader finds in a request.
pub(crate) fn request_faults(bytes: &[u8]) -> BTreeSet<&'static str> {
    relaxed::request(bytes).faults
}

/// The faults that the relaxed reader finds in a response to a request with `method`.
pub(crate) fn response_faults(bytes: &[u8], method: &str) -> BTreeSet<&'static str> {
    relaxed::response(bytes, method).faults
}

/// An item of the shared tier with a valid checksum.
pub(crate) fn entry_item(key: &EntryKey, kind: u8, fields: &[u8], body: &[u8]) -> Vec<u8> {
    forge::item(key, kind, fields, body)
}

/// A record of the purge log with this id, with a valid checksum.
pub(crate) fn entry_record(key: &EntryKey, log: &[u8], fields: &[u8]) -> Vec<u8> {
    forge::record(key, log, fields)
}

/// Any byte as the character of its number.
fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// Fields that came through the codec: names are tokens, values are trimmed and end no line.
pub(crate) fn check_fields(fields: Fields<'_>) {
    for field in fields.iter() {
        assert!(is_token(field.name));
        assert!(!field.value.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f));
        assert_eq!(field.value, field.value.trim_ascii());
    }
}

/// What is read of a part of a message must be unfinished, or what is read of the whole.
pub(crate) fn check_prefixes<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Result<Option<T>, Refusal>,
) {
    let whole = read(bytes);
    let step = bytes.len() / 256 + 1;
    for cut in (0..bytes.len()).step_by(step) {
        let early = read(&bytes[..cut]);
        assert!(early == Ok(None) || early == whole, "{cut}: {early:?}, whole {whole:?}");
    }
}

/// The bytes of the body that starts at the start of `bytes`, or `None` where it has not arrived whole.
pub(crate) fn body_len(bytes: &[u8], framing: BodyFraming) -> Result<Option<usize>, Refusal> {
    match framing {
        BodyFraming::None => Ok(Some(0)),
        BodyFraming::Length(len) => Ok(usize::try_from(len).ok().filter(|&len| len <= bytes.len())),
        BodyFraming::UntilClose => Ok(Some(bytes.len())),
        BodyFraming::Chunked => {
            let (mut decoder, mut at) = (Decoder::new(), 0);
            loop {
                let decoded = decoder.decode(&bytes[at..])?;
                at += decoded.consumed;
                match decoded.event {
                    Event::Data(_) => {}
                    Event::NeedMore => return Ok(None),
                    Event::End(_) => return Ok(Some(at)),
                }
            }
        }
    }
}
