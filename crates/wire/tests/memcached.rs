//! Properties of the reader of memcached's responses.

use bytes::Bytes;
use proptest::prelude::*;
use sandarac_wire::memcached::{Code, Line, Refusal, Value, parse};

const MAX_VALUE: u64 = 600;

/// Everything that is read of a stream: lines as text, each with its value.
type Read = (Vec<(String, Option<Bytes>)>, Option<Refusal>);

/// Reads a stream that arrives in pieces, the way a connection does. Values of even size are kept.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Read {
    let (mut lines, mut input, mut value) = (Vec::new(), Vec::new(), None::<(String, Value)>);
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            if let Some((line, mut pending)) = value.take() {
                match pending.take(&input) {
                    Ok(taken) => drop(input.drain(..taken)),
                    Err(refusal) => return (lines, Some(refusal)),
                }
                if !pending.is_complete() {
                    value = Some((line, pending));
                    break;
                }
                lines.push((line, pending.finish()));
            }
            let (len, line, follows) = match parse(&input, MAX_VALUE) {
                Ok(Some(parsed)) => {
                    let follows = match parsed.line {
                        Line::Meta(meta) => match meta.code {
                            Code::Value(size) if size % 2 == 0 => Some(Value::kept(size as usize)),
                            Code::Value(size) => Some(Value::skipped(size)),
                            _ => None,
                        },
                        _ => None,
                    };
                    (parsed.len, format!("{:?}", parsed.line), follows)
                }
                Ok(None) => break,
                Err(refusal) => return (lines, Some(refusal)),
            };
            input.drain(..len);
            match follows {
                Some(follows) => value = Some((line, follows)),
                None => lines.push((line, None)),
            }
        }
    }
    (lines, None)
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    for cut in cuts {
        let (piece, after) = rest.split_at(cut % (rest.len() + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Words that responses are made of, some of them malformed.
const WORDS: [&str; 24] = [
    "HD",
    "EN",
    "NF",
    "NS",
    "EX",
    "VA 0",
    "VA 3",
    "VA x",
    "MN",
    "END",
    "STAT a b",
    "ERROR",
    "CLIENT_ERROR no",
    "SERVER_ERROR no",
    "VERSION 1",
    "STORED",
    "O1",
    "O42",
    "f7",
    "c9",
    "t-1",
    "W",
    "X",
    "",
];

/// Responses, some of them malformed.
fn near_responses() -> impl Strategy<Value = Vec<u8>> {
    let line = proptest::collection::vec(0..WORDS.len(), 1..4).prop_map(|words| {
        let words: Vec<&str> = words.into_iter().map(|word| WORDS[word]).collect();
        format!("{}\r\n", words.join(" ")).into_bytes()
    });
    let value = (proptest::collection::vec(any::<u8>(), 0..700), 0usize..20).prop_map(|(value, off)| {
        // One in ten declares a wrong size.
        let size = value.len() + usize::from(off == 0) - usize::from(off == 1 && !value.is_empty());
        [format!("VA {size} O7\r\n").as_bytes(), &value, b"\r\n"].concat()
    });
    let noise = proptest::collection::vec(any::<u8>(), 0..8);
    let response = prop_oneof![4 => line, 4 => value, 1 => noise];
    proptest::collection::vec(response, 0..6).prop_map(|responses| responses.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn responses_are_the_same_however_they_arrive(
        bytes in near_responses(),
        cuts in proptest::collection::vec(0usize..900, 0..8),
    ) {
        let whole = read(std::iter::once(&bytes[..]));
        prop_assert_eq!(&read(pieces(&bytes, &cuts).into_iter()), &whole);
        prop_assert_eq!(&read(bytes.chunks(1)), &whole);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let _ = read(std::iter::once(&bytes[..]));
    }
}
