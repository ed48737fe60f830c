//! Backends that take requests and answer none.
//!
//! A worker that hangs keeps its connections open: nothing fails until a request has waited for all of its
//! time, or never where its client leaves before. So it is noted when a backend was last heard of, and what
//! was given up before it answered.

use std::sync::atomic::Ordering;

use crate::backend::State;

/// A backend that has answered nothing for so many times as long as its answers take is overdue. Ten: the
/// 99th percentile of an ordinary site is some five means, and what is avoided wrongly for a moment loses
/// nothing.
const FACTOR: f32 = 10.0;

/// None is overdue before so many milliseconds: a pause of a garbage collector is no silence.
const LEAST_MS: f32 = 1000.0;

/// By so much less does each answer count than the next.
const DECAY: f32 = 0.95;

/// The most requests that are remembered as given up, many more than an ejection takes.
const MOST: usize = 64;

impl State {
    /// A request was given to it.
    pub(crate) fn asked(&self, now: u64) {
        let begins = |unanswered| {
            if unanswered == 0 && self.given_up.load(Ordering::Relaxed) == 0 {
                self.overdue_at.store(now.saturating_add(self.patience()), Ordering::Relaxed);
            }
        };
        // Before, lest another core sees the time that was set for the request before; and again where that
        // has just ended.
        begins(self.unanswered.load(Ordering::Relaxed));
        begins(self.unanswered.fetch_add(1, Ordering::Relaxed));
    }

    /// It has begun to answer a request.
    pub(crate) fn heard(&self, now: u64) {
        self.overdue_at.store(now.saturating_add(self.patience()), Ordering::Relaxed);
        // The line is shared, and written once a millisecond at most.
        if self.last_heard.heard_at.load(Ordering::Relaxed) != now + 1 {
            self.last_heard.heard_at.store(now + 1, Ordering::Relaxed);
        }
        if self.given_up.load(Ordering::Relaxed) != 0 {
            let mut given_up = self.last_heard.given_up();
            given_up.clear();
            self.given_up.store(0, Ordering::Relaxed);
        }
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it has answered a request or passed a check, ever.
    pub(crate) fn was_ever_heard(&self) -> bool {
        self.last_heard.passed_check.load(Ordering::Relaxed)
            || self.last_heard.heard_at.load(Ordering::Relaxed) != 0
    }

    /// It has passed a check.
    pub(crate) fn passed_check(&self) {
        self.last_heard.passed_check.store(true, Ordering::Relaxed);
    }

    /// A request ended unanswered. Where it was sent, at `since`, and given up, it is not known yet whether
    /// it would have been answered.
    pub(crate) fn unheard(&self, since: Option<u64>) {
        if let Some(since) = since {
            let mut given_up = self.last_heard.given_up();
            if given_up.len() < MOST && !self.was_heard_after(since) {
                given_up.push(since);
            }
            self.given_up.store(given_up.len() as u32, Ordering::Relaxed);
        }
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
    }

    /// An answer took so many milliseconds.
    pub(crate) fn took(&self, millis: f32) {
        self.last_heard.took.add(millis, DECAY);
    }

    fn patience(&self) -> u64 {
        (self.last_heard.took.get() * FACTOR).max(LEAST_MS) as u64
    }

    /// Whether it has begun an answer in a later millisecond than `since`: one in the same may have come
    /// before.
    pub(crate) fn was_heard_after(&self, since: u64) -> bool {
        self.last_heard.heard_at.load(Ordering::Relaxed) > since.saturating_add(1)
    }

    /// Whether it has requests, and has answered nothing for longer than they should take.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        self.overdue_at.load(Ordering::Relaxed) <= now
            && (self.unanswered.load(Ordering::Relaxed) > 0 || self.given_up.load(Ordering::Relaxed) > 0)
    }

    /// Those given up that were sent at `until` or before. They are not given again.
    pub(crate) fn given_up_until(&self, until: u64) -> Vec<u64> {
        if self.given_up.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut given_up = self.last_heard.given_up();
        let (late, waiting) = given_up.drain(..).partition(|&since| since <= until);
        *given_up = waiting;
        self.given_up.store(given_up.len() as u32, Ordering::Relaxed);
        late
    }
}

#[cfg(test)]
#[path = "silence_tests.rs"]
mod tests;
