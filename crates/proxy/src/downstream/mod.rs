//! The client's side of an exchange: the request body that it sends, and the response that it receives.

mod gathered;
pub(crate) mod sending;
pub(crate) mod upload;

use crate::Fault;
use crate::core::Core;
use crate::downstream::gathered::Gathered;
use crate::downstream::sending::{SendEnd, Sending};
use crate::downstream::upload::Upload;
use crate::shared::Shared;
use crate::step::fetch::OriginLink;
use crate::trailers::TrailerRule;
use sandarac_balance::BackendId;
use sandarac_message::{Fields, FieldsBuf};
use sandarac_net::{Body, BodyStep, Client, Held, Lease, Response};
use sandarac_wire::h1::BodyFraming;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// Body bytes that may be queued for an origin that reads slowly; fewer where much is held.
const UPLOAD_WINDOW: usize = 64 * 1024;

/// Body bytes kept so that a request can be sent again.
const REPLAY_LIMIT: usize = 64 * 1024;

/// The client, and the progress of its request body.
pub(crate) struct Downstream<'a> {
    pub(crate) client: &'a mut (dyn Client + 'a),
    /// Whether the body is sent to the origin in chunks.
    chunked: bool,
    /// Which of its trailers are forwarded; none without a rule.
    pub(crate) trailers: Option<Box<TrailerRule>>,
    /// The most bytes the body may have.
    body_limit: u64,
    received: u64,
    /// The body so far, for sending it again; `None` once it is too long, or where much is held.
    replay: Option<Vec<u8>>,
    /// The memory of that, which belongs to the request as its head does, and of what waits for the origin.
    held: Option<Box<[Lease; 2]>>,
    /// The body, or its beginning, if it was received before the fetch.
    gathered: Option<Gathered>,
    /// Whether all of the body was handed to the origin's connection.
    ended: bool,
    /// The client's fault in sending the body, if any. No more of the body is read then, because its end is
    /// unknown.
    spoiled: Option<Fault>,
    /// When the response began.
    pub(crate) answered: Option<Instant>,
    /// Whether the client had gone by then. Determined only if the exchange is logged, because it takes a
    /// system call.
    pub(crate) left: bool,
    /// Whether the exchange is logged.
    pub(crate) is_logged: bool,
    /// Whether a client that closes its connection counts as gone, as configured for the pool.
    pub(crate) closed_is_gone: bool,
    /// The most bytes that are read ahead of the client, as configured for the pool.
    pub(crate) read_ahead: u64,
    /// The backend that was tried last.
    pub(crate) asked: Option<BackendId>,
}

