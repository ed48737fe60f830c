//! Relay: a response that is not stored goes from the origin to the client as it arrives.

use super::ahead::Ahead;
use super::assemble;
use super::fetch::{OriginLink, OriginResponse, answer_from_file};
use super::store::add_date;
use crate::downstream::Downstream;
use crate::downstream::sending::{SPOOLED_WINDOW, WINDOW};
use crate::downstream::upload::Upload;
use crate::exchange::state::{Exchange, Sent};
use crate::outgoing::{Head, Outgoing};
use crate::recode::{RelayForm, Transform, relay_form};
use crate::report::handling::Detail;
use crate::request::received::Received;
use crate::spool::Spool;
use crate::sticky;
use crate::trailers::for_client;
use crate::{Counter, Counters, Fault};
use sandarac_message::recoding::{Uncompressed, recode_trailers};
use sandarac_message::{FieldsBuf, Method, Name, Version, hop, tags};
use sandarac_net::{BodyStep, Length, boxed};
use sandarac_policy::PoolId;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How a relay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Relayed {
    /// All of it is written or queued.
    Whole,
    /// The origin broke off, or was too slow, after the head was sent. Only closing can signal that to the
    /// client.
    OriginBroke,
    /// The client is gone, or too slow.
    ClientGone,
    /// The request body failed on the client's side, and the origin sends no more without the rest of it.
    UploadBroke(Fault),
}

/// Why a piece of the body was not written.
enum WriteError {
    /// It cannot be put into another coding.
    Uncoded(Uncompressed),
    /// The client is gone.
    Client,
}

/// Relays a response that bypassed the store, with the edits of the route.
pub(crate) async fn relay_edited(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    mut arrived: Box<OriginResponse>,
    pool: PoolId,
) -> Result<Sent, Fault> {
    edit(exchange, received, &mut arrived)?;
    edit_passed(received, &mut arrived)?;
    relay(exchange, down, arrived, pool).await
}

/// Makes the edits of the route, and adds Via.
pub(crate) fn edit(
    exchange: &Exchange<'_>,
    received: &Received<'_>,
    arrived: &mut OriginResponse,
) -> Result<(), Fault> {
    let edits = received.edits(received.target.path_and_query);
    edits.make(&mut arrived.head, exchange.site.name()).map_err(|_| Fault::HeadTooLarge)
}

/// Makes the edits of responses that are not stored.
pub(crate) fn edit_passed(received: &Received<'_>, arrived: &mut OriginResponse) -> Result<(), Fault> {
    let edits = received.edits(received.target.path_and_query);
    edits.make_passed(&mut arrived.head).map_err(|_| Fault::HeadTooLarge)
}

/// Relays a response as it arrives.
pub(crate) async fn relay(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    arrived: Box<OriginResponse>,
    pool_id: PoolId,
) -> Result<Sent, Fault> {
    let is_file = arrived.link.is_local_file();
    if is_file {
        exchange.restore_range();
    }
    let mut arrived = answer_from_file(exchange.core, &exchange.request, arrived)?;
    if exchange.request.method == Method::Head {
        arrived.link.drop_body();
    }
    let pool = exchange.site.pool_by_id(pool_id);
    let mut fields = std::mem::take(&mut arrived.head.fields);
    let is_page =
        !is_file && assemble::is_passing_page(exchange, arrived.head.status, fields.view(), arrived.upload);
    fields.retain_names(|name| !tags::is_surrogate_only(name));
    add_date(&mut fields, arrived.received);
    if let (Some((key, scheme)), Some(sticky)) = (exchange.trace.stick_to, &pool.sticky) {
        sticky::tell(sticky, key, scheme, &mut fields).map_err(|_| Fault::HeadTooLarge)?;
    }
    let status = arrived.head.status;
    let OriginResponse { link, upload, is_unbuffered, .. } = *arrived;
    if is_page {
        return boxed(|| assemble::passing(exchange, down, status, fields, link, pool_id)).await;
    }
    let form = relay_form(exchange, status, &mut fields, link.remaining());
    let (length, transform) = match form.map_err(|_| Fault::HeadTooLarge)? {
        RelayForm::AsItCame => (length(exchange, status, &link, &fields), None),
        RelayForm::Recoded(None) => (Length::Told, None),
        RelayForm::Recoded(transform) => (Length::Unknown, transform),
    };
    let is_conversation = is_unbuffered || is_conversation(exchange, &link, &fields);
    let mut relay = Relay {
        exchange,
        downstream: down,
        status,
        length,
        transform,
        // A file keeps nobody waiting.
        read_ahead: match link.is_local_file() || is_conversation {
            true => 0,
            false => pool.read_ahead,
        },
        ahead: None,
        is_spooled: false,
        is_conversation,
        fields,
        begun: false,
        between_bytes: pool.timeouts.between_bytes,
        bytes: 0,
        upload,
    };
    let mut link = Some(link);
    // The rest of the time for the head does not count for the body.
    relay.downstream.client.timer().clear();
    let relayed = poll_fn(|cx| relay.poll(cx, &mut link)).await;
    let (bytes, is_uploaded) = (relay.bytes, relay.downstream.body.has_ended());
    match (link, &relayed) {
        (Some(link), Ok(Relayed::Whole)) => release(link, is_uploaded),
        (Some(link), Ok(Relayed::ClientGone | Relayed::UploadBroke(_))) => link.close(),
        (Some(link), Ok(Relayed::OriginBroke) | Err(_)) => link.broken(),
        (None, _) => {}
    }
    if let Ok(Relayed::OriginBroke) | Err(_) = relayed {
        exchange.core.counters.one(Counter::BodiesTruncated);
    }
    match &relayed? {
        Relayed::OriginBroke => exchange.handling.detail = Some(Detail::OriginBroke),
        Relayed::UploadBroke(fault) => {
            exchange.handling.detail = Some(Detail::Fault(*fault));
            exchange.core.counters.one(Counter::UploadsBroken);
        }
        Relayed::Whole | Relayed::ClientGone => {}
    }
    Ok(Sent { status, bytes })
}

