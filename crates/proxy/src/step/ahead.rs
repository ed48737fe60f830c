//! Reading a response ahead of a client that is slower than the origin.

use super::fetch::OriginLink;
use crate::Fault;
use crate::downstream::upload::Upload;
use crate::recode::Transform;
use crate::spool::{MAX_APPENDED, Spool};
use bytes::Bytes;
use sandarac_message::FieldsBuf;
use sandarac_net::{BodyStep, Timer};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A response that is read ahead of its client.
pub(super) struct Ahead {
    pub(super) spool: Spool,
    /// The time of the origin. The client's own timer measures the client meanwhile.
    timer: Timer,
    /// The body in the coding that the client gets, as far as the spool does not have it yet.
    coded: Bytes,
    /// The trailers, once the end was read.
    trailers: Option<FieldsBuf>,
    /// The end of the response, with its trailers, if that was read and spooled, or its early end.
    pub(super) ended: Option<Result<FieldsBuf, Fault>>,
}

impl Ahead {
    pub(super) fn new(spool: Spool) -> Ahead {
        Ahead { spool, timer: Timer::new(), coded: Bytes::new(), trailers: None, ended: None }
    }

    /// Whether the response was read to its end, and all of it taken.
    pub(super) fn is_at_end(&self) -> bool {
        self.ended.is_some() && self.spool.is_empty()
    }

    /// Whether more of what was read is to go into the spool.
    pub(super) fn holds_back(&self) -> bool {
        self.ended.is_none() && (!self.coded.is_empty() || self.trailers.is_some())
    }

    /// Reads once, and notes the end of the response. Pending if the origin has nothing, or if there is no
    /// room.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut OriginLink,
        mut transform: Option<&mut Transform>,
        between_bytes: Duration,
        upload: Upload,
    ) -> Poll<()> {
        let Poll::Ready(memory) = self.spool.poll_reserve(cx) else {
            // It is not the origin that is waited for.
            self.timer.clear();
            return Poll::Pending;
        };
        if !self.coded.is_empty() {
            let part = self.coded.split_to(self.coded.len().min(MAX_APPENDED));
            self.spool.append(memory, &part);
            return Poll::Ready(());
        }
        if let Some(transform) = transform.as_deref_mut().filter(|transform| transform.has_more()) {
            match transform.more() {
                Ok(coded) => self.coded = coded.into(),
                Err(reason) => {
                    self.ended = Some(Err(Transform::fault(reason)));
                    return Poll::Ready(());
                }
            }
            return Poll::Ready(());
        }
        if let Some(trailers) = self.trailers.take() {
            self.ended = Some(Ok(trailers));
            return Poll::Ready(());
        }
        match link.poll_body(cx) {
            Poll::Ready(Ok(BodyStep::Data(range))) => {
                match transform.map(|transform| transform.push(link.piece(&range))) {
                    None => self.spool.append(memory, link.piece(&range)),
                    Some(Ok(coded)) => self.coded = coded.into(),
                    Some(Err(reason)) => {
                        self.ended = Some(Err(Transform::fault(reason)));
                        return Poll::Ready(());
                    }
                }
                link.consume(&range);
                self.timer.clear();
                return Poll::Ready(());
            }
            Poll::Ready(Ok(BodyStep::End(trailers))) => match transform.map(Transform::finish) {
                None => self.ended = Some(Ok(trailers)),
                Some(Ok(coded)) => {
                    self.coded = coded.into();
                    self.trailers = Some(trailers);
                    return Poll::Ready(());
                }
                Some(Err(reason)) => self.ended = Some(Err(Transform::fault(reason))),
            },
            Poll::Ready(Err(_)) => self.ended = Some(Err(Fault::ResponseBroken)),
            // While the client has more to send, the origin may be waiting for that.
            Poll::Pending if upload == Upload::AwaitsClient => return Poll::Pending,
            Poll::Pending => {
                if !self.timer.is_set() {
                    self.timer.set(between_bytes);
                }
                ready!(self.timer.poll(cx));
                self.ended = Some(Err(Fault::ResponseLate));
            }
        }
        Poll::Ready(())
    }
}
