//! Reading a response ahead of a client that is slower than the origin.

use super::fetch::OriginLink;
use crate::spool::Spool;
use crate::upload::Upload;
use sandarac_message::FieldsBuf;
use sandarac_net::{BodyStep, Timer};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A response that is read ahead of its client.
pub(super) struct Ahead {
    pub(super) spool: Spool,
    /// The time of the origin. The client's own timer measures the client meanwhile.
    timer: Timer,
    /// The end of the response, with its trailers, if that was read, or its early end.
    pub(super) ended: Option<Result<FieldsBuf, Broke>>,
}

/// The origin broke off.
pub(super) struct Broke;

impl Ahead {
    pub(super) fn new(spool: Spool) -> Ahead {
        Ahead { spool, timer: Timer::new(), ended: None }
    }

    /// Whether the response was read to its end, and all of it taken.
    pub(super) fn is_at_end(&self) -> bool {
        self.ended.is_some() && self.spool.is_empty()
    }

    /// Reads once, and returns the number of bytes; `None` once the response has ended. Pending if the origin has nothing, or if
    /// there is no room.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut OriginLink,
        between_bytes: Duration,
        upload: Upload,
    ) -> Poll<Option<u64>> {
        let Poll::Ready(memory) = self.spool.poll_reserve(cx) else {
            // It is not the origin that is waited for.
            self.timer.clear();
            return Poll::Pending;
        };
        match link.poll_body(cx) {
            Poll::Ready(Ok(BodyStep::Data(range))) => {
                self.spool.append(memory, link.piece(&range));
                link.consume(&range);
                self.timer.clear();
                return Poll::Ready(Some(range.len() as u64));
            }
            Poll::Ready(Ok(BodyStep::End(trailers))) => self.ended = Some(Ok(trailers)),
            Poll::Ready(Err(_)) => self.ended = Some(Err(Broke)),
            // While the client has more to send, the origin may be waiting for that.
            Poll::Pending if upload == Upload::AwaitsClient => return Poll::Pending,
            Poll::Pending => {
                if !self.timer.is_set() {
                    self.timer.set(between_bytes);
                }
                ready!(self.timer.poll(cx));
                self.ended = Some(Err(Broke));
            }
        }
        Poll::Ready(None)
    }
}
