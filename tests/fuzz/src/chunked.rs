//! Chunked bodies: from any pieces the same; every byte is accounted for; written anew they are read the same. The first bytes
//! say where to cut.

use crate::common::check_fields;
use sandarac_message::FieldsBuf;
use sandarac_wire::h1::chunked::{Decoder, Event, MAX_TRAILERS};
use sandarac_wire::h1::{Refusal, encode};

/// Content, trailers and length of a body that has ended.
type Body = (Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>, usize);

fn owned(fields: &FieldsBuf) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.view().iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
}

/// Decodes pieces of the lengths that `cuts` gives, one after another and over again.
fn decode(bytes: &[u8], cuts: &[u8]) -> Result<Option<Body>, Refusal> {
    let mut decoder = Decoder::new();
    let (mut content, mut at) = (Vec::new(), 0);
    let mut lens = cuts.iter().cycle();
    while at < bytes.len() {
        let len = lens.next().map_or(bytes.len(), |&len| usize::from(len) + 1).min(bytes.len() - at);
        let piece_end = at + len;
        while at < piece_end {
            let decoded = decoder.decode(&bytes[at..piece_end])?;
            assert!(decoded.consumed <= piece_end - at);
            match decoded.event {
                Event::Data(range) => {
                    assert!(!range.is_empty() && range.end == decoded.consumed);
                    content.extend_from_slice(&bytes[at..piece_end][range]);
                }
                Event::NeedMore => assert_eq!(at + decoded.consumed, piece_end),
                Event::End(trailers) => {
                    check_fields(trailers.view());
                    assert!(trailers.encoded_len() <= 2 * MAX_TRAILERS && decoder.is_end());
                    return Ok(Some((content, owned(&trailers), at + decoded.consumed)));
                }
            }
            at += decoded.consumed;
        }
    }
    Ok(None)
}

/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let (cuts, bytes) = input.split_at(input.len().min(4));
    let whole = decode(bytes, &[]);
    assert_eq!(whole, decode(bytes, cuts));
    assert_eq!(whole, decode(bytes, &[0]));
    let Ok(Some((content, trailers, len))) = whole else { return };
    assert!(len <= bytes.len() && bytes[..len].ends_with(b"\r\n"));

    let mut out = Vec::new();
    for chunk in content.chunks(13) {
        encode::chunk_size(&mut out, chunk.len());
        out.extend_from_slice(chunk);
        out.extend_from_slice(encode::CRLF);
    }
    let fields: FieldsBuf = trailers.iter().map(|(name, value)| (name, value)).collect();
    encode::last_chunk(&mut out, fields.view());
    match decode(&out, cuts) {
        // Trailers near the limit can pass it when they are written out with the usual white space.
        Err(Refusal::TrailersTooLarge) => {}
        again => assert_eq!(again, Ok(Some((content, trailers, out.len())))),
    }
}
