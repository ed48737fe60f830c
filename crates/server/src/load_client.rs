//! A small HTTP/1.1 keep-alive client for load drivers. It is cheap compared with what it measures, and reads every
//! response to its stated end, so that truncation is noticed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use sandarac_message::{Method, Name};
use sandarac_net::{BodyError, Conn, Framer, Stream};
use sandarac_proxy::client::{self, HeadError};
use sandarac_wire::h1::Limits;
use sandarac_wire::h1::response::Response;
use tokio::net::TcpStream;

/// Limits of a response head.
const LIMITS: Limits = Limits { head: 64 << 10, fields: 100, target: 0 };

/// A longer body is not kept.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// The reason why a request got no complete response.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The connection could not be made, or failed.
    Io(io::Error),
    /// The peer closed before the response was complete.
    Truncated,
    /// The response is not HTTP/1.1.
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

impl From<HeadError> for Fault {
    fn from(error: HeadError) -> Fault {
        match error {
            HeadError::Io(error) => Fault::Io(error),
            HeadError::Closed => Fault::Truncated,
            HeadError::Refused(refusal) => Fault::Malformed(refusal.text()),
            HeadError::Switched => Fault::Malformed("it switches to another protocol"),
        }
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Fault {
        match error {
            BodyError::Io(error) => Fault::Io(error),
            BodyError::Late => Fault::Io(io::ErrorKind::TimedOut.into()),
            BodyError::Truncated | BodyError::Stream(_) => Fault::Truncated,
            BodyError::Refused(refusal) => Fault::Malformed(refusal.text()),
            BodyError::Records(refusal) => Fault::Malformed(refusal.text()),
        }
    }
}

/// A complete response.
#[derive(Debug, Default)]
pub(crate) struct LoadResponse {
    /// The status code.
    pub(crate) status: u16,
    /// The `Cache-Status` value; several lines joined by commas.
    pub(crate) cache_status: Option<Vec<u8>>,
    /// The last `Proxy-Status` value: that of the proxy nearest to the client.
    pub(crate) proxy_status: Option<Vec<u8>>,
    /// The first `Set-Cookie` value.
    pub(crate) set_cookie: Option<Vec<u8>>,
    /// Where it leads, and what it says of its language and its readers: Location, Content-Language and
    /// Access-Control-Allow-Origin.
    pub(crate) told: Vec<u8>,
    /// The body, without chunk framing; empty if bodies are not kept.
    pub(crate) body: Vec<u8>,
}

/// One connection, opened when needed and again after it was closed.
pub(crate) struct LoadClient {
    address: SocketAddr,
    conn: Option<Conn>,
    answer: LoadResponse,
    keeps_bodies: bool,
}

impl LoadClient {
    pub(crate) fn new(address: SocketAddr) -> LoadClient {
        LoadClient { address, conn: None, answer: LoadResponse::default(), keeps_bodies: true }
    }

    /// A client that reads bodies of any length, and keeps nothing of them.
    pub(crate) fn without_bodies(address: SocketAddr) -> LoadClient {
        LoadClient { keeps_bodies: false, ..LoadClient::new(address) }
    }

    /// Sends `request`, including its body if any, and reads its response. A kept connection that is closed before the
    /// first byte of the response is replaced once, as in every HTTP client.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<&LoadResponse, Fault> {
        let method = if request.starts_with(b"HEAD ") { Method::Head } else { Method::Get };
        let (mut conn, reused) = match self.conn.take() {
            Some(conn) => (conn, true),
            None => (self.connect().await?, false),
        };
        let mut head = client::head(&mut conn, request, method, &LIMITS, read).await;
        if reused && conn.data().is_empty() && matches!(head, Err(HeadError::Io(_) | HeadError::Closed)) {
            conn = self.connect().await?;
            head = client::head(&mut conn, request, method, &LIMITS, read).await;
        }
        let Head { answer, mut framer, keep } = head?;
        if matches!(framer, Framer::UntilClose) {
            return Err(Fault::Malformed("the body has no stated length"));
        }
        let mut body = std::mem::take(&mut self.answer.body);
        body.clear();
        self.answer = LoadResponse { body, ..answer };
        let (keeps_bodies, body) = (self.keeps_bodies, &mut self.answer.body);
        let mut too_large = false;
        let take = |piece: &[u8]| {
            too_large = keeps_bodies && body.len() + piece.len() > MAX_BODY;
            if too_large {
                return ControlFlow::Break(());
            }
            if keeps_bodies {
                body.extend_from_slice(piece);
            }
            ControlFlow::Continue(())
        };
        client::body(&mut conn, &mut framer, take).await?;
        if too_large {
            return Err(Fault::Malformed("the body is too large"));
        }
        if keep {
            conn.park();
            self.conn = Some(conn);
        }
        Ok(&self.answer)
    }

    /// Drops the connection, and the rest of its data.
    pub(crate) fn close(&mut self) {
        self.conn = None;
    }

    async fn connect(&self) -> Result<Conn, Fault> {
        Ok(Conn::new(Stream::tcp(TcpStream::connect(self.address).await?)))
    }
}

/// A parsed response head.
struct Head {
    /// The response without its body.
    answer: LoadResponse,
    framer: Framer,
    /// Whether the connection may be reused.
    keep: bool,
}

fn read(response: &Response<'_>) -> Head {
    let fields = response.head.fields;
    let cache_status: Vec<&[u8]> = fields.all(Name::CacheStatus).collect();
    let names: [&[u8]; 3] = [b"Location", b"Content-Language", b"Access-Control-Allow-Origin"];
    let told: Vec<&[u8]> = names.into_iter().flat_map(|name| fields.all_named(name)).collect();
    let answer = LoadResponse {
        status: response.head.status,
        cache_status: (!cache_status.is_empty()).then(|| cache_status.join(&b',')),
        proxy_status: fields.all(Name::ProxyStatus).last().map(<[u8]>::to_vec),
        set_cookie: fields.get(Name::SetCookie).map(<[u8]>::to_vec),
        told: told.concat(),
        body: Vec::new(),
    };
    Head { answer, framer: Framer::of_response(response.framing), keep: response.keep_alive }
}

/// Whether `Cache-Status` of the cache nearest to the client reports a hit (RFC 9211 §2.1).
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

    async fn ask(client: &mut LoadClient) -> Result<&LoadResponse, Fault> {
        let answer = client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        tokio::time::timeout(PATIENCE, answer).await.expect("an answer, or a fault")
    }

    async fn ask_once(answer: &'static [u8]) -> Result<LoadResponse, Fault> {
        let mut client = LoadClient::new(serve(vec![answer]));
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
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, b"abcd");
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
        let mut client = LoadClient::without_bodies(serve(vec![
            long.leak(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        ]));
        assert_eq!(ask(&mut client).await.unwrap().body, b"");
        client.close();
        assert_eq!(client.ask(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap().status, 200);
    }

    #[tokio::test]
    async fn a_kept_connection_found_closed_is_replaced_once() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let mut client = LoadClient::new(serve(vec![whole, whole]));
        for _ in 0..2 {
            assert_eq!(ask(&mut client).await.unwrap().body, b"ok");
        }
    }
}
