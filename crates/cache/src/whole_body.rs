//! Bodies that have arrived whole.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sandarac_message::{Mapping, Piece};

use crate::budget::{Budget, Charge, Passing, held};
use crate::buffer::Buffer;
use crate::memory_file::{self, Slot};

/// A body of more bytes has its own pages: size classes of jemalloc share pages up to 14 KiB.
pub(crate) const SHARES_PAGES: usize = 14 << 10;

/// Overhead of a shared [`Bytes`].
const SHARED: usize = 24;
/// Overhead of a segment's [`Bytes`]: two words, and [`Charged`].
const SEGMENT: usize = 16 + size_of::<Charged>();
/// The same for a segment in a memory file, which has a [`Mapping`] beside it.
const SLOT_SEGMENT: usize = 16 + size_of::<ChargedSlot>();
const MAPPING: usize = 16 + size_of::<Mapping>();

/// A body that has arrived whole.
#[derive(Clone)]
pub(crate) enum Whole {
    /// One segment, followed by the text of host and path in the same allocation.
    One(Bytes),
    /// Several segments.
    Many(Arc<Many>),
}

/// The segments of a large body.
pub(crate) struct Many {
    segments: Box<[Segment]>,
    text: Box<[u8]>,
    len: u64,
    /// Bytes it takes, including its segments.
    bytes: usize,
    /// The charge for the list of segments. It is not part of the object's charge, because a refreshed object
    /// shares the list with its predecessor.
    _charge: Charge,
}

/// A piece of a body. It has its own charge, which lasts while it is referenced, because combined bodies
/// share segments with the parts they were combined from.
#[derive(Clone)]
pub(crate) struct Segment {
    /// Its position in the body.
    pub(crate) at: u64,
    pub(crate) piece: Piece,
    /// Bytes charged for it as a part of what is stored; zero if it only passes.
    pub(crate) charged: u32,
}

/// The bytes of a segment.
struct Charged {
    bytes: Box<[u8]>,
    budget: Arc<Budget>,
}

/// The bytes of a segment in a memory file. The charge is dropped last, when the memory has been freed.
struct ChargedSlot {
    slot: Slot,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedSlot {
    fn as_ref(&self) -> &[u8] {
        self.slot.bytes()
    }
}

/// The bytes of a segment that passes.
struct PassingBytes<B> {
    bytes: B,
    _lent: Passing,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for PassingBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// The bytes of a segment that is a part of a larger memory, all of which is charged.
struct ChargedShare {
    bytes: Bytes,
    charged: usize,
    budget: Arc<Budget>,
}

impl AsRef<[u8]> for ChargedShare {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ChargedShare {
    fn drop(&mut self) {
        self.budget.sub(self.charged);
    }
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.budget.sub(Whole::segment_bytes(self.bytes.len()));
    }
}

impl Segment {
    /// A segment that takes over the charge for its buffer and releases the excess. It passes if the buffer
    /// was not charged; a slot of a memory file MUST be.
    pub(crate) fn new(at: u64, buffer: Buffer, mut charge: Charge) -> Segment {
        let bytes: Box<[u8]> = match buffer {
            Buffer::Heap(bytes) => bytes.into(),
            Buffer::Slot(slot) => return Segment::of_slot(at, slot, charge),
        };
        if charge.bytes() == 0 {
            return Segment::passing(at, bytes, charge.budget());
        }
        let charged = Whole::segment_bytes(bytes.len());
        let budget = charge.hand_over(charged);
        let charged = u32::try_from(charged).unwrap_or(u32::MAX);
        Segment { at, piece: Bytes::from_owner(Charged { bytes, budget }).into(), charged }
    }

    fn of_slot(at: u64, slot: Slot, mut charge: Charge) -> Segment {
        let charged = Whole::slot_bytes(slot.bytes().len());
        let budget = charge.hand_over(charged);
        let (file, start) = slot.place();
        let (file, charge) = (file.clone(), Charge::of(&budget, charged));
        let bytes = Bytes::from_owner(ChargedSlot { slot, _charge: charge });
        let charged = u32::try_from(charged).unwrap_or(u32::MAX);
        Segment { at, piece: Mapping::new(bytes, file, start).into(), charged }
    }

    /// A segment of bytes that keep `memory` bytes in use, which takes over the charge for them.
    pub(crate) fn sharing(bytes: Bytes, memory: usize, mut charge: Charge) -> Segment {
        let charged = Segment::share_bytes(memory);
        let budget = charge.hand_over(charged);
        let share = ChargedShare { bytes, charged, budget };
        let charged = u32::try_from(charged).unwrap_or(u32::MAX);
        Segment { at: 0, piece: Bytes::from_owner(share).into(), charged }
    }

    /// Bytes taken by a segment that keeps `memory` bytes in use.
    pub(crate) fn share_bytes(memory: usize) -> usize {
        held(memory) + held(SHARED) + held(16 + size_of::<ChargedShare>())
    }

    /// A segment of a body that is not stored, for its readers.
    pub(crate) fn passing(
        at: u64,
        bytes: impl AsRef<[u8]> + Send + 'static,
        budget: &Arc<Budget>,
    ) -> Segment {
        let lent = held(bytes.as_ref().len()) + held(16 + size_of::<PassingBytes<Box<[u8]>>>());
        let bytes = PassingBytes { bytes, _lent: Passing::of(budget, lent) };
        Segment { at, piece: Bytes::from_owner(bytes).into(), charged: 0 }
    }

    /// The same bytes at another position.
    pub(crate) fn moved(&self, at: u64) -> Segment {
        Segment { at, ..self.clone() }
    }

    pub(crate) fn end(&self) -> u64 {
        self.at + self.piece.len() as u64
    }
}

impl Whole {
    /// One segment from a buffer that holds the body and the text.
    pub(crate) fn one(buffer: Vec<u8>) -> Whole {
        Whole::One(shared(buffer))
    }

