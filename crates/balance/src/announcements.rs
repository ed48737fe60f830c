//! Announcements of a backend: its instance, its version, and the connection that they came over.

use std::time::Duration;

/// What a backend announced.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    /// The running instance, if it was identified. Late reports of an earlier one, over a connection that is
    /// still open, do not count.
    pub(crate) instance: Option<Box<str>>,
    /// When the connection of the last identification began, on the balancer's clock.
    pub(crate) since: Duration,
    /// The version it runs.
    pub(crate) version: Option<Box<str>>,
}

impl Announced {
    /// Whether a connection to this instance of the backend leads to the running one, as far as is known.
    pub(crate) fn is_at(&self, instance: &str) -> bool {
        self.instance.as_deref().is_none_or(|met| met == instance)
    }

    /// Notes that the running instance is no longer known.
    pub(crate) fn doubt(&mut self) {
        self.instance = None;
    }
}

/// How a report of a backend was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// At the beginning of a connection that was made at this time or later: the instance ran then.
    Met(Duration),
    /// Over a connection that may lead to an earlier instance.
    Later,
}
