//! Output: bytes to be written, either encoded here or shared with the store.

use bytes::Bytes;
use sandarac_message::Piece;
use std::any::Any;
use std::io::IoSlice;
use std::ops::Range;

/// The most bytes that are copied behind a head rather than shared. One `send` of a whole small response
/// costs less than a `writev` of its pieces: the kernel takes longer to import the vector than to copy this
/// much (docs/decisions/0001).
pub const COPIED: usize = 2048;

/// A piece of a mapping that is shorter is written from memory, with what surrounds it, rather than by a
/// `sendfile` of its own (docs/decisions/0011).
const SENT_AS_FILE: usize = 32 << 10;

/// A file that is shorter shares a packet with the head before it. Of a longer one, the pages would no longer
/// fill whole packets, which costs more than a packet (docs/decisions/0011).
const SHARES_A_PACKET: usize = 256 << 10;

/// The bytes of a piece that is to be written from memory. `None` for one that is to be sent as a file;
/// `sends_files` is whether the transport sends files without reading them.
pub(crate) fn in_memory(piece: &Piece, sends_files: bool) -> Option<&[u8]> {
    match piece {
        Piece::Mapped(range) if sends_files && range.len() >= SENT_AS_FILE => None,
        piece => piece.bytes(),
    }
}

/// What follows slices that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing, or nothing that has to be known.
    Any,
    /// A file, sent at once. The system should keep the end of the slices until then, so that both share a
    /// packet.
    File,
}

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
    /// What is kept while the pieces wait: the store counts memory by who holds an object, not by who holds a piece of it.
    kept: Vec<Box<dyn Any>>,
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
            Piece::Mapped(range) if range.len() <= COPIED => self.inline.extend_from_slice(range.bytes()),
            piece if piece.is_empty() => {}
            _ => {
                self.seal();
                self.len += piece.len();
                self.parts.push(Part::Shared(piece));
            }
        }
    }

    /// Keeps `owner`, whose pieces were shared, until they are written.
    pub(crate) fn keep(&mut self, owner: Box<dyn Any>) {
        self.kept.push(owner);
    }

    /// What is kept for pieces that are drained.
    pub(crate) fn take_kept(&mut self) -> Vec<Box<dyn Any>> {
        std::mem::take(&mut self.kept)
    }

    /// Bytes that it holds itself.
    pub(crate) fn copied(&self) -> usize {
        self.inline.len()
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

    /// Calls `write` with up to `N` slices from the start, stopping at a file, and with what comes after them.
    /// `sends_files` is whether the transport sends files without reading them.
    pub(crate) fn with_slices<const N: usize, T>(
        &mut self,
        sends_files: bool,
        write: impl FnOnce(&[IoSlice<'_>], After) -> T,
    ) -> T {
        // Most often everything is inline, and a vector of many slices takes time to clear.
        if self.parts.is_empty() {
            return write(&[IoSlice::new(&self.inline)], After::Any);
        }
        self.seal();
        let mut slices = [IoSlice::new(&[]); N];
        let mut count = 0;
        let mut after = After::Any;
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            let bytes = match part {
                Part::Inline(range) => Some(&self.inline[range.clone()]),
                Part::Shared(piece) => in_memory(piece, sends_files),
            };
            let Some(bytes) = bytes else {
                if matches!(part, Part::Shared(piece) if piece.len() < SHARES_A_PACKET) {
                    after = After::File;
                }
                break;
            };
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        write(&slices[..count], after)
    }

    /// Empties the output. Everything after its first `written` bytes goes to `rest`, inline parts copied,
    /// and whether it is a copy.
    pub(crate) fn drain(&mut self, mut written: usize, mut rest: impl FnMut(Piece, bool)) {
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
            match part {
                Part::Inline(range) => {
                    rest(Bytes::copy_from_slice(&self.inline[range][written..]).into(), true);
                }
                Part::Shared(mut piece) => {
                    piece.advance(written);
                    rest(piece, false);
                }
            }
            written = 0;
        }
        self.clear();
    }

    /// Drops everything to be written.
    pub(crate) fn clear(&mut self) {
        self.inline.clear();
        self.parts.clear();
        self.kept.clear();
        self.sealed = 0;
        self.len = 0;
    }
}
