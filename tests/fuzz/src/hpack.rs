//! Header blocks: bounded; written anew they are read the same. The first byte chooses the size of the table.

use sandarac_message::Name;
use sandarac_wire::h2::Fault;
use sandarac_wire::h2::hpack::Decoder;
use sandarac_wire::h2::hpack::encode::{self, Strings};

const BOUND: usize = 64 * 1024;

/// Names and values.
type Lines = Vec<(Vec<u8>, Vec<u8>)>;

fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Lines, Fault> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    decoder.decode(block, &mut out, BOUND, |out, at| {
        assert_eq!((&out[at.name.end..at.value.start], &out[at.value.end..]), (&b": "[..], &b"\r\n"[..]));
        list.push((out[at.name].to_vec(), out[at.value].to_vec()));
    })?;
    assert!(out.len() <= BOUND);
    Ok(list)
}

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&size, rest)) = bytes.split_first() else { return };
    let mut decoder = Decoder::new(u32::from(size) * 16);
    // Two blocks, of which the second builds on the first.
    let (first, second) = rest.split_at(rest.len() / 2);
    for block in [rest, first, second] {
        let Ok(list) = read(&mut decoder, block) else { return };
        for strings in [Strings::Plain, Strings::Shortest] {
            let mut out = Vec::new();
            for (name, value) in &list {
                encode::field(&mut out, Name::of(name), name, value, strings);
            }
            let end = |byte: u8| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte };
            let wanted: Vec<(Vec<u8>, Vec<u8>)> = list
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.iter().copied().map(end).collect()))
                .collect();
            assert_eq!(read(&mut Decoder::new(0), &out), Ok(wanted));
        }
    }
}
