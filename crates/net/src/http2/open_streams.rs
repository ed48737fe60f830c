//! The open streams of a connection, by identifier.

use super::stream::Stream;

/// Streams by identifier. Each is in memory of its own, so that a few take little. Nothing is allocated while there is none.
#[derive(Default)]
pub(super) struct OpenStreams(Vec<(u32, Box<Stream>)>);

impl OpenStreams {
    /// The number of streams.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this stream is open.
    pub(super) fn contains(&self, id: u32) -> bool {
        self.place(id).is_some()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Stream> {
        Some(&self.0[self.place(id)?].1)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        Some(&mut self.0[place].1)
    }

    /// Adds a stream. Its identifier MUST be above all others.
    pub(super) fn insert(&mut self, id: u32, stream: Stream) {
        debug_assert!(self.0.last().is_none_or(|(last, _)| *last < id));
        self.0.push((id, Box::new(stream)));
    }

    pub(super) fn remove(&mut self, id: u32) {
        let Some(place) = self.place(id) else { return };
        self.0.remove(place);
        // An idle connection holds no table.
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }

    /// The streams, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Stream)> {
        self.0.iter().map(|(id, stream)| (*id, &**stream))
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        self.0.iter_mut().map(|(id, stream)| (*id, &mut **stream))
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_until_they_are_removed() {
        let mut streams = OpenStreams::default();
        for id in [1, 5, 9] {
            streams.insert(id, Stream { sent: id.into(), ..Stream::default() });
        }
        streams.remove(5);
        streams.remove(7);
        assert!(streams.contains(1) && !streams.contains(5));
        assert_eq!(streams.get(9).map(|stream| stream.sent), Some(9));
        assert_eq!(streams.iter().map(|(id, _)| id).collect::<Vec<_>>(), [1, 9]);
        streams.remove(1);
        streams.remove(9);
        assert!(streams.is_empty() && streams.0.capacity() == 0);
    }
}
