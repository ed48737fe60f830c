//! Dispatch of a received request: an answer in place, or an exchange.

use super::client::{Http2Client, RequestBody};
use super::in_place::{InPlace, NoRoom, Place};
use super::streams::Streams;
use crate::leased_head::LeasedHead;
use crate::panics::PanicPart;
use crate::service::{Answer, Incoming, Peer, Refused, Request, Service, SessionLimits};
use crate::task::spawn;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sandarac_message::{Method, RequestHead, RequestHeadBuf, TooLarge, hop};
use sandarac_wire::h2::head::request;
use sandarac_wire::h2::{ErrorCode, Priority, Refusal};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// Exchanges of a connection, including those that have not ended although their streams were reset.
const MAX_EXCHANGES: usize = 200;

/// A request that was received.
pub(super) struct ReceivedRequest<'a> {
    pub(super) id: u32,
    pub(super) request: request::Request<'a>,
    pub(super) priority: Priority,
    /// Whether nothing follows the head.
    pub(super) has_ended: bool,
    pub(super) began: Instant,
}

impl ReceivedRequest<'_> {
    /// Answers the request in place, or starts an exchange.
    pub(super) fn serve<S: Service>(
        self,
        service: &Rc<S>,
        peer: &Peer,
        streams: &Rc<RefCell<Streams>>,
        limits: &SessionLimits,
        place: &mut Place<'_>,
    ) {
        let ReceivedRequest { id, request, priority, has_ended, began } = self;
        let of_tunnel = request.protocol.map(|protocol| upgrading(&request.head, protocol)).transpose();
        let Ok(of_tunnel) = of_tunnel else {
            let mut client = InPlace::new(place, id, priority);
            service.refuse(peer, &Refused::Http2(Refusal::HeadTooLarge), &[], &mut client);
            return finish(service, client);
        };
        let head = of_tunnel.as_ref().map_or(request.head, RequestHeadBuf::view);
        let is_tunnel = request.head.method == Method::Connect;
        let asked = Request { head, scheme: request.scheme, has_body: !has_ended && !is_tunnel, began };
        let mut client = InPlace::new(place, id, priority);
        let deferred = match service.answer(peer, &asked, &mut client) {
            Answer::Answered => return finish(service, client),
            Answer::Deferred(deferred) => deferred,
        };
        if place.streams.exchanges() >= MAX_EXCHANGES {
            return place.streams.wire.reset(id, ErrorCode::REFUSED_STREAM, place.output.inline());
        }
        let Some(head) = LeasedHead::copy_of(&head, &peer.holder) else {
            service.ignored(&Refused::Full);
            return place.streams.wire.reset(id, ErrorCode::REFUSED_STREAM, place.output.inline());
        };
        let body = RequestBody {
            // Of an empty body, nothing but its end can be awaited.
            length: if has_ended { Some(0) } else { request.content_length.filter(|length| *length > 0) },
            expect_continue: request.expect_continue,
            is_tunnel,
            is_stream: hop::is_grpc(&head.view()),
        };
        place.streams.open(id, priority, has_ended);
        let mut client = Http2Client::new(streams.clone(), id, peer.clone(), *limits, body);
        let expect_continue = request.expect_continue;
        let incoming = Box::new(Incoming { head, expect_continue, began, deferred });
        let service = service.clone();
        spawn(PanicPart::Exchange, move || async move {
            client.gather().await;
            service.exchange(&mut client, incoming).await;
        });
    }
}

/// Ends a response that was made in place.
pub(super) fn finish<S: Service>(service: &Rc<S>, client: InPlace<'_, '_>) {
    if let Err(NoRoom) = client.finish() {
        service.ignored(&Refused::Full);
    }
}

/// The HTTP/1.1 request with Upgrade that corresponds to an extended CONNECT (RFC 8441 §5). No other request over HTTP/2 has
/// Upgrade.
fn upgrading(head: &RequestHead<'_>, protocol: &[u8]) -> Result<RequestHeadBuf, TooLarge> {
    let mut upgrading =
        RequestHeadBuf::copy_of(&RequestHead { method: Method::Get, method_text: b"GET", ..*head });
    let fields = &mut upgrading.fields;
    // They belong to the handshake of HTTP/1.1, which is made here.
    fields.retain(|field| !field.is(b"Sec-WebSocket-Key") && !field.is(b"Sec-WebSocket-Accept"));
    fields.push(b"Connection", b"Upgrade")?;
    fields.push(b"Upgrade", protocol)?;
    if protocol.eq_ignore_ascii_case(b"websocket") {
        // HTTP/1.1 demands it (RFC 6455 §4.1), and HTTP/2 leaves it out.
        let mut nonce = [0; 16];
        rand::fill(&mut nonce).expect("the system has random numbers");
        fields.push(b"Sec-WebSocket-Key", STANDARD.encode(nonce).as_bytes())?;
    }
    Ok(upgrading)
}
