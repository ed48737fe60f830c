//! The streams of a connection.

use super::stream::Stream;
use std::collections::VecDeque;

/// Streams that we reset and still know. Frames that the peer sent before it knew of the reset are no fault.
const MAX_RESETS: usize = 64;

/// Streams that ended last and are still known, so that a stream used twice is told from one that was skipped.
const MAX_ENDED: usize = 8;

/// Open streams, sorted by identifier, and the last resets. Nothing is allocated while there is none.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Vec<Stream>,
    /// The last streams that were closed, and the place of the next one.
    ended: ([u32; MAX_ENDED], usize),
    reset: VecDeque<u32>,
    /// Identifiers up to this one may have been reset by us and forgotten.
    forgotten: u32,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Stream> {
        Some(&self.open[self.place(id)?])
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        Some(&mut self.open[place])
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// Adds a stream. Its identifier MUST be above all others.
    pub(super) fn open(&mut self, stream: Stream) {
        debug_assert!(self.open.last().is_none_or(|last| last.id < stream.id));
        self.open.push(stream);
    }

    pub(super) fn close(&mut self, id: u32) -> Option<Stream> {
        let stream = self.open.remove(self.place(id)?);
        let (ended, at) = &mut self.ended;
        ended[*at % MAX_ENDED] = id;
        *at = (*at + 1) % MAX_ENDED;
        // An idle connection holds no table.
        if self.open.is_empty() {
            self.open = Vec::new();
        }
        Some(stream)
    }

    /// Closes all streams above `last`, which the peer did not process.
    pub(super) fn close_above(&mut self, last: u32) {
        self.open.retain(|stream| stream.id <= last);
    }

    /// Remembers that we reset this stream.
    pub(super) fn remember_reset(&mut self, id: u32) {
        if self.reset.len() == MAX_RESETS
            && let Some(oldest) = self.reset.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest);
        }
        self.reset.push_back(id);
    }

    /// Whether we reset this closed stream, or may have.
    pub(super) fn was_reset(&self, id: u32) -> bool {
        id <= self.forgotten || self.reset.contains(&id)
    }

    /// Whether this stream was open a short time ago.
    pub(super) fn ended_lately(&self, id: u32) -> bool {
        self.ended.0.contains(&id)
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_resets_are_forgotten_in_favour_of_the_peer() {
        let mut streams = Streams::default();
        (0..100).for_each(|at| streams.remember_reset(at * 4 + 1));
        assert_eq!(streams.reset.len(), MAX_RESETS);
        assert!(streams.was_reset(3) && streams.was_reset(397));
        assert!(!streams.was_reset(395) && !streams.was_reset(401));
    }
}
