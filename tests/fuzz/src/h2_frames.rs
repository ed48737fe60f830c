//! Frames of HTTP/2: however cut the same; refused by their header or read whole.

use sandarac_wire::h1::Parsed;
use sandarac_wire::h2::frame::{HEADER_LEN, decode};

const MAX: u32 = 16_384;

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut rest = bytes;
    for _ in 0..64 {
        let whole = decode(rest, MAX);
        for cut in 0..rest.len().min(64) {
            let early = decode(&rest[..cut], MAX);
            assert!(early == Ok(Parsed::Partial) || early == whole, "{cut}: {early:?}, whole {whole:?}");
        }
        let len = match whole {
            Ok(Parsed::Complete((_, len))) => len,
            Ok(Parsed::Partial) => return assert!(rest.len() < HEADER_LEN + MAX as usize),
            Err(error) => match error.stream {
                Some((_, len)) => len,
                None => return,
            },
        };
        assert!(len >= HEADER_LEN);
        rest = &rest[len..];
    }
}
