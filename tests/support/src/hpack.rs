//! Header blocks (RFC 7541), as far as a test needs them: literals are written, and blocks without Huffman coding and without a
//! dynamic table are read.

use crate::Fields;
use crate::message::latin1;

/// The static table (RFC 7541 Appendix A).
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// A header block of these fields, and of one of 3900 bytes that it names seven times by its place in the
/// dynamic table (RFC 7541 §6.1); with `puts`, it is put there first. A request of a hundred bytes becomes
/// one of 27 KiB.
pub fn amplified<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)], puts: bool) -> Vec<u8> {
    let mut block = encode(fields);
    if puts {
        // With incremental indexing, a name of one byte, and a value of 127 + 0x3d + (0x1d << 7) bytes.
        block.extend([0x40, 1, b'x', 127, 0x80 | 0x3d, 0x1d]);
        block.extend([b'v'; 3900]);
    }
    block.extend([0x80 | 62; 7]);
    block
}

/// A block of literal fields without indexing, whatever bytes they have.
pub fn encode<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        put_string(&mut block, name.as_ref());
        put_string(&mut block, value.as_ref());
    }
    block
}

fn put_string(block: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() < 127 {
        block.push(bytes.len() as u8);
    } else {
        block.push(127);
        let mut rest = bytes.len() - 127;
        while rest >= 128 {
            block.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        block.push(rest as u8);
    }
    block.extend_from_slice(bytes);
}

/// The fields of a block.
///
/// # Panics
/// If it uses what is not supported, or is malformed.
pub(crate) fn decode(mut block: &[u8]) -> Fields {
    let mut fields = Vec::new();
    while let Some(&first) = block.first() {
        let text = |at: usize| STATIC[at - 1];
        if first & 0x80 != 0 {
            let (name, value) = text(integer(&mut block, 7));
            fields.push((name.to_owned(), value.to_owned()));
            continue;
        }
        if first & 0xe0 == 0x20 {
            assert_eq!(integer(&mut block, 5), 0, "a table of another size");
            continue;
        }
        assert_eq!(first & 0x40, 0, "a field that goes into the table");
        let name = match integer(&mut block, 4) {
            0 => string(&mut block),
            at => text(at).0.to_owned(),
        };
        fields.push((name, string(&mut block)));
    }
    Fields(fields)
}

fn integer(block: &mut &[u8], bits: u32) -> usize {
    let most = (1usize << bits) - 1;
    let mut value = usize::from(next(block)) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let byte = next(block);
            value += usize::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                break;
            }
        }
    }
    value
}

fn string(block: &mut &[u8]) -> String {
    let is_coded = block[0] & 0x80 != 0;
    let len = integer(block, 7);
    let (text, rest) = block.split_at(len);
    *block = rest;
    if is_coded { latin1(&huffman(text)) } else { latin1(text) }
}

fn next(block: &mut &[u8]) -> u8 {
    let (first, rest) = block.split_first().expect("a block that goes on");
    *block = rest;
    *first
}

/// Bits of the code of each byte (RFC 7541, Appendix B). The codes follow from them: they are canonical.
#[rustfmt::skip]
const CODE_BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The bytes of a string in Huffman coding.
fn huffman(coded: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut bits = coded.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at & 1)));
    loop {
        // The code so far, and the first code of its length.
        let (mut code, mut first, mut is_padding) = (0, 0, true);
        let found = (1..=30).find_map(|length| {
            let bit = bits.next()?;
            is_padding &= bit == 1;
            (code, first) = (code << 1 | bit, first << 1);
            let mut symbols = (0..=255).filter(|&byte| CODE_BITS[usize::from(byte)] == length);
            let of_length = symbols.clone().count() as u32;
            let symbol = symbols.nth((code - first) as usize);
            first += of_length;
            symbol
        });
        match found {
            Some(byte) => text.push(byte),
            None => {
                assert!(is_padding, "a code that is cut off");
                return text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::huffman;

    /// The examples of RFC 7541, Appendix C.4 and C.6.
    #[test]
    fn huffman_codes_are_read() {
        let coded = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(huffman(&coded), b"www.example.com");
        assert_eq!(huffman(&[0x64, 0x02]), b"302");
        assert_eq!(huffman(&[]), b"");
    }
}
