//! The body of a request on its way from its client to an origin.

use super::gathered::Gathered;
use super::upload::Upload;
use crate::Fault;
use crate::shared::Shared;
use crate::step::fetch::OriginLink;
use crate::trailers::TrailerRule;
use sandarac_message::{Fields, FieldsBuf};
use sandarac_net::{BodyStep, Client, Held, Lease};
use sandarac_wire::h1::BodyFraming;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// Body bytes that may be queued for an origin that reads slowly; fewer where much is held.
const UPLOAD_WINDOW: usize = 64 * 1024;

/// Body bytes kept so that a request can be sent again.
const REPLAY_LIMIT: usize = 64 * 1024;

/// The progress of the body of a request.
pub(crate) struct RequestBody {
    /// Whether it is sent to the origin in chunks.
    chunked: bool,
    /// Which of its trailers are forwarded; none without a rule.
    pub(crate) trailers: Option<Box<TrailerRule>>,
    /// The most bytes that it may have.
    limit: u64,
    received: u64,
    /// The body so far, for sending it again; `None` once it is too long, or where much is held.
    replay: Option<Vec<u8>>,
    /// The memory of that, which belongs to the request as its head does, and of what waits for the origin.
    held: Option<Box<[Lease; 2]>>,
    /// The body, or its beginning, if it was received before the fetch.
    gathered: Option<Gathered>,
    /// Whether all of it was handed to the origin's connection.
    ended: bool,
    /// The client's fault in sending it, if any. No more of it is read then, because its end is unknown.
    spoiled: Option<Fault>,
}

impl RequestBody {
    pub(super) fn new(client: &dyn Client, limit: u64) -> RequestBody {
        let remaining = client.body_remaining();
        RequestBody {
            chunked: remaining.is_none(),
            trailers: None,
            limit,
            received: 0,
            replay: Some(Vec::new()),
            held: None,
            gathered: None,
            ended: remaining == Some(0),
            spoiled: None,
        }
    }

    /// The request is not sent again after this, because its response begins.
    pub(super) fn is_sent_once(&mut self) {
        self.replay = None;
        if self.ended {
            self.gathered = None;
        }
    }

    /// Checks what is known of the body before any of it is forwarded: its length or, in chunks, the part
    /// received.
    pub(super) fn check(&self, client: &dyn Client) -> Result<(), Fault> {
        let known = match client.body_remaining() {
            Some(length) => length,
            None => client.body_arrived().map_err(|refusal| Fault::BodyBroken(Some(refusal)))?,
        };
        if known > self.limit { Err(Fault::BodyTooLarge) } else { Ok(()) }
    }

    /// The framing of the body on the way to the origin.
    pub(crate) fn framing(&self, client: &dyn Client) -> BodyFraming {
        let gathered = self.gathered.as_ref().map_or(0, Gathered::len);
        match client.body_remaining().map(|left| gathered + left) {
            _ if self.chunked => BodyFraming::Chunked,
            Some(0) | None => BodyFraming::None,
            Some(length) => BodyFraming::Length(length),
        }
    }

