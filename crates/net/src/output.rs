//! Output: bytes to be written, either encoded here or shared with the store.

use bytes::Bytes;
use sandarac_message::Piece;
use std::io::IoSlice;
use std::ops::Range;

/// The most bytes that are copied behind a head rather than shared. One `send` of a whole small response
/// costs less than a `writev` of its pieces: the kernel takes longer to import the vector than to copy this
/// much (docs/decisions/0001).
pub const COPIED: usize = 2048;

enum Part {
    /// A range of [`Output::inline`].
    Inline(Range<usize>),
    /// A piece of a body that is held elsewhere, for example in the store.
    Shared(Piece),
}

/// A list of parts that is sent in one vectored write, except where a file interrupts it. Heads are encoded
/// inline, one after another; bodies are shared. The memory is kept between uses.
#[derive(Default)]
pub struct Output {
    inline: Vec<u8>,
    parts: Vec<Part>,
    len: usize,
    /// How many bytes of `inline` are covered by `parts`.
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

    /// Adds a piece that is held elsewhere, after everything encoded so far.
    pub fn share(&mut self, piece: Piece) {
        match &piece {
            Piece::Bytes(bytes) if bytes.len() <= COPIED => self.inline.extend_from_slice(bytes),
            piece if piece.is_empty() => {}
            _ => {
                self.seal();
                self.len += piece.len();
                self.parts.push(Part::Shared(piece));
            }
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.inline.is_empty() && self.parts.is_empty()
    }

    /// Bytes to write.
    pub fn len(&self) -> usize {
        self.len + self.inline.len() - self.sealed
    }

    fn seal(&mut self) {
        let end = self.inline.len();
        if end > self.sealed {
            self.len += end - self.sealed;
            match self.parts.last_mut() {
                Some(Part::Inline(range)) => range.end = end,
                _ => self.parts.push(Part::Inline(self.sealed..end)),
            }
            self.sealed = end;
        }
    }

    /// Calls `write` with up to `N` slices from the start, stopping at a file.
    pub(crate) fn with_slices<const N: usize, T>(&mut self, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        // Most often everything is inline, and a vector of many slices takes time to clear.
        if self.parts.is_empty() {
            return write(&[IoSlice::new(&self.inline)]);
        }
        self.seal();
        let mut slices = [IoSlice::new(&[]); N];
        let mut count = 0;
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = IoSlice::new(match part {
                Part::Inline(range) => &self.inline[range.clone()],
                Part::Shared(Piece::Bytes(bytes)) => bytes,
                Part::Shared(Piece::File(_)) => break,
            });
            count += 1;
        }
        write(&slices[..count])
    }

    /// Empties the output. Everything after its first `written` bytes goes to `rest`, inline parts copied.
    pub(crate) fn drain(&mut self, mut written: usize, mut rest: impl FnMut(Piece)) {
        if written == self.len() {
            return self.clear();
        }
        self.seal();
        for part in self.parts.drain(..) {
            let len = match &part {
                Part::Inline(range) => range.len(),
                Part::Shared(piece) => piece.len(),
            };
            if written >= len {
                written -= len;
                continue;
            }
            rest(match part {
                Part::Inline(range) => Bytes::copy_from_slice(&self.inline[range][written..]).into(),
                Part::Shared(mut piece) => {
                    piece.advance(written);
                    piece
                }
            });
            written = 0;
        }
        self.clear();
    }

    /// Drops everything to be written.
    pub(crate) fn clear(&mut self) {
        self.inline.clear();
        self.parts.clear();
        self.sealed = 0;
        self.len = 0;
    }
}
