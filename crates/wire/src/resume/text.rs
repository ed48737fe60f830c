//! Encoding and decoding of the protocol's values.

use super::{MAX_CLASS, MAX_INTEGER, MAX_SCORE, MAX_VERSION, Malformed};
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sandarac_message::decimal;
use sandarac_message::{Fields, Name};
use sfv::BareItemFromInput;
use std::borrow::Cow;

/// Bits after the last byte are ignored, as in structured fields (RFC 9651 §4.2.7); padding is required.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The longest base64 text of a class.
const MAX_BASE64: usize = MAX_CLASS.div_ceil(3) * 4;

/// The most bytes of an instance.
const MAX_INSTANCE: usize = 32;

/// A structured field, its lines joined (RFC 9651 §4.2); `None` if it is absent.
pub(super) fn joined(
    fields: Fields<'_>,
    name: Name,
    limit: usize,
) -> Option<Result<Cow<'_, [u8]>, Malformed>> {
    let mut lines = fields.all(name);
    let mut joined = Cow::Borrowed(lines.next()?);
    for line in lines {
        let joined = joined.to_mut();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    Some(bounded(&joined, limit).map(|()| joined))
}

pub(super) fn bounded(bytes: &[u8], limit: usize) -> Result<(), Malformed> {
    if bytes.len() > limit { Err(Malformed::TooLarge) } else { Ok(()) }
}

/// Whether these bytes can be a String, and a JSON member name.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    // No early exit: this way many bytes are checked at once.
    bytes.iter().fold(true, |text, byte| text & matches!(byte, b' '..=b'~'))
}

pub(super) fn is_instance(text: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_INSTANCE).contains(&text.len()) && text.iter().all(letter)
}

pub(super) fn is_version(text: &[u8]) -> bool {
    (1..=MAX_VERSION).contains(&text.len()) && is_text(text)
}

/// The classifier's fingerprint from exactly 16 digits.
pub(super) fn fingerprint(text: &str) -> Option<u64> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.len() == 16 && text.bytes().all(digit);
    if digits { u64::from_str_radix(text, 16).ok() } else { None }
}

/// An integer from `least` to [`MAX_INTEGER`].
pub(super) fn within(value: u64, least: u64) -> Option<u64> {
    (least..=MAX_INTEGER).contains(&value).then_some(value)
}

/// A score, or 0 for a dropped class.
pub(super) fn score(score: f64) -> Result<f64, Malformed> {
    match score {
        // Also matches minus zero.
        0.0 => Ok(0.0),
        score if score > 0.0 && score <= MAX_SCORE => Ok(score),
        _ => Err(Malformed::Score),
    }
}

/// A class from a bare item.
pub(super) fn class(item: BareItemFromInput<'_>) -> Result<Cow<'_, [u8]>, Malformed> {
    let class = match item {
        BareItemFromInput::String(text) => bytes_of(string(text)),
        BareItemFromInput::ByteSequence(bytes) => Cow::Owned(bytes),
        _ => return Err(Malformed::Class),
    };
    if class.len() > MAX_CLASS { Err(Malformed::Class) } else { Ok(class) }
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// A String as text.
pub(super) fn string(text: Cow<'_, sfv::StringRef>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_str()),
        Cow::Owned(text) => Cow::Owned(text.into()),
    }
}

/// Writes the class of a JSON member name into `class`: the name itself, or the bytes encoded by `:base64:`.
pub fn class_of_key(key: &str, class: &mut Vec<u8>) -> Result<(), Malformed> {
    class.clear();
    match key.strip_prefix(':') {
        None if is_text(key.as_bytes()) => class.extend_from_slice(key.as_bytes()),
        None => return Err(Malformed::Class),
        Some(rest) => {
            let base64 = rest.strip_suffix(':').filter(|base64| base64.len() <= MAX_BASE64);
            BASE64.decode_vec(base64.ok_or(Malformed::Class)?, class).map_err(|_| Malformed::Class)?;
        }
    }
    if class.len() > MAX_CLASS { Err(Malformed::Class) } else { Ok(()) }
}

/// Appends a class as a bare item: a String if possible, else a Byte Sequence.
pub(super) fn put_class(out: &mut Vec<u8>, class: &[u8]) {
    if is_text(class) { put_string(out, class) } else { put_base64(out, class) }
}

/// A class as a JSON member name.
pub fn class_key(class: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(class) {
        Ok(text) if is_text(class) && !text.starts_with(':') => Cow::Borrowed(text),
        _ => Cow::Owned(format!(":{}:", BASE64.encode(class))),
    }
}

/// Appends a class as a quoted JSON member name.
pub(super) fn put_class_key(out: &mut Vec<u8>, class: &[u8]) {
    put_string(out, class_key(class).as_bytes());
}

fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b':');
    out.extend_from_slice(BASE64.encode(bytes).as_bytes());
    out.push(b':');
}

/// Appends text as a String (RFC 9651 §4.1.6), which is also its JSON form: both escape the quote and the
/// backslash, and nothing else from 0x20 to 0x7E.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    debug_assert!(is_text(text));
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'\\', rest[at]]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

pub(super) fn put_fingerprint(out: &mut Vec<u8>, by: u64) {
    let mut digits = [0; 16];
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(by >> (60 - 4 * at) & 0xf) as usize];
    }
    out.extend_from_slice(&digits);
}

pub(super) fn put_integer(out: &mut Vec<u8>, value: u64) {
    decimal::append(out, value);
}

/// Appends a score as a Decimal (RFC 9651 §4.1.5), at least the smallest possible: a lower one would drop the
/// class.
pub(super) fn put_score(out: &mut Vec<u8>, score: f64) {
    let thousandths = ((score * 1000.0).round_ties_even() as u64).max(1);
    put_integer(out, thousandths / 1000);
    out.push(b'.');
    let rest = thousandths % 1000;
    let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
    let needed = 3 - digits[1..].iter().rev().take_while(|&&digit| digit == b'0').count();
    out.extend_from_slice(&digits[..needed]);
}
