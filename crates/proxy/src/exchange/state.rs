//! The state of one exchange, which its steps share.

use crate::Fault;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::forward::Purpose;
use crate::fragments::{Nesting, PageRule};
use crate::outgoing::{Begun, Outgoing, Terms};
use crate::report::fragment_failure::FragmentFailure;
use crate::report::handling::{Course, Detail, Handling};
use crate::report::pass_reason::PassReason;
use crate::report::tally::MissReason;
use crate::request::received::Received;
use crate::site::LocalSite;
use crate::step::fetch::{Fetch, FetchTrace, OriginResponse, Recipient};
use crate::trailers::TrailerRule;
use sandarac_message::caching::BypassReason;
use sandarac_message::recoding::Uncompressed;
use sandarac_message::status_fields::Forward as Forwarded;
use sandarac_message::{RequestHead, hop};
use sandarac_net::tls::TlsPeer;
use sandarac_net::{LeasedHead, wall};
use sandarac_policy::{CompressRule, PoolId, ResponseEdits};
use std::cell::Cell;
use std::rc::Rc;

/// One exchange.
pub(crate) struct Exchange<'e> {
    pub(crate) core: &'e Core,
    pub(crate) site: &'e LocalSite,
    /// The head of the request, and a view of it.
    pub(crate) head: &'e Rc<LeasedHead>,
    pub(crate) request: RequestHead<'e>,
    /// The request with the range that it asks for, if that was removed because pages have no parts.
    pub(crate) ranged: Option<RequestHead<'e>>,
    /// The TLS of the client's connection.
    pub(super) tls: Option<&'e TlsPeer>,
    /// Whether the client waits for 100 (Continue) before it sends its body.
    pub(super) expect_continue: bool,
    pub(crate) handling: Handling,
    pub(crate) transaction: u64,
    /// The trace of the fetch, if there was one.
    pub(crate) trace: FetchTrace,
    /// The name of the field that keeps the request from sharing what is not for everybody, if one does.
    pub(crate) telling: Option<&'e [u8]>,
    /// Why a stale response stands in for the origin's.
    pub(crate) origin_fault: Option<String>,
    /// Whether the outcome has been counted.
    pub(super) counted: Cell<bool>,
    /// The value of Strict-Transport-Security, once the route is known.
    pub(super) hsts: Option<&'e [u8]>,
    /// The edits of the response's fields.
    pub(super) edits: Option<&'e ResponseEdits>,
    /// Which bodies are sent in another coding.
    pub(crate) compress: Option<&'e CompressRule>,
    /// Which responses are pages with fragments.
    pub(crate) fragments: Option<PageRule>,
    /// The place of this request among pages within pages; `None` for a client's own.
    pub(crate) nesting: Option<Nesting>,
}

/// The response as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// 0 if no response was begun.
    pub(crate) status: u16,
    /// Bytes of the body.
    pub(crate) bytes: u64,
}

impl Exchange<'_> {
    /// Sends a request to a backend of the pool for this client alone, and waits for the head of its
    /// response.
    pub(crate) async fn fetch(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
        target: &[u8],
        purpose: Purpose<'_>,
    ) -> Result<Box<OriginResponse>, Fault> {
        let fetch = Fetch {
            core: self.core,
            site: self.site,
            request: self.request,
            received,
            pool,
            target,
            purpose,
            expect_continue: self.expect_continue,
            transaction: self.transaction,
        };
        fetch.run(&mut Recipient::Client(down), &mut self.trace).await
    }

    /// Restores the range of the request, because a file answers it.
    pub(crate) fn restore_range(&mut self) {
        self.request = self.ranged.take().unwrap_or(self.request);
    }

    /// Begins the response, and counts the outcome.
    pub(crate) fn begin(&self, down: &mut Downstream<'_>, outgoing: &mut Outgoing<'_>) -> Begun {
        self.count();
        let Exchange { site, request, handling, hsts, .. } = self;
        let terms = Terms { request, now: wall(), hsts: *hsts, cache_status: site.reported(handling) };
        outgoing.begin(&terms, |response| down.begin(response))
    }

    /// Counts the outcome, once: as the response begins, or as the exchange ends without one.
    pub(crate) fn count(&self) {
        if !self.counted.replace(true) {
            self.core.counters.course(self.handling.course);
        }
    }

    /// The trailers of the response that the client gets; none unless it reads them. Clients of gRPC always
    /// do.
    pub(crate) fn trailers(&self) -> Option<TrailerRule> {
        let fields = self.request.fields;
        let edits = self.edits.filter(|_| hop::accepts_trailers(fields) || hop::is_grpc(&self.request));
        edits.map(|edits| TrailerRule::new(edits.edited()))
    }

    /// Notes why the body is sent as it came, if its client would have taken another coding.
    pub(crate) fn uncompressed(&mut self, reason: Option<Uncompressed>) {
        self.handling.uncompressed = reason;
        reason.iter().for_each(|reason| self.core.counters.uncompressed.one(reason));
    }

    /// Notes why a page is sent as it came.
    pub(crate) fn unassembled(&mut self, reason: FragmentFailure) {
        self.core.counters.fragments_failed.one(&reason);
        self.handling.detail.get_or_insert(Detail::Fragment(reason));
    }

    /// Notes that the request leads a fetch for the store.
    pub(crate) fn missing(&mut self, reason: MissReason, forward: Forwarded) {
        self.handling.course = Course::Miss(reason);
        self.handling.forward = Some(forward);
    }

    /// Notes that the request bypasses the store.
    pub(crate) fn passing(&mut self, reason: PassReason) {
        self.handling.course = Course::Pass(reason);
        self.handling.forward = Some(match reason {
            PassReason::Bypass(BypassReason::Method) => Forwarded::Method,
            PassReason::NotWorthWaiting => Forwarded::Miss,
            _ => Forwarded::Bypass,
        });
        self.handling.detail = Some(Detail::Pass(reason));
    }
}
