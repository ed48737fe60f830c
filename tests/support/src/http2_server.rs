//! A server of HTTP/2 at the level of frames: a scripted origin.

use std::collections::{HashMap, VecDeque};

use crate::http2::{END_HEADERS, END_STREAM, Frame, frame, kind};
use crate::{Conn, Fields, Listener, Trouble, hpack};

/// The preface of a client's connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The server's end of a connection that speaks HTTP/2.
pub struct Http2Server {
    conn: Conn,
    /// Whether PING is replied to.
    pub replies: bool,
    /// Whether windows are given back as data comes.
    pub gives_windows: bool,
    /// Frames other than those of requests, as they came.
    pub others: VecDeque<Frame>,
    heads: VecDeque<Head>,
    bodies: HashMap<u32, Body>,
    resets: HashMap<u32, u32>,
    block: (bool, Vec<u8>),
}

/// The head of a request.
#[derive(Clone, Debug)]
pub struct Head {
    /// The stream.
    pub stream: u32,
    /// All fields, pseudo-fields first.
    pub fields: Fields,
    /// Whether nothing follows it.
    pub ends: bool,
}

impl Head {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.field(":path").unwrap_or_default()
    }
}

/// The rest of a request.
#[derive(Clone, Debug, Default)]
struct Body {
    data: Vec<u8>,
    trailers: Fields,
    ended: bool,
}

impl Http2Server {
    /// Accepts a connection, with default settings.
    #[track_caller]
    pub fn accept(listener: &Listener) -> Http2Server {
        Http2Server::over(listener.accept(), &[])
    }

    /// Begins HTTP/2 on an accepted connection, with these settings.
    #[track_caller]
    pub fn over(conn: Conn, settings: &[(u16, u32)]) -> Http2Server {
        let mut server = Http2Server::silent(conn);
        server.settings(settings);
        server
    }

    /// Takes the preface on an accepted connection, and sends nothing.
    #[track_caller]
    pub fn silent(mut conn: Conn) -> Http2Server {
        let preface =
            conn.try_read(PREFACE.len()).unwrap_or_else(|trouble| panic!("no preface: {trouble:?}"));
        assert_eq!(preface, PREFACE);
        Http2Server {
            conn,
            replies: true,
            gives_windows: true,
            others: VecDeque::new(),
            heads: VecDeque::new(),
            bodies: HashMap::new(),
            resets: HashMap::new(),
            block: (false, Vec::new()),
        }
    }

    /// Sends settings.
    pub fn settings(&mut self, settings: &[(u16, u32)]) -> &mut Http2Server {
        let parameters =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
        self.frame(kind::SETTINGS, 0, 0, parameters.collect::<Vec<u8>>())
    }

    /// Sends a frame, if the connection still takes it.
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> &mut Http2Server {
        let _ = self.conn.try_send(frame(kind, flags, stream, payload));
        self
    }

