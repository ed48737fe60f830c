//! The client's side of an exchange: the request body on its way up, and the place the response goes to.

use crate::Fault;
use crate::step::fetch::OriginLink;
use crate::trailers::TrailerRule;
use sandarac_balance::BackendId;
use sandarac_message::{Fields, FieldsBuf, Version};
use sandarac_net::{BodyStep, Client, Framer, Output, Pace, SessionLimits, Timer, Unread};
use sandarac_wire::h1::{BodyFraming, encode};
use std::io::ErrorKind;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Instant;

/// Body bytes that may wait for an origin that reads slowly.
const UPLOAD_WINDOW: usize = 64 * 1024;

/// Body bytes kept so that a request can be sent again.
const REPLAY_LIMIT: usize = 64 * 1024;

/// How far a request body has come on its way up, and so who is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    /// All of it has been handed to the origin's connection.
    Done,
    /// The client has to send more.
    AwaitsClient,
    /// The origin has to take what is queued for it, or to tell the client to go on. It has taken so many bytes so far.
    AwaitsOrigin(u64),
}

/// The client, and how far its request body has come.
pub(crate) struct Downstream<'a> {
    pub(crate) client: &'a mut Client,
    pub(crate) limits: &'a SessionLimits,
    /// The version of the request: decides how a response may be framed, and whether interim ones may be sent.
    pub(crate) version: Version,
    body: Framer,
    /// Whether the body goes up in chunks.
    chunked: bool,
    /// Which of its trailers go up; none where there is no rule.
    pub(crate) trailers: Option<Box<TrailerRule>>,
    /// The most bytes the body may have.
    body_limit: u64,
    received: u64,
    /// The body so far, for sending it again; `None` once it is too long.
    replay: Option<Vec<u8>>,
    ended: bool,
    /// What is wrong with the body on the client's side, once anything is. Nothing of it is read after that: where the wrong
    /// part ends, nobody can tell.
    spoiled: Option<Fault>,
    /// Whether the client waits to be told to go on with its body.
    expects: bool,
    /// When the next piece of the body must be there. Not the client's own timer, which is for whoever answers.
    deadline: Timer,
    /// How fast the body comes.
    pace_in: Pace<'a>,
    /// How fast the response is taken.
    pub(crate) pace_out: Pace<'a>,
    /// When the response began.
    pub(crate) answered: Option<Instant>,
    /// Whether the client had gone by then. Not known where nothing is logged, because it takes a system call.
    pub(crate) left: bool,
    /// Whether the exchange is logged.
    pub(crate) is_logged: bool,
    /// Whether a client that closes its connection wants no response, as the pool has it.
    pub(crate) closed_is_gone: bool,
    /// The backend that was asked last.
    pub(crate) asked: Option<BackendId>,
}

