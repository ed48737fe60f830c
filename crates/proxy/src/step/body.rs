//! Bodies of responses: stored ones, whole or arriving, and those that the proxy makes.

use crate::Fault;
use crate::outgoing::Part;
use crate::recode::Transform;
use crate::trailers::{TrailerRule, for_client};
use sandarac_cache::{Broken, Object, Reader};
use sandarac_message::hop::is_event_stream;
use sandarac_message::recoding::{Uncompressed, recode_trailers};
use sandarac_message::{FieldsBuf, Piece};
use sandarac_net::{Body, BodyBroken, Held, Holder};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a response from the store.
pub(crate) enum ObjectBody {
    /// A range of a whole body.
    Whole { object: Arc<Object>, range: Range<u64> },
    /// Several ranges of a whole body, and the texts between them.
    Parts { object: Arc<Object>, parts: VecDeque<Part> },
    /// A range of an arriving body.
    Arriving(ArrivingBody),
    /// A page with its fragments.
    Assembled(Box<dyn Body>),
    /// One of these in another coding.
    Recoded(Box<RecodedBody>),
}

/// A range of an arriving body.
pub(crate) struct ArrivingBody {
    reader: Reader,
    range: Range<u64>,
    /// Which trailers are forwarded.
    rule: Option<TrailerRule>,
}

impl ArrivingBody {
    /// `range` of the body of `reader`; to its end if the range ends at `u64::MAX`.
    pub(crate) fn new(reader: Reader, range: Range<u64>, rule: Option<TrailerRule>) -> ArrivingBody {
        ArrivingBody { reader, range, rule }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        while !self.range.is_empty() {
            let at = self.reader.position();
            let chunk = match ready!(self.reader.poll_chunk(cx)) {
                Some(Ok(chunk)) => chunk,
                Some(Err(Broken::TooSlow)) => return Poll::Ready(Some(Err(BodyBroken::ClientSlow))),
                Some(Err(Broken::Aborted)) => return Poll::Ready(Some(Err(BodyBroken::Source))),
                None if self.range.end == u64::MAX => return Poll::Ready(None),
                None => return Poll::Ready(Some(Err(BodyBroken::Source))),
            };
            let len = chunk.len() as u64;
            let from = self.range.start.saturating_sub(at).min(len);
            let end = self.range.end.saturating_sub(at).min(len);
            if from < end {
                self.range.start = at + end;
                return Poll::Ready(Some(Ok(chunk.slice(from as usize..end as usize))));
            }
        }
        Poll::Ready(None)
    }
}

/// A body that is recoded as it is sent.
pub(crate) struct RecodedBody {
    body: ObjectBody,
    transform: Transform,
    /// What was recoded before the response began.
    first: Option<Piece>,
    ended: bool,
    /// The holder for whom it is made.
    holder: Holder,
}

impl RecodedBody {
    /// A body that is recoded by `transform`.
    pub(crate) fn new(body: ObjectBody, transform: Transform, holder: &Holder) -> RecodedBody {
        RecodedBody { body, transform, first: None, ended: false, holder: holder.clone() }
    }

    /// Ready once the first block is recoded, so that a body that is not in its coding can still be answered
    /// by a fault.
    ///
    /// # Errors
    /// The body fails before it yields anything.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.first = ready!(self.poll_out(cx))?;
        Poll::Ready(Ok(()))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.poll_out(cx).map(|out| match out {
            Ok(piece) => piece.map(Ok),
            Err(Unread::Broken(broken)) => Some(Err(broken)),
            Err(Unread::Uncoded(_)) => Some(Err(BodyBroken::Source)),
        })
    }

    /// The next piece that the transform yields. What it holds back is flushed when the body pauses.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Unread>> {
        while !self.ended {
            let out = if self.transform.has_more() {
                self.transform.more()
            } else {
                match self.body.poll_piece(cx) {
                    Poll::Ready(Some(Ok(piece))) => self.transform.push(piece.bytes().unwrap_or_default()),
                    Poll::Ready(Some(Err(broken))) => return Poll::Ready(Err(Unread::Broken(broken))),
                    Poll::Ready(None) => {
                        self.ended = true;
                        self.transform.finish()
                    }
                    Poll::Pending => match self.transform.flush() {
                        Ok(out) if out.is_empty() => return Poll::Pending,
                        flushed => flushed,
                    },
                }
            };
            match out {
                Ok(out) if out.is_empty() => {}
                Ok(out) => {
                    let out = self.holder.keep(Held::Responses, out.into_boxed_slice());
                    return Poll::Ready(Ok(Some(out.into())));
                }
                Err(reason) => return Poll::Ready(Err(Unread::Uncoded(reason))),
            }
        }
        Poll::Ready(Ok(None))
    }
}

/// Why a body that is recoded has no more pieces.
enum Unread {
    /// It broke off.
    Broken(BodyBroken),
    /// It is not in its coding.
    Uncoded(Uncompressed),
}

impl From<Unread> for Fault {
    /// The fault before any of it was sent.
    fn from(unread: Unread) -> Fault {
        match unread {
            Unread::Broken(_) => Fault::ResponseBroken,
            Unread::Uncoded(reason) => Transform::fault(reason),
        }
    }
}

impl Body for ObjectBody {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        match self {
            ObjectBody::Whole { object, range } => Poll::Ready(next(object, range).map(Ok)),
            ObjectBody::Parts { object, parts } => loop {
                match parts.front_mut() {
                    Some(Part::Range(range)) => {
                        if let Some(piece) = next(object, range) {
                            return Poll::Ready(Some(Ok(piece)));
                        }
                        parts.pop_front();
                    }
                    Some(Part::Text(text)) => {
                        let text = std::mem::take(text);
                        parts.pop_front();
                        return Poll::Ready(Some(Ok(text.into())));
                    }
                    None => return Poll::Ready(None),
                }
            },
            ObjectBody::Arriving(arriving) => arriving.poll_piece(cx),
            ObjectBody::Assembled(assembly) => assembly.poll_piece(cx),
            ObjectBody::Recoded(recoded) => recoded.poll_piece(cx),
        }
    }

    fn poll_holds_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            ObjectBody::Arriving(ArrivingBody { reader, .. })
                if !is_event_stream(reader.object().head().shown()) =>
            {
                reader.poll_streams(cx)
            }
            // Others wait for the memory of a decoder, of which there is little.
            ObjectBody::Recoded(recoded) if recoded.transform.decodes() => Poll::Ready(()),
            ObjectBody::Recoded(recoded) => recoded.body.poll_holds_up(cx),
            _ => Poll::Pending,
        }
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        match self {
            ObjectBody::Arriving(ArrivingBody { reader, rule, .. }) => {
                Some(for_client(reader.object().trailers()?, rule.as_ref()))
            }
            ObjectBody::Recoded(recoded) => {
                let mut trailers = recoded.body.trailers()?;
                recode_trailers(&mut trailers);
                Some(trailers)
            }
            ObjectBody::Whole { .. } | ObjectBody::Parts { .. } | ObjectBody::Assembled(_) => None,
        }
    }
}

/// The next piece of a whole body in `range`, whose start is advanced.
fn next(object: &Object, range: &mut Range<u64>) -> Option<Piece> {
    if range.is_empty() {
        return None;
    }
    let piece = object.body().slice(range.clone()).next()?;
    range.start += piece.len() as u64;
    Some(piece)
}
