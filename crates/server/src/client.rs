//! A small HTTP/1.1 keep-alive client for those who drive a load: it costs little beside what it measures, and reads
//! every answer to its stated end, so that a truncated one is noticed.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MAX_HEAD: usize = 64 * 1024;
/// A longer body is not kept.
const MAX_BODY: usize = 4 * 1024 * 1024;
const READ: usize = 16 * 1024;

/// Why a request got no whole answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The connection could not be made, or failed.
    Io(io::Error),
    /// The other side closed before the answer was whole.
    Truncated,
    /// What came is not HTTP/1.1.
    Malformed(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(error) => write!(f, "connection failed: {error}"),
            Fault::Truncated => f.write_str("connection closed before the answer was whole"),
            Fault::Malformed(what) => write!(f, "answer is not HTTP/1.1: {what}"),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

/// A whole answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The `Cache-Status` value; several lines joined by commas.
    pub(crate) cache_status: Option<Vec<u8>>,
    /// The last `Proxy-Status` value: that of the proxy nearest to the client.
    pub(crate) proxy_status: Option<Vec<u8>>,
    /// The first `Set-Cookie` value.
    pub(crate) set_cookie: Option<Vec<u8>>,
    /// The body, without chunk framing; empty where bodies are not kept.
    pub(crate) body: Vec<u8>,
}

enum Framing {
    None,
    Length(usize),
    Chunked,
}

/// One connection, made when first needed and again after it was closed.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// Bytes received and not yet consumed.
    received: Vec<u8>,
    answer: Answer,
    keeps_bodies: bool,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { address, stream: None, received: Vec::new(), answer: Answer::default(), keeps_bodies: true }
    }

    /// A client that reads bodies, however long, and keeps nothing of them.
    pub(crate) fn without_bodies(address: SocketAddr) -> Client {
        Client { keeps_bodies: false, ..Client::new(address) }
    }

    /// Sends `request`, a whole request without body or with it included, and reads its answer. A kept connection
    /// that turns out closed before any byte came is replaced once, as every HTTP client does.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<&Answer, Fault> {
        let reused = self.stream.is_some();
        let mut result = self.exchange(request).await;
        if reused && self.received.is_empty() && matches!(result, Err(Fault::Io(_) | Fault::Truncated)) {
            self.stream = None;
            result = self.exchange(request).await;
        }
        match result {
            Ok(keep) => {
                if !keep {
                    self.close();
                }
                Ok(&self.answer)
            }
            Err(fault) => {
                self.close();
                Err(fault)
            }
        }
    }

    /// Drops the connection, and with it whatever was still to come.
    pub(crate) fn close(&mut self) {
        self.stream = None;
        self.received.clear();
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<bool, Fault> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                self.stream.insert(stream)
            }
        };
        stream.write_all(request).await?;
        let no_body = request.starts_with(b"HEAD ");
        loop {
            if let Some((framing, keep)) = self.parse_head(no_body)? {
                match framing {
                    Framing::None => {}
                    Framing::Length(length) => self.read_body(length).await?,
                    Framing::Chunked => self.read_chunks().await?,
                }
                return Ok(keep);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), Fault> {
        let stream = self.stream.as_mut().ok_or(Fault::Truncated)?;
        self.received.reserve(READ);
        match stream.read_buf(&mut self.received).await? {
            0 => Err(Fault::Truncated),
            _ => Ok(()),
        }
    }

    /// Takes a head off the received bytes; interim answers are skipped. `None` where it is not whole yet.
    fn parse_head(&mut self, no_body: bool) -> Result<Option<(Framing, bool)>, Fault> {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut fields);
            let length = match head.parse(&self.received) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if self.received.len() < MAX_HEAD => return Ok(None),
                Ok(httparse::Status::Partial) => return Err(Fault::Malformed("the head has no end")),
                Err(_) => return Err(Fault::Malformed("the head cannot be read")),
            };
            let status = head.code.unwrap_or_default();
            if (100..200).contains(&status) {
                self.received.drain(..length);
                continue;
            }
            let mut framing = None;
            let mut keep = head.version == Some(1);
            self.answer = Answer { status, body: std::mem::take(&mut self.answer.body), ..Answer::default() };
            self.answer.body.clear();
            for field in head.headers.iter() {
                if field.name.eq_ignore_ascii_case("content-length") {
                    let length = std::str::from_utf8(field.value).ok().and_then(|text| text.parse().ok());
                    let length = length.filter(|&length| !self.keeps_bodies || length <= MAX_BODY);
                    framing =
                        Some(Framing::Length(length.ok_or(Fault::Malformed("Content-Length is too large"))?));
                } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                    framing = Some(Framing::Chunked);
                } else if field.name.eq_ignore_ascii_case("connection") {
                    keep &= !field.value.eq_ignore_ascii_case(b"close");
                } else if field.name.eq_ignore_ascii_case("cache-status") {
                    let all = self.answer.cache_status.get_or_insert_default();
                    if !all.is_empty() {
                        all.push(b',');
                    }
                    all.extend_from_slice(field.value);
                } else if field.name.eq_ignore_ascii_case("proxy-status") {
                    self.answer.proxy_status = Some(field.value.to_vec());
                } else if field.name.eq_ignore_ascii_case("set-cookie") {
                    self.answer.set_cookie.get_or_insert_with(|| field.value.to_vec());
                }
            }
            self.received.drain(..length);
            if no_body || matches!(status, 204 | 304) {
                framing = Some(Framing::None);
            }
            return match framing {
                Some(framing) => Ok(Some((framing, keep))),
                None => Err(Fault::Malformed("the body has no stated length")),
            };
        }
    }

    async fn read_body(&mut self, length: usize) -> Result<(), Fault> {
        let mut left = length;
        while left > 0 {
            if self.received.is_empty() {
                self.fill().await?;
            }
            let part = left.min(self.received.len());
            if self.keeps_bodies {
                self.answer.body.extend_from_slice(&self.received[..part]);
            }
            self.received.drain(..part);
            left -= part;
        }
        Ok(())
    }

    async fn read_line(&mut self) -> Result<Vec<u8>, Fault> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.received[..end].to_vec();
                self.received.drain(..end + 2);
                return Ok(line);
            }
            if self.received.len() > MAX_HEAD {
                return Err(Fault::Malformed("a chunk line has no end"));
            }
            self.fill().await?;
        }
    }

    async fn read_chunks(&mut self) -> Result<(), Fault> {
        loop {
            let line = self.read_line().await?;
            let size = std::str::from_utf8(line.split(|&byte| byte == b';').next().unwrap_or_default())
                .ok()
                .and_then(|size| usize::from_str_radix(size.trim(), 16).ok())
                .filter(|size| !self.keeps_bodies || self.answer.body.len().saturating_add(*size) <= MAX_BODY)
                .ok_or(Fault::Malformed("a chunk size cannot be read"))?;
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Ok(());
            }
            self.read_body(size).await?;
            if !self.read_line().await?.is_empty() {
                return Err(Fault::Malformed("a chunk is longer than its size"));
            }
        }
    }
}

