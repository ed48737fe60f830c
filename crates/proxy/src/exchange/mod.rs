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

use crate::client_certificate::with_certificates;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::fragments::{Nesting, PageRule};
use crate::handling::{Detail, Handling};
use crate::pass_reason::PassReason;
use crate::record::Outcome;
use crate::respond::Synthetic;
use crate::site::{LocalSite, Site};
use crate::step::fetch::FetchTrace;
use crate::step::files::{self, FilesEnd};
use crate::step::receive::{Judged, Verdict};
use crate::step::received::Received;
use crate::step::{apart, deliver, lookup, pass, pipe, purge};
use crate::tally::StatusClass;
use crate::{Counter, Fault};
use sandarac_cache::{Key, Lookup};
use sandarac_message::caching::BypassReason;
use sandarac_message::target::{Scheme, with_path};
use sandarac_message::{Field, Name, RequestHead, RequestHeadBuf, Version, hop};
use sandarac_net::{Client, Incoming, Peer, boxed, wall};
use sandarac_policy::Action;
use state::{Exchange, Sent};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How often a request may pass this proxy. No deployment has more tiers of one name.
const MAX_PASSES: usize = 5;

/// The logged status of a request whose client left before its response began. It is never sent. It
/// originates in nginx.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The findings about a request before it became an exchange.
pub struct Deferred {
    pub(crate) site: LocalSite,
    pub(crate) judged: Result<Judged, Fault>,
    pub(crate) found: Option<(Key, Lookup)>,
}

/// Serves a request that could not be answered from memory at once. `nesting` is the place of a fragment's.
pub(crate) async fn run(
    core: &Core,
    client: &mut dyn Client,
    incoming: Box<Incoming<Deferred>>,
    nesting: Option<Nesting>,
) {
    let Incoming { mut head, expect_continue, began, deferred } = *incoming;
    let Deferred { site, mut judged, found } = deferred;
    if let Some(target) = with_path(&head.target) {
        // It was judged so.
        head.target = target.into();
    }
    let transaction = core.transaction();
    let tls = client.peer().tls.clone();
    if let Ok(Judged { facts, keys_certificate: true, .. }) = &judged {
        let certificates = tls.as_ref().map_or(&[][..], |tls| &tls.certificates);
        let rule = site.config.routes[facts.route()].cache_rule();
        match rule.map(|rule| with_certificates(head.fields.view(), certificates, &rule.key)) {
            Some(Ok(fields)) => head.fields = fields,
            Some(Err(_)) => judged = Err(Fault::HeadTooLarge),
            None => {}
        }
    }
    let mut ranged = None;
    if let Ok(Judged { facts, .. }) = &judged
        && site.config.routes[facts.route()].fragments.is_some()
        && head.fields.view().iter().any(|field| asks_for_part(&field))
    {
        // A part of a page's text is no part of the page.
        ranged = Some(RequestHeadBuf::clone(&head));
        head.fields.retain(|field| !asks_for_part(&field));
    }
    // A fetch for the store may outlive the exchange. It keeps the head alive.
    let head = Rc::new(head);
    let mut exchange = Exchange {
        core,
        site: &site,
        head: &head,
        request: head.view(),
        ranged: ranged.as_ref().map(RequestHeadBuf::view),
        tls: tls.as_deref(),
        expect_continue,
        handling: Handling::new(Outcome::Error),
        transaction,
        trace: FetchTrace::default(),
        telling: None,
        origin_fault: None,
        counted: Cell::new(false),
        edits: None,
        compress: None,
        fragments: None,
        nesting,
    };
    core.counters.one(Counter::Requests);
    let mut down = Downstream::new(client, site.body_limit);
    down.is_logged = core.recorder.wants();
    let result = steps(&mut exchange, &mut down, judged, found).await;
    let is_cut = down.client.peer().holder.is_cut();
    let (sent, fault) = match result.map_err(|fault| fault.where_cut(is_cut)) {
        Ok(sent) => (sent, is_cut.then_some(Fault::ClientSlow)),
        // After a response has begun, no other can follow.
        Err(fault) if down.answered.is_some() => {
            exchange.count(Some(&fault));
            (Sent { status: 0, bytes: 0 }, Some(fault))
        }
        Err(fault) => {
            exchange.handling.outcome = Outcome::Error;
            exchange.handling.detail = Some(Detail::Fault(fault));
            // They would describe a response that the client does not get.
            (exchange.handling.ttl, exchange.handling.stored) = (None, false);
            exchange.count(Some(&fault));
            if fault.is_without_client() {
                (Sent { status: 0, bytes: 0 }, Some(fault))
            } else {
                if !down.is_uploaded() {
                    // The rest of a faulty body is not read.
                    down.client.give_up_body();
                }
                let answer = Synthetic::fault(&fault, site.name());
                (deliver::synth(&exchange, &mut down, answer).await, Some(fault))
            }
        }
    };
    exchange.count(None);
    let first_byte = down.answered.map(|answered| answered.duration_since(began));
    let left = down.left || fault.is_some_and(|fault| fault.is_without_client()) && down.answered.is_none();
    let status = if left { CLIENT_CLOSED_REQUEST } else { sent.status };
    exchange.record(down.client.peer(), Sent { status, ..sent }, fault.as_ref(), began, first_byte);
}

