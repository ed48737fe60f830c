//! Encoders and decoders, together and apart.

use proptest::prelude::*;

use sandarac_message::codings::Coding;

use crate::{BURST, DecodeError, Decoder, Encoder, Level};

fn page(bytes: usize) -> Vec<u8> {
    let words =
        (0..).flat_map(|n: u32| format!("<p>{} of {n}</p>\n", n.wrapping_mul(2_654_435_761)).into_bytes());
    words.take(bytes).collect()
}

fn encoded(coding: Coding, level: Level, body: &[u8], len: Option<u64>) -> Vec<u8> {
    let mut encoder = Encoder::new(coding, level, len).unwrap();
    let mut out = Vec::new();
    body.chunks(10_000).for_each(|piece| encoder.push(piece, &mut out).unwrap());
    encoder.finish(&mut out).unwrap();
    out
}

fn decoded(coding: Coding, body: &[u8], piece: usize) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(coding);
    let mut out = Vec::new();
    for piece in body.chunks(piece) {
        decoder.push(piece, &mut out)?;
    }
    decoder.finish().map(|()| out)
}

#[test]
fn text_shrinks_and_comes_back_as_it_was() {
    for coding in Coding::ALL {
        for level in [Level::Fast, Level::Normal, Level::Best] {
            for len in [0, 1, 5000, 100_000] {
                let page = page(len);
                for announced in [None, Some(len as u64)] {
                    let small = encoded(coding, level, &page, announced);
                    assert!(len < 5000 || small.len() * 2 < len, "{coding:?} {level:?} {}", small.len());
                    for piece in [7, 4096, 1 << 20] {
                        assert!(decoded(coding, &small, piece).unwrap() == page, "{coding:?} {len} {piece}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_passed_in_before_a_flush_can_be_read_at_once() {
    for coding in Coding::ALL {
        let (mut encoder, mut decoder) =
            (Encoder::new(coding, Level::Normal, None).unwrap(), Decoder::new(coding));
        let (mut sent, mut read) = (Vec::new(), Vec::new());
        for number in 0..100 {
            let event = format!("data: {number}\n\n");
            sent.extend_from_slice(event.as_bytes());
            let mut out = Vec::new();
            encoder.push(event.as_bytes(), &mut out).unwrap();
            encoder.flush(&mut out).unwrap();
            decoder.push(&out, &mut read).unwrap();
            assert!(read == sent, "{coding:?} {number}");
        }
        let mut end = Vec::new();
        encoder.finish(&mut end).unwrap();
        decoder.push(&end, &mut read).unwrap();
        decoder.finish().unwrap();
        assert!(read == sent);
    }
}

#[test]
fn a_body_that_breaks_off_is_truncated() {
    for coding in Coding::ALL {
        let small = encoded(coding, Level::Normal, &page(20_000), None);
        for end in [1, 5, small.len() / 2, small.len() - 1] {
            assert_eq!(decoded(coding, &small[..end], 1000), Err(DecodeError::Truncated), "{coding:?} {end}");
        }
    }
}

#[test]
fn an_empty_body_is_empty_in_every_coding() {
    for coding in Coding::ALL {
        assert_eq!(decoded(coding, b"", 1000).unwrap(), b"", "{coding:?}");
        let mut decoder = Decoder::new(coding);
        decoder.push(b"", &mut Vec::new()).unwrap();
        decoder.finish().unwrap();
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for coding in Coding::ALL {
        let mut small = encoded(coding, Level::Normal, &page(2000), None);
        small.push(b'x');
        for piece in [1, 100_000] {
            assert_eq!(decoded(coding, &small, piece), Err(DecodeError::TrailingBytes), "{coding:?} {piece}");
        }
    }
}

#[test]
fn several_gzip_members_and_zstd_frames_are_one_body() {
    for coding in [Coding::Gzip, Coding::Zstd] {
        let two = [
            &encoded(coding, Level::Normal, b"one, ", None)[..],
            &encoded(coding, Level::Fast, b"two", None),
        ]
        .concat();
        for piece in [1, 3, 100_000] {
            assert_eq!(decoded(coding, &two, piece).unwrap(), b"one, two", "{coding:?}");
        }
    }
}

#[test]
fn another_content_than_the_label_is_corrupt() {
    for coding in Coding::ALL {
        assert_eq!(
            decoded(coding, b"<!doctype html><p>plain</p>", 9),
            Err(DecodeError::Corrupt),
            "{coding:?}"
        );
        let mut small = encoded(coding, Level::Normal, &page(20_000), None);
        let middle = small.len() / 2;
        small[middle..middle + 200].fill(0xff);
        assert!(matches!(decoded(coding, &small, 1000), Err(DecodeError::Corrupt | DecodeError::Truncated)));
    }
}

#[test]
fn a_bomb_is_stopped_before_it_has_grown() {
    let zeros = vec![0; 8 << 20];
    for coding in Coding::ALL {
        let bomb = encoded(coding, Level::Normal, &zeros, None);
        let mut decoder = Decoder::new(coding);
        let mut out = Vec::new();
        let end = bomb.chunks(4096).try_for_each(|piece| decoder.push(piece, &mut out));
        assert_eq!(end, Err(DecodeError::Bomb), "{coding:?}");
        assert!(out.len() < 2 * BURST + (1 << 20) * bomb.len().div_ceil(4096), "{coding:?} {}", out.len());
    }
}

/// RFC 8878 §3.1.1.1.2: the exponent is in the upper five bits, and counts from 1 KiB.
#[test]
fn a_window_of_more_than_8_mib_is_named() {
    let frame = |exponent: u8| [0x28, 0xb5, 0x2f, 0xfd, 0x00, exponent << 3, 0x09, 0x00, 0x00, b'x'];
    assert_eq!(decoded(Coding::Zstd, &frame(13), 100).unwrap(), b"x");
    for exponent in [14, 21, 31] {
        for piece in [1, 100] {
            assert_eq!(
                decoded(Coding::Zstd, &frame(exponent), piece),
                Err(DecodeError::Window),
                "{exponent}"
            );
        }
    }
}

#[test]
fn the_bound_of_the_caller_holds() {
    for coding in Coding::ALL {
        let small = encoded(coding, Level::Normal, &page(100_000), None);
        let mut out = Vec::new();
        let mut decoder = Decoder::new(coding);
        assert_eq!(decoder.push_within(&small, &mut out, 50_000), Err(DecodeError::TooLong));
        assert!(out.len() < 50_000 + (64 << 10));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_fail_otherwise(body in prop::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        for coding in Coding::ALL {
            let _ = decoded(coding, &body, piece);
        }
    }
}
