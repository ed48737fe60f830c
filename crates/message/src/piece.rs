//! A piece of a body, passed from a store or an origin to a client; opaque to everything in between.

use crate::OpenFile;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// A piece of a body. Cloning it copies no content.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file, which the system sends without copying it into memory of the process.
    File(FileRange),
    /// Bytes in memory that are also a range of a file: the sender chooses.
    Mapped(MappedRange),
}

/// A range of a file.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file. It MUST be a regular file, or memory backed by one.
    pub file: Arc<OpenFile>,
    /// The start of the range.
    pub start: u64,
    /// Bytes in the range. If the file turns out to be shorter, the body breaks off.
    pub len: usize,
    /// Whether reading it may wait for a disk or another machine.
    pub may_wait: bool,
}

/// Memory that a file backs, mapped. Neither the bytes nor the file may change while this lives.
#[derive(Debug)]
pub struct Mapping {
    bytes: Bytes,
    file: Arc<OpenFile>,
    start: u64,
}

impl Mapping {
    /// `bytes`, which are mapped from `file` at `start`.
    pub fn new(bytes: Bytes, file: Arc<OpenFile>, start: u64) -> Mapping {
        Mapping { bytes, file, start }
    }
}

/// A range of a [`Mapping`].
#[derive(Clone, Debug)]
pub struct MappedRange {
    mapping: Arc<Mapping>,
    start: usize,
    len: usize,
}

impl MappedRange {
    /// Bytes in the range.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.mapping.bytes[self.start..][..self.len]
    }

    /// The same bytes as a range of the file. Its bytes may change once the [`MappedRange`] is dropped.
    pub fn file(&self) -> FileRange {
        let Mapping { file, start, .. } = &*self.mapping;
        FileRange { file: file.clone(), start: start + self.start as u64, len: self.len, may_wait: false }
    }
}

impl Piece {
    /// Bytes in the piece.
    pub fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::File(range) => range.len,
            Piece::Mapped(range) => range.len,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::File(_) => None,
            Piece::Mapped(range) => Some(range.bytes()),
        }
    }

    /// The bytes, shared, if they are in memory.
    pub fn to_bytes(&self) -> Option<Bytes> {
        match self {
            Piece::Bytes(bytes) => Some(bytes.clone()),
            Piece::File(_) => None,
            Piece::Mapped(range) => Some(range.mapping.bytes.slice(range.start..range.start + range.len)),
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
            Piece::Mapped(MappedRange { mapping, start, .. }) => Piece::Mapped(MappedRange {
                mapping: mapping.clone(),
                start: start + range.start,
                len: range.len(),
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
            Piece::Mapped(range) => {
                range.len = range.len.checked_sub(count).expect("no more is dropped than is there");
                range.start += count;
            }
        }
    }
}

impl From<Mapping> for Piece {
    fn from(mapping: Mapping) -> Piece {
        let len = mapping.bytes.len();
        Piece::Mapped(MappedRange { mapping: Arc::new(mapping), start: 0, len })
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
    use std::fs::File;

    #[test]
    fn a_slice_of_a_file_is_a_range_further_on() {
        let file = Arc::new(File::open("/dev/null").unwrap().into());
        let mut piece = Piece::File(FileRange { file, start: 100, len: 50, may_wait: false }).slice(10..30);
        piece.advance(5);
        let Piece::File(range) = piece else { panic!("a slice of a file is one of a file") };
        assert_eq!(range.start, 115);
        assert_eq!(range.len, 15);
    }

    #[test]
    fn a_slice_of_a_mapping_is_the_same_range_of_bytes_and_file() {
        let file = Arc::new(File::open("/dev/null").unwrap().into());
        let mapping = Mapping::new(Bytes::from_static(b"0123456789"), file, 4096);
        let mut piece = Piece::from(mapping).slice(2..8);
        piece.advance(1);
        assert_eq!((piece.bytes(), piece.len()), (Some(&b"34567"[..]), 5));
        assert_eq!(piece.to_bytes().unwrap(), b"34567"[..]);
        let Piece::Mapped(range) = piece.slice(1..3) else { panic!("a slice of a mapping is one") };
        assert_eq!(range.bytes(), b"45");
        assert_eq!((range.file().start, range.file().len), (4100, 2));
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
