//! A raw connection, either end of it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::fin::await_arrival;
use crate::message::{latin1, parse_fields};
use crate::{Address, Fields, PATIENCE, Req, Request, Response};

/// A connection that sends the bytes it is given and reads messages with a reader of its own, as strict as RFC 9112 wants.
pub struct Conn {
    stream: Stream,
    /// Received bytes that are not read yet.
    buffer: Vec<u8>,
    /// All that was received, for the message of a test that fails.
    received: Vec<u8>,
    /// How long one wait may last, from the call to what it waits for.
    patience: Duration,
    /// When the present wait ends, whatever still trickles in by then.
    until: Instant,
    /// At most so many bytes are received at a time, with a pause after each.
    pace: Option<(usize, Duration)>,
}

/// Why nothing more could be read.
#[derive(Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The peer closed; what came before, and was not enough.
    Closed(Vec<u8>),
    /// The peer reset the connection; what came before, and was not enough.
    Reset(Vec<u8>),
    /// Nothing came in time.
    TimedOut,
    /// The message is not HTTP/1.1.
    Malformed(String),
}

enum Stream {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

/// How a body ends.
enum Framing {
    Length(usize),
    Chunked,
    Close,
}

impl Conn {
    /// Connects to `address`.
    #[track_caller]
    pub fn to(address: &Address) -> Conn {
        Conn::try_to(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
    }

    /// Connects to `address`, if it lets us.
    pub fn try_to(address: &Address) -> io::Result<Conn> {
        match address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, PATIENCE).map(Conn::over_tcp),
            Address::Unix(path) => UnixStream::connect(path).map(Conn::over_unix),
        }
    }

    /// Connects to `address` and begins TLS with it.
    pub fn try_tls(
        address: &Address,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Conn> {
        let Address::Tcp(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
        let stream = TcpStream::connect_timeout(address, PATIENCE)?;
        let _ = stream.set_nodelay(true);
        let tls = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        Ok(Conn::over(Stream::Tls(Box::new(StreamOwned::new(tls, stream)))))
    }

    pub(crate) fn over_tcp(stream: TcpStream) -> Conn {
        let _ = stream.set_nodelay(true);
        Conn::over(Stream::Tcp(stream))
    }

    pub(crate) fn over_unix(stream: UnixStream) -> Conn {
        Conn::over(Stream::Unix(stream))
    }

    fn over(stream: Stream) -> Conn {
        let _ = stream.set_write_timeout(PATIENCE);
        Conn {
            stream,
            buffer: Vec::new(),
            received: Vec::new(),
            patience: PATIENCE,
            until: Instant::now(),
            pace: None,
        }
    }

    /// The same connection with another limit on how long it waits for a message, or for whatever else one call reads.
    pub fn patient_for(mut self, patience: Duration) -> Conn {
        self.set_patience(patience);
        self
    }

    /// Limits how long it waits for a message, or for whatever else one call reads.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The same connection, received from in pieces of at most `bytes` with a `pause` after each: a slow client.
    pub fn paced(mut self, bytes: usize, pause: Duration) -> Conn {
        self.pace = Some((bytes, pause));
        self
    }

    /// Sends `bytes`.
    ///
    /// # Panics
    /// If they cannot be sent.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Conn {
        if let Err(error) = self.try_send(bytes) {
            panic!("cannot send: {error}; received so far: {:?}", latin1(&self.received));
        }
        self
    }

    /// Sends `bytes` if the peer still takes them.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Limits how long sending waits for the peer to take something.
    pub fn set_write_patience(&self, patience: Duration) {
        let _ = self.stream.set_write_timeout(patience);
    }

    /// Sends `request` and reads the response.
    #[track_caller]
    pub fn exchange(&mut self, request: &Req) -> Response {
        self.send(request.to_bytes());
        self.response_to(&request.method)
    }

    /// Sends a GET for `target` and reads the response.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.exchange(&crate::get(target))
    }

    /// Closes the sending half. Over TCP, the peer has got the end when this returns.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        if let Some(stream) = self.stream.tcp() {
            let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// Keeps the system from taking megabytes on behalf of a client that reads slowly. Less than this, and a window smaller
    /// than the segments of the loopback interface makes every read wait for timers of TCP.
    pub fn shrink_receive_buffer(&self) {
        const BYTES: usize = 128 << 10;
        if let Some(stream) = self.stream.tcp() {
            let _ = socket2::SockRef::from(stream).set_recv_buffer_size(BYTES);
        }
    }

