//! Announcements of a backend: its start and its version, and over which connection they came.

use std::time::Duration;

/// What a backend announced.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    /// The start of it that runs now, where it was met. What an earlier one says late, over a connection that
    /// it has still open, does not count.
    pub(crate) instance: Option<Box<str>>,
    /// When the connection began on which one was met last, on the balancer's clock.
    pub(crate) since: Duration,
    /// The version it runs.
    pub(crate) version: Option<Box<str>>,
}

impl Announced {
    /// Whether a connection to this start of the backend leads to the one that runs now, as far as is known.
    pub(crate) fn is_at(&self, instance: &str) -> bool {
        self.instance.as_deref().is_none_or(|met| met == instance)
    }

    /// Which start of it runs now is not known any more.
    pub(crate) fn doubt(&mut self) {
        self.instance = None;
    }
}

/// How a backend was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// At the beginning of a connection that was made then, or later: it ran at that time.
    Met(Duration),
    /// Over a connection that may be of an earlier start of it.
    Later,
}
