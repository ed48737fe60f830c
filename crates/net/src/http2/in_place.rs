//! Responses that are written in place, from memory.

use super::encoder;
use super::outgoing::{Outgoing, Wrote};
use super::streams::{BATCH, RESPONDING, Streams};
use crate::Output;
use crate::account::Lease;
use crate::response::{Body, Responder, Response};
use sandarac_wire::h2::{ErrorCode, Priority};
use std::task::{Context, Poll, Waker};

/// A body of at most this many bytes is written at once if no stream waits. It is one frame.
const AT_ONCE: usize = 16 * 1024;

/// The memory and the streams that a response in place is written with.
pub(super) struct Place<'p> {
    pub(super) streams: &'p mut Streams,
    pub(super) output: &'p mut Output,
    /// Memory for a header block.
    pub(super) block: &'p mut Vec<u8>,
    /// Whether the socket takes output.
    pub(super) is_open: bool,
    /// The memory of responses that wait.
    pub(super) responses: &'p mut Lease,
}

/// There was no room for a response that the client does not let through. Its stream is refused.
pub(super) struct NoRoom;

/// The progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has no body so far.
    Bodiless,
    /// Its head and its body are written or queued.
    Sent,
    /// Its stream was reset, because there was no room for it.
    Refused,
}

/// The client of one request that is answered in place.
pub(super) struct InPlace<'c, 'p> {
    place: &'c mut Place<'p>,
    id: u32,
    priority: Priority,
    stage: Stage,
}

impl<'c, 'p> InPlace<'c, 'p> {
    pub(super) fn new(place: &'c mut Place<'p>, id: u32, priority: Priority) -> InPlace<'c, 'p> {
        place.block.clear();
        InPlace { place, id, priority, stage: Stage::Bodiless }
    }

    /// Ends the response.
    ///
    /// # Errors
    /// There was no room for it.
    pub(super) fn finish(self) -> Result<(), NoRoom> {
        match self.stage {
            Stage::Bodiless => {
                let Place { streams, output, block, .. } = self.place;
                // The stream is open: its request was received just now.
                let _ = streams.wire.send_head(self.id, block, true, output.inline());
                streams.end(self.id);
            }
            Stage::Sent => {}
            Stage::Refused => return Err(NoRoom),
        }
        Ok(())
    }

    /// Whether there is room for a response with so many bytes of body. What the client lets through needs none. A client that
    /// lets a part of it through gets it, unless it holds more than a little already.
    fn has_room(&mut self, bytes: usize) -> bool {
        let Place { streams, responses, .. } = &mut *self.place;
        let window = streams.let_through(self.id) as usize;
        window >= bytes || responses.grow(RESPONDING) || window > 0 && !responses.holder().holds_some()
    }
}

impl Responder for InPlace<'_, '_> {
    fn begin(&mut self, response: Response<'_>) {
        let priority = &mut self.priority;
        encoder::response(self.place.block, &response, |value| *priority = priority.updated_by(value));
    }

    fn send(&mut self, mut body: impl Body + 'static) -> u64 {
        self.stage = Stage::Sent;
        let mut outgoing = Outgoing::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut is_whole = false;
        while let Poll::Ready(next) = body.poll_piece(&mut cx) {
            match next {
                Some(Ok(piece)) => outgoing.add(piece),
                Some(Err(_)) => break,
                None => {
                    is_whole = true;
                    break;
                }
            }
        }
        debug_assert!(is_whole, "a body is sent in place that is not ready");
        let bytes = outgoing.queued();
        if !self.has_room(bytes) {
            self.stage = Stage::Refused;
            let Place { streams, output, .. } = &mut *self.place;
            streams.wire.reset(self.id, ErrorCode::REFUSED_STREAM, output.inline());
            return 0;
        }
        let Place { streams, output, block, is_open, .. } = &mut *self.place;
        let _ = streams.wire.send_head(self.id, block, false, output.inline());
        if !is_whole {
            streams.wire.reset(self.id, ErrorCode::INTERNAL_ERROR, output.inline());
            return bytes as u64;
        }
        outgoing.end(body.trailers().map_or_else(Vec::new, |trailers| encoder::trailers(trailers.view())));
        if *is_open && bytes <= AT_ONCE && output.len() < BATCH && !streams.has_scheduled() {
            loop {
                match outgoing.write_frame(&mut streams.wire, self.id, output) {
                    Wrote::Data(_) => {}
                    Wrote::End(_) => {
                        streams.end(self.id);
                        return bytes as u64;
                    }
                    Wrote::Nothing | Wrote::Blocked | Wrote::Unread(_) => break,
                }
            }
        }
        outgoing.keep(Box::new(body));
        streams.respond(self.id, self.priority, outgoing);
        bytes as u64
    }
}