impl<'a> Downstream<'a> {
    pub(crate) fn new(client: &'a mut (dyn Client + 'a), body_limit: u64) -> Downstream<'a> {
        let remaining = client.body_remaining();
        Downstream {
            client,
            held: None,
            chunked: remaining.is_none(),
            trailers: None,
            body_limit,
            received: 0,
            replay: Some(Vec::new()),
            gathered: None,
            ended: remaining == Some(0),
            spoiled: None,
            answered: None,
            left: false,
            is_logged: false,
            closed_is_gone: true,
            read_ahead: 0,
            asked: None,
        }
    }

    /// Checks what is known of the body before any of it is forwarded: its length or, in chunks, the part
    /// received.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let known = match self.client.body_remaining() {
            Some(length) => length,
            None => self.client.body_arrived().map_err(|refusal| Fault::BodyBroken(Some(refusal)))?,
        };
        if known > self.body_limit { Err(Fault::BodyTooLarge) } else { Ok(()) }
    }

    /// The framing of the body on the way to the origin.
    pub(crate) fn framing(&self) -> BodyFraming {
        let gathered = self.gathered.as_ref().map_or(0, Gathered::len);
        match self.client.body_remaining().map(|left| gathered + left) {
            _ if self.chunked => BodyFraming::Chunked,
            Some(0) | None => BodyFraming::None,
            Some(length) => BodyFraming::Length(length),
        }
    }

    /// Whether the whole body has been received and forwarded.
    pub(crate) fn is_uploaded(&self) -> bool {
        self.ended
    }

    /// Whether the request, body included, can be sent from the beginning again.
    pub(crate) fn can_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Writes the part of the body that was already received, for a second attempt.
    pub(crate) fn replay(&mut self, cx: &mut Context<'_>, origin: &mut OriginLink) -> std::io::Result<()> {
        if let Some(gathered) = &mut self.gathered {
            gathered.rewind();
            self.ended = gathered.is_whole() && gathered.len() == 0;
            return Ok(());
        }
        let replay = self.replay.take().unwrap_or_default();
        if !replay.is_empty() {
            origin.send_body(cx, &replay)?;
        }
        if self.ended {
            origin.end_body(cx, &FieldsBuf::new(), None)?;
        }
        self.replay = Some(replay);
        Ok(())
    }

    /// Whether the body is long enough, and short enough, to be gathered up to `limit` bytes. One that has arrived already is
    /// forwarded at once.
    pub(crate) fn may_gather(&self, limit: u64) -> bool {
        match self.client.body_remaining() {
            Some(left) => {
                let arrived = self.client.body_arrived().unwrap_or(0);
                left > 0 && left <= limit && (arrived < left || self.client.awaits_continue())
            }
            None => true,
        }
    }

    /// Receives the body, up to `limit` bytes, before a backend is chosen. If it `must_end`, because the backend must know its
    /// length, a longer one is a fault. Otherwise the rest of it is forwarded as it comes.
    pub(crate) async fn gather(&mut self, shared: &Shared, limit: u64, must_end: bool) -> Result<(), Fault> {
        let mut gathered = Gathered::new(shared, &self.client.peer().holder, limit);
        let received = poll_fn(|cx| self.poll_gather(cx, &mut gathered, must_end)).await;
        if let Err(fault) = received {
            self.spoiled = Some(fault);
            self.client.give_up_body();
            return Err(fault);
        }
        if gathered.is_whole() {
            self.chunked = false;
            self.ended = gathered.len() == 0;
        }
        self.gathered = Some(gathered);
        Ok(())
    }

    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        gathered: &mut Gathered,
        must_end: bool,
    ) -> Poll<Result<(), Fault>> {
        while !gathered.is_closed() {
            if self.client.awaits_continue() {
                self.client.interim(cx, 100, b"Continue", Fields::default());
            }
            let memory = match gathered.poll_reserve(cx) {
                Poll::Ready(Ok(memory)) => memory,
                Poll::Ready(Err(fault)) if must_end => return Poll::Ready(Err(fault)),
                Poll::Ready(Err(_)) => {
                    gathered.close(false);
                    break;
                }
                Poll::Pending => {
                    self.client.pause_body();
                    return Poll::Pending;
                }
            };
            match ready!(self.client.poll_body(cx)).map_err(Fault::of_request_body)? {
                BodyStep::Data(range) => {
                    self.received += range.len() as u64;
                    if self.received > self.body_limit {
                        return Poll::Ready(Err(Fault::BodyTooLarge));
                    }
                    gathered.append(memory, self.client.body_data(&range));
                    self.client.consume_body(&range);
                }
                BodyStep::End(_) => gathered.close(true),
            }
        }
        self.client.pause_body();
        gathered.poll_settled(cx).map(Ok)
    }

    /// Whether the body has no known length.
    pub(crate) fn is_of_unknown_length(&self) -> bool {
        self.chunked
    }

    /// Whether the body was received before the fetch.
    pub(crate) fn has_gathered(&self) -> bool {
        self.gathered.is_some()
    }

    /// Forwards the received part of the body. The client's timeout and minimum rate apply only while the
    /// upload waits for the client. A fault of the body is permanent.
    pub(crate) fn upload(&mut self, cx: &mut Context<'_>, origin: &mut OriginLink) -> Result<Upload, Fault> {
        if let Some(fault) = self.spoiled {
            return Err(fault);
        }
        let upload = self.pass_on(cx, origin);
        if self.received > 0 {
            let holder = &self.client.peer().holder;
            let held = self.held.get_or_insert_with(|| {
                Box::new([Held::Heads, Held::Uploads].map(|class| holder.nothing(class)))
            });
            held[0].set(self.replay.as_ref().map_or(0, Vec::capacity));
            held[1].set(origin.queued());
        }
        // A fault of the origin is not one of the body, which may be sent to another origin.
        self.spoiled = upload.as_ref().err().filter(|fault| !fault.is_origins()).copied();
        if self.spoiled.is_some() {
            self.client.give_up_body();
        }
        upload
    }

    fn pass_on(&mut self, cx: &mut Context<'_>, origin: &mut OriginLink) -> Result<Upload, Fault> {
        loop {
            if origin.queued() > 0 {
                match origin.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Err(Fault::NoResponse),
                    Poll::Pending
                        if self.ended
                            || origin.queued() > self.client.peer().holder.window(UPLOAD_WINDOW) =>
                    {
                        return Ok(self.awaits_origin(origin));
                    }
                    Poll::Pending => {}
                }
            }
            if self.ended {
                return Ok(Upload::Done);
            }
            if let Some(gathered) = &mut self.gathered {
                let sent = match gathered.poll_next(cx) {
                    Poll::Ready(Ok(Some(piece))) => Some(origin.send_body(cx, &piece)),
                    Poll::Ready(Ok(None)) if gathered.is_whole() => {
                        self.ended = true;
                        Some(origin.end_body(cx, &FieldsBuf::new(), None))
                    }
                    // The rest follows as it comes.
                    Poll::Ready(Ok(None)) => None,
                    Poll::Ready(Err(_)) => return Err(Fault::GatheringFailed),
                    Poll::Pending => return Ok(self.awaits_origin(origin)),
                };
                if let Some(sent) = sent {
                    sent.map_err(|_| Fault::NoResponse)?;
                    continue;
                }
            }
            let step = match self.client.poll_body(cx) {
                Poll::Ready(step) => step.map_err(Fault::of_request_body)?,
                Poll::Pending if self.client.awaits_continue() => return Ok(self.awaits_origin(origin)),
                Poll::Pending => return Ok(Upload::AwaitsClient),
            };
            match step {
                BodyStep::Data(range) => {
                    self.received += range.len() as u64;
                    if self.received > self.body_limit {
                        return Err(Fault::BodyTooLarge);
                    }
                    let data = self.client.body_data(&range);
                    match &mut self.replay {
                        // What was gathered would be sent again without this.
                        replay if self.gathered.is_some() => *replay = None,
                        Some(replay)
                            if replay.len() + data.len() <= REPLAY_LIMIT
                                && self.client.peer().holder.may_look_ahead() =>
                        {
                            replay.extend_from_slice(data)
                        }
                        replay => *replay = None,
                    }
                    let written = origin.send_body(cx, data);
                    self.client.consume_body(&range);
                    written.map_err(|_| Fault::NoResponse)?;
                }
                BodyStep::End(trailers) => {
                    self.ended = true;
                    let rule = self.trailers.as_deref();
                    origin.end_body(cx, &trailers, rule).map_err(|_| Fault::NoResponse)?;
                }
            }
        }
    }

    /// Suspends the client's timeout while the upload waits for the origin.
    fn awaits_origin(&mut self, origin: &OriginLink) -> Upload {
        self.client.pause_body();
        Upload::AwaitsOrigin(origin.sent())
    }

    /// Ready when the client has left: it has reset its connection, or closed it if that means the same.
    pub(crate) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.client.poll_left(cx, self.closed_is_gone)
    }

    /// Begins the response. It is sent even to a client that has left: one that only closed its side may
    /// still read.
    pub(crate) fn begin(&mut self, response: Response<'_>) {
        self.begin_response();
        self.client.begin(response);
    }

    /// Notes that the response begins.
    pub(crate) fn begin_response(&mut self) {
        if self.answered.is_none() {
            self.left = self.is_logged && self.closed_is_gone && self.client.has_closed();
            self.answered = Some(Instant::now());
        }
        // It is not sent again after this.
        self.replay = None;
        if self.ended {
            self.gathered = None;
        }
        // The rest of the time for the head does not count for the body.
        self.client.timer().clear();
    }

    /// Forwards an interim response.
    pub(crate) fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: Fields<'_>) {
        self.client.interim(cx, status, reason, fields);
    }

    /// Sends a body to its end, and ends the response. Returns the number of body bytes sent.
    pub(crate) async fn send(&mut self, core: &Core, body: Option<impl Body>) -> (u64, SendEnd) {
        let mut sending = Sending::new(body);
        let ended = poll_fn(|cx| sending.poll(cx, self.client, core, self.read_ahead)).await;
        (sending.bytes, ended.unwrap_or_else(SendEnd::ClientGone))
    }

    /// The same for a body whose pieces are work for others: it ends when the client has broken off.
    pub(crate) async fn send_attended(&mut self, core: &Core, body: Option<impl Body>) -> (u64, SendEnd) {
        let mut sending = Sending::new(body);
        let ended = poll_fn(|cx| match sending.poll(cx, self.client, core, self.read_ahead) {
            // One that only closed its side may still read.
            Poll::Pending if self.client.poll_left(cx, false).is_ready() => {
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
            ended => ended,
        });
        let ended = ended.await;
        (sending.bytes, ended.unwrap_or_else(SendEnd::ClientGone))
    }
}