    /// Several segments, in order and without gaps; `charge` is for their [list](Whole::list_bytes).
    pub(crate) fn many(segments: Vec<Segment>, text: &[u8], charge: Charge) -> Whole {
        let len = segments.last().map_or(0, Segment::end);
        let bytes = segments.iter().map(|segment| segment.charged as usize).sum::<usize>() + charge.bytes();
        let (segments, text) = (segments.into(), text.into());
        Whole::Many(Arc::new(Many { segments, text, len, bytes, _charge: charge }))
    }

    /// Bytes taken by a single segment with the text.
    pub(crate) fn one_bytes(len: usize) -> usize {
        held(len) + held(SHARED)
    }

    /// Bytes taken by one of several segments.
    pub(crate) fn segment_bytes(len: usize) -> usize {
        held(len) + held(SEGMENT)
    }

    /// Bytes taken by one of several segments that is in a memory file: its pages, their entries in the page
    /// table, and what describes it.
    pub(crate) fn slot_bytes(len: usize) -> usize {
        let pages = memory_file::held(len);
        pages + pages / 512 + held(SLOT_SEGMENT) + held(MAPPING)
    }

    /// The most bytes taken by a segment of a large body, which is in a memory file or on the heap.
    pub(crate) fn large_segment_bytes(len: usize) -> usize {
        Whole::segment_bytes(len).max(Whole::slot_bytes(len))
    }

    /// Bytes taken by the list of several segments, including the text.
    pub(crate) fn list_bytes(segments: usize, text: usize) -> usize {
        held(size_of::<Many>() + 16) + held(segments * size_of::<Segment>()) + held(text)
    }

    /// Bytes it takes that it does not charge itself.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Whole::One(bytes) => Whole::one_bytes(bytes.len()),
            Whole::Many(_) => 0,
        }
    }

    /// Bytes it takes in total.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Whole::One(bytes) => Whole::one_bytes(bytes.len()),
            Whole::Many(many) => many.bytes,
        }
    }

    /// The text of host and path, `len` bytes, stored with the body.
    pub(crate) fn text(&self, len: usize) -> &[u8] {
        match self {
            Whole::One(bytes) => &bytes[bytes.len() - len..],
            Whole::Many(many) => &many.text,
        }
    }

    pub(crate) fn len(&self, text: usize) -> u64 {
        match self {
            Whole::One(bytes) => (bytes.len() - text) as u64,
            Whole::Many(many) => many.len,
        }
    }

    /// The segments, if there are several.
    pub(crate) fn segments(&self) -> &[Segment] {
        match self {
            Whole::One(_) => &[],
            Whole::Many(many) => &many.segments,
        }
    }

    pub(crate) fn slice(&self, range: Range<u64>, text: usize) -> Slices<'_> {
        let end = range.end.min(self.len(text));
        let range = range.start.min(end)..end;
        match self {
            Whole::One(bytes) => Slices { rest: SlicesOf::One(bytes), range },
            Whole::Many(many) => {
                let first = many.segments.partition_point(|segment| segment.end() <= range.start);
                Slices { rest: SlicesOf::Many(&many.segments[first..]), range }
            }
        }
    }
}

#[cfg(test)]
impl Segment {
    /// The bytes that should be charged for it, with an address that identifies it.
    pub(crate) fn recount(&self) -> (usize, usize) {
        let bytes = match self.piece {
            _ if self.charged == 0 => 0,
            Piece::Mapped(_) => Whole::slot_bytes(self.piece.len()),
            _ => Whole::segment_bytes(self.piece.len()),
        };
        (self.piece.bytes().expect("a segment in memory").as_ptr() as usize, bytes)
    }
}

#[cfg(test)]
impl Many {
    /// The same for the list and for each segment.
    pub(crate) fn recount(&self) -> impl Iterator<Item = (usize, usize)> {
        let list = if self._charge.bytes() == 0 {
            0
        } else {
            Whole::list_bytes(self.segments.len(), self.text.len())
        };
        let list = (std::ptr::from_ref(self) as usize, list);
        std::iter::once(list).chain(self.segments.iter().map(Segment::recount))
    }
}

/// Bytes that take no more memory than they need, and whose clones allocate nothing.
pub(crate) fn shared(mut buffer: Vec<u8>) -> Bytes {
    // `Bytes` would keep the spare capacity.
    buffer.shrink_to_fit();
    let bytes = Bytes::from(buffer);
    // The first clone allocates the reference count: do it now, not on a hit.
    drop(bytes.clone());
    bytes
}

/// Segments of a body, or of a range of it.
#[derive(Clone)]
pub struct Slices<'a> {
    rest: SlicesOf<'a>,
    range: Range<u64>,
}

impl Slices<'_> {
    /// No segments.
    pub(crate) const NONE: Slices<'static> = Slices { rest: SlicesOf::Many(&[]), range: 0..0 };
}

#[derive(Clone)]
enum SlicesOf<'a> {
    One(&'a Bytes),
    Many(&'a [Segment]),
}

impl Iterator for Slices<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.range.is_empty() {
            return None;
        }
        match &mut self.rest {
            SlicesOf::One(bytes) => {
                let range = std::mem::replace(&mut self.range, 0..0);
                Some(bytes.slice(range.start as usize..range.end as usize).into())
            }
            SlicesOf::Many(segments) => {
                let (segment, rest) = segments.split_first()?;
                *segments = rest;
                let end = self.range.end.min(segment.end());
                let slice = (self.range.start - segment.at) as usize..(end - segment.at) as usize;
                self.range.start = end;
                Some(segment.piece.slice(slice))
            }
        }
    }
}
