//! Events of a source, and a reporter that omits repetitions.

use super::backoff::LONG_LIFE;
use super::{Ignored, Listing, LiveSettings};
use std::fmt;
use tokio::time::Instant;

/// A change of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It names these backends from now on, at least one. Reported when anything in the list has changed.
    Listing(Listing),
    /// It can be reached and names no backend. The backends named last MUST stay, unless they are certainly
    /// gone and the pool has others. If none were named yet, there are none.
    Emptied {
        /// The settings that go with the list.
        settings: LiveSettings,
        /// The malformed part of its content.
        ignored: Ignored,
    },
    /// It cannot be reached or read. Its last listing stays in force. Reported again when the reason or the
    /// detail changes.
    Lost(Loss),
    /// It can be reached again. A listing follows if it has changed.
    Back,
}

/// Why a source is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The kind of reason.
    pub reason: LossReason,
    /// The details, for people: an address, a path, an error of the system.
    pub detail: String,
}

/// The kinds of reasons for the loss of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// There is no such directory, file or node.
    Absent,
    /// It is present and cannot be read.
    Unreadable,
    /// No server accepts a connection, or the connection broke.
    Unreachable,
    /// A server took too long to respond.
    TimedOut,
    /// A server denies access.
    Denied,
    /// A server reports an error.
    Failed,
    /// Its content exceeds the limit for a source.
    TooBig,
    /// A server violates its own protocol.
    Malformed,
}

impl LossReason {
    /// All of them.
    pub const ALL: [LossReason; 8] = [
        LossReason::Absent,
        LossReason::Unreadable,
        LossReason::Unreachable,
        LossReason::TimedOut,
        LossReason::Denied,
        LossReason::Failed,
        LossReason::TooBig,
        LossReason::Malformed,
    ];

    /// Its name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            LossReason::Absent => "absent",
            LossReason::Unreadable => "unreadable",
            LossReason::Unreachable => "unreachable",
            LossReason::TimedOut => "timed_out",
            LossReason::Denied => "denied",
            LossReason::Failed => "failed",
            LossReason::TooBig => "too_big",
            LossReason::Malformed => "malformed",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Loss {
    pub(super) fn new(reason: LossReason, detail: impl Into<String>) -> Loss {
        Loss { reason, detail: detail.into() }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.detail)
    }
}

/// Reports events, unless nothing has changed since the last.
pub(super) struct EventReporter<'a> {
    events: &'a mut dyn FnMut(Event),
    /// The listing reported last.
    reported: Option<Listing>,
    lost: Option<Loss>,
    /// Since when the source has been reachable, if it is.
    good_since: Option<Instant>,
}

impl<'a> EventReporter<'a> {
    pub(super) fn new(events: &'a mut dyn FnMut(Event)) -> EventReporter<'a> {
        EventReporter { events, reported: None, lost: None, good_since: None }
    }

    /// Reports that the source was reached and has this content.
    pub(super) fn listing(&mut self, listing: Listing) {
        if self.lost.take().is_some() {
            (self.events)(Event::Back);
        }
        self.good_since.get_or_insert_with(Instant::now);
        if self.reported.as_ref() != Some(&listing) {
            self.reported = Some(listing.clone());
            (self.events)(match listing {
                Listing { members, settings, ignored } if members.is_empty() => {
                    Event::Emptied { settings, ignored }
                }
                listing => Event::Listing(listing),
            });
        }
    }

    /// Reports that the source is lost. Returns whether it had been reachable for long.
    pub(super) fn lost(&mut self, loss: Loss) -> bool {
        let lived_long = self.good_since.take().is_some_and(|since| since.elapsed() >= LONG_LIFE);
        if self.lost.as_ref() != Some(&loss) {
            self.lost = Some(loss.clone());
            (self.events)(Event::Lost(loss));
        }
        lived_long
    }
}