    /// Has the system hold back what is sent, or send it.
    pub(crate) fn cork(&self, cork: bool) {
        if let Some(stream) = self.stream.tcp() {
            let _ = socket2::SockRef::from(stream).set_tcp_cork(cork);
        }
    }

    /// Reads a response to a GET, with the interim responses before it.
    #[track_caller]
    pub fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    /// Reads a response to `method`, with the interim responses before it.
    #[track_caller]
    pub fn response_to(&mut self, method: &str) -> Response {
        let result = self.try_response(method);
        self.insist("a response", result)
    }

    /// Reads a response to `method`, with the interim responses before it.
    pub fn try_response(&mut self, method: &str) -> Result<Response, Trouble> {
        self.begin();
        let mut interim = Vec::new();
        let mut response = loop {
            let head = self.next_response_head()?;
            if head.status >= 200 || head.status == 101 {
                break head;
            }
            interim.push(head);
        };
        response.interim = interim;
        match self.next_response_body(method, &mut response) {
            Ok(()) => Ok(response),
            Err(Trouble::Closed(rest)) => Err(Trouble::Closed([response.body, rest].concat())),
            Err(Trouble::Reset(rest)) => Err(Trouble::Reset([response.body, rest].concat())),
            Err(trouble) => Err(trouble),
        }
    }

    /// Reads one response head, interim or final, and leaves the body unread.
    #[track_caller]
    pub fn response_head(&mut self) -> Response {
        let result = self.try_response_head();
        self.insist("a response head", result)
    }

    /// Reads one response head, interim or final, and leaves the body unread.
    pub fn try_response_head(&mut self) -> Result<Response, Trouble> {
        self.begin();
        self.next_response_head()
    }

    /// Reads the body of a response to `method` whose head was read. What came of one that breaks off is in `response`.
    pub fn try_response_body(&mut self, method: &str, response: &mut Response) -> Result<(), Trouble> {
        self.begin();
        self.next_response_body(method, response)
    }

    fn next_response_body(&mut self, method: &str, response: &mut Response) -> Result<(), Trouble> {
        let tunnel = response.status == 101 || method == "CONNECT" && response.status / 100 == 2;
        if method == "HEAD" || tunnel || response.status == 204 || response.status == 304 {
            return Ok(());
        }
        let framing = framing(&response.fields, Framing::Close)?;
        (response.trailers, response.chunks) = self.next_body(framing, &mut response.body)?;
        Ok(())
    }

    fn next_response_head(&mut self) -> Result<Response, Trouble> {
        let (line, fields) = self.try_head()?;
        let malformed = || Trouble::Malformed(format!("status line {line:?}"));
        let (version, rest) = line.split_once(' ').ok_or_else(malformed)?;
        let (status, reason) = rest.split_once(' ').ok_or_else(malformed)?;
        if !version.starts_with("HTTP/1.") || status.len() != 3 {
            return Err(malformed());
        }
        Ok(Response {
            version: version.to_owned(),
            status: status.parse().map_err(|_| malformed())?,
            reason: reason.to_owned(),
            fields,
            ..Response::default()
        })
    }

    /// Reads a request.
    #[track_caller]
    pub fn request(&mut self) -> Request {
        let result = self.try_request();
        self.insist("a request", result)
    }

    /// Reads a request.
    pub fn try_request(&mut self) -> Result<Request, Trouble> {
        let mut request = self.try_request_head()?;
        self.try_request_body(&mut request)?;
        request.whole = true;
        Ok(request)
    }

    /// Reads a request head and leaves the body unread.
    #[track_caller]
    pub fn request_head(&mut self) -> Request {
        let result = self.try_request_head();
        self.insist("a request head", result)
    }

    /// Reads a request head and leaves the body unread.
    pub fn try_request_head(&mut self) -> Result<Request, Trouble> {
        self.begin();
        let (line, fields) = self.try_head()?;
        let words: Vec<&str> = line.split(' ').collect();
        let [method, target, version] = words[..] else {
            return Err(Trouble::Malformed(format!("request line {line:?}")));
        };
        Ok(Request {
            method: method.to_owned(),
            target: target.to_owned(),
            version: version.to_owned(),
            fields,
            ..Request::default()
        })
    }

    /// Reads the body of a request whose head was read. What came of one that breaks off is in `request`.
    pub fn try_request_body(&mut self, request: &mut Request) -> Result<(), Trouble> {
        self.begin();
        let framing = framing(&request.fields, Framing::Length(0))?;
        (request.trailers, _) = self.next_body(framing, &mut request.body)?;
        Ok(())
    }

