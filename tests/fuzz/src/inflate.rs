//! Decoders of content codings: no bytes panic or grow without bound, the pieces in which a body comes make no difference, and
//! what is inflated survives another encoding.

use sandarac_coding::{BURST, DecodeError, Decoder, Encoder, Level, RATIO};
use sandarac_message::codings::Coding;

/// The body of `input`, in pieces of so many bytes, or what is wrong with it.
fn inflated(coding: Coding, input: &[u8], piece: usize) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(coding);
    let mut out = Vec::new();
    for piece in input.chunks(piece) {
        let before = out.len();
        let pushed = decoder.push(piece, &mut out);
        assert!(out.len() - before <= BURST + RATIO * piece.len() + (16 << 10));
        pushed?;
    }
    decoder.finish().map(|()| out)
}

// The first byte is the coding and the length of pieces, the rest the body.
/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let Some((&first, body)) = input.split_first() else { return };
    let coding = Coding::ALL[usize::from(first) % Coding::ALL.len()];
    let piece = 1 + usize::from(first / 3);
    let whole = inflated(coding, body, usize::MAX);
    let pieces = inflated(coding, body, piece);
    match (&whole, &pieces) {
        // A bound of one piece may be beyond that of another, and a fault may be named before another one.
        (Ok(whole), Ok(pieces)) => assert!(whole == pieces),
        (Err(_), Err(_)) | (Err(DecodeError::Bomb), _) | (_, Err(DecodeError::Bomb)) => {}
        (whole, pieces) => {
            panic!("{:?} or {:?}", whole.as_ref().map(Vec::len), pieces.as_ref().map(Vec::len))
        }
    }
    let Ok(plain) = whole else { return };
    let mut again = Vec::new();
    let mut encoder = Encoder::new(coding, Level::Fast, None).expect("an encoder");
    encoder.push(&plain, &mut again).expect("it is encoded");
    encoder.finish(&mut again).expect("it is encoded");
    if let Ok(back) = inflated(coding, &again, usize::MAX) {
        assert!(back == plain);
    }
}
