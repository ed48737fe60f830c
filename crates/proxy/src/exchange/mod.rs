//! One request from receipt to record: the steps, and the transitions between them.
//!
//! ```text
//! receive ─ hash ─ lookup ┬ hit ───────────────────────────────┬ deliver ─ record
//!    │                    ├ wait ─ (hit, or the lead of a miss)│
//!    │                    └ miss ─ fetch ─ store ──────────────┤
//!    ├ pass ──────────────────── fetch ─ (invalidate) ─ relay ─┤
//!    ├ pipe ────────────────────────────────────────────────── ┤
//!    ├ files ─ (pass or hash, if there is none) ────────────── ┤
//!    └ synth, purge ───────────────────────────────────────────┘
//! ```
//!
//! Requests that can be answered from memory at once do not become exchanges; see [`crate::service`].

#[cfg(test)]
mod memory_client;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use crate::core::Core;
use crate::downstream::{ClientTerms, Downstream};
use crate::fragments::{Nesting, PageRule};
use crate::report::handling::{Course, Detail, Handling};
use crate::report::pass_reason::PassReason;
use crate::report::tally::StatusClass;
use crate::request::received::Received;
use crate::respond::Synthetic;
use crate::site::{LocalSite, Site};
use crate::step::decide::Decision;
use crate::step::fetch::FetchTrace;
use crate::step::files::{self, FilesEnd};
use crate::step::receive::Verdict;
use crate::step::{apart, deliver, lookup, pass, pipe, purge};
use crate::{Counter, Fault};
use sandarac_cache::{Key, Lookup};
use sandarac_message::caching::BypassReason;
use sandarac_message::target::Scheme;
use sandarac_message::{RequestHead, Version};
use sandarac_net::{Client, Incoming, Peer, boxed, wall_fine};
use sandarac_policy::Action;
use state::{Exchange, Sent};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The logged status of a request whose client left before its response began. It is never sent. It
/// originates in nginx.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The findings about a request before it became an exchange.
pub struct Deferred {
    pub(crate) site: LocalSite,
    pub(crate) decision: Result<Decision, Fault>,
    /// The target of the request, if it was received without a path.
    pub(crate) target: Option<Vec<u8>>,
    pub(crate) found: Option<(Key, Lookup)>,
}

impl Deferred {
    pub(crate) fn new(
        decision: Result<Decision, Fault>,
        found: Option<(Key, Lookup)>,
        site: LocalSite,
    ) -> Deferred {
        Deferred { site, decision, target: None, found }
    }
}

/// Serves a request that could not be answered from memory at once. `nesting` is the place of a fragment's.
pub(crate) async fn run(
    core: &Core,
    client: &mut dyn Client,
    incoming: Box<Incoming<Deferred>>,
    nesting: Option<Nesting>,
) {
    let Incoming { mut head, expect_continue, began, deferred } = *incoming;
    let Deferred { site, mut decision, target, found } = deferred;
    if let Some(target) = target {
        head.target = target.into();
    }
    let transaction = core.transaction();
    let tls = client.peer().tls.clone();
    let changes = decision.as_mut().ok().and_then(|decision| decision.changes.take());
    let with_part = changes.and_then(|changed| changed.make_in(&mut head));
    // A fetch for the store may outlive the exchange. It keeps the head alive.
    let head = Rc::new(head);
    let mut exchange = Exchange {
        core,
        site: &site,
        head: &head,
        request: head.view(),
        ranged: with_part.as_ref().map(|fields| RequestHead { fields: fields.view(), ..head.view() }),
        tls: tls.as_deref(),
        expect_continue,
        handling: Handling::new(Course::Undecided),
        transaction,
        trace: FetchTrace::default(),
        telling: None,
        origin_fault: None,
        counted: Cell::new(false),
        hsts: None,
        edits: None,
        compress: None,
        fragments: None,
        nesting,
    };
    core.counters.one(Counter::Requests);
    let mut down = Downstream::new(client, site.body_limit, core.recorder.wants());
    let result = steps(&mut exchange, &mut down, decision, found).await;
    let is_cut = down.client.peer().holder.is_cut();
    let (sent, fault) = match result.map_err(|fault| fault.where_cut(is_cut)) {
        Ok(sent) => (sent, is_cut.then_some(Fault::ClientSlow)),
        // After a response has begun, no other can follow.
        Err(fault) if down.answer.at.is_some() => {
            exchange.count();
            (Sent { status: 0, bytes: 0 }, Some(fault))
        }
        Err(fault) => {
            exchange.handling.course = Course::Failed(fault);
            exchange.handling.detail = Some(Detail::Fault(fault));
            // They would describe a response that the client does not get.
            (exchange.handling.ttl, exchange.handling.stored) = (None, false);
            exchange.count();
            if fault.is_without_client() {
                (Sent { status: 0, bytes: 0 }, Some(fault))
            } else {
                if !down.body.has_ended() {
                    // The rest of a faulty body is not read.
                    down.client.give_up_body();
                }
                let answer = Synthetic::fault(&fault, site.name());
                (deliver::synth(&exchange, &mut down, answer).await, Some(fault))
            }
        }
    };
    exchange.count();
    let first_byte = down.answer.at.map(|answered| answered.duration_since(began));
    let left =
        down.answer.left || fault.is_some_and(|fault| fault.is_without_client()) && down.answer.at.is_none();
    let status = if left { CLIENT_CLOSED_REQUEST } else { sent.status };
    exchange.record(down.client.peer(), Sent { status, ..sent }, fault.as_ref(), began, first_byte);
}

