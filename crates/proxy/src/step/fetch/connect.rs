//! The way to a backend: a place at one of the pool's, queued if need be, and a connection to it.

use super::context::FetchContext;
use super::fastcgi::FastCgi;
use super::link::OriginLink;
use super::origin_request::OriginRequest;
use super::origin_response::Failed;
use super::recipient::Recipient;
use crate::origin::OriginConn;
use crate::origin::tls::OriginTls;
use crate::{Counter, Fault};
use sandarac_balance::{Address, AttemptOutcome, BackendId, NoBackend, Pick, Ticket};
use sandarac_net::Unread;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::Poll;

/// A place at a backend: at once if there is one, else through the pool's queue.
pub(super) async fn place(
    context: &FetchContext<'_>,
    request: &OriginRequest<'_>,
    tried: &[BackendId],
    recipient: &mut Recipient<'_, '_>,
) -> Result<Pick, Fault> {
    if let Some(backend) = context.sticks_to.filter(|backend| !tried.contains(backend)) {
        if let Some(pick) = context.live.pick_sticky(backend, context.class, context.now()) {
            return Ok(pick);
        }
        if context.live.holds_sessions(backend, context.now()) {
            let turn = context.live.queue().sticking_to(backend);
            return Box::pin(wait_for_place(context, request, tried, recipient, turn)).await;
        }
    }
    match context.live.pick_patiently(context.class, context.now(), tried) {
        Err(NoBackend::AllFull) => {}
        picked => return picked.map_err(Fault::NoBackend),
    }
    Box::pin(wait_for_place(context, request, tried, recipient, context.live.queue())).await
}

/// Waits in the pool's queue, if there is no place at once: for the backend that suits it best for as long as
/// the pool prescribes, then for any. The wait ends if the client leaves.
async fn wait_for_place(
    context: &FetchContext<'_>,
    request: &OriginRequest<'_>,
    tried: &[BackendId],
    recipient: &mut Recipient<'_, '_>,
    mut ticket: Ticket,
) -> Result<Pick, Fault> {
    let timeout = context.pool().timeouts.queue;
    let patience = context.live.settings().patience.min(timeout);
    let mut waits = false;
    let mut left = Some(timeout - patience);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(picked) = ticket.poll_pick(cx, context.class, context.now(), tried) {
                return Poll::Ready(picked.map_err(Fault::NoBackend));
            }
            if recipient.has_left(request, cx) {
                return Poll::Ready(Err(Fault::ClientGone));
            }
            if !waits {
                waits = true;
                context.counters().one(Counter::FetchesQueued);
                recipient.with_timer(|timer| timer.set(patience));
            }
            if recipient.with_timer(|timer| timer.poll(cx)).is_pending() {
                return Poll::Pending;
            }
            match left.take() {
                Some(left) => recipient.with_timer(|timer| timer.set(left)),
                None => return Poll::Ready(Err(Fault::QueuedTooLong)),
            }
        }
    })
    .await
}

/// A connection to the backend of a pick: `pooled`, or a new one. If only one version may serve, the worker
/// at its end has reported its version, if it does so at all.
pub(super) async fn linked(
    context: &FetchContext<'_>,
    request: &OriginRequest<'_>,
    pick: Pick,
    pooled: Option<OriginConn>,
) -> Result<OriginLink, Failed> {
    let served = !pick.backend().is_sidelined();
    let reused = pooled.is_some();
    let mut connected = connect(context, pooled, pick.backend().address(), request.protocols.is_some()).await;
    let identifies = context.resumes_to_check().is_some();
    if identifies {
        connected = Box::pin(context.identified(&pick, connected)).await;
    }
    // A new connection to an application has one request only: what comes before it is in no other response,
    // and if it has ended, sending fails before a byte was sent.
    let is_fastcgi = pick.backend().address().is_fastcgi();
    if (identifies || !reused && !is_fastcgi)
        && let Ok(OriginConn::Http1(conn, _)) = &mut connected
    {
        match context.core.origins.unread(conn) {
            Unread::Nothing => {}
            Unread::Data => connected = Err(Fault::Unasked),
            Unread::End => connected = Err(Fault::NoResponse),
        }
    }
    match connected {
        Ok(conn) => {
            let is_other_version = served && pick.backend().is_sidelined();
            let address = pick.backend().address();
            let mut link = match (conn, &context.pool().application) {
                (OriginConn::Http1(conn, provenance), Some(application)) if address.is_fastcgi() => {
                    let fastcgi =
                        FastCgi::new(context, application.clone(), conn, provenance, address, reused);
                    OriginLink::fastcgi(context, fastcgi, pick)
                }
                (conn, _) => OriginLink::new(context, conn, pick),
            };
            link.found(reused, is_other_version);
            Ok(link)
        }
        Err(fault) => {
            let own = fault == Fault::NoDescriptors;
            pick.finish(
                if own { AttemptOutcome::Aborted } else { AttemptOutcome::ConnectFailed },
                context.now(),
            );
            Err(Failed { fault, sent: false, answered: false })
        }
    }
}

/// A connection: `pooled`, or a new one. `upgrades` is whether the request asks for another protocol: a
/// backend that does not offer that over HTTP/2 is asked over HTTP/1.1, if it may speak that.
pub(super) async fn connect(
    context: &FetchContext<'_>,
    pooled: Option<OriginConn>,
    address: &Address,
    upgrades: bool,
) -> Result<OriginConn, Fault> {
    let (pool, origins) = (context.pool(), &context.core.origins);
    let limits = context.site.response_head;
    let connected = match pooled {
        Some(conn) => {
            context.counters().one(Counter::OriginConnectionsReused);
            Ok(conn)
        }
        // A source named it for a pool of which no document root is known.
        None if address.is_fastcgi() && pool.application.is_none() => {
            Err(Fault::ConnectFailed(ErrorKind::Unsupported))
        }
        None => {
            context.counters().one(Counter::OriginConnections);
            // Boxed, because resolving a name is a large state machine that a kept connection does not need.
            Box::pin(origins.connect(address, pool.tls.as_ref(), pool.timeouts.connect, limits)).await
        }
    };
    match connected {
        Ok(OriginConn::Http2(stream)) if upgrades && !stream.allows_protocols() && address.is_tls() => {
            drop(stream);
            let tls = pool.tls.as_ref().map(OriginTls::without_http2);
            Box::pin(origins.connect(address, tls.as_ref(), pool.timeouts.connect, limits)).await
        }
        connected => connected,
    }
}
