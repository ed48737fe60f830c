//! The handling of an exchange, as Cache-Status, the log and the counters report it.

use crate::Fault;
use crate::report::fragment_failure::FragmentFailure;
use crate::report::pass_reason::PassReason;
use crate::report::record::Outcome;
use crate::report::tally::{MissReason, NoStore};
use sandarac_cache::Object;
use sandarac_message::caching::{RequestDirectives, Reuse};
use sandarac_message::recoding::Uncompressed;
use sandarac_message::status_fields::{CacheStatus, Forward};
use sandarac_message::{FieldsBuf, Name, Timestamp};

/// The reason for the handling of an exchange: the `detail` of Cache-Status (RFC 9211 §2.8), and the `reason`
/// in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// It bypassed the store.
    Pass(PassReason),
    /// It led a fetch, because a mark records that the previous response could not be shared.
    HitForMiss,
    /// The response is not stored.
    Unstored(NoStore),
    /// A file answered.
    File,
    /// The shared tier had the response.
    SharedTier,
    /// A stored response stands in for the origin's.
    StandIn(StandIn),
    /// The response broke off at the origin.
    OriginBroke,
    /// The file became shorter while it was sent, or could not be read.
    FileBroke,
    /// A fragment of the page is missing, or the page is sent as it came.
    Fragment(FragmentFailure),
    /// There is no response, or the request body broke off.
    Fault(Fault),
}

/// Why a stored response stands in for the origin's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// The fetch failed.
    Failed,
    /// The origin responded with an error.
    Error,
    /// The origin responds to no request.
    Silent,
    /// The fetch takes too long.
    Slow,
}

impl Detail {
    /// The reason as logged.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Detail::Pass(reason) => reason.text(),
            Detail::HitForMiss => MissReason::HitForMiss.text(),
            Detail::Unstored(reason) => reason.text(),
            Detail::File => "file",
            Detail::SharedTier => "shared-tier",
            Detail::StandIn(StandIn::Failed) => "origin-failed",
            Detail::StandIn(StandIn::Error) => "stale-if-error",
            Detail::StandIn(StandIn::Silent) => "origin-silent",
            Detail::StandIn(StandIn::Slow) => "origin-slow",
            Detail::OriginBroke => "origin-broke-off",
            Detail::FileBroke => "file-broke-off",
            Detail::Fragment(failure) => failure.name(),
            Detail::Fault(fault) => fault.name(),
        }
    }
}

/// The course that a request took, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// None yet.
    Undecided,
    /// A fresh stored response answered.
    Hit,
    /// A stale one did.
    Stale,
    /// One that the origin confirmed did.
    Revalidated,
    /// It led a fetch for the store.
    Miss(MissReason),
    /// It bypassed the store.
    Pass(PassReason),
    /// It became a tunnel.
    Pipe,
    /// A file answered.
    File,
    /// The proxy itself answered.
    Synth,
    /// It was an order to purge.
    Purge,
    /// It failed.
    Failed(Fault),
}

impl Course {
    /// The part that the cache had in it.
    pub(crate) const fn outcome(self) -> Outcome {
        match self {
            Course::Hit => Outcome::Hit,
            Course::Stale => Outcome::Stale,
            Course::Revalidated => Outcome::Revalidated,
            Course::Miss(_) => Outcome::Miss,
            Course::Pass(_) => Outcome::Pass,
            Course::Pipe => Outcome::Pipe,
            Course::File => Outcome::File,
            Course::Synth => Outcome::Synth,
            Course::Purge => Outcome::Purge,
            Course::Undecided | Course::Failed(_) => Outcome::Error,
        }
    }
}

/// How a request was handled: the course that was decided, and what reports say of it in addition. Nothing
/// but reports reads that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handling {
    pub(crate) course: Course,
    /// The reason, if it is more specific than the course.
    pub(crate) detail: Option<Detail>,
    /// Why the request was forwarded, if it was.
    pub(crate) forward: Option<Forward>,
    /// The origin's status, if the response has another one.
    pub(crate) forward_status: Option<u16>,
    /// Seconds of freshness left.
    pub(crate) ttl: Option<i64>,
    /// Whether the response was stored.
    pub(crate) stored: bool,
    /// Whether it got the response of another request's fetch.
    pub(crate) collapsed: bool,
    /// Why the body has no coding, although the client accepts one.
    pub(crate) uncompressed: Option<Uncompressed>,
}

impl Handling {
    pub(crate) const fn new(course: Course) -> Handling {
        Handling {
            course,
            detail: None,
            forward: None,
            forward_status: None,
            ttl: None,
            stored: false,
            collapsed: false,
            uncompressed: None,
        }
    }

    /// Records how a stored response answers a request. False if it may not, because it became stale after it
    /// was found: its time ended, or a soft purge matched it.
    pub(crate) fn reuse(&mut self, object: &Object, directives: &RequestDirectives, now: Timestamp) -> bool {
        // Read once, because a purge may change them at any time.
        let lifetimes = object.lifetimes();
        self.course = match lifetimes.reuse(directives, now) {
            Reuse::Fresh | Reuse::MaxStale => Course::Hit,
            Reuse::StaleWhileRevalidate => Course::Stale,
            Reuse::Revalidate | Reuse::Gone => return false,
        };
        self.ttl = Some(lifetimes.ttl(now));
        true
    }

    /// Whether the response comes from the store without a request to the origin, so that it must carry an
    /// Age (RFC 9111 §5.1).
    pub(crate) fn is_reuse(&self) -> bool {
        matches!(self.course, Course::Hit | Course::Stale)
    }

    /// The Age of the response, unless its client gets the origin's. `own` are fields for this client alone.
    pub(crate) fn age(&self, object: &Object, own: Option<&FieldsBuf>, now: Timestamp) -> Option<u64> {
        let age = object.lifetimes().age(now).as_secs();
        let told = own.is_some_and(|own| own.view().has(Name::Age));
        Some(age).filter(|_| !told && (age > 0 || self.is_reuse()))
    }

    /// Whether responses have Cache-Status. Those that are made here have it only if a backend was asked, or
    /// if what is stored cannot be sent.
    pub(crate) fn is_reported(&self) -> bool {
        let is_of_stored = matches!(self.detail, Some(Detail::Fault(Fault::Undecodable(_))));
        !matches!(self.course.outcome(), Outcome::Synth | Outcome::Purge | Outcome::Error)
            || self.forward.is_some()
            || is_of_stored
    }

    /// The member of Cache-Status.
    pub(crate) fn cache_status(&self) -> CacheStatus<'static> {
        CacheStatus {
            hit: self.is_reuse() && self.forward.is_none(),
            forward: self.forward,
            forward_status: self.forward_status,
            ttl: self.ttl,
            stored: self.stored,
            collapsed: self.collapsed.then_some(true),
            key: None,
            uncompressed: self.uncompressed.filter(|reason| reason.is_told()).map(Uncompressed::text),
            detail: self.detail.map(Detail::text),
        }
    }
}
