//! Sending a body to a client. If a slow client would hold up others, the body is read ahead of it.

use crate::core::Core;
use crate::spool::{MAX_APPENDED, Spool};
use crate::{Counter, Counters};
use sandarac_message::{FieldsBuf, Piece};
use sandarac_net::{Body, BodyBroken, Client};
use std::io;
use std::task::{Context, Poll, ready};

/// How far an origin is read ahead of a slow client that has no spool, in bytes.
pub(crate) const WINDOW: usize = 1 << 20;

/// The same for a client behind a spool or the store, which hold the rest, and count it.
pub(crate) const SPOOLED_WINDOW: usize = 64 << 10;

/// How the sending of a body ended.
#[derive(Debug)]
pub(crate) enum SendEnd {
    /// All of it is written or queued.
    Whole,
    /// Its source broke off, or the client held up others.
    Broken(BodyBroken),
    /// The client has left, or is too slow.
    ClientGone(io::Error),
}

impl SendEnd {
    /// Counts an early end.
    pub(crate) fn count(&self, counters: &Counters) {
        match self {
            SendEnd::Whole => {}
            SendEnd::Broken(BodyBroken::Source) => counters.one(Counter::BodiesTruncated),
            SendEnd::Broken(BodyBroken::ClientSlow) => counters.one(Counter::ClientsSlow),
            SendEnd::ClientGone(_) if self.is_of_file() => counters.one(Counter::BodiesTruncated),
            SendEnd::ClientGone(error) => counters.cut_off(error),
        }
    }

    /// Whether a file became shorter while it was sent, or could not be read.
    pub(crate) fn is_of_file(&self) -> bool {
        matches!(self, SendEnd::ClientGone(error) if error.kind() == io::ErrorKind::WriteZero)
    }
}

/// A body on its way to a client.
pub(crate) struct Sending<B> {
    /// Kept while the client has not taken most of what was read of it, so that the store knows who holds an
    /// object; `None` once the rest of it is in the spool.
    body: Option<B>,
    /// How it ended.
    ended: Option<Result<Option<FieldsBuf>, BodyBroken>>,
    /// What was read ahead of the client.
    spool: Option<Box<Spool>>,
    /// What follows that, of a long piece.
    rest: Option<Piece>,
    /// Whether anything was read ahead.
    is_spooled: bool,
    /// Bytes of the body that are written or queued.
    pub(crate) bytes: u64,
}

impl<B: Body> Sending<B> {
    pub(crate) fn new(body: Option<B>) -> Sending<B> {
        let ended = if body.is_none() { Some(Ok(None)) } else { None };
        Sending { body, ended, spool: None, rest: None, is_spooled: false, bytes: 0 }
    }

    /// Ready at the end. At most `read_ahead` bytes are read ahead of the client.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn Client,
        core: &Core,
        read_ahead: u64,
    ) -> Poll<io::Result<SendEnd>> {
        loop {
            let is_at_end = self.is_at_end();
            if is_at_end && self.spool.is_none() && matches!(self.ended, Some(Err(_))) {
                return Poll::Ready(self.end(cx, client));
            }
            // The last of it leaves the spool only once the client has it.
            let window = if is_at_end && self.spool.is_some() { 0 } else { SPOOLED_WINDOW };
            match client.poll_room(cx, window) {
                Poll::Ready(room) => {
                    room?;
                    if is_at_end {
                        return Poll::Ready(self.end(cx, client));
                    }
                    if let Some(piece) = ready!(self.poll_piece(cx, client)?) {
                        self.bytes += piece.len() as u64;
                        client.share(cx, piece)?;
                    }
                }
                Poll::Pending => ready!(self.poll_read_ahead(cx, client, core, read_ahead)),
            }
        }
    }

    /// Whether nothing is left to be handed to the client.
    fn is_at_end(&self) -> bool {
        self.ended.is_some()
            && self.rest.is_none()
            && self.spool.as_ref().is_none_or(|spool| spool.is_empty())
    }

    /// The next piece for the client.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn Client,
    ) -> Poll<io::Result<Option<Piece>>> {
        if let Some(spool) = &mut self.spool {
            if let Some(piece) = ready!(spool.poll_next(cx)) {
                return Poll::Ready(Ok(Some(piece)));
            }
            let is_lost = spool.is_lost();
            // The client is as fast as the source again, or has all.
            self.spool = None;
            if is_lost {
                self.has_ended(Err(BodyBroken::Source));
            }
        }
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Ok(Some(rest)));
        }
        if self.ended.is_some() {
            return Poll::Ready(Ok(None));
        }
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(None)) };
        match body.poll_piece(cx) {
            Poll::Ready(Some(Ok(piece))) => Poll::Ready(Ok(Some(piece))),
            Poll::Ready(Some(Err(broken))) => {
                self.has_ended(Err(broken));
                Poll::Ready(Ok(None))
            }
            Poll::Ready(None) => {
                let trailers = body.trailers();
                self.has_ended(Ok(trailers));
                Poll::Ready(Ok(None))
            }
            Poll::Pending => {
                client.send_begun(cx)?;
                Poll::Pending
            }
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, client: &mut dyn Client) -> io::Result<SendEnd> {
        match self.ended.take() {
            Some(Err(broken)) => {
                client.send_begun(cx)?;
                Ok(SendEnd::Broken(broken))
            }
            trailers => {
                let trailers = trailers.and_then(Result::ok).flatten().unwrap_or_default();
                client.end(cx, trailers.view())?;
                Ok(SendEnd::Whole)
            }
        }
    }

    /// Reads more than the client takes now, if it would hold up others.
    fn poll_read_ahead(
        &mut self,
        cx: &mut Context<'_>,
        client: &dyn Client,
        core: &Core,
        limit: u64,
    ) -> Poll<()> {
        let is_read = self.ended.is_some();
        let Some(body) = self.body.as_mut().filter(|_| limit > 0 && !is_read) else {
            if let Some(spool) = &mut self.spool {
                let _ = spool.poll_closed(cx);
            }
            return Poll::Pending;
        };
        let spool = match &mut self.spool {
            Some(spool) => spool,
            None => {
                ready!(body.poll_holds_up(cx));
                if !std::mem::replace(&mut self.is_spooled, true) {
                    core.counters.one(Counter::ResponsesSpooled);
                }
                self.spool.insert(Box::new(Spool::of_response(&core.shared, &client.peer().holder, limit)))
            }
        };
        let memory = ready!(spool.poll_reserve(cx));
        let piece = match self.rest.take() {
            Some(rest) => Some(Ok(rest)),
            None => ready!(body.poll_piece(cx)),
        };
        match piece {
            Some(Ok(mut piece)) => {
                let now = piece.slice(0..piece.len().min(MAX_APPENDED));
                spool.append(memory, now.bytes().expect("a body that arrives is in memory"));
                piece.advance(now.len());
                self.rest = Some(piece).filter(|rest| !rest.is_empty());
            }
            Some(Err(broken)) => self.has_ended(Err(broken)),
            None => {
                let trailers = body.trailers();
                self.has_ended(Ok(trailers));
            }
        }
        Poll::Ready(())
    }

    /// Lets go of the body, and of the object that it may be of, where the spool has what the client did not
    /// take.
    fn has_ended(&mut self, ended: Result<Option<FieldsBuf>, BodyBroken>) {
        self.ended = Some(ended);
        if self.spool.is_some() {
            self.body = None;
        }
    }
}
