//! Streams that are answered before their request has ended.

use crate::Moment;
use sandarac_wire::h2::ErrorCode;
use sandarac_wire::h2::connection::Connection;
use std::collections::VecDeque;
use std::time::Duration;

/// How long a client may go on sending after the response. Some clients read nothing until they have sent what
/// they have, and lose a response whose stream is reset by then (curl 7.88).
const MAY_SEND_ON: Duration = Duration::from_secs(1);

/// Streams whose response is written while the client is still sending the request.
#[derive(Default)]
pub(super) struct Answered {
    /// The streams and when each was answered, the first one first.
    streams: VecDeque<(u32, Moment)>,
}

impl Answered {
    /// Notes that a response is written.
    pub(super) fn add(&mut self, id: u32, wire: &Connection) {
        if wire.is_open(id) {
            // So there are never more than may be open.
            self.streams.retain(|(id, _)| wire.is_open(*id));
            self.streams.push_back((id, Moment::now()));
        }
    }

    /// Tells clients to stop that had time enough (RFC 9113 §8.1). Returns how long to wait before the next
    /// time.
    pub(super) fn stop(&mut self, wire: &mut Connection, out: &mut Vec<u8>) -> Option<Duration> {
        while let Some((id, since)) = self.streams.front() {
            let left = MAY_SEND_ON.saturating_sub(Moment::now().since(*since));
            if wire.is_open(*id) && !left.is_zero() {
                return Some(left);
            }
            wire.reset(*id, ErrorCode::NO_ERROR, out);
            self.streams.pop_front();
        }
        None
    }
}
