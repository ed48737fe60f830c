//! Retries: another attempt if that is safe.

use super::attempt::attempt;
use super::connect::{linked, place};
use super::context::FetchContext;
use super::hedge::hedged;
use super::origin_request::OriginRequest;
use super::origin_response::OriginResponse;
use super::recipient::Recipient;
use super::seen::{Again, Counts, Seen};
use crate::pool::Live;
use crate::{Counter, Fault};
use sandarac_balance::BackendId;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Backends that may refuse a connection for one request before a refusal counts like a lost attempt. A
/// refusal costs next to nothing, but a request must not try all thousand backends of a dead pool.
const MAX_REFUSALS: usize = 16;

/// Backends of a version that may not serve that one request may find, just before it is sent, before it is
/// sent to one of them nevertheless. A restart of a whole pool causes a few; a pool that causes more has no
/// version to keep to.
const MAX_OTHER_VERSIONS: usize = 16;

/// Sends the request to a backend of the pool and receives the response head, with retries where they are
/// safe. There is another attempt after a kept connection turned out dead, and at another backend after one
/// was lost. Both require that no response byte arrived, that the body is still available, and either that nothing was
/// sent, or that the method is idempotent. What a backend refused over HTTP/2 counts as not sent.
///
/// The number of backends that it may be lost at is limited, because the request itself may crash them. A
/// backend that refuses the connection has not seen the request. A backend that ends breaks kept connections
/// first, then the new one that it still accepted.
pub(crate) async fn fetch(
    context: &FetchContext<'_>,
    request: &OriginRequest<'_>,
    recipient: &mut Recipient<'_, '_>,
) -> Result<Box<OriginResponse>, Fault> {
    let mut tried: Vec<BackendId> = Vec::new();
    let mut fresh = false;
    let mut lost_at: Vec<BackendId> = Vec::new();
    let mut refusals = 0;
    let mut turns = 0;
    let mut newer: Option<Arc<Live>> = None;
    context.pool().budget.request();
    loop {
        let context = &FetchContext { live: newer.as_deref().unwrap_or(context.live), ..*context };
        let pick = place(context, request, &tried, recipient).await?;
        let backend = pick.id();
        recipient.asks(backend);
        // A shared connection that ended is not kept, so another one is no older than its end.
        let pooled = if fresh && !pick.backend().address().is_http2() { None } else { context.kept(&pick) };
        let reused = pooled.is_some();
        let was_failing = pick.backend().is_failing();
        let failed = match linked(context, request, pick, pooled).await {
            Ok(link) if link.is_other_version() && turns < MAX_OTHER_VERSIONS => {
                turns += 1;
                link.spare();
                continue;
            }
            Ok(link) => {
                let done = match context.pool().hedge_after.filter(|_| request.can_be_hedged()) {
                    Some(patience) => Box::pin(hedged(context, request, link, patience, recipient)).await,
                    None => attempt(context, request, link, recipient, !lost_at.is_empty()).await,
                };
                match done {
                    Ok(arrived) => return Ok(arrived),
                    Err(failed) => failed,
                }
            }
            Err(failed) => failed,
        };
        context.counters().one(Counter::FetchFailures);
        let seen = Seen::of(&failed, reused && !fresh, was_failing);
        let follows = seen.follows();
        if follows.complains {
            context.complain(backend, &failed.fault);
        }
        if failed.sent && seen != Seen::Stale {
            // A request that hangs one worker may hang the next. A fetch that no client waits for is not
            // retried either.
            let late = failed.fault == Fault::ResponseLate && !context.pool().retry_timeouts;
            let gone = poll_fn(|cx| Poll::Ready(recipient.is_gone(cx))).await;
            if late || gone {
                return Err(failed.fault);
            }
        }
        match follows.counts {
            Counts::Late if refusals < MAX_REFUSALS => refusals += 1,
            Counts::Once | Counts::Late if lost_at.contains(&backend) => {}
            _ => lost_at.push(backend),
        }
        let next = context.newer();
        let another = next.as_deref().unwrap_or(context.live).backends().len() > tried.len() + 1;
        let is_possible = match follows.again {
            Again::Fresh | Again::Anywhere => true,
            Again::Elsewhere => another,
            Again::No => false,
        };
        let is_unhandled = !failed.sent || failed.fault == Fault::Overloaded;
        let is_safe =
            !failed.answered && recipient.can_replay() && (is_unhandled || request.method.is_idempotent());
        let retries = context.pool().retries as usize;
        if !is_possible || !is_safe || retries == 0 || lost_at.len() > retries {
            return Err(failed.fault);
        }
        if follows.pays && !context.pool().budget.retry(context.now()) {
            context.counters().one(Counter::RetriesRefused);
            return Err(failed.fault);
        }
        match follows.again {
            Again::Fresh => fresh = true,
            _ if another => tried.push(backend),
            _ => {}
        }
        context.counters().one(Counter::FetchRetries);
        newer = next.or(newer);
    }
}
