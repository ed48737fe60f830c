//! Bytes to be written, in pieces that are encoded here or shared with the store.

use bytes::Bytes;
use std::io::IoSlice;
use std::ops::Range;

/// Bytes that are copied behind a head rather than shared. One `send` of a whole small response costs less than a `writev`
/// of its pieces: importing the vector takes the kernel longer than copying this much (docs/decisions/0001).
pub const COPIED: usize = 2048;

enum Piece {
    /// A range of [`Output::inline`].
    Inline(Range<usize>),
    /// Bytes held elsewhere: a body in the store.
    Shared(Bytes),
}

/// A list of pieces that goes out in one vectored write. Heads are encoded inline, one after another; bodies are
/// shared. The memory is kept from use to use.
#[derive(Default)]
pub struct Output {
    inline: Vec<u8>,
    pieces: Vec<Piece>,
    len: usize,
    /// How much of `inline` stands in `pieces`.
    sealed: usize,
}

impl Output {
    /// An empty output.
    pub fn new() -> Output {
        Output::default()
    }

    /// An output that begins with these bytes, in the same memory.
    pub(crate) fn beginning(inline: Vec<u8>) -> Output {
        Output { inline, ..Output::default() }
    }

    /// The buffer that heads are encoded to. Append only.
    pub fn inline(&mut self) -> &mut Vec<u8> {
        &mut self.inline
    }

    /// Adds bytes that are held elsewhere, after everything encoded so far.
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.len() <= COPIED {
            self.inline.extend_from_slice(&bytes);
            return;
        }
        self.seal();
        self.len += bytes.len();
        if !bytes.is_empty() {
            self.pieces.push(Piece::Shared(bytes));
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.inline.is_empty() && self.pieces.is_empty()
    }

    /// Bytes to write.
    pub fn len(&self) -> usize {
        self.len + self.inline.len() - self.sealed
    }

    /// The number of pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    fn seal(&mut self) {
        let end = self.inline.len();
        if end > self.sealed {
            self.len += end - self.sealed;
            match self.pieces.last_mut() {
                Some(Piece::Inline(range)) => range.end = end,
                _ => self.pieces.push(Piece::Inline(self.sealed..end)),
            }
            self.sealed = end;
        }
    }

    /// Calls `write` with up to `N` slices from the start.
    pub(crate) fn with_slices<const N: usize, T>(&mut self, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        self.seal();
        let mut slices = [IoSlice::new(&[]); N];
        let count = self.pieces.len().min(N);
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(match piece {
                Piece::Inline(range) => &self.inline[range.clone()],
                Piece::Shared(bytes) => bytes,
            });
        }
        write(&slices[..count])
    }

    /// Empties the output; what stands after its first `written` bytes goes to `rest`, inline pieces copied.
    pub(crate) fn drain(&mut self, mut written: usize, mut rest: impl FnMut(Bytes)) {
        self.seal();
        for piece in self.pieces.drain(..) {
            let len = match &piece {
                Piece::Inline(range) => range.len(),
                Piece::Shared(bytes) => bytes.len(),
            };
            if written >= len {
                written -= len;
                continue;
            }
            rest(match piece {
                Piece::Inline(range) => Bytes::copy_from_slice(&self.inline[range][written..]),
                Piece::Shared(bytes) => bytes.slice(written..),
            });
            written = 0;
        }
        self.clear();
    }

    /// Forgets what was to be written.
    pub(crate) fn clear(&mut self) {
        self.inline.clear();
        self.pieces.clear();
        self.sealed = 0;
        self.len = 0;
    }
}