    /// Whether the whole body has been received and forwarded.
    pub(crate) fn has_ended(&self) -> bool {
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

    /// Whether the body is long enough, and short enough, to be gathered up to `limit` bytes. One that has
    /// arrived already is forwarded at once.
    pub(crate) fn may_gather(&self, client: &dyn Client, limit: u64) -> bool {
        match client.body_remaining() {
            Some(left) => {
                let arrived = client.body_arrived().unwrap_or(0);
                left > 0 && left <= limit && (arrived < left || client.awaits_continue())
            }
            None => true,
        }
    }

    /// Receives the body, up to `limit` bytes, before a backend is chosen. If it `must_end`, because the
    /// backend must know its length, a longer one is a fault. Otherwise the rest of it is forwarded as it
    /// comes.
    pub(crate) async fn gather(
        &mut self,
        client: &mut dyn Client,
        shared: &Shared,
        limit: u64,
        must_end: bool,
    ) -> Result<(), Fault> {
        let mut gathered = Gathered::new(shared, &client.peer().holder, limit);
        let received = poll_fn(|cx| self.poll_gather(cx, client, &mut gathered, must_end)).await;
        if let Err(fault) = received {
            self.spoiled = Some(fault);
            client.give_up_body();
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
        client: &mut dyn Client,
        gathered: &mut Gathered,
        must_end: bool,
    ) -> Poll<Result<(), Fault>> {
        while !gathered.is_closed() {
            if client.awaits_continue() {
                client.interim(cx, 100, b"Continue", Fields::default());
            }
            let memory = match gathered.poll_reserve(cx) {
                Poll::Ready(Ok(memory)) => memory,
                Poll::Ready(Err(fault)) if must_end => return Poll::Ready(Err(fault)),
                Poll::Ready(Err(_)) => {
                    gathered.close(false);
                    break;
                }
                Poll::Pending => {
                    client.pause_body();
                    return Poll::Pending;
                }
            };
            match ready!(client.poll_body(cx)).map_err(Fault::of_request_body)? {
                BodyStep::Data(range) => {
                    self.received += range.len() as u64;
                    if self.received > self.limit {
                        return Poll::Ready(Err(Fault::BodyTooLarge));
                    }
                    gathered.append(memory, client.body_data(&range));
                    client.consume_body(&range);
                }
                BodyStep::End(_) => gathered.close(true),
            }
        }
        client.pause_body();
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
    pub(crate) fn upload(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn Client,
        origin: &mut OriginLink,
    ) -> Result<Upload, Fault> {
        if let Some(fault) = self.spoiled {
            return Err(fault);
        }
        let upload = self.pass_on(cx, client, origin);
        if self.received > 0 {
            let holder = &client.peer().holder;
            let held = self.held.get_or_insert_with(|| {
                Box::new([Held::Heads, Held::Uploads].map(|class| holder.nothing(class)))
            });
            held[0].set(self.replay.as_ref().map_or(0, Vec::capacity));
            held[1].set(origin.queued());
        }
        // A fault of the origin is not one of the body, which may be sent to another origin.
        self.spoiled = upload.as_ref().err().filter(|fault| !fault.is_origins()).copied();
        if self.spoiled.is_some() {
            client.give_up_body();
        }
        upload
    }

    fn pass_on(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn Client,
        origin: &mut OriginLink,
    ) -> Result<Upload, Fault> {
        loop {
            if origin.queued() > 0 {
                match origin.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Err(Fault::NoResponse),
                    Poll::Pending
                        if self.ended || origin.queued() > client.peer().holder.window(UPLOAD_WINDOW) =>
                    {
                        return Ok(awaits_origin(client, origin));
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
                    Poll::Pending => return Ok(awaits_origin(client, origin)),
                };
                if let Some(sent) = sent {
                    sent.map_err(|_| Fault::NoResponse)?;
                    continue;
                }
            }
            let step = match client.poll_body(cx) {
                Poll::Ready(step) => step.map_err(Fault::of_request_body)?,
                Poll::Pending if client.awaits_continue() => return Ok(awaits_origin(client, origin)),
                Poll::Pending => return Ok(Upload::AwaitsClient),
            };
            match step {
                BodyStep::Data(range) => {
                    self.received += range.len() as u64;
                    if self.received > self.limit {
                        return Err(Fault::BodyTooLarge);
                    }
                    let data = client.body_data(&range);
                    match &mut self.replay {
                        // What was gathered would be sent again without this.
                        replay if self.gathered.is_some() => *replay = None,
                        Some(replay)
                            if replay.len() + data.len() <= REPLAY_LIMIT
                                && client.peer().holder.may_look_ahead() =>
                        {
                            replay.extend_from_slice(data)
                        }
                        replay => *replay = None,
                    }
                    let written = origin.send_body(cx, data);
                    client.consume_body(&range);
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
}

/// Suspends the client's timeout while the upload waits for the origin.
fn awaits_origin(client: &mut dyn Client, origin: &OriginLink) -> Upload {
    client.pause_body();
    Upload::AwaitsOrigin(origin.sent())
}
