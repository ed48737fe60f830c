//! Deliver, for what is not stored: the response goes from the origin to the client as it comes.

use crate::downstream::{Downstream, Upload};
use crate::exchange::Exchange;
use crate::step::fetch::{OriginLink, OriginResponse};
use crate::trailers::{TrailerRule, end_response};
use crate::{Counter, Counters, Fault};
use sandarac_message::FieldsBuf;
use sandarac_net::{BodyStep, COPIED, Conn};
use sandarac_wire::h1::encode;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use std::time::Duration;

/// How a body goes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As it is: its length was announced, or it ends with the connection.
    Plain,
    /// In chunks.
    Chunked,
}

impl Encoding {
    /// Writes `data`, after `head` where there is one.
    pub(crate) fn write(
        self,
        cx: &mut Context<'_>,
        client: &mut Conn,
        mut head: Vec<u8>,
        data: &[u8],
    ) -> io::Result<()> {
        if self == Encoding::Chunked {
            encode::chunk_size(&mut head, data.len());
        }
        let end = if self == Encoding::Chunked { encode::CRLF } else { b"" };
        if data.len() <= COPIED && !head.is_empty() {
            head.extend_from_slice(data);
            head.extend_from_slice(end);
            return client.write(cx, &[IoSlice::new(&head)]);
        }
        let slices = [IoSlice::new(&head), IoSlice::new(data), IoSlice::new(end)];
        let from = usize::from(head.is_empty());
        let to = if end.is_empty() { 2 } else { 3 };
        client.write(cx, &slices[from..to])
    }

    /// What ends the body.
    fn end(self, head: Vec<u8>, trailers: &FieldsBuf, rule: Option<&TrailerRule>) -> Vec<u8> {
        let mut end = head;
        if self == Encoding::Chunked {
            end_response(&mut end, trailers, rule);
        }
        end
    }
}

/// How a relay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relayed {
    /// All of it is written or queued.
    Whole,
    /// The origin broke off, or was too slow, after the head was sent: the client can only be told by closing.
    OriginBroke,
    /// The client is gone, or too slow.
    ClientGone,
    /// The request body came to grief on the client's side, and the origin had no more to say without the rest of it.
    UploadBroke(Fault),
}

/// A response on its way from the origin to the client.
pub(crate) struct Relay<'r, 'c> {
    pub(crate) exchange: &'r Exchange<'r>,
    pub(crate) downstream: &'r mut Downstream<'c>,
    /// The encoded head, until it is written.
    pub(crate) head: Option<Vec<u8>>,
    pub(crate) encoding: Encoding,
    /// How far the origin is read ahead of a slow client, in bytes, so that it is free again early.
    pub(crate) window: usize,
    pub(crate) between_bytes: Duration,
    /// Bytes of the body that are written or queued.
    pub(crate) bytes: u64,
    /// How far the request body has come: an origin may answer before it has all of it.
    pub(crate) upload: Upload,
}

impl Relay<'_, '_> {
    /// Sends the head, then the body. What is left of the request body goes on being passed up meanwhile. An error
    /// means that nothing was sent yet. Says how it ended, and how many bytes of the body went on.
    pub(crate) async fn run(mut self, mut arrived: Box<OriginResponse>) -> Result<(Relayed, u64), Fault> {
        self.downstream.begin_response();
        // What is left of the time for the head is not the time for the body.
        self.downstream.client.timer.clear();
        let relayed = poll_fn(|cx| self.poll(cx, &mut arrived.link)).await;
        let link = arrived.link;
        match relayed {
            Ok(Relayed::Whole) if self.downstream.is_uploaded() => link.finish(),
            // A backend that has not got all of the request sees that by the end of the connection.
            Ok(Relayed::Whole | Relayed::ClientGone | Relayed::UploadBroke(_)) => link.close(),
            Ok(Relayed::OriginBroke) | Err(_) => {
                self.counters().one(Counter::BodiesTruncated);
                link.broken();
            }
        }
        relayed.map(|relayed| (relayed, self.bytes))
    }