impl<'a> Downstream<'a> {
    pub(crate) fn new(
        client: &'a mut Client,
        limits: &'a SessionLimits,
        hurry: &'a AtomicBool,
        version: Version,
        body: Framer,
        body_limit: u64,
        expects: bool,
    ) -> Downstream<'a> {
        let chunked = matches!(body, Framer::Chunked(_));
        let ended = body.is_ended();
        Downstream {
            client,
            limits,
            version,
            body,
            chunked,
            trailers: None,
            body_limit,
            received: 0,
            replay: Some(Vec::new()),
            ended,
            spoiled: None,
            expects,
            deadline: Timer::new(),
            pace_in: Pace::new(hurry),
            pace_out: Pace::new(hurry),
            answered: None,
            left: false,
            is_logged: false,
            closed_is_gone: true,
            asked: None,
        }
    }

    /// Judges the body by what is known of it before any of it goes on: its length, or, in chunks, what has arrived.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let known = match self.body.remaining() {
            Some(length) => length,
            None => {
                let data = self.client.conn.data();
                self.body.survey(data).map_err(|refusal| Fault::BodyBroken(Some(refusal)))?
            }
        };
        if known > self.body_limit { Err(Fault::BodyTooLarge) } else { Ok(()) }
    }

    /// How the body is framed on the way to the origin.
    pub(crate) fn framing(&self) -> BodyFraming {
        match self.body.remaining() {
            _ if self.chunked => BodyFraming::Chunked,
            Some(0) | None => BodyFraming::None,
            Some(length) => BodyFraming::Length(length),
        }
    }

    /// Whether the whole body has been received and passed on.
    pub(crate) fn is_uploaded(&self) -> bool {
        self.ended
    }

    /// Whether the body, on the client's side, came to grief before its end.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled.is_some()
    }

    /// Whether nothing, or no more than can be read and dropped, is left of the request body, so that the connection
    /// can be used again.
    pub(crate) fn is_uploaded_or_small(&self) -> bool {
        self.ended || self.body.remaining().is_some_and(|left| left <= REPLAY_LIMIT as u64)
    }

    /// Whether the request, body included, can be sent from the beginning again.
    pub(crate) fn can_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Writes the part of the body that was received already, for a second attempt.
    pub(crate) fn replay(&mut self, cx: &mut Context<'_>, origin: &mut OriginLink) -> std::io::Result<()> {
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

    /// Passes on what has arrived of the body. The client has its time, and its least rate, only while it is waited for. What
    /// was wrong once stays so.
    pub(crate) fn upload(&mut self, cx: &mut Context<'_>, origin: &mut OriginLink) -> Result<Upload, Fault> {
        if let Some(fault) = self.spoiled {
            return Err(fault);
        }
        let upload = self.pass_on(cx, origin);
        // An origin that takes no more says nothing of the body, which may go to another one.
        self.spoiled = upload.as_ref().err().filter(|fault| !fault.is_origins()).cloned();
        upload
    }

    fn pass_on(&mut self, cx: &mut Context<'_>, origin: &mut OriginLink) -> Result<Upload, Fault> {
        loop {
            if origin.queued() > 0 {
                match origin.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Err(Fault::NoResponse),
                    Poll::Pending if origin.queued() > UPLOAD_WINDOW || self.ended => {
                        return Ok(self.awaits_origin(origin));
                    }
                    Poll::Pending => {}
                }
            }
            if self.ended {
                return Ok(Upload::Done);
            }
            let step = match self.body.poll_step(&mut self.client.conn, cx) {
                Poll::Ready(step) => step.map_err(Fault::of_request_body)?,
                Poll::Pending if self.expects => return Ok(self.awaits_origin(origin)),
                Poll::Pending => {
                    if !self.deadline.is_set() {
                        self.deadline.set(self.limits.body_timeout);
                    }
                    let fast = self.pace_in.waits(self.received, self.limits.least_in).is_some();
                    if !fast || self.deadline.poll(cx).is_ready() {
                        return Err(Fault::BodyLate);
                    }
                    return Ok(Upload::AwaitsClient);
                }
            };
            self.deadline.clear();
            self.expects = false;
            match step {
                BodyStep::Data(range) => {
                    self.received += range.len() as u64;
                    if self.received > self.body_limit {
                        return Err(Fault::BodyTooLarge);
                    }
                    let data = &self.client.conn.data()[range.clone()];
                    match &mut self.replay {
                        Some(replay) if replay.len() + data.len() <= REPLAY_LIMIT => {
                            replay.extend_from_slice(data)
                        }
                        replay => *replay = None,
                    }
                    let written = origin.send_body(cx, data);
                    self.client.conn.consume(range.end);
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

    /// The client is not waited for while the origin is.
    fn awaits_origin(&mut self, origin: &OriginLink) -> Upload {
        self.pace_in.goes_on(self.received);
        self.deadline.clear();
        Upload::AwaitsOrigin(origin.sent())
    }

    /// Ready when the client has reset its connection, or closed it where that means the same. Of a body that nobody takes yet as much
    /// is received as there is room for.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let conn = &mut self.client.conn;
        // Behind the next request nothing can be seen without taking in what was not asked for yet.
        while conn.data().is_empty() || !self.ended {
            match conn.poll_fill(cx) {
                Poll::Ready(Ok(received)) if received > 0 => {}
                Poll::Ready(Ok(_)) if self.closed_is_gone => return Poll::Ready(()),
                Poll::Ready(Err(why)) if why.kind() != ErrorKind::OutOfMemory => return Poll::Ready(()),
                _ => break,
            }
        }
        Poll::Pending
    }

    /// Notes that the response begins. It is sent to a client that has gone too: one that only closed its side may still read.
    pub(crate) fn begin_response(&mut self) {
        if self.answered.is_none() {
            self.left = self.is_logged && self.closed_is_gone && self.client.conn.unread() == Unread::End;
            self.answered = Some(Instant::now());
        }
    }

    /// Forwards an interim response (RFC 9110 §15.2). HTTP/1.0 clients do not know them.
    pub(crate) fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: Fields<'_>) {
        if self.version == Version::Http10 {
            return;
        }
        self.expects &= status != 100;
        let mut output = Output::new();
        let mut head = encode::Head::response(output.inline(), status, reason);
        head.fields(fields, BodyFraming::None);
        head.finish();
        // A client that is gone is noticed when the final response is written.
        let _ = self.client.conn.write_output(cx, &mut output);
    }

    /// Writes `output` and waits until the client took all but `window` bytes of what is queued.
    pub(crate) async fn send(&mut self, output: &mut Output, window: usize) -> std::io::Result<()> {
        self.begin_response();
        self.client.send(output, window, self.limits, &mut self.pace_out).await
    }

    /// Gives back the client's side, with what is left of the body.
    pub(crate) fn into_body(self) -> Framer {
        self.body
    }
}
