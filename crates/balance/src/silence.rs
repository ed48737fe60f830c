//! Backends that take requests and respond to none.
//!
//! A worker that hangs keeps its connections open. Nothing fails until a request times out, or never if its
//! client leaves before. Therefore the last sign of life of a backend is recorded, and the requests that were
//! given up without a response.

use std::sync::atomic::Ordering;

use crate::backend::State;

/// A backend without a response for this many times the duration of its responses is overdue. Ten: the 99th
/// percentile of an ordinary site is some five means, and a backend that is avoided wrongly for a moment
/// loses nothing.
const FACTOR: f32 = 10.0;

/// No backend is overdue before this many milliseconds: a pause of a garbage collector is not silence.
const LEAST_MS: f32 = 1000.0;

/// The decay of the mean duration with each response.
const DECAY: f32 = 0.95;

/// The most remembered requests that were given up, many more than an ejection takes.
const MOST: usize = 64;

impl State {
    /// Notes that a request was given to it.
    pub(crate) fn asked(&self, now: u64) {
        let begins = |unanswered| {
            if unanswered == 0 && self.given_up.load(Ordering::Relaxed) == 0 {
                self.overdue_at.store(now.saturating_add(self.patience()), Ordering::Relaxed);
            }
        };
        // Set before the request is counted, so that another core does not see the previous request's time;
        // and again if that request has just ended.
        begins(self.unanswered.load(Ordering::Relaxed));
        begins(self.unanswered.fetch_add(1, Ordering::Relaxed));
    }

    /// Notes that it has begun to respond to a request.
    pub(crate) fn heard(&self, now: u64) {
        self.overdue_at.store(now.saturating_add(self.patience()), Ordering::Relaxed);
        // The cache line is shared, and written once a millisecond at most.
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

    /// Whether it has ever responded to a request or passed a check.
    pub(crate) fn was_ever_heard(&self) -> bool {
        self.last_heard.passed_check.load(Ordering::Relaxed)
            || self.last_heard.heard_at.load(Ordering::Relaxed) != 0
    }

    /// Notes that it has passed a check.
    pub(crate) fn passed_check(&self) {
        self.last_heard.passed_check.store(true, Ordering::Relaxed);
    }

    /// Notes that a request ended without a response. If it was sent, at `since`, and given up, it is not
    /// known yet whether it would have had one.
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

    /// Notes the duration of a response, in milliseconds.
    pub(crate) fn took(&self, millis: f32) {
        self.last_heard.took.add(millis, DECAY);
    }

    fn patience(&self) -> u64 {
        (self.last_heard.took.get() * FACTOR).max(LEAST_MS) as u64
    }

    /// Whether it has begun a response in a later millisecond than `since`: one in the same may have been
    /// earlier.
    pub(crate) fn was_heard_after(&self, since: u64) -> bool {
        self.last_heard.heard_at.load(Ordering::Relaxed) > since.saturating_add(1)
    }

    /// Whether it has requests, and has responded to none for longer than they should take.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        self.overdue_at.load(Ordering::Relaxed) <= now
            && (self.unanswered.load(Ordering::Relaxed) > 0 || self.given_up.load(Ordering::Relaxed) > 0)
    }

    /// Removes and returns the given-up requests that were sent at `until` or before.
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
