//! Trailers (RFC 9113 §8.1).

use super::super::fault::Fault;
use super::super::hpack::Decoder;
use super::buffer::HeadBuf;
use super::pseudo::Kind;
use super::refusal::Refusal;
use super::section::Section;
use crate::h1::Limits;
use sandarac_message::Fields;

/// Reads trailers from a whole header block. The caller MUST drop what
/// [`sandarac_message::hop::is_trailer`] does not allow. A fault ends the connection, a refusal the stream.
pub fn read<'a>(
    decoder: &mut Decoder,
    block: &[u8],
    limits: &Limits,
    buf: &'a mut HeadBuf,
) -> Result<Result<Fields<'a>, Refusal>, Fault> {
    let section = Section::read(Kind::Trailers, decoder, block, limits, buf)?;
    Ok(section.map(|_| buf.fields()))
}
