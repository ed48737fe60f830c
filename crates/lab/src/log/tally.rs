//! A summary of a log.

use super::malformed::Malformed;

/// How many malformed lines are remembered by number.
const REMEMBERED: usize = 5;

/// A summary of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTally {
    /// Lines that are not empty.
    pub lines: u64,
    /// Requests to replay.
    pub requests: u64,
    /// Requests that are not replayed: with other methods, and for fragments.
    pub others: u64,
    /// Whether uncompressed bytes followed the gzip members.
    pub trailing: bool,
    by_reason: [u64; Malformed::ALL.len()],
    first: Vec<(u64, Malformed)>,
}

impl LogTally {
    pub(super) fn count(&mut self, line: u64, why: Malformed) {
        self.by_reason[why as usize] += 1;
        if self.first.len() < REMEMBERED {
            self.first.push((line, why));
        }
    }

    /// Whether it contains a line of an access log.
    pub(super) fn is_log(&self) -> bool {
        self.requests + self.others > 0
    }

    pub(super) fn first(&self) -> Option<(u64, Malformed)> {
        self.first.first().copied()
    }

    /// Lines that cannot be parsed.
    pub fn malformed(&self) -> u64 {
        self.by_reason.iter().sum()
    }

    /// The same by reason, for reasons that occurred. With the numbers, from 1, of the first lines of each,
    /// among the first few of all.
    pub fn reasons(&self) -> impl Iterator<Item = (Malformed, u64, Vec<u64>)> + '_ {
        Malformed::ALL.into_iter().zip(self.by_reason).filter(|&(_, count)| count > 0).map(|(why, count)| {
            let lines = self.first.iter().filter(|&&(_, other)| other == why).map(|&(line, _)| line);
            (why, count, lines.collect())
        })
    }
}
