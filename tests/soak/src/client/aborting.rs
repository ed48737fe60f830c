//! Clients that leave before they have what they asked for.

use std::time::Duration;

use super::{Line, Visitor};
use crate::oracle::Sent;
use crate::verdict::Count;

impl Visitor {
    /// Leaves at a random point after requests were sent: at once, or after a part of the responses; with a reset, or in order.
    /// `batch` are those that were sent whole.
    pub(super) fn abort(&mut self, line: Line, batch: &[Sent]) {
        let mut line = line;
        self.stage.verdict.count(Count::Aborts);
        match self.random.below(10) {
            0..4 => {}
            4..6 => std::thread::sleep(Duration::from_millis(self.random.within(0, 20))),
            6..8 => {
                // A part of the first response, the head perhaps not whole.
                let bytes = self.random.within(1, 100_000) as usize;
                line.conn.set_patience(Duration::from_millis(self.random.within(1, 200)));
                let _ = line.conn.try_read(bytes);
            }
            _ => {
                // Some responses, and not the others.
                let count = self.random.below(batch.len() as u64 + 1) as usize;
                if !batch[..count].iter().all(|sent| self.receive(&mut line, sent)) {
                    return;
                }
            }
        }
        if self.random.percent(70) {
            self.stage.verdict.count(Count::Resets);
            line.conn.reset();
        }
    }
}