    /// Sends a head, interim or final.
    pub fn head(
        &mut self,
        stream: u32,
        status: &str,
        fields: &[(&str, &str)],
        ends: bool,
    ) -> &mut Http2Server {
        let all = [&[(":status", status)][..], fields].concat();
        let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flags, stream, hpack::encode(&all))
    }

    /// Sends data.
    pub fn data(&mut self, stream: u32, data: impl AsRef<[u8]>, ends: bool) -> &mut Http2Server {
        self.frame(kind::DATA, if ends { END_STREAM } else { 0 }, stream, data)
    }

    /// Sends data that does not end as the window of its stream allows, which has `window` bytes at first.
    #[track_caller]
    pub fn data_within(&mut self, mut window: usize, stream: u32, data: &[u8]) -> &mut Http2Server {
        // An update that came with the request is part of the first window.
        self.settle();
        self.others.retain(|frame| frame.kind != kind::WINDOW_UPDATE);
        for piece in data.chunks(window.min(16 << 10)) {
            while window < piece.len() {
                let update = self.await_frame(kind::WINDOW_UPDATE);
                window += if update.stream == stream { update.number(0) as usize } else { 0 };
            }
            window -= piece.len();
            self.data(stream, piece, false);
        }
        self
    }

    /// Sends trailers.
    pub fn trailers(&mut self, stream: u32, fields: &[(&str, &str)]) -> &mut Http2Server {
        self.frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, hpack::encode(fields))
    }

    /// Answers 200 with a body.
    pub fn answer(&mut self, stream: u32, body: impl AsRef<[u8]>) -> &mut Http2Server {
        self.head(stream, "200", &[], false).data(stream, body, true)
    }

    /// Resets a stream.
    pub fn reset(&mut self, stream: u32, code: u32) -> &mut Http2Server {
        self.frame(kind::RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// Sends GOAWAY.
    pub fn go_away(&mut self, last: u32, code: u32) -> &mut Http2Server {
        self.frame(kind::GOAWAY, 0, 0, [last.to_be_bytes(), code.to_be_bytes()].concat())
    }

    /// Opens the window of a stream, or of the connection if `stream` is 0.
    pub fn window(&mut self, stream: u32, increment: u32) -> &mut Http2Server {
        self.frame(kind::WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
    }

    /// The head of the next request.
    #[track_caller]
    pub fn request(&mut self) -> Head {
        self.until("a request", |server| server.heads.pop_front())
    }

    /// Whether the head of a request has come that was not asked for.
    pub fn has_request(&self) -> bool {
        !self.heads.is_empty()
    }

    /// The body of a request to its end, and its trailers.
    #[track_caller]
    pub fn body(&mut self, stream: u32) -> (Vec<u8>, Fields) {
        self.until("the end of a body", |server| {
            let body = server.bodies.get(&stream).filter(|body| body.ended)?;
            Some((body.data.clone(), body.trailers.clone()))
        })
    }

    /// The body of a request so far, once it has so many bytes.
    #[track_caller]
    pub fn partial(&mut self, stream: u32, bytes: usize) -> Vec<u8> {
        self.until("a part of a body", |server| {
            server.bodies.get(&stream).filter(|body| body.data.len() >= bytes).map(|body| body.data.clone())
        })
    }

    /// The code with which the client resets a stream.
    #[track_caller]
    pub fn reset_of(&mut self, stream: u32) -> u32 {
        self.until("a reset", |server| server.resets.get(&stream).copied())
    }

    /// The next frame of this type that is not of a request.
    #[track_caller]
    pub fn await_frame(&mut self, kind: u8) -> Frame {
        self.until("a frame", |server| {
            let at = server.others.iter().position(|frame| frame.kind == kind)?;
            server.others.remove(at)
        })
    }

    /// Waits until everything that was sent is handled: for the reply to a PING.
    #[track_caller]
    pub fn settle(&mut self) -> &mut Http2Server {
        self.frame(kind::PING, 0, 0, *b"settled?");
        self.until("reply to a PING", |server| {
            let is_reply = |frame: &Frame| frame.kind == kind::PING && frame.payload == *b"settled?";
            let at = server.others.iter().position(is_reply)?;
            server.others.remove(at)
        });
        self
    }

    /// Closes the connection. The client has got the end when this returns.
    pub fn close(mut self) {
        self.conn.finish();
    }

    /// Reads until the client closes the connection.
    #[track_caller]
    pub fn expect_end(&mut self) {
        loop {
            match self.step() {
                Ok(()) => {}
                Err(Trouble::Closed(_) | Trouble::Reset(_)) => return,
                Err(trouble) => panic!("the connection does not end: {trouble:?}"),
            }
        }
    }

    #[track_caller]
    fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Http2Server) -> Option<T>) -> T {
        loop {
            if let Some(done) = done(self) {
                return done;
            }
            if let Err(trouble) = self.step() {
                panic!("no {what}: {trouble:?}");
            }
        }
    }

    /// Reads and handles one frame. Fails if the connection has ended, or nothing comes.
    pub fn step(&mut self) -> Result<(), Trouble> {
        let head = self.conn.try_read(9)?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = if len == 0 { Vec::new() } else { self.conn.try_read(len)? };
        let stream = u32::from_be_bytes(head[5..9].try_into().expect("four bytes"));
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        let ends = frame.flags & END_STREAM != 0;
        match frame.kind {
            kind::HEADERS | kind::CONTINUATION => {
                if frame.kind == kind::HEADERS {
                    self.block = (ends, Vec::new());
                }
                self.block.1.extend_from_slice(&frame.payload);
                if frame.flags & END_HEADERS != 0 {
                    let (ends, block) = std::mem::take(&mut self.block);
                    self.take_head(stream, &block, ends);
                }
            }
            kind::DATA => {
                let body = self.bodies.entry(stream).or_default();
                body.data.extend_from_slice(&frame.payload);
                body.ended |= ends;
                if self.gives_windows && len > 0 {
                    self.window(0, len as u32);
                    if !ends {
                        self.window(stream, len as u32);
                    }
                }
            }
            kind::RST_STREAM => _ = self.resets.insert(stream, frame.number(0)),
            kind::SETTINGS if !ends => _ = self.frame(kind::SETTINGS, END_STREAM, 0, []),
            kind::PING if !ends && self.replies => {
                self.frame(kind::PING, END_STREAM, 0, &frame.payload);
                self.others.push_back(frame);
            }
            _ => self.others.push_back(frame),
        }
        Ok(())
    }

    fn take_head(&mut self, stream: u32, block: &[u8], ends: bool) {
        let fields = hpack::decode(block);
        let is_first = !self.bodies.contains_key(&stream);
        let body = self.bodies.entry(stream).or_default();
        body.ended |= ends;
        if is_first {
            self.heads.push_back(Head { stream, fields, ends });
        } else {
            body.trailers = fields;
        }
    }
}
