//! A client of HTTP/2 at the level of frames.

use std::collections::HashMap;
use std::io;

use crate::message::latin1;
use crate::{Address, Conn, Response, Trouble, hpack};

/// SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2).
pub const INITIAL_WINDOW: u16 = 4;

/// Frame types (RFC 9113 §6, RFC 9218 §7.1).
pub mod kind {
    #![allow(missing_docs, reason = "these are the names of RFC 9113")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// The flags END_STREAM of DATA and HEADERS, and ACK of SETTINGS and PING.
pub const END_STREAM: u8 = 1;
/// The flag of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The payload's number at this place, of four bytes.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

/// How a connection, or a stream, ended without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// RST_STREAM, with its code.
    Reset(u32),
    /// GOAWAY with a code other than NO_ERROR: the code, and the text in it.
    GoAway(u32, String),
    /// The end of the connection.
    Closed,
    /// Silence, for longer than the connection is waited for.
    TimedOut,
    /// What came is not HTTP/2.
    Malformed(String),
}

/// A connection that speaks HTTP/2.
pub struct Http2 {
    conn: Conn,
    next: u32,
    /// Whether windows are given back as data comes.
    pub gives_windows: bool,
    /// Frames other than those of responses, as they came.
    pub others: Vec<Frame>,
    /// Responses that have begun.
    open: HashMap<u32, Response>,
    /// Responses and streams that have ended.
    done: HashMap<u32, Result<Response, Ended>>,
    /// The header block that has begun, and whether it ends its stream.
    block: (bool, Vec<u8>),
    /// The streams of the frames of data, in order, with their lengths.
    pub order: Vec<(u32, usize)>,
}

impl Http2 {
    /// Connects to `address`, in clear and with prior knowledge.
    #[track_caller]
    pub fn to(address: &Address) -> Http2 {
        Http2::over(Conn::to(address), &[])
    }

    /// Begins HTTP/2 on a connection, with these settings.
    #[track_caller]
    pub fn over(conn: Conn, settings: &[(u16, u32)]) -> Http2 {
        Http2::try_over(conn, settings).unwrap_or_else(|error| panic!("cannot send: {error}"))
    }

    /// The same, if the connection takes it.
    pub fn try_over(conn: Conn, settings: &[(u16, u32)]) -> io::Result<Http2> {
        let mut http2 = Http2 {
            conn,
            next: 1,
            gives_windows: true,
            others: Vec::new(),
            open: HashMap::new(),
            done: HashMap::new(),
            block: (false, Vec::new()),
            order: Vec::new(),
        };
        let parameters =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let first = self::frame(kind::SETTINGS, 0, 0, parameters.collect::<Vec<u8>>());
        http2.try_send([&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &first].concat())?;
        Ok(http2)
    }

    /// Sends a frame.
    #[track_caller]
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> &mut Http2 {
        self.conn.send(frame(kind, flags, stream, payload));
        self
    }