    fn counters(&self) -> &Counters {
        &self.exchange.worker.counters
    }

    /// The head, where the response begins now.
    fn begin(&mut self) -> Option<Vec<u8>> {
        let head = self.head.take()?;
        self.exchange.count(None);
        Some(head)
    }

    fn poll(&mut self, cx: &mut Context<'_>, link: &mut OriginLink) -> Poll<Result<Relayed, Fault>> {
        let spoiled = self.pass_up(cx, link).err();
        loop {
            match self.poll_room(cx) {
                Poll::Ready(None) => {}
                Poll::Ready(Some(gone)) => return Poll::Ready(Ok(gone)),
                Poll::Pending => return spoiled.map_or(Poll::Pending, broke),
            }
            let written = match link.poll_body(cx) {
                Poll::Ready(Ok(BodyStep::Data(range))) => {
                    self.counters().add(Counter::BytesFromOrigins, range.len() as u64);
                    self.bytes += range.len() as u64;
                    let head = self.begin().unwrap_or_default();
                    let client = &mut self.downstream.client.conn;
                    let written = self.encoding.write(cx, client, head, link.piece(&range));
                    link.consume(&range);
                    self.downstream.client.timer.clear();
                    written
                }
                Poll::Ready(Ok(BodyStep::End(trailers))) => {
                    let rule = if trailers.view().is_empty() { None } else { self.exchange.trailers() };
                    let end = self.encoding.end(self.begin().unwrap_or_default(), &trailers, rule.as_ref());
                    let client = &mut self.downstream.client.conn;
                    let written =
                        if end.is_empty() { Ok(()) } else { client.write(cx, &[IoSlice::new(&end)]) };
                    return Poll::Ready(Ok(written.map_or(Relayed::ClientGone, |()| Relayed::Whole)));
                }
                Poll::Ready(Err(_)) if self.head.is_some() => return Poll::Ready(Err(Fault::ResponseBroken)),
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(Relayed::OriginBroke)),
                Poll::Pending => {
                    let written = match self.begin() {
                        Some(head) => self.downstream.client.conn.write(cx, &[IoSlice::new(&head)]),
                        None => Ok(()),
                    };
                    if written.is_ok() {
                        return match spoiled {
                            Some(fault) => broke(fault),
                            None => self.poll_origins_time(cx).map(|()| Ok(Relayed::OriginBroke)),
                        };
                    }
                    written
                }
            };
            if written.is_err() {
                return Poll::Ready(Ok(Relayed::ClientGone));
            }
        }
    }

    /// Passes on what has arrived of the request body. An error is the client's.
    fn pass_up(&mut self, cx: &mut Context<'_>, link: &mut OriginLink) -> Result<(), Fault> {
        if self.upload == Upload::Done {
            return Ok(());
        }
        let upload = match self.downstream.upload(cx, link) {
            // An origin may answer, and stop reading, before it has the whole request.
            Err(fault) if fault.is_origins() => Upload::Done,
            upload => upload?,
        };
        if upload != self.upload {
            self.upload = upload;
            self.downstream.client.timer.clear();
        }
        Ok(())
    }

    /// Ready when the origin has been silent for too long. It may be waiting for the client as long as that is to send more.
    fn poll_origins_time(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.upload == Upload::AwaitsClient {
            return Poll::Pending;
        }
        let timer = &mut self.downstream.client.timer;
        if !timer.is_set() {
            timer.set(self.between_bytes);
        }
        timer.poll(cx)
    }

    /// Waits until the client has taken enough that more may be queued.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Option<Relayed>> {
        let Downstream { client, limits, pace_out, .. } = &mut *self.downstream;
        match std::task::ready!(client.poll_room(cx, self.window, limits, pace_out)) {
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
