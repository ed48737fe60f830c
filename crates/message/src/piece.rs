//! A piece of a body, passed from a store or an origin to a client; opaque to everything in between.

use bytes::Bytes;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// A piece of a body. Cloning it copies no content.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file, which the system sends without copying it into memory of the process.
    File(FileRange),
}

/// A range of a file.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file. It MUST be a regular file, or memory backed by one.
    pub file: Arc<File>,
    /// The start of the range.
    pub start: u64,
    /// Bytes in the range. If the file turns out to be shorter, the body breaks off.
    pub len: usize,
    /// Whether reading it may wait for a disk or another machine.
    pub may_wait: bool,
}

impl Piece {
    /// Bytes in the piece.
    pub fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::File(range) => range.len,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::File(_) => None,
        }
    }

    /// The part of the piece at `range`.
    ///
    /// # Panics
    /// If the piece is shorter.
    pub fn slice(&self, range: Range<usize>) -> Piece {
        assert!(range.start <= range.end && range.end <= self.len(), "a slice lies within its piece");
        match self {
            _ if range == (0..self.len()) => self.clone(),
            Piece::Bytes(bytes) => Piece::Bytes(bytes.slice(range)),
            Piece::File(whole) => Piece::File(FileRange {
                start: whole.start + range.start as u64,
                len: range.len(),
                ..whole.clone()
            }),
        }
    }

    /// Drops the first `count` bytes.
    ///
    /// # Panics
    /// If the piece is shorter.
    pub fn advance(&mut self, count: usize) {
        match self {
            Piece::Bytes(bytes) => bytes::Buf::advance(bytes, count),
            Piece::File(range) => {
                range.len = range.len.checked_sub(count).expect("no more is dropped than is there");
                range.start += count as u64;
            }
        }
    }
}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Piece {
        Piece::Bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_file_is_a_range_further_on() {
        let file = Arc::new(File::open("/dev/null").unwrap());
        let mut piece = Piece::File(FileRange { file, start: 100, len: 50, may_wait: false }).slice(10..30);
        piece.advance(5);
        let Piece::File(range) = piece else { panic!("a slice of a file is one of a file") };
        assert_eq!(range.start, 115);
        assert_eq!(range.len, 15);
    }

    #[test]
    fn bytes_are_sliced_and_dropped_from_the_front() {
        let mut piece = Piece::from(Bytes::from_static(b"0123456789")).slice(2..8);
        piece.advance(1);
        assert_eq!(piece.len(), 5);
        let Piece::Bytes(bytes) = piece else { panic!("a slice of bytes is bytes") };
        assert_eq!(&bytes[..], b"34567");
    }
}
