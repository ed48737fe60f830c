//! What a stream has to send: its heads, its body as far as it is there, and its end.

use crate::Output;
use crate::response::Body;
use sandarac_message::Piece;
use sandarac_wire::h2::frame::{self, END_STREAM};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// What a stream has to send.
#[derive(Default)]
pub(super) struct Outgoing {
    /// HEADERS and CONTINUATION frames that come before the body.
    heads: Vec<u8>,
    /// Where the last HEADERS frame begins in `heads`, which ends the stream if nothing follows.
    last_head: usize,
    body: Source,
    /// Bytes of the body that are there.
    queued: usize,
    /// Whether the body ends after what is there, and the frames of its trailers, or none.
    end: Option<Vec<u8>>,
    /// Whether the end was written.
    ended: bool,
}

/// Where the body comes from.
#[derive(Default)]
enum Source {
    #[default]
    None,
    /// An exchange adds pieces.
    Pieces(VecDeque<Piece>),
    /// It is ready to its end, and its pieces are taken when they can be sent.
    Ready(Box<dyn Body>, Option<Piece>),
}

/// How far a stream has come with what it had to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its end is written.
    Ended,
    /// There is more to send, and no room for it.
    More,
    /// All is written that is there.
    Written,
    /// Its body broke off.
    Broken,
}

impl Outgoing {
    /// The frames of heads, to which another is appended.
    pub(super) fn heads(&mut self) -> &mut Vec<u8> {
        self.last_head = self.heads.len();
        &mut self.heads
    }

    /// Adds a piece of the body.
    pub(super) fn add(&mut self, piece: Piece) {
        self.queued += piece.len();
        match &mut self.body {
            Source::Pieces(pieces) => pieces.push_back(piece),
            source => *source = Source::Pieces(VecDeque::from([piece])),
        }
    }

    /// The body is this one, which is ready to its end.
    pub(super) fn is(&mut self, body: Box<dyn Body>) {
        self.body = Source::Ready(body, None);
    }

    /// The body ends after what is there. `trailers` are the frames of its trailers, if it has some.
    pub(super) fn end(&mut self, trailers: Vec<u8>) {
        self.end = Some(trailers);
    }

    /// Bytes of the body that were added and are not written.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether it has something to send, if there is room.
    pub(super) fn has_more(&self) -> bool {
        !self.ended
            && (!self.heads.is_empty()
                || self.queued > 0
                || self.end.is_some()
                || matches!(self.body, Source::Ready(..)))
    }

    /// Whether only the windows of flow control keep it from sending.
    pub(super) fn awaits_window(&self) -> bool {
        self.heads.is_empty() && self.has_more()
    }

    /// Whether the end was written.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Writes what there is, with at most `room` bytes of body in frames of at most `max_frame` bytes. Returns the bytes of body that
    /// were written, all of which count for flow control.
    pub(super) fn write(
        &mut self,
        output: &mut Output,
        stream: u32,
        room: usize,
        max_frame: usize,
        trailers: impl FnOnce(&dyn Body) -> Vec<u8>,
    ) -> (usize, Progress) {
        debug_assert!(!self.ended, "nothing is written after the end");
        let mut written = 0;
        let mut trailers = Some(trailers);
        loop {
            let piece = match self.next_piece(&mut trailers) {
                Ok(piece) => piece,
                Err(()) => return (written, Progress::Broken),
            };
            let Some(piece) = piece else { break };
            if written == room {
                self.put_back(piece);
                self.write_heads(output);
                return (written, Progress::More);
            }
            self.write_heads(output);
            let len = piece.len().min(room - written).min(max_frame);
            let is_last = len == piece.len() && self.is_at_end(&mut trailers);
            let flags = if is_last { END_STREAM } else { 0 };
            frame::put_header(output.inline(), len, frame::Kind::Data, flags, stream);
            written += len;
            if len < piece.len() {
                output.share(piece.slice(0..len));
                let mut rest = piece;
                rest.advance(len);
                self.put_back(rest);
            } else {
                output.share(piece);
            }
            if is_last {
                self.ended = true;
                return (written, Progress::Ended);
            }
        }
        match self.end.take() {
            None => {
                self.write_heads(output);
                (written, Progress::Written)
            }
            Some(trailers) => {
                if trailers.is_empty() && !self.heads.is_empty() {
                    frame::set_flag(&mut self.heads[self.last_head..], END_STREAM);
                }
                let has_head = !self.heads.is_empty();
                self.write_heads(output);
                if !trailers.is_empty() {
                    output.inline().extend_from_slice(&trailers);
                } else if !has_head {
                    frame::put_header(output.inline(), 0, frame::Kind::Data, END_STREAM, stream);
                }
                self.ended = true;
                (written, Progress::Ended)
            }
        }
    }

    fn write_heads(&mut self, output: &mut Output) {
        output.inline().extend_from_slice(&std::mem::take(&mut self.heads));
    }

    /// The next piece of the body that is there. Notes the end of a body that is ready to its end.
    fn next_piece(
        &mut self,
        trailers: &mut Option<impl FnOnce(&dyn Body) -> Vec<u8>>,
    ) -> Result<Option<Piece>, ()> {
        match &mut self.body {
            Source::None => Ok(None),
            Source::Pieces(pieces) => {
                let piece = pieces.pop_front();
                self.queued -= piece.as_ref().map_or(0, Piece::len);
                Ok(piece)
            }
            Source::Ready(_, kept @ Some(_)) => Ok(kept.take()),
            Source::Ready(body, None) => match body.poll_piece(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(piece))) => Ok(Some(piece)),
                Poll::Ready(None) => {
                    self.end = Some(trailers.take().map_or_else(Vec::new, |encode| encode(&**body)));
                    self.body = Source::None;
                    Ok(None)
                }
                Poll::Ready(Some(Err(_))) => Err(()),
                Poll::Pending => {
                    debug_assert!(false, "a body is sent in place that is not ready");
                    Err(())
                }
            },
        }
    }

    /// Whether the body has ended with the piece that was taken last, and no trailers follow.
    fn is_at_end(&mut self, trailers: &mut Option<impl FnOnce(&dyn Body) -> Vec<u8>>) -> bool {
        if matches!(self.body, Source::Ready(_, None)) {
            match self.next_piece(trailers) {
                Ok(Some(piece)) => self.put_back(piece),
                Ok(None) => {}
                // Found again, and told, by the next step.
                Err(()) => return false,
            }
        }
        let is_over = match &self.body {
            Source::None => true,
            Source::Pieces(pieces) => pieces.is_empty(),
            Source::Ready(..) => false,
        };
        is_over && self.end.as_ref().is_some_and(Vec::is_empty)
    }

    fn put_back(&mut self, piece: Piece) {
        match &mut self.body {
            Source::Pieces(pieces) => {
                self.queued += piece.len();
                pieces.push_front(piece);
            }
            Source::Ready(_, kept) => *kept = Some(piece),
            Source::None => self.add(piece),
        }
    }
}