/// Ends a response that has been read. A backend that has not received all of the request learns that from
/// the end of the connection.
fn release(link: OriginLink, is_uploaded: bool) {
    if is_uploaded { link.finish() } else { link.close() }
}

/// Whether a response belongs to a conversation, in which nothing may be old: an event stream or gRPC.
fn is_conversation(exchange: &Exchange<'_>, link: &OriginLink, fields: &FieldsBuf) -> bool {
    hop::is_event_stream(fields.view()) || link.speaks_http2() && hop::is_grpc(&exchange.request)
}

/// The length of a relayed response, as its head announces it.
fn length(exchange: &Exchange<'_>, status: u16, link: &OriginLink, fields: &FieldsBuf) -> Length {
    let bodiless = exchange.request.method == Method::Head || matches!(status, 204 | 304);
    match link.remaining() {
        // A response to HEAD gives the length of the body that GET would have (RFC 9110 §9.3.2). A 304 may
        // too.
        Some(0) if bodiless => {
            let digits = fields.view().get(Name::ContentLength);
            let told = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            told.map_or(Length::Told, Length::Known)
        }
        Some(length) => Length::Known(length),
        None => Length::Unknown,
    }
}

/// A response on its way from the origin to the client.
struct Relay<'r, 'c> {
    exchange: &'r Exchange<'r>,
    downstream: &'r mut Downstream<'c>,
    status: u16,
    /// The fields, until the response begins.
    fields: FieldsBuf,
    length: Length,
    /// Puts the body into another coding.
    transform: Option<Box<Transform>>,
    begun: bool,
    /// The most bytes that are read ahead of the client; 0 for none.
    read_ahead: u64,
    /// The part of the response that is read ahead of the client now.
    ahead: Option<Box<Ahead>>,
    /// Whether anything was.
    is_spooled: bool,
    /// Whether nothing in it may be old.
    is_conversation: bool,
    between_bytes: Duration,
    /// Bytes of the body that are written or queued.
    bytes: u64,
    /// The progress of the request body: an origin may respond before it has all of it.
    upload: Upload,
}

impl Relay<'_, '_> {
    fn counters(&self) -> &Counters {
        &self.exchange.core.counters
    }

