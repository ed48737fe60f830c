//! multipart/byteranges (RFC 9110 §14.6): the heads between the parts.

use super::{ByteRange, ContentRange};

/// The frame of one multipart/byteranges body.
#[derive(Clone, Debug)]
pub struct Multipart<'a> {
    boundary: [u8; BOUNDARY],
    content_type: Option<&'a [u8]>,
    complete: u64,
}

const BOUNDARY: usize = 24;

impl<'a> Multipart<'a> {
    /// The frame for ranges of a representation of `complete` bytes and this Content-Type. The boundary is
    /// derived from `seed`, which SHOULD be random: a body that contains the boundary would be misread.
    pub fn new(seed: u128, content_type: Option<&'a [u8]>, complete: u64) -> Multipart<'a> {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut rest = seed;
        let boundary = std::array::from_fn(|_| {
            let letter = ALPHABET[(rest % 32) as usize];
            rest /= 32;
            letter
        });
        Multipart { boundary, content_type, complete }
    }

    /// Appends the value of the response's Content-Type to `out`.
    pub fn content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        out.extend_from_slice(&self.boundary);
    }

    /// Appends the head of a part to `out`.
    pub fn part(&self, range: ByteRange, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"\r\n");
        if let Some(content_type) = self.content_type {
            out.extend_from_slice(b"Content-Type: ");
            out.extend_from_slice(content_type);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"Content-Range: ");
        ContentRange::of(range, self.complete).write(out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends the end of the body, after the last part, to `out`.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"--\r\n");
    }

    /// The length of the whole body.
    pub fn content_length(&self, ranges: &[ByteRange]) -> u64 {
        let mut frame = Vec::new();
        for range in ranges {
            self.part(*range, &mut frame);
        }
        self.end(&mut frame);
        ranges.iter().map(ByteRange::len).fold(frame.len() as u64, u64::saturating_add)
    }
}
