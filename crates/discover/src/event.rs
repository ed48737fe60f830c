//! Events of a source, and the reporter that leaves out repetitions.

use super::backoff::LONG_LIFE;
use super::{Ignored, Listing, LiveSettings};
use std::fmt;
use tokio::time::Instant;

/// What has become of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It names these backends from now on, at least one. Told when anything about the list changed.
    Listing(Listing),
    /// It can be reached and names nobody. The backends named last MUST stay, unless it is sure that they are gone and the
    /// pool has others; there are none where none were named yet.
    Emptied {
        /// The settings that go with the list.
        settings: LiveSettings,
        /// What it said that makes no sense.
        ignored: Ignored,
    },
    /// It cannot be reached, or not be read. What was told last stays in force. Told again when the reason, or what is said of
    /// it, changes.
    Lost(Loss),
    /// It can be reached again. What it names now follows if that has changed.
    Back,
}

/// Why a source is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The kind of it.
    pub reason: LossReason,
    /// The particulars, for people: an address, a path, an error of the system.
    pub detail: String,
}

/// The kinds of reasons for which a source is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// There is no such directory, file or node.
    Absent,
    /// It is there and cannot be read.
    Unreadable,
    /// No server can be connected to, or the connection broke.
    Unreachable,
    /// A server took too long to answer.
    TimedOut,
    /// A server says that we may not.
    Denied,
    /// A server says that it cannot.
    Failed,
    /// It says more than is read of any source.
    TooBig,
    /// A server does not speak its own protocol.
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

    /// The source was reached and says this.
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

    /// The source is lost. Returns whether it had been good for long.
    pub(super) fn lost(&mut self, loss: Loss) -> bool {
        let lived_long = self.good_since.take().is_some_and(|since| since.elapsed() >= LONG_LIFE);
        if self.lost.as_ref() != Some(&loss) {
            self.lost = Some(loss.clone());
            (self.events)(Event::Lost(loss));
        }
        lived_long
    }
}