/// Whether the cache nearest to the client says that it answered from what it holds (RFC 9211 §2.1).
pub(crate) fn is_hit(cache_status: &[u8]) -> bool {
    sandarac_message::members(cache_status).last().is_some_and(|cache| {
        cache.split(|&byte| byte == b';').skip(1).any(|parameter| parameter.trim_ascii() == b"hit")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::PATIENCE;
    use std::io::{Read, Write};

    /// Answers each connection in turn with the given bytes, then closes it.
    fn serve(answers: Vec<&'static [u8]>) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer);
            }
        });
        address
    }

    async fn ask(client: &mut Client) -> Result<&Answer, Fault> {
        let answer = client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        tokio::time::timeout(PATIENCE, answer).await.expect("an answer, or a fault")
    }

    async fn ask_once(answer: &'static [u8]) -> Result<Answer, Fault> {
        let mut client = Client::new(serve(vec![answer]));
        ask(&mut client).await?;
        Ok(std::mem::take(&mut client.answer))
    }

    #[tokio::test]
    async fn chunked_answers_and_interim_ones_are_read() {
        let answer = ask_once(
            b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
              Cache-Status: a; fwd=miss\r\nCache-Status: b; hit\r\n\r\n3\r\nabc\r\n1;x\r\nd\r\n0\r\nT: 1\r\n\r\n",
        )
        .await
        .unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abcd"[..]));
        assert_eq!(answer.cache_status.as_deref(), Some(&b"a; fwd=miss,b; hit"[..]));
    }

    #[test]
    fn the_nearest_cache_says_whether_it_was_a_hit() {
        assert!(is_hit(b"Far; fwd=miss, sandarac; hit; ttl=30"));
        assert!(!is_hit(b"Far; hit, sandarac; fwd=uri-miss; stored"));
        assert!(!is_hit(b"hit"));
    }

    #[tokio::test]
    async fn a_truncated_answer_is_a_fault() {
        let answer = ask_once(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc").await;
        assert!(matches!(answer, Err(Fault::Truncated)), "{answer:?}");
        let answer = ask_once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab").await;
        assert!(matches!(answer, Err(Fault::Truncated)), "{answer:?}");
    }

    #[tokio::test]
    async fn bodies_need_not_be_kept_and_heads_have_none() {
        let long =
            [&b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"[..], &vec![b'x'; 5_000_000]].concat();
        let mut client =
            Client::without_bodies(serve(vec![long.leak(), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"]));
        assert_eq!(ask(&mut client).await.unwrap().body, b"");
        client.close();
        assert_eq!(client.ask(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap().status, 200);
    }

    #[tokio::test]
    async fn a_kept_connection_found_closed_is_replaced_once() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let mut client = Client::new(serve(vec![whole, whole]));
        for _ in 0..2 {
            assert_eq!(ask(&mut client).await.unwrap().body, b"ok");
        }
    }
}