    /// Reads exactly `count` bytes.
    #[track_caller]
    pub fn read(&mut self, count: usize) -> Vec<u8> {
        let result = self.try_read(count);
        self.insist(&format!("{count} bytes"), result)
    }

    /// Reads exactly `count` bytes if they come.
    pub fn try_read(&mut self, count: usize) -> Result<Vec<u8>, Trouble> {
        self.begin();
        self.take(count)
    }

    /// Reads `text`, neither more nor less nor other.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> &mut Conn {
        let bytes = self.read(text.len());
        assert_eq!(latin1(&bytes), text);
        self
    }

    /// Reads what comes until and with `needle`.
    #[track_caller]
    pub fn read_through(&mut self, needle: &str) -> Vec<u8> {
        self.begin();
        let result = self.take_through(needle.as_bytes());
        self.insist(&format!("{needle:?}"), result)
    }

    /// Reads all that comes until the peer closes or resets.
    #[track_caller]
    pub fn read_to_end(&mut self) -> Vec<u8> {
        self.begin();
        loop {
            match self.fill() {
                Ok(()) => {}
                Err(Trouble::Closed(rest) | Trouble::Reset(rest)) => return rest,
                Err(trouble) => self.insist("the end of the connection", Err(trouble)),
            }
        }
    }

    /// Waits for the end of the connection, before which nothing more may come.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let rest = self.read_to_end();
        assert!(rest.is_empty(), "expected the end of the connection, received {:?}", latin1(&rest));
    }

    /// Waits for the connection to be reset, before which nothing more may come. An orderly end is none.
    #[track_caller]
    pub fn expect_reset(&mut self) {
        self.begin();
        let trouble = self.fill().err();
        assert_eq!(trouble, Some(Trouble::Reset(Vec::new())), "expected a reset");
    }

    /// Whether nothing has come, without waiting for anything.
    pub fn is_silent(&mut self) -> bool {
        !self.is_ready(Duration::from_millis(1))
    }

    /// Whether something has come, or the peer has gone, after at most `patience`.
    pub fn is_ready(&mut self, patience: Duration) -> bool {
        if !self.buffer.is_empty() {
            return true;
        }
        self.until = Instant::now() + patience;
        self.fill() != Err(Trouble::TimedOut)
    }

    /// Waits until the peer has gone.
    pub(crate) fn wait_for_end(&mut self) {
        self.begin();
        while self.fill().is_ok() {}
    }

    fn try_head(&mut self) -> Result<(String, Fields), Trouble> {
        let head = self.take_through(b"\r\n\r\n")?;
        let mut lines =
            head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let first = latin1(lines.next().unwrap_or_default());
        Ok((first, parse_fields(lines).map_err(Trouble::Malformed)?))
    }

    /// Reads a body into `body` as it comes, and gives its trailer fields and the sizes of its chunks.
    fn next_body(&mut self, framing: Framing, body: &mut Vec<u8>) -> Result<(Fields, Vec<usize>), Trouble> {
        match framing {
            Framing::Length(length) => self.take_into(length, body)?,
            Framing::Close => loop {
                body.append(&mut self.buffer);
                match self.fill() {
                    Ok(()) => {}
                    Err(Trouble::Closed(_)) => break,
                    Err(trouble) => return Err(trouble),
                }
            },
            Framing::Chunked => return self.next_chunks(body),
        }
        Ok((Fields::default(), Vec::new()))
    }

    fn next_chunks(&mut self, body: &mut Vec<u8>) -> Result<(Fields, Vec<usize>), Trouble> {
        let mut sizes = Vec::new();
        loop {
            let line = latin1(&self.take_through(b"\r\n")?);
            let size = line.trim_end_matches("\r\n").split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| Trouble::Malformed(format!("chunk size line {line:?}")))?;
            if size == 0 {
                break;
            }
            self.take_into(size, body)?;
            sizes.push(size);
            if self.take(2)? != b"\r\n" {
                return Err(Trouble::Malformed("no line end after a chunk".to_owned()));
            }
        }
        let mut trailers = Vec::new();
        loop {
            let line = self.take_through(b"\r\n")?;
            if line == b"\r\n" {
                break;
            }
            trailers.push(line[..line.len() - 2].to_vec());
        }
        let trailers = parse_fields(trailers.iter().map(Vec::as_slice)).map_err(Trouble::Malformed)?;
        Ok((trailers, sizes))
    }

    fn take_into(&mut self, count: usize, into: &mut Vec<u8>) -> Result<(), Trouble> {
        let mut left = count;
        loop {
            let piece = left.min(self.buffer.len());
            into.extend(self.buffer.drain(..piece));
            left -= piece;
            if left == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, Trouble> {
        while self.buffer.len() < count {
            self.fill()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn take_through(&mut self, needle: &[u8]) -> Result<Vec<u8>, Trouble> {
        let mut searched = 0;
        loop {
            if let Some(at) =
                self.buffer[searched..].windows(needle.len()).position(|window| window == needle)
            {
                return Ok(self.buffer.drain(..searched + at + needle.len()).collect());
            }
            searched = self.buffer.len().saturating_sub(needle.len() - 1);
            self.fill()?;
        }
    }

    /// Begins a wait: all that is received for it has to come in time together, or a peer that trickles could hold up a test
    /// for ever.
    fn begin(&mut self) {
        self.until = Instant::now() + self.patience;
    }

    /// Receives something more into the buffer. What has arrived already is received even when the time is up.
    fn fill(&mut self) -> Result<(), Trouble> {
        let mut piece = [0; 65536];
        loop {
            let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.stream.set_read_timeout(left).map_err(|_| Trouble::Reset(Vec::new()))?;
            let (limit, pause) = self.pace.unwrap_or((piece.len(), Duration::ZERO));
            match self.stream.read(&mut piece[..limit]) {
                Ok(0) => return Err(Trouble::Closed(std::mem::take(&mut self.buffer))),
                Ok(count) => {
                    self.buffer.extend_from_slice(&piece[..count]);
                    if self.received.len() < 4096 {
                        self.received.extend_from_slice(&piece[..count.min(4096)]);
                    }
                    thread::sleep(pause);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(Trouble::TimedOut);
                }
                Err(_) => return Err(Trouble::Reset(std::mem::take(&mut self.buffer))),
            }
        }
    }

    #[track_caller]
    fn insist<T>(&self, what: &str, result: Result<T, Trouble>) -> T {
        result.unwrap_or_else(|trouble| {
            panic!("expected {what}: {trouble:?}; received in all: {:?}", latin1(&self.received))
        })
    }
}

impl fmt::Debug for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Of a body cut short, the beginning is all that a person wants to see.
        const SHOWN: usize = 200;
        let mut end = |how: &str, rest: &[u8]| {
            write!(out, "{how} after {} bytes: {:?}", rest.len(), latin1(&rest[..rest.len().min(SHOWN)]))
        };
        match self {
            Trouble::Closed(rest) => end("closed", rest),
            Trouble::Reset(rest) => end("reset", rest),
            Trouble::TimedOut => out.write_str("nothing more came in time"),
            Trouble::Malformed(what) => write!(out, "malformed: {what}"),
        }
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Conn").field("received", &latin1(&self.received)).finish_non_exhaustive()
    }
}

/// How the body after a head with `fields` ends (RFC 9112 §6.3); `otherwise` if they don't say.
fn framing(fields: &Fields, otherwise: Framing) -> Result<Framing, Trouble> {
    let malformed = |text: String| Err(Trouble::Malformed(text));
    match (&fields.all("transfer-encoding")[..], &fields.all("content-length")[..]) {
        ([], []) => Ok(otherwise),
        (["chunked"], []) => Ok(Framing::Chunked),
        ([], [length]) => match length.parse::<usize>() {
            Ok(number) if number.to_string() == **length => Ok(Framing::Length(number)),
            _ => malformed(format!("Content-Length {length:?}")),
        },
        (codings, lengths) => {
            malformed(format!("Transfer-Encoding {codings:?} with Content-Length {lengths:?}"))
        }
    }
}

impl Stream {
    /// The TCP socket, if there is one.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(stream) => Some(stream),
            Stream::Tls(tls) => Some(&tls.sock),
            Stream::Unix(_) => None,
        }
    }

    fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Stream::Tls(tls) => tls.sock.set_read_timeout(Some(timeout)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }

    fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Stream::Tls(tls) => tls.sock.set_write_timeout(Some(timeout)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(timeout)),
        }
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.shutdown(how)?;
                await_arrival(stream);
                Ok(())
            }
            Stream::Tls(tls) => {
                tls.conn.send_close_notify();
                tls.flush()?;
                tls.sock.shutdown(how)?;
                await_arrival(&tls.sock);
                Ok(())
            }
            Stream::Unix(stream) => stream.shutdown(how),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Tls(tls) => tls.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }
}
