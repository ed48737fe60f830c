//! Growth of an arriving body: how much memory its writer asks for next.

use crate::budget::held;
use crate::memory_file::SLOT;
use crate::whole_body::Whole;

/// The first segment of a body of unknown length; the segment doubles in place up to [`SEGMENT`].
const FIRST: usize = 2 << 10;
/// A segment of a body.
pub(crate) const SEGMENT: usize = 64 << 10;

/// A tail without room.
pub(crate) struct FullTail {
    /// Bytes that it holds.
    pub(crate) capacity: usize,
    /// Bytes of the body so far.
    pub(crate) len: u64,
}

/// How the tail of a body grows.
pub(crate) struct Growth {
    /// Capacity of the tail afterwards, in bytes.
    pub(crate) capacity: usize,
    /// Whether the existing tail grows. If not, it is full and a new one begins.
    pub(crate) in_place: bool,
    /// Bytes to charge for it.
    pub(crate) cost: usize,
}

impl Growth {
    /// The growth of a body with a full tail, to which `wanted` bytes are to be added, and that may grow by `most`. The segments
    /// of a `large` one are slots of memory files.
    pub(crate) fn of(
        tail: &FullTail,
        expected: Option<u64>,
        wanted: usize,
        most: usize,
        large: bool,
    ) -> Growth {
        let segment = if large { SLOT } else { SEGMENT };
        let left = expected.and_then(|expected| expected.checked_sub(tail.len)).filter(|&left| left > 0);
        let in_place = !large && left.is_none() && (1..segment).contains(&tail.capacity);
        let more = match left {
            Some(left) => usize::try_from(left).unwrap_or(segment).min(segment),
            None if tail.len == 0 => wanted.clamp(FIRST, segment),
            None if in_place => tail.capacity.max(wanted).min(segment - tail.capacity),
            None => segment,
        };
        let capacity = more.min(most) + if in_place { tail.capacity } else { 0 };
        let cost = match in_place {
            true => held(capacity) - held(tail.capacity),
            false if large => Whole::large_segment_bytes(capacity),
            false => Whole::segment_bytes(capacity),
        };
        Growth { capacity, in_place, cost }
    }
}