    /// Sends these bytes, if the connection still takes them.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.conn.try_send(bytes)
    }

    /// Sends a head on a new stream, and returns the stream. `ends` is whether it ends the request.
    #[track_caller]
    pub fn head(&mut self, fields: &[(&str, &str)], ends: bool) -> u32 {
        let stream = self.next;
        self.next += 2;
        let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flags, stream, hpack::encode(fields));
        stream
    }

    /// The bytes of a request on a new stream, and the stream.
    pub fn request<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        fields: &[(N, V)],
        body: &[u8],
    ) -> (u32, Vec<u8>) {
        let stream = self.next;
        self.next += 2;
        let flags = END_HEADERS | if body.is_empty() { END_STREAM } else { 0 };
        let mut bytes = self::frame(kind::HEADERS, flags, stream, hpack::encode(fields));
        if !body.is_empty() {
            bytes.extend(self::frame(kind::DATA, END_STREAM, stream, body));
        }
        (stream, bytes)
    }

    /// What has come of the response on a stream that has not ended.
    pub fn take_partial(&mut self, stream: u32) -> Option<Response> {
        self.open.remove(&stream)
    }

    /// Sends a GET without a body, with these fields after the usual ones.
    #[track_caller]
    pub fn get(&mut self, path: &str, fields: &[(&str, &str)]) -> u32 {
        self.head(&[&usual("GET", path)[..], fields].concat(), true)
    }

    /// Sends the head of a POST.
    #[track_caller]
    pub fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> u32 {
        self.head(&[&usual("POST", path)[..], fields].concat(), false)
    }

    /// Sends data.
    #[track_caller]
    pub fn data(&mut self, stream: u32, data: impl AsRef<[u8]>, ends: bool) -> &mut Http2 {
        self.frame(kind::DATA, if ends { END_STREAM } else { 0 }, stream, data)
    }

    /// Sends trailers.
    #[track_caller]
    pub fn trailers(&mut self, stream: u32, fields: &[(&str, &str)]) -> &mut Http2 {
        self.frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, hpack::encode(fields))
    }

    /// Resets a stream with CANCEL.
    #[track_caller]
    pub fn reset(&mut self, stream: u32) -> &mut Http2 {
        self.frame(kind::RST_STREAM, 0, stream, 8u32.to_be_bytes())
    }

    /// Opens the window of a stream, or of the connection if `stream` is 0.
    #[track_caller]
    pub fn window(&mut self, stream: u32, increment: u32) -> &mut Http2 {
        self.frame(kind::WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
    }

    /// Reads the next frame.
    pub fn next_frame(&mut self) -> Result<Frame, Trouble> {
        let head = self.conn.try_read(9)?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = if len == 0 { Vec::new() } else { self.conn.try_read(len)? };
        let stream = u32::from_be_bytes(head[5..9].try_into().expect("four bytes"));
        Ok(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The response on a stream.
    ///
    /// # Panics
    /// If the stream or the connection ends without one.
    #[track_caller]
    pub fn response(&mut self, stream: u32) -> Response {
        self.outcome(stream).unwrap_or_else(|ended| panic!("no response on stream {stream}: {ended:?}"))
    }

    /// The response on a stream, or how the stream ended.
    #[track_caller]
    pub fn outcome(&mut self, stream: u32) -> Result<Response, Ended> {
        loop {
            if let Some(done) = self.done.remove(&stream) {
                return done;
            }
            self.step()?;
        }
    }

    /// Whether a stream has ended, as far as was read.
    pub fn has_ended(&self, stream: u32) -> bool {
        self.done.contains_key(&stream)
    }

    /// Reads until a response has begun: its head, and what of its body has come.
    #[track_caller]
    pub fn begun(&mut self, stream: u32) -> &Response {
        while !self.open.contains_key(&stream) || self.open[&stream].status == 0 {
            if let Err(ended) = self.step() {
                panic!("no response on stream {stream}: {ended:?}");
            }
        }
        &self.open[&stream]
    }

    /// Reads until an interim response has come.
    #[track_caller]
    pub fn begun_interim(&mut self, stream: u32) -> &Response {
        while self.open.get(&stream).is_none_or(|response| response.interim.is_empty()) {
            if let Err(ended) = self.step() {
                panic!("no interim response on stream {stream}: {ended:?}");
            }
        }
        &self.open[&stream].interim[0]
    }

    /// Reads until the connection ends, and returns how.
    #[track_caller]
    pub fn end(&mut self) -> Ended {
        loop {
            if let Err(ended) = self.step() {
                return ended;
            }
        }
    }

    /// Reads until a frame of this type comes, and returns it.
    #[track_caller]
    pub fn await_frame(&mut self, kind: u8) -> Frame {
        loop {
            if let Some(at) = self.others.iter().position(|frame| frame.kind == kind) {
                return self.others.remove(at);
            }
            if let Err(ended) = self.step() {
                panic!("no frame of type {kind}: {ended:?}");
            }
        }
    }

    /// Waits until everything that was sent is handled: for the reply to a PING.
    #[track_caller]
    pub fn settle(&mut self) -> &mut Http2 {
        self.frame(kind::PING, 0, 0, *b"settled?");
        while self.await_frame(kind::PING).payload != *b"settled?" {}
        self
    }

    /// Reads and handles one frame. Fails if the connection has ended, or nothing comes.
    pub fn step(&mut self) -> Result<(), Ended> {
        let frame = match self.next_frame() {
            Ok(frame) => frame,
            Err(Trouble::Closed(_) | Trouble::Reset(_)) => return Err(Ended::Closed),
            Err(Trouble::TimedOut) => return Err(Ended::TimedOut),
            Err(Trouble::Malformed(what)) => return Err(Ended::Malformed(what)),
        };
        let Frame { kind, flags, stream, ref payload } = frame;
        let ends = flags & END_STREAM != 0;
        match kind {
            kind::HEADERS | kind::CONTINUATION => {
                if kind == kind::HEADERS {
                    self.block = (ends, Vec::new());
                }
                self.block.1.extend_from_slice(payload);
                if flags & END_HEADERS != 0 {
                    let (ends, block) = std::mem::take(&mut self.block);
                    self.take_head(stream, &block, ends);
                }
            }
            kind::DATA => {
                self.order.push((stream, payload.len()));
                let response = self.open.get_mut(&stream).filter(|response| response.status > 0);
                let Some(response) = response else {
                    return Err(Ended::Malformed(format!("data on stream {stream}, which has no head")));
                };
                response.body.extend_from_slice(payload);
                if self.gives_windows && !payload.is_empty() {
                    self.give_back(stream, payload.len() as u32, ends);
                }
                self.finish(stream, ends);
            }
            kind::RST_STREAM => {
                self.done.entry(stream).or_insert(Err(Ended::Reset(frame.number(0))));
            }
            kind::GOAWAY if frame.number(4) != 0 => {
                return Err(Ended::GoAway(frame.number(4), latin1(&payload[8..])));
            }
            kind::SETTINGS if ends => {}
            kind::SETTINGS => {
                let _ = self.try_send(self::frame(kind::SETTINGS, END_STREAM, 0, []));
                self.others.push(frame);
            }
            _ => self.others.push(frame),
        }
        Ok(())
    }

    /// Opens windows by what was received. A connection that has ended is noticed when it is read.
    fn give_back(&mut self, stream: u32, bytes: u32, ends: bool) {
        let mut updates = self::frame(kind::WINDOW_UPDATE, 0, 0, bytes.to_be_bytes());
        if !ends {
            updates.extend(self::frame(kind::WINDOW_UPDATE, 0, stream, bytes.to_be_bytes()));
        }
        let _ = self.try_send(updates);
    }

    fn take_head(&mut self, stream: u32, block: &[u8], ends: bool) {
        let mut fields = hpack::decode(block);
        let response = self.open.entry(stream).or_default();
        if response.status > 0 {
            response.trailers = fields;
        } else {
            let (name, status) = fields.0.remove(0);
            assert_eq!(name, ":status");
            let head = Response {
                version: "HTTP/2".to_owned(),
                status: status.parse().expect("a status"),
                fields,
                ..Response::default()
            };
            if head.status < 200 {
                response.interim.push(head);
            } else {
                let interim = std::mem::take(&mut response.interim);
                *response = Response { interim, ..head };
            }
        }
        self.finish(stream, ends);
    }

    fn finish(&mut self, stream: u32, ends: bool) {
        if ends && let Some(response) = self.open.remove(&stream) {
            self.done.insert(stream, Ok(response));
        }
    }
}

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header block of these fields, whatever bytes they have.
pub fn block<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Vec<u8> {
    hpack::encode(fields)
}

/// The pseudo-fields of a request.
pub fn usual<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [(":method", method), (":scheme", "http"), (":authority", "test.example"), (":path", path)]
}
