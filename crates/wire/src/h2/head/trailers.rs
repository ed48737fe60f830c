//! Trailers (RFC 9113 §8.1).

use super::super::fault::Fault;
use super::super::hpack::Decoder;
use super::buffer::HeadBuf;
use super::pseudo::Kind;
use super::refusal::Refusal;
use super::section::Section;
use crate::h1::Limits;
use sandarac_message::{Fields, hop};

/// Reads trailers from a whole header block. Fields that [`hop::is_trailer`] forbids are dropped, as in HTTP/1.1. A fault ends
/// the connection, a refusal the stream.
pub fn read<'a>(
    decoder: &mut Decoder,
    block: &[u8],
    limits: &Limits,
    buf: &'a mut HeadBuf,
) -> Result<Result<Fields<'a>, Refusal>, Fault> {
    if let Err(refusal) = Section::read(Kind::Trailers, decoder, block, limits, buf)? {
        return Ok(Err(refusal));
    }
    let HeadBuf { bytes, spans } = buf;
    spans.retain(|&span| Fields::new(bytes, &[span]).iter().all(|field| hop::is_trailer(&field)));
    Ok(Ok(buf.fields()))
}
