//! The fields of a response that go on from a backend, over any protocol.

use sandarac_message::hop::{self, is_of_workers};
use sandarac_message::tags::is_surrogate_only;
use sandarac_message::{Fields, FieldsBuf, Name, TooLarge};
use sandarac_net::COPIED;
use sandarac_wire::h1::encode;

/// Room for the additions to a response head: the status line, Via, Date, Cache-Status, Connection.
const ADDED_TO_RESPONSE: usize = 352;

/// The fields of a response that begins another protocol. Hop-by-hop fields name that protocol, so they are
/// included. It has no body, and nothing that describes one (RFC 9110 §8.6, §9.3.6).
pub(super) fn of_switched(received: Fields<'_>) -> Result<FieldsBuf, TooLarge> {
    let frames = |name| matches!(name, Name::ContentLength | Name::TransferEncoding);
    let mut kept = FieldsBuf::new();
    kept.extend(received, |field| {
        !frames(field.id) && !is_of_workers(field.id) && !is_surrogate_only(field.id)
    })?;
    Ok(kept)
}

/// The end-to-end fields of a final response, after its status line. `length` is that of the body, if it is known.
pub(super) fn of_final(
    status: u16,
    reason: &[u8],
    received: Fields<'_>,
    length: Option<u64>,
) -> Result<FieldsBuf, TooLarge> {
    let body = length.filter(|&length| length <= COPIED as u64).unwrap_or(0) as usize;
    let mut first = Vec::with_capacity(received.encoded_len() + ADDED_TO_RESPONSE + body);
    encode::status_line(&mut first, status, reason);
    let mut fields = end_to_end(first, received)?;
    if status == 204 {
        // It has no content, so it has no length either, not even zero (RFC 9110 §8.6).
        fields.remove(Name::ContentLength);
    }
    if let Some([b'0', _, ..]) = fields.view().get(Name::ContentLength) {
        trim_zeros(&mut fields)?;
    }
    Ok(fields)
}

/// Writes a Content-Length without leading zeros, which some parsers read as octal.
#[cold]
fn trim_zeros(fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    let digits = fields.view().get(Name::ContentLength).unwrap_or_default().to_vec();
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count().min(digits.len() - 1);
    fields.replace(b"Content-Length", &digits[zeros..])
}

/// A copy of the end-to-end fields (RFC 9110 §7.6.1), after `first_line`. Fields that Connection names were
/// removed when the response was read.
pub(super) fn end_to_end(first_line: Vec<u8>, fields: Fields<'_>) -> Result<FieldsBuf, TooLarge> {
    // Two fields are added later: Via, Date.
    let mut kept = FieldsBuf::after(first_line, fields.len() + 2);
    kept.extend(fields, |field| !hop::is_standing(field.id))?;
    Ok(kept)
}
