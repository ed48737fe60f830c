//! One attempt: sends the request and its body to a backend, and receives the head of the response.

use super::context::FetchContext;
use super::link::OriginLink;
use super::origin_head::{OriginHead, Seen};
use super::origin_request::OriginRequest;
use super::origin_response::{Failed, Keeping, OriginResponse};
use super::recipient::Recipient;
use super::response_fields::end_to_end;
use crate::downstream::upload::Upload;
use crate::{Counter, Fault};
use sandarac_balance::AttemptOutcome;
use sandarac_message::tags::is_for_proxies;
use sandarac_message::{Fields, FieldsBuf, Name, TooLarge};
use sandarac_net::{StreamFault, wall};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Interim responses before the final one: 100, a few 103, and 102 during slow processing.
const MAX_INTERIM: usize = 64;

/// Sends the request once, and its body as it arrives; forwards interim responses. `again` means that an
/// earlier attempt may have taken some of the body, so it is sent from its beginning.
pub(super) async fn attempt(
    context: &FetchContext<'_>,
    request: &OriginRequest<'_>,
    mut link: OriginLink,
    recipient: &mut Recipient<'_, '_>,
    again: bool,
) -> Result<Box<OriginResponse>, Failed> {
    context.counters().one(Counter::Fetches);
    let requested = wall();
    let first_byte = context.pool().timeouts.first_byte;
    let mut sent = false;
    let mut interim = 0;
    let mut upload = Upload::Done;
    let own = context.fields_for(link.backend_id());
    if let Some(down) = recipient.client() {
        // The messages of a call come when there are some.
        down.client.take_body_at_any_rate(request.is_grpc && link.speaks_http2());
    }
    let arrived = poll_fn(|cx| {
        if !sent {
            sent = true;
            if let Err(fault) = send_head(cx, request, &own, &mut link, recipient, again) {
                return Poll::Ready(Err(fault));
            }
            recipient.with_timer(|timer| timer.set(first_byte));
        }
        if let Some(down) = recipient.client() {
            let now = match down.body.upload(cx, down.client, &mut link) {
                // The origin may have responded before it closed the connection: look for the response first.
                Err(Fault::NoResponse) => Upload::Done,
                Err(fault) => return Poll::Ready(Err(fault)),
                Ok(upload) => upload,
            };
            // The origin's timeout runs while it accepts nothing, and while it does not respond.
            match now {
                _ if now == upload => {}
                Upload::AwaitsClient => {
                    link.awaits_client();
                    down.client.timer().clear();
                }
                Upload::Done | Upload::AwaitsOrigin(_) => {
                    if upload == Upload::AwaitsClient {
                        link.client_came();
                    }
                    down.client.timer().set(first_byte);
                }
            }
            upload = now;
        } else if link.queued() > 0 && matches!(link.poll_flush(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(Err(Fault::NoResponse));
        }
        if upload == Upload::Done && link.queued() == 0 {
            link.awaits_answer();
        }
        // The beginning of the body comes with the head.
        link.limit_reads(recipient.read_limit());
        let backend = link.backend_id();
        let mut see = |cx: &mut Context<'_>, seen: Seen<'_>| match seen {
            Seen::Final(fields) => {
                context.hear(backend, fields);
                Ok(())
            }
            Seen::Interim(head) => {
                interim += 1;
                if interim > MAX_INTERIM {
                    return Err(Fault::TooManyInterim);
                }
                if let Ok(fields) = fields_of_interim(request, head.fields) {
                    recipient.interim(cx, head.status, head.reason, fields);
                }
                Ok(())
            }
        };
        let mut spans = context.core.spans.take();
        let head = link.poll_head(cx, request, &context.site.response_head, &mut spans, &mut see);
        context.core.spans.set(spans);
        if head.is_ready() {
            return head;
        }
        if recipient.with_timer(|timer| timer.poll(cx)).is_ready() {
            return Poll::Ready(Err(Fault::ResponseLate));
        }
        if upload == Upload::Done && recipient.has_left(request, cx) {
            return Poll::Ready(Err(Fault::ClientGone));
        }
        Poll::Pending
    })
    .await;
    match arrived {
        // There is no body to show, and none that was asked about.
        Ok(OriginHead { head, .. }) if head.status == 304 && !is_conditional(request.fields.view()) => {
            link.broken();
            Err(Failed { fault: Fault::UnaskedNotModified, sent, answered: true })
        }
        Ok(OriginHead { head, switched }) => {
            if let Some(took) = link.responded(head.status) {
                context.pool().latency.observe_shared(took);
            }
            let received = wall();
            Ok(Box::new(OriginResponse {
                link,
                head,
                switched,
                requested,
                received,
                upload,
                keeping: Keeping::Allowed,
                is_unbuffered: false,
                file: None,
            }))
        }
        Err(fault) => {
            let (wrote, answered) = (link.sent() > 0, link.is_answered());
            // The backend is not blamed for the client's fault.
            if !link.is_reused() && !answered && matches!(fault, Fault::NoResponse) {
                link.ended(AttemptOutcome::ConnectFailed);
            } else if !answered && fault == Fault::ResponseLate {
                link.late();
            } else if fault == Fault::Http2(StreamFault::GoingAway) && link.is_reused() {
                // It ends a connection in order.
                link.unwanted();
            } else if fault.is_origins() {
                link.broken();
            }
            Err(Failed { fault, sent: wrote && sent, answered })
        }
    }
}

fn send_head(
    cx: &mut Context<'_>,
    request: &OriginRequest<'_>,
    own: &FieldsBuf,
    link: &mut OriginLink,
    recipient: &mut Recipient<'_, '_>,
    again: bool,
) -> Result<(), Fault> {
    link.send(cx, request, own)?;
    match recipient.client() {
        Some(down) if again => down.body.replay(cx, link).map_err(|_| Fault::NoResponse),
        _ => Ok(()),
    }
}

/// Whether a request may be answered with 304 (RFC 9110 §13.1). Some origins answer so to a request for the
/// rest of a stored part; then the whole is fetched.
fn is_conditional(request: Fields<'_>) -> bool {
    [Name::IfNoneMatch, Name::IfModifiedSince, Name::IfRange].iter().any(|&name| request.has(name))
}

/// The fields of an interim response that are forwarded. Fields that edits of the final one remove or replace
/// are dropped, and so is Content-Length (RFC 9110 §8.6), because clients of HTTP/2 apply it to the final
/// response.
fn fields_of_interim(request: &OriginRequest<'_>, received: Fields<'_>) -> Result<FieldsBuf, TooLarge> {
    let mut fields = end_to_end(Vec::new(), received)?;
    fields.retain(|field| !is_for_proxies(&field));
    fields.remove(Name::ContentLength);
    request.edits.edited().for_each(|name| fields.remove_named(name));
    Ok(fields)
}