/// The request as received, and the step that it takes now that its client's side is known.
fn begin<'e>(
    exchange: &Exchange<'e>,
    down: &mut Downstream<'_>,
    decision: Result<Decision, Fault>,
) -> Result<(Received<'e>, Verdict), Fault> {
    let Decision { facts, verdict, .. } = decision?;
    let site: &'e Site = exchange.site;
    down.check()?;
    // A stream that was reset, or turned out to be malformed, before its turn costs a backend nothing.
    if exchange.request.version == Version::Http2 && down.client.has_closed() {
        return Err(Fault::ClientGone);
    }
    let received = facts.received(&site.config.routes, &exchange.request, exchange.tls)?;
    let verdict = match verdict {
        // A body over HTTP/2 needs no field that announces it.
        Verdict::Lookup(pool) | Verdict::Apart(pool, _) if !down.body.has_ended() => {
            Verdict::Pass(pool, PassReason::Bypass(BypassReason::Body))
        }
        verdict => verdict,
    };
    Ok((received, verdict))
}

async fn steps(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    decision: Result<Decision, Fault>,
    found: Option<(Key, Lookup)>,
) -> Result<Sent, Fault> {
    let (received, verdict) = begin(exchange, down, decision)?;
    exchange.edits = Some(&received.route.response);
    exchange.compress = received.route.compress.as_deref();
    exchange.fragments = received.route.fragments.map(|rule| PageRule {
        rule,
        route: received.route_id,
        // That of the request, as far as only a trusted peer may state it.
        stated: Some(received.requester.scheme)
            .filter(|scheme| received.requester.trusted && *scheme == Scheme::Https),
    });
    exchange.hsts = exchange.site.hsts(down.client.peer(), received.requester.scheme, received.route);
    let verdict = match (verdict, &received.route.action) {
        (Verdict::Files, Action::Files { rule, .. }) => {
            match boxed(|| files::files(exchange, down, &received, rule)).await? {
                FilesEnd::Sent(sent) => return Ok(sent),
                FilesEnd::Forward(verdict) => verdict,
            }
        }
        (verdict, _) => verdict,
    };
    if let Verdict::Lookup(pool) | Verdict::Apart(pool, _) | Verdict::Pass(pool, _) | Verdict::Pipe(pool) =
        verdict
    {
        let pool = exchange.site.pool_by_id(pool);
        down.terms = ClientTerms { closed_is_gone: pool.abort_on_close, read_ahead: pool.read_ahead };
    }
    match verdict {
        // Rare or waiting steps are boxed, so that a pass does not carry their memory.
        Verdict::Lookup(pool) => boxed(|| lookup::lookup(exchange, down, &received, pool, found)).await,
        Verdict::Apart(pool, why) => {
            boxed(|| apart::apart(exchange, down, &received, pool, why, found)).await
        }
        Verdict::Pass(pool, reason) => {
            exchange.passing(reason);
            pass::pass(exchange, down, &received, pool).await
        }
        Verdict::Pipe(pool) => {
            exchange.handling = Handling::new(Course::Pipe);
            Box::pin(pipe::pipe(exchange, down, &received, pool)).await
        }
        Verdict::Files => unreachable!("a route with this verdict has a rule for files"),
        Verdict::Synth(answer) => {
            exchange.handling = Handling::new(Course::Synth);
            Ok(deliver::synth(exchange, down, *answer).await)
        }
        Verdict::Purge => {
            exchange.handling = Handling::new(Course::Purge);
            let answer = boxed(|| purge::purge(exchange, &received)).await;
            Ok(deliver::synth(exchange, down, answer).await)
        }
    }
}

impl Exchange<'_> {
    fn record(
        &self,
        peer: &Peer,
        sent: Sent,
        fault: Option<&Fault>,
        began: Instant,
        first_byte: Option<Duration>,
    ) {
        let duration = began.elapsed();
        self.core.counters.responses.one(&StatusClass(sent.status));
        self.core.counters.latency.observe(duration);
        if !self.core.recorder.wants() {
            return;
        }
        let broke = match self.handling.detail {
            Some(Detail::OriginBroke) => Some("the response broke off at the backend".to_owned()),
            Some(Detail::FileBroke) => {
                Some("the file became shorter while it was sent, or could not be read".to_owned())
            }
            // The page of a route for requests without a file was sent.
            Some(Detail::Fault(fault @ Fault::File(_))) => Some(fault.log_text()),
            _ => None,
        };
        let error = fault.map(Fault::log_text).or(broke).or_else(|| {
            let status = self.handling.forward_status.filter(|_| self.handling.course == Course::Stale);
            self.origin_fault.clone().or(status.map(|status| format!("the backend answered {status}")))
        });
        self.core.record(
            self.site,
            peer,
            self.request.fields,
            &crate::Record {
                request: self.transaction,
                fetch: self.trace.number,
                status: sent.status,
                bytes: sent.bytes,
                outcome: self.handling.course.outcome(),
                reason: self.handling.detail.map(Detail::text),
                field: self.telling,
                duration,
                first_byte,
                origin: self.trace.time,
                id: self.trace.id.as_deref(),
                page: self.nesting.as_ref().map(|nesting| nesting.page),
                backend: self.trace.backend.as_deref(),
                backend_protocol: self.trace.backend_protocol,
                error: error.as_deref(),
                ..crate::Record::of(&self.request, wall_fine().minus(duration))
            },
        );
    }
}
