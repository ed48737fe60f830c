//! Header blocks (RFC 7541), as far as a test needs them: literals are written, and blocks without Huffman coding and without a dynamic
//! table are read.

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

/// A block of literal fields without indexing, whatever bytes they have.
pub(crate) fn encode<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Vec<u8> {
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
    assert_eq!(block[0] & 0x80, 0, "a string in Huffman coding");
    let len = integer(block, 7);
    let (text, rest) = block.split_at(len);
    *block = rest;
    latin1(text)
}

fn next(block: &mut &[u8]) -> u8 {
    let (first, rest) = block.split_first().expect("a block that goes on");
    *block = rest;
    *first
}
