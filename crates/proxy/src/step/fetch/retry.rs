//! Retries: another attempt where that is safe.

use super::attempt::attempt;
use super::connect::{linked, place};
use super::context::FetchContext;
use super::hedge::hedged;
use super::origin_request::OriginRequest;
use super::origin_response::OriginResponse;
use super::recipient::Recipient;
use crate::pool::Live;
use crate::{Counter, Fault};
use sandarac_balance::BackendId;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Backends that may refuse connections for one request before they count as others that it was lost at. They cost next
/// to nothing, but a pool of a thousand that are all gone is not to be gone through by each request.
const MAX_REFUSALS: usize = 16;

/// Backends that turn out, as a request is about to be sent to them, to be of a version that does not serve, before it is sent
/// nevertheless. A restart of a whole pool takes a few; a pool in which it does not end has no version to keep to.
const MAX_OTHER_VERSIONS: usize = 16;

/// Sends the request to a backend of the pool and receives the response head, with retries where they are safe:
/// another attempt after a kept connection turned out dead, or at another backend after one was lost, if no response
/// byte came and either the method is idempotent and the body at hand, or nothing was sent.
///
/// What is limited is at how many backends it may be lost, as it may be what kills them. One that refuses the connection
/// has not seen it; and one that ends breaks kept connections first, and then the new one that it still let in.
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
        let pooled = if fresh { None } else { context.kept(&pick) };
        let reused = pooled.is_some();
        let was_failing = pick.backend().is_failing();
        let failed = match linked(context, pick, pooled).await {
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
        let body_at_hand = recipient.can_replay();
        let safe = !failed.answered && (!failed.sent || (request.method.is_idempotent() && body_at_hand));
        let next = context.newer();
        let another = next.as_deref().unwrap_or(context.live).backends().len() > tried.len() + 1;
        // A kept connection that ended says nothing of the backend; one that is silent does.
        let stale = reused && matches!(failed.fault, Fault::NoResponse);
        if failed.fault.is_origins() && !stale && failed.fault != Fault::NoDescriptors {
            context.complain(backend, &failed.fault);
        }
        let possible = safe && failed.fault.is_origins() && (stale || another);
        if failed.sent && !stale {
            // A page that hangs one worker may hang the next; and what nobody waits for is not worth another's time.
            let late = failed.fault == Fault::ResponseLate && !context.pool().retry_timeouts;
            let gone = poll_fn(|cx| Poll::Ready(recipient.is_gone(cx))).await;
            if late || gone {
                return Err(failed.fault);
            }
        }
        if matches!(failed.fault, Fault::ConnectFailed(_)) && refusals < MAX_REFUSALS {
            refusals += 1;
        } else if !lost_at.contains(&backend) {
            lost_at.push(backend);
        }
        let retries = context.pool().retries as usize;
        if !possible || retries == 0 || lost_at.len() > retries {
            return Err(failed.fault);
        }
        // Not what load is multiplied by: who refuses has done nothing, and who dies does so once.
        let is_free = match failed.fault {
            Fault::ConnectFailed(_) | Fault::NoDescriptors => true,
            Fault::NoResponse => stale || !was_failing,
            _ => false,
        };
        if !is_free && !context.pool().budget.retry(context.now()) {
            context.counters().one(Counter::RetriesRefused);
            return Err(failed.fault);
        }
        if stale {
            // Whatever closed this connection probably closed its companions: take a new one.
            fresh = true;
        } else {
            tried.push(backend);
        }
        context.counters().one(Counter::FetchRetries);
        newer = next.or(newer);
    }
}