    /// Begins the response, if it has not begun.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let head = Head::Own(std::mem::take(&mut self.fields));
        self.exchange.begin(self.downstream, &mut Outgoing::relayed(self.status, head, self.length));
    }

    /// Sends the head, then the body, and meanwhile forwards the rest of the request body. An error means
    /// that no response has begun.
    fn poll(&mut self, cx: &mut Context<'_>, link: &mut Option<OriginLink>) -> Poll<Result<Relayed, Fault>> {
        let spoiled = link.as_mut().and_then(|link| self.pass_up(cx, link).err());
        loop {
            if let Some(link) = link {
                link.limit_reads(self.downstream.client.read_limit());
            }
            let room = self.poll_room(cx);
            if let Poll::Ready(Some(gone)) = room {
                return Poll::Ready(Ok(gone));
            }
            if self.ahead.is_some() || (room.is_pending() && self.read_ahead > 0) {
                match self.poll_ahead(cx, link, room.is_ready()) {
                    Poll::Ready(None) => continue,
                    Poll::Ready(Some(ended)) => return Poll::Ready(ended),
                    Poll::Pending => return self.waits(link, spoiled),
                }
            }
            if room.is_pending() {
                return self.waits(link, spoiled);
            }
            if self.transform.as_ref().is_some_and(|transform| transform.has_more()) {
                match self.write_held_back(cx, Transform::more) {
                    Ok(()) => continue,
                    Err(error) => return Poll::Ready(self.unwritten(error)),
                }
            }
            let Some(link) = link else { return spoiled.map_or(Poll::Pending, broke) };
            let written = match link.poll_body(cx) {
                Poll::Ready(Ok(BodyStep::Data(range))) => {
                    let written = self.write(cx, link.piece(&range));
                    link.consume(&range);
                    self.downstream.client.timer().clear();
                    written
                }
                Poll::Ready(Ok(BodyStep::End(trailers))) => {
                    return Poll::Ready(self.end(cx, &trailers));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(self.broke_off(Fault::ResponseBroken)),
                Poll::Pending => {
                    let written = self.write_paused(cx);
                    if written.is_ok() && self.has_left(cx) {
                        return Poll::Ready(Ok(Relayed::ClientGone));
                    }
                    if written.is_ok() {
                        return match spoiled {
                            Some(fault) => broke(fault),
                            None => self.poll_origins_time(cx).map(|()| self.broke_off(Fault::ResponseLate)),
                        };
                    }
                    written
                }
            };
            if let Err(error) = written {
                return Poll::Ready(self.unwritten(error));
            }
        }
    }

    /// The client takes no more now, or the origin has no more.
    fn waits(
        &mut self,
        link: &mut Option<OriginLink>,
        spoiled: Option<Fault>,
    ) -> Poll<Result<Relayed, Fault>> {
        let held = link.as_mut().map_or(0, OriginLink::park);
        self.downstream.client.keeps(held);
        spoiled.map_or(Poll::Pending, broke)
    }

    /// Sends what was read ahead of the client, and reads on. Ready with `None` if there may be more to do.
    fn poll_ahead(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Option<OriginLink>,
        has_room: bool,
    ) -> Poll<Option<Result<Relayed, Fault>>> {
        let mut ahead = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.begin_ahead(),
        };
        if has_room {
            match ahead.spool.poll_next(cx) {
                Poll::Ready(Some(piece)) => {
                    self.bytes += piece.len() as u64;
                    self.begin();
                    let shared = self.downstream.client.share(cx, piece);
                    self.ahead = Some(ahead);
                    return Poll::Ready(shared.err().map(|_| Ok(Relayed::ClientGone)));
                }
                Poll::Ready(None) if ahead.spool.is_lost() => {
                    return Poll::Ready(Some(self.broke_off(Fault::ResponseBroken)));
                }
                Poll::Ready(None) if ahead.holds_back() => {}
                Poll::Ready(None) => {
                    return Poll::Ready(match ahead.ended {
                        // The client is as fast as the origin again.
                        None => None,
                        Some(Ok(trailers)) => Some(self.end(cx, &trailers)),
                        Some(Err(fault)) => Some(self.broke_off(fault)),
                    });
                }
                Poll::Pending => {}
            }
        }
        let polled = self.poll_read_ahead(cx, &mut ahead, link);
        self.ahead = Some(ahead);
        polled.map(|()| None)
    }

    fn begin_ahead(&mut self) -> Box<Ahead> {
        if !std::mem::replace(&mut self.is_spooled, true) {
            self.counters().one(Counter::ResponsesSpooled);
        }
        let holder = &self.downstream.client.peer().holder;
        Box::new(Ahead::new(Spool::of_response(&self.exchange.core.shared, holder, self.read_ahead)))
    }

    /// Reads more than the client takes now. The backend is released at the end.
    fn poll_read_ahead(
        &mut self,
        cx: &mut Context<'_>,
        ahead: &mut Ahead,
        link: &mut Option<OriginLink>,
    ) -> Poll<()> {
        let Some(reading) = link else {
            let _ = ahead.spool.poll_closed(cx);
            return Poll::Pending;
        };
        ready!(ahead.poll_read(cx, reading, self.transform.as_deref_mut(), self.between_bytes, self.upload));
        if let Some(ended) = &ahead.ended
            && let Some(link) = link.take()
        {
            match ended {
                Err(_) => link.broken(),
                Ok(_) => release(link, self.downstream.body.has_ended()),
            }
        }
        Poll::Ready(())
    }

    /// Ends the response.
    fn end(&mut self, cx: &mut Context<'_>, trailers: &FieldsBuf) -> Result<Relayed, Fault> {
        if let Err(error) = self.write_held_back(cx, Transform::finish) {
            return self.unwritten(error);
        }
        self.begin();
        let rule = if trailers.view().is_empty() { None } else { self.exchange.trailers() };
        let mut trailers = for_client(trailers, rule.as_ref());
        if self.transform.is_some() {
            recode_trailers(&mut trailers);
        }
        let ended = self.downstream.client.end(cx, trailers.view());
        Ok(ended.map_or(Relayed::ClientGone, |()| Relayed::Whole))
    }

    /// The origin broke off. If nothing has begun, another response can tell that.
    fn broke_off(&self, fault: Fault) -> Result<Relayed, Fault> {
        if self.begun { Ok(Relayed::OriginBroke) } else { Err(fault) }
    }

    /// A piece was not written.
    fn unwritten(&self, error: WriteError) -> Result<Relayed, Fault> {
        match error {
            WriteError::Uncoded(reason) => self.broke_off(Transform::fault(reason)),
            WriteError::Client => Ok(Relayed::ClientGone),
        }
    }

    /// Whether the head waits for the first block of a body that may turn out not to be in its coding. A
    /// client that has more to send may wait for the head itself.
    fn holds_head(&self) -> bool {
        !self.begun
            && !self.is_conversation
            && self.upload != Upload::AwaitsClient
            && self.transform.as_ref().is_some_and(|transform| transform.decodes())
    }

    /// Writes what is held back, because the origin pauses.
    fn write_paused(&mut self, cx: &mut Context<'_>) -> Result<(), WriteError> {
        if self.holds_head() {
            return Ok(());
        }
        self.begin();
        self.write_held_back(cx, Transform::flush)?;
        self.downstream.client.send_begun(cx).map_err(|_| WriteError::Client)
    }

    /// Writes a piece of the body, in its coding.
    fn write(&mut self, cx: &mut Context<'_>, piece: &[u8]) -> Result<(), WriteError> {
        let out;
        let piece = match &mut self.transform {
            None => piece,
            Some(transform) => {
                out = transform.push(piece).map_err(WriteError::Uncoded)?;
                &out
            }
        };
        self.write_plainly(cx, piece)
    }

    /// Writes what the transform still holds back.
    fn write_held_back(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut Transform) -> Result<Vec<u8>, Uncompressed>,
    ) -> Result<(), WriteError> {
        let Some(transform) = &mut self.transform else { return Ok(()) };
        let out = take(transform).map_err(WriteError::Uncoded)?;
        self.write_plainly(cx, &out)
    }

    fn write_plainly(&mut self, cx: &mut Context<'_>, piece: &[u8]) -> Result<(), WriteError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.begin();
        self.bytes += piece.len() as u64;
        self.downstream.client.write(cx, piece).map_err(|_| WriteError::Client)
    }

    /// Forwards the received part of the request body. An error is the client's.
    fn pass_up(&mut self, cx: &mut Context<'_>, link: &mut OriginLink) -> Result<(), Fault> {
        if self.upload == Upload::Done {
            return Ok(());
        }
        let upload = match self.downstream.body.upload(cx, self.downstream.client, link) {
            // An origin may respond, and stop reading, before it has the whole request.
            Err(fault) if fault.is_origins() => Upload::Done,
            upload => upload?,
        };
        if upload != self.upload {
            self.upload = upload;
            self.downstream.client.timer().clear();
        }
        Ok(())
    }

    /// Whether the client has cancelled its request. A client of HTTP/1 that leaves is noticed when it is
    /// written to.
    fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        self.exchange.request.version == Version::Http2
            && self.downstream.client.poll_left(cx, false).is_ready()
    }

    /// Ready when the origin has been silent for too long. While the client has more to send, the origin may
    /// be waiting for that.
    fn poll_origins_time(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.upload == Upload::AwaitsClient {
            return Poll::Pending;
        }
        let timer = self.downstream.client.timer();
        if !timer.is_set() {
            timer.set(self.between_bytes);
        }
        timer.poll(cx)
    }

    /// Waits until the client has accepted enough that more may be queued.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Option<Relayed>> {
        let window = match &self.ahead {
            // The last of it leaves the spool only once the client has it.
            Some(ahead) if ahead.is_at_end() => 0,
            _ if self.read_ahead > 0 => SPOOLED_WINDOW,
            _ => WINDOW,
        };
        match ready!(self.downstream.client.poll_room(cx, window)) {
            Ok(()) => Poll::Ready(None),
            Err(error) => {
                self.counters().cut_off(&error);
                Poll::Ready(Some(Relayed::ClientGone))
            }
        }
    }
}

fn broke(fault: Fault) -> Poll<Result<Relayed, Fault>> {
    Poll::Ready(Ok(Relayed::UploadBroke(fault)))
}