/// Whether a request has passed this proxy too often.
pub(crate) fn is_loop(site: &Site, request: &RequestHead<'_>) -> bool {
    hop::passes(request.fields, site.name()) > MAX_PASSES
}

/// Whether a field asks for a part of the response.
pub(crate) fn asks_for_part(field: &Field<'_>) -> bool {
    matches!(field.id, Name::Range | Name::IfRange)
}

/// The request as received, and the verdict on it.
fn judge<'e>(
    exchange: &Exchange<'e>,
    down: &mut Downstream<'_>,
    judged: Result<Judged, Fault>,
) -> Result<(Received<'e>, Verdict), Fault> {
    let judged = judged?;
    let site: &'e Site = exchange.site;
    if is_loop(site, &exchange.request) {
        return Err(Fault::Loop);
    }
    down.check()?;
    // A stream that was reset, or turned out to be malformed, before its turn costs a backend nothing.
    if exchange.request.version == Version::Http2 && down.client.has_closed() {
        return Err(Fault::ClientGone);
    }
    if matches!(judged.verdict, Err(Fault::PurgeDenied)) {
        exchange.core.counters.one(Counter::PurgesDenied);
    }
    let received = judged.facts.received(site, &exchange.request, exchange.tls)?;
    let verdict = match judged.verdict? {
        // A body over HTTP/2 needs no field that announces it.
        Verdict::Lookup(pool) | Verdict::Apart(pool, _) if !down.is_uploaded() => {
            Verdict::Pass(pool, PassReason::Bypass(BypassReason::Body))
        }
        verdict => verdict,
    };
    Ok((received, verdict))
}

async fn steps(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    judged: Result<Judged, Fault>,
    found: Option<(Key, Lookup)>,
) -> Result<Sent, Fault> {
    let (received, verdict) = judge(exchange, down, judged)?;
    exchange.edits = Some(&received.route.response);
    exchange.compress = received.route.compress.as_deref();
    exchange.fragments = received.route.fragments.map(|rule| PageRule {
        rule,
        route: received.route_id,
        // That of the request, as far as only a trusted peer may state it.
        stated: Some(received.requester.scheme)
            .filter(|scheme| received.requester.trusted && *scheme == Scheme::Https),
    });
    let hsts = exchange.site.hsts(down.client.peer(), received.requester.scheme, received.route);
    down.hsts = hsts.map(Box::from);
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
        down.closed_is_gone = pool.abort_on_close;
        down.read_ahead = pool.read_ahead;
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
            exchange.handling = Handling::new(Outcome::Pipe);
            Box::pin(pipe::pipe(exchange, down, &received, pool)).await
        }
        Verdict::Files => unreachable!("a route with this verdict has a rule for files"),
        Verdict::Synth(answer) => {
            exchange.handling = Handling::new(Outcome::Synth);
            Ok(deliver::synth(exchange, down, *answer).await)
        }
        Verdict::Purge => {
            exchange.handling = Handling::new(Outcome::Purge);
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
            let status = self.handling.forward_status.filter(|_| self.handling.outcome == Outcome::Stale);
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
                outcome: self.handling.outcome,
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
                ..crate::Record::of(&self.request, wall().minus(duration))
            },
        );
    }
}
