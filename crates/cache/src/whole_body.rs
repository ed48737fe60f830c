//! Bodies that have arrived whole.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sandarac_message::Piece;

use crate::budget::{Budget, Charge, held};

/// What a [`Bytes`] that is shared keeps beside the bytes.
const SHARED: usize = 24;
/// What it keeps beside those of a segment: two words of its own, and what is charged.
const SEGMENT: usize = 16 + size_of::<Charged>();

/// A body that has arrived whole.
#[derive(Clone)]
pub(crate) enum Whole {
    /// One segment, and behind it in the same allocation the text of host and path.
    One(Bytes),
    /// Several segments.
    Many(Arc<Many>),
}

/// The segments of a large body.
pub(crate) struct Many {
    segments: Box<[Segment]>,
    text: Box<[u8]>,
    len: u64,
    /// What it takes, its segments included.
    bytes: usize,
    /// For the list of segments. Not with the object, because a refreshed object shares the list with the one
    /// before.
    _charge: Charge,
}

/// A piece of a body. It is charged by itself, for as long as anybody holds it: bodies that were combined of
/// parts share segments with what they were combined of.
#[derive(Clone)]
pub(crate) struct Segment {
    /// Its place in the body.
    pub(crate) at: u64,
    pub(crate) piece: Piece,
    /// What is charged for it; nothing where it is only passing.
    pub(crate) charged: u32,
}

/// The bytes of a segment.
struct Charged {
    bytes: Box<[u8]>,
    budget: Arc<Budget>,
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
    /// A segment that takes over what is charged for its buffer, and lets go what that has too much; not
    /// charged where nothing is.
    pub(crate) fn new(at: u64, buffer: Vec<u8>, mut charge: Charge) -> Segment {
        let bytes: Box<[u8]> = buffer.into();
        if charge.bytes() == 0 {
            return Segment::passing(at, bytes.into());
        }
        let charged = Whole::segment_bytes(bytes.len());
        let budget = charge.hand_over(charged);
        let charged = u32::try_from(charged).unwrap_or(u32::MAX);
        Segment { at, piece: Bytes::from_owner(Charged { bytes, budget }).into(), charged }
    }

    /// A segment that is not charged.
    pub(crate) fn passing(at: u64, bytes: Bytes) -> Segment {
        Segment { at, piece: bytes.into(), charged: 0 }
    }

    /// The same bytes at another place.
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

    /// What one segment with the text takes.
    pub(crate) fn one_bytes(len: usize) -> usize {
        held(len) + held(SHARED)
    }

    /// What one of several segments takes.
    pub(crate) fn segment_bytes(len: usize) -> usize {
        held(len) + held(SEGMENT)
    }

    /// What the list of so many segments takes, the text included.
    pub(crate) fn list_bytes(segments: usize, text: usize) -> usize {
        held(size_of::<Many>() + 16) + held(segments * size_of::<Segment>()) + held(text)
    }

    /// What it takes, where it isn't charged for itself.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Whole::One(bytes) => Whole::one_bytes(bytes.len()),
            Whole::Many(_) => 0,
        }
    }

    /// What it takes in all.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Whole::One(bytes) => Whole::one_bytes(bytes.len()),
            Whole::Many(many) => many.bytes,
        }
    }

    /// The last `len` bytes beside the body: the text of host and path.
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

    /// The segments, where there are several.
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
    /// What ought to be charged for it, and by what it can be told from others.
    pub(crate) fn recount(&self) -> (usize, usize) {
        let bytes = if self.charged == 0 { 0 } else { Whole::segment_bytes(self.piece.len()) };
        (self.piece.bytes().expect("a segment in memory").as_ptr() as usize, bytes)
    }
}

#[cfg(test)]
impl Many {
    /// The same of it and of its segments.
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

/// Bytes that take no more room than they have to, and whose clones allocate nothing.
pub(crate) fn shared(mut buffer: Vec<u8>) -> Bytes {
    // Bytes would keep the spare room.
    buffer.shrink_to_fit();
    let bytes = Bytes::from(buffer);
    // The first clone of such bytes allocates the count they are shared by: now, and not on a hit.
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
