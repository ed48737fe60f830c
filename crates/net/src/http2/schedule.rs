//! The order in which streams send (RFC 9218 §10).

use std::collections::VecDeque;

/// The number of urgencies.
const URGENCIES: usize = 8;

/// Streams that have something to send, by urgency. Streams of one urgency take turns if they are incremental,
/// and are sent one after the other if not.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    queues: [VecDeque<u32>; URGENCIES],
    /// A bit for each queue that has streams.
    occupied: u8,
}

impl Schedule {
    /// Whether no stream waits.
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Adds a stream behind those of its urgency, which is 0 to 7. It MUST NOT be in the schedule already.
    pub(super) fn push(&mut self, stream: u32, urgency: u8) {
        self.queue(urgency).push_back(stream);
    }

    /// Puts a stream back that was just taken, so that it is the next of its urgency.
    pub(super) fn push_front(&mut self, stream: u32, urgency: u8) {
        self.queue(urgency).push_front(stream);
    }

    fn queue(&mut self, urgency: u8) -> &mut VecDeque<u32> {
        let urgency = usize::from(urgency).min(URGENCIES - 1);
        self.occupied |= 1 << urgency;
        &mut self.queues[urgency]
    }

    /// Takes the next stream out.
    pub(super) fn take(&mut self) -> Option<u32> {
        let urgency = self.occupied.trailing_zeros() as usize;
        let queue = self.queues.get_mut(urgency)?;
        let stream = queue.pop_front();
        if queue.is_empty() {
            self.occupied &= !(1 << urgency);
        }
        stream
    }

    /// Takes a stream out, wherever it is. Costs a walk.
    pub(super) fn remove(&mut self, stream: u32) {
        for (urgency, queue) in self.queues.iter_mut().enumerate() {
            if let Some(at) = queue.iter().position(|other| *other == stream) {
                queue.remove(at);
                if queue.is_empty() {
                    self.occupied &= !(1 << urgency);
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(schedule: &mut Schedule) -> Vec<u32> {
        std::iter::from_fn(|| schedule.take()).collect()
    }

    #[test]
    fn the_most_urgent_comes_first_and_among_equals_the_first() {
        let mut schedule = Schedule::default();
        for (stream, urgency) in [(1, 3), (3, 0), (5, 7), (7, 3), (9, 0)] {
            schedule.push(stream, urgency);
        }
        assert_eq!(taken(&mut schedule), [3, 9, 1, 7, 5]);
        assert!(schedule.is_empty());
    }

    #[test]
    fn a_stream_that_is_put_back_is_the_next() {
        let mut schedule = Schedule::default();
        schedule.push(1, 3);
        schedule.push(3, 3);
        assert_eq!(schedule.take(), Some(1));
        schedule.push_front(1, 3);
        assert_eq!(taken(&mut schedule), [1, 3]);
    }

    #[test]
    fn a_stream_that_is_removed_does_not_come() {
        let mut schedule = Schedule::default();
        for stream in [1, 3, 5] {
            schedule.push(stream, 3);
        }
        schedule.remove(3);
        schedule.remove(7);
        assert_eq!(taken(&mut schedule), [1, 5]);
        schedule.push(9, 2);
        schedule.remove(9);
        assert!(schedule.is_empty());
        assert_eq!(schedule.take(), None);
    }
}
