//! The lifetimes of a stored response: until when, and how, it may be used.

use std::time::Duration;

use super::{MaxStale, RequestDirectives};
use crate::Timestamp;

/// The lifetimes of one stored response. They are fixed when it is stored or freshened, and checked against a
/// request and the current time.
///
/// ```text
/// received ──── fresh ────┬── grace ──┐
///                         ├── stale-if-error ──┐
///                         └── keep (validation, disconnected origin) ──┐
///                       stale                                        dead
/// ```
/// All three windows begin when the response becomes stale. Forty bytes, because every stored object has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// When the response was received.
    pub(super) received: Timestamp,
    /// `corrected_initial_age` in milliseconds (RFC 9111 §4.2.3).
    pub(super) initial_age: u64,
    /// `freshness_lifetime` in milliseconds (RFC 9111 §4.2.1).
    pub(super) freshness: u64,
    /// Seconds past freshness in which it may be served while a background fetch runs (RFC 5861 §3, or
    /// grace).
    pub(super) grace: u32,
    /// Seconds past freshness in which it may replace the response of a failing origin (RFC 5861 §4).
    pub(super) stale_if_error: u32,
    /// Seconds past freshness in which it is worth keeping for validation.
    pub(super) keep: u32,
    pub(super) flags: u8,
}

/// Never reuse without successful validation, even while fresh (response `no-cache`).
pub(super) const NO_CACHE: u8 = 1;
/// Never reuse stale (`must-revalidate`, `proxy-revalidate`, `s-maxage`), except within a grace that the
/// origin gave.
pub(super) const NEVER_STALE: u8 = 2;
/// May be served stale when the origin cannot be reached (RFC 9111 §4.2.4).
pub(super) const DISCONNECTED: u8 = 4;
/// A reload need not go to the origin while this is fresh (RFC 8246).
pub(super) const IMMUTABLE: u8 = 8;

/// `stale_if_error` comes from the operator; the origin did not set it.
pub(super) const OPERATORS_WINDOW: u8 = 16;

/// Said to be for everybody, also for requests with fields that may identify somebody: `public`, `s-maxage`, a targeted
/// field, a rule's `ttl`; or an asset with a lifetime of its own.
pub(super) const FOR_ALL: u8 = 32;
/// The cache's own estimate decides how long it is fresh: nobody said it.
pub(super) const GUESSED: u8 = 64;

/// Whether a stored response may answer a request now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Fresh, and fresh enough for the request.
    Fresh,
    /// Stale, but it may be served at once while a fetch runs in the background.
    StaleWhileRevalidate,
    /// Stale, but the request accepts that (`max-stale`).
    MaxStale,
    /// May be used only after successful validation, or if the origin fails and
    /// [`Lifetimes::usable_on_error`] allows it.
    Revalidate,
    /// Past every permitted use.
    Gone,
}

impl Lifetimes {
    /// The lifetimes of a response that Sandarac generates or is configured to keep: received now, of age 0,
    /// fresh for `ttl`, then `grace`, then kept for `keep`. Seconds that exceed 32 bits are cut.
    pub fn fixed(now: Timestamp, ttl: Duration, grace: Duration, keep: Duration) -> Lifetimes {
        Lifetimes {
            received: now,
            initial_age: 0,
            freshness: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            grace: seconds(grace),
            stale_if_error: 0,
            keep: seconds(keep),
            flags: DISCONNECTED,
        }
    }

    /// When the response was received.
    pub fn received(&self) -> Timestamp {
        self.received
    }

