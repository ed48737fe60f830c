//! Frames of this side.

use super::super::code::ErrorCode;
use super::super::frame::encode;
use super::super::priority::Priority;
use super::super::settings::MAX_WINDOW;
use super::machine::{Connection, Role};
use super::stream::Half;
use sandarac_message::Method;

/// The stream is closed: it was reset, or both sides ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoStream;

impl std::fmt::Display for NoStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the stream is closed")
    }
}

impl std::error::Error for NoStream {}

/// Why a client cannot open a stream now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotOpen {
    /// The server allows no more at the same time; another may end.
    TooManyStreams,
    /// The connection is being closed.
    GoingAway,
    /// All identifiers are used up: another connection is needed.
    NoIdentifiers,
}

/// An HPACK table size update to zero (RFC 7541 §6.3): this side's encoder uses no dynamic table.
const NO_TABLE: u8 = 0x20;

impl Connection {
    /// Opens a stream for a request whose block is `block`, and returns its identifier. A client's only.
    pub fn open(
        &mut self,
        method: Method,
        block: &[u8],
        end_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32, CannotOpen> {
        debug_assert_eq!(self.role, Role::Client);
        let id = if self.highest == 0 { 1 } else { self.highest + 2 };
        if self.peer_going_away.is_some() || self.going_away.is_some() {
            return Err(CannotOpen::GoingAway);
        }
        if id > MAX_WINDOW {
            return Err(CannotOpen::NoIdentifiers);
        }
        if self.streams.len() >= self.theirs.max_concurrent_streams as usize {
            return Err(CannotOpen::TooManyStreams);
        }
        self.highest = id;
        let mut stream = self.new_stream(id, method, Half::Head);
        stream.sending = if end_stream { Half::Ended } else { Half::Body };
        self.streams.open(stream);
        self.put_block(id, block, end_stream, out);
        Ok(id)
    }

    /// Sends an interim response (RFC 9113 §8.1).
    pub fn send_interim(&mut self, id: u32, block: &[u8], out: &mut Vec<u8>) -> Result<(), NoStream> {
        let stream = self.streams.get(id).ok_or(NoStream)?;
        debug_assert_eq!(stream.sending, Half::Head);
        self.put_block(id, block, false, out);
        Ok(())
    }

    /// Sends the head of the final response.
    pub fn send_head(
        &mut self,
        id: u32,
        block: &[u8],
        end_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), NoStream> {
        let stream = self.streams.get_mut(id).ok_or(NoStream)?;
        debug_assert_eq!(stream.sending, Half::Head);
        stream.sending = if end_stream { Half::Ended } else { Half::Body };
        self.put_block(id, block, end_stream, out);
        self.close_if_ended(id);
        Ok(())
    }

    /// Sends trailers, which end the stream.
    pub fn send_trailers(&mut self, id: u32, block: &[u8], out: &mut Vec<u8>) -> Result<(), NoStream> {
        let stream = self.streams.get_mut(id).ok_or(NoStream)?;
        debug_assert_eq!(stream.sending, Half::Body);
        stream.sending = Half::Ended;
        self.put_block(id, block, true, out);
        self.close_if_ended(id);
        Ok(())
    }

    /// Bytes of data that one frame may have on this stream now.
    pub fn room(&self, id: u32) -> u32 {
        let Some(stream) = self.streams.get(id) else { return 0 };
        if stream.sending != Half::Body {
            return 0;
        }
        stream.send_window.room().min(self.send_window.room()).min(self.theirs.max_frame_size)
    }

    /// Bytes that the window of this stream lets through, whatever that of the connection does.
    pub fn stream_window(&self, id: u32) -> u32 {
        self.streams.get(id).map_or(0, |stream| stream.send_window.room())
    }

    /// Bytes that the window of the connection lets through.
    pub fn connection_window(&self) -> u32 {
        self.send_window.room()
    }

    /// Whether it is the window of this stream that keeps it from sending data.
    pub fn awaits_stream_window(&self, id: u32) -> bool {
        let is_in_body = self.streams.get(id).is_some_and(|stream| stream.sending == Half::Body);
        is_in_body && self.stream_window(id) == 0
    }

    /// Writes the header of a DATA frame; the caller MUST send exactly `len` bytes after it, at most
    /// [`Connection::room`]. An empty frame that ends the stream needs no room.
    pub fn send_data(
        &mut self,
        id: u32,
        len: u32,
        end_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), NoStream> {
        debug_assert!(len <= self.room(id) || len == 0);
        let stream = self.streams.get_mut(id).ok_or(NoStream)?;
        debug_assert_eq!(stream.sending, Half::Body);
        stream.send_window.take(len);
        self.send_window.take(len);
        if end_stream {
            stream.sending = Half::Ended;
        }
        encode::data_header(out, id, len, end_stream);
        self.budget.sent(len);
        self.close_if_ended(id);
        Ok(())
    }

    /// Resets a stream. Does nothing if it is closed.
    pub fn reset(&mut self, id: u32, code: ErrorCode, out: &mut Vec<u8>) {
        if self.streams.close(id).is_some() {
            self.streams.remember_reset(id);
            encode::reset(out, id, code);
        }
    }

    /// Returns `bytes` of received data to the windows, when the caller has used them. WINDOW_UPDATE is sent
    /// when half a window was used, so that few frames are needed.
    pub fn release(&mut self, id: u32, bytes: u32, out: &mut Vec<u8>) {
        if bytes == 0 {
            return;
        }
        if let Some(increment) = self.receive_window.release(bytes) {
            encode::window_update(out, 0, increment);
        }
        // A peer that has sent everything needs no window.
        if let Some(stream) = self.streams.get_mut(id)
            && stream.receiving != Half::Ended
            && let Some(increment) = stream.receive_window.release(bytes)
        {
            encode::window_update(out, id, increment);
        }
    }

    /// Opens the window of a stream by `bytes` for good. Does nothing if the peer has sent everything.
    pub fn widen(&mut self, id: u32, bytes: u32, out: &mut Vec<u8>) {
        if let Some(stream) = self.streams.get_mut(id)
            && stream.receiving != Half::Ended
        {
            stream.receive_window.change(bytes.into());
            encode::window_update(out, id, bytes);
        }
    }

    /// The priority of a stream (RFC 9218).
    pub fn priority(&self, id: u32) -> Priority {
        self.streams.get(id).map(|stream| stream.priority).unwrap_or_default()
    }

    /// Sends a PING; the reply is [`super::Event::Pong`].
    pub fn ping(&self, data: [u8; 8], out: &mut Vec<u8>) {
        encode::ping(out, data, false);
    }

    /// Announces that the connection will be closed, and still accepts streams that the peer opened before it
    /// knows (RFC 9113 §6.8). [`Connection::finish`] follows after a round trip, for which
    /// [`Connection::ping`] can be used.
    pub fn announce_end(&mut self, out: &mut Vec<u8>) {
        if self.going_away.is_none() {
            self.going_away = Some(MAX_WINDOW);
            encode::go_away(out, MAX_WINDOW, ErrorCode::NO_ERROR, b"");
        }
    }

    /// Accepts no more streams. Those that are open continue: see [`Connection::is_drained`].
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let last = if self.role == Role::Server { self.highest } else { 0 };
        if self.going_away.is_none_or(|before| before > last) {
            self.going_away = Some(last);
            encode::go_away(out, last, ErrorCode::NO_ERROR, b"");
        }
    }

    /// All replies that were appended to the caller's buffer so far were sent. Until then they count towards
    /// [`super::MAX_UNSENT_REPLIES`].
    pub fn replies_sent(&mut self) {
        self.unsent_replies = 0;
    }

    fn put_block(&mut self, id: u32, block: &[u8], end_stream: bool, out: &mut Vec<u8>) {
        let update: &[u8] = if std::mem::take(&mut self.table_update_due) { &[NO_TABLE] } else { &[] };
        encode::headers(out, id, update, block, end_stream, self.theirs.max_frame_size);
    }
}