    /// `current_age` (RFC 9111 §4.2.3). The `Age` field has its whole seconds.
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.age_ms(now))
    }

    /// Seconds of freshness left, negative when stale: the `ttl` of Cache-Status (RFC 9211 §2.5).
    pub fn ttl(&self, now: Timestamp) -> i64 {
        let left = i128::from(self.freshness) - i128::from(self.age_ms(now));
        left.div_euclid(1000) as i64
    }

    /// When it becomes stale; in the past if it was stale on arrival, but not before the epoch.
    pub fn stale_at(&self) -> Timestamp {
        let left = Duration::from_millis(self.freshness.saturating_sub(self.initial_age));
        let over = Duration::from_millis(self.initial_age.saturating_sub(self.freshness));
        self.received.plus(left).minus(over)
    }

    /// Whether it is fresh, regardless of request directives and `no-cache` (RFC 9111 §4.2).
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.freshness > self.age_ms(now)
    }

    /// Whether it has a freshness lifetime at all, however old it was on arrival.
    pub fn is_ever_fresh(&self) -> bool {
        self.freshness > 0
    }

    /// Whether the origin forbade every reuse without validation (`no-cache`).
    pub fn no_cache(&self) -> bool {
        self.flags & NO_CACHE != 0
    }

    /// Whether the origin forbade stale reuse (`must-revalidate`, `proxy-revalidate` or `s-maxage`).
    pub fn must_revalidate(&self) -> bool {
        self.flags & NEVER_STALE != 0
    }

    /// Whether the response is said to be for everybody, also for requests with fields that may identify somebody.
    pub fn is_for_all(&self) -> bool {
        self.flags & FOR_ALL != 0
    }

    /// Whether nobody said how long the response is fresh.
    pub fn is_guessed(&self) -> bool {
        self.flags & GUESSED != 0
    }

    /// Whether the response may be used for a request now. Conditional fields are not considered.
    pub fn reuse(&self, request: &RequestDirectives, now: Timestamp) -> Reuse {
        if self.dead(now) {
            return Reuse::Gone;
        }
        if self.no_cache() || request.no_cache {
            return Reuse::Revalidate;
        }
        let age = self.age_ms(now);
        if self.freshness > age {
            // A reload has max-age=0; RFC 8246 §2 allows an immutable response to be used all the same.
            let young = match request.max_age {
                None => true,
                Some(0) => self.flags & IMMUTABLE != 0,
                Some(limit) => age <= ms(limit),
            };
            let long = request.min_fresh.is_none_or(|least| self.freshness - age >= ms(least));
            return if young && long { Reuse::Fresh } else { Reuse::Revalidate };
        }
        let staleness = age - self.freshness;
        let in_grace = staleness < ms(self.grace);
        if request.min_fresh.is_some() {
            return Reuse::Revalidate;
        }
        let accepted = match request.max_stale {
            MaxStale::No => false,
            MaxStale::Within(limit) => staleness <= ms(limit),
            MaxStale::Any => true,
        };
        let young = request.max_age.is_none_or(|limit| age <= ms(limit));
        if in_grace && (request.max_age.is_none() || (accepted && young)) {
            Reuse::StaleWhileRevalidate
        } else if accepted && young && !self.must_revalidate() {
            Reuse::MaxStale
        } else {
            Reuse::Revalidate
        }
    }

    /// Whether the response may be served because the origin could not be reached: no connection, no response
    /// in time, or a response that broke off. Allowed within `stale-if-error`, and by RFC 9111 §4.2.4 in a
    /// disconnected cache, unless the origin forbade stale reuse.
    pub fn usable_on_error(&self, request: &RequestDirectives, now: Timestamp) -> bool {
        self.usable_on_error_status(request, now)
            || (self.flags & DISCONNECTED != 0 && self.acceptable(request, now) && !self.dead(now))
    }

    /// Whether the response may be served in place of a 500, 502, 503 or 504 (RFC 5861 §4).
    pub fn usable_on_error_status(&self, request: &RequestDirectives, now: Timestamp) -> bool {
        let staleness = self.age_ms(now).saturating_sub(self.freshness);
        self.acceptable(request, now)
            && (staleness < ms(self.stale_if_error.max(self.grace)) || self.is_fresh(now))
    }

    /// Whether the response may be served because the origin is slow to respond: within the operator's
    /// `stale_if_error`. The origin's own applies to errors only (RFC 5861 §4).
    pub fn usable_while_slow(&self, request: &RequestDirectives, now: Timestamp) -> bool {
        self.flags & OPERATORS_WINDOW != 0 && self.usable_on_error_status(request, now)
    }

    /// Whether neither side forbids serving it unvalidated. If the origin forbids stale reuse, the windows
    /// are empty.
    fn acceptable(&self, request: &RequestDirectives, now: Timestamp) -> bool {
        !self.no_cache()
            && !request.no_cache
            && request.max_age.is_none_or(|limit| self.age_ms(now) <= ms(limit))
    }

    /// Whether it is past every use, so that its memory can be freed.
    pub fn dead(&self, now: Timestamp) -> bool {
        now >= self.ends_at()
    }

    /// The end of every use. A response that was stale on arrival is kept as long as if it had become stale
    /// then.
    pub fn ends_at(&self) -> Timestamp {
        let last = u64::from(self.grace.max(self.stale_if_error).max(self.keep));
        self.stale_at().max(self.received).plus(Duration::from_secs(last))
    }

    /// The same lifetimes, stale from `now` on, with unchanged grace, stale-if-error and keep: a soft purge.
    pub fn soft_purged(&self, now: Timestamp) -> Lifetimes {
        Lifetimes { freshness: self.freshness.min(self.age_ms(now)), ..*self }
    }

    fn age_ms(&self, now: Timestamp) -> u64 {
        self.initial_age.saturating_add(now.since(self.received).as_millis() as u64)
    }
}

fn ms(seconds: u32) -> u64 {
    u64::from(seconds) * 1000
}

pub(super) fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}
