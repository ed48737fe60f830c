//! Both roles against the `h2` crate: its HPACK encoder uses the dynamic table and Huffman coding, and its flow
//! control has to agree with ours.

use bytes::Bytes;
use hyper::http::{HeaderMap, Request, Response};
use sandarac_message::{FieldsBuf, Method};
use sandarac_wire::h2::HeadBuf;
use sandarac_wire::h2::connection::{Config, Connection, Event};
use sandarac_wire::h2::head::encode::{self, RequestLine};
use sandarac_wire::h2::hpack::encode::Strings;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// More than the windows of a connection.
const BODY: usize = 200_000;

const REQUESTS: usize = 20;

/// Our side. As a server it answers each request with its own body and trailers.
struct Side {
    connection: Connection,
    out: Vec<u8>,
    /// Streams on which data is to be sent, and how much.
    pending: Vec<(u32, usize)>,
    received: usize,
    heads: Vec<String>,
    trailers: usize,
}

impl Side {
    fn new(connection: Connection, out: Vec<u8>) -> Side {
        Side { connection, out, pending: Vec::new(), received: 0, heads: Vec::new(), trailers: 0 }
    }

    fn react(&mut self, event: Event<'_>) {
        match event {
            Event::Request { stream, request, .. } => {
                let fields: Vec<_> = request.head.fields.iter().map(|field| text(field.value)).collect();
                self.heads.push(format!("{} {}", text(request.head.target), fields.join("|")));
                let fields: FieldsBuf =
                    [("Server", "ours"), ("X-Long", &"v".repeat(300))].into_iter().collect();
                let mut block = Vec::new();
                encode::response(&mut block, 200, fields.view(), Strings::Shortest);
                self.connection.send_head(stream, &block, false, &mut self.out).unwrap();
                self.pending.push((stream, BODY));
            }
            Event::Response { response, .. } => {
                let server = response.head.fields.all_named(b"server").next().unwrap_or_default();
                self.heads.push(format!("{} {}", response.head.status, text(server)));
            }
            Event::Data { stream, data, .. } => {
                self.received += data.len();
                self.connection.release(stream, data.len() as u32, &mut self.out);
            }
            Event::Trailers { fields, .. } => self.trailers += fields.len(),
            Event::Reset { .. } | Event::Malformed { .. } | Event::Refused { .. } => panic!("{event:?}"),
            _ => {}
        }
    }

    /// Sends what the windows allow.
    fn pump(&mut self) {
        let Side { connection, out, pending, .. } = self;
        pending.retain_mut(|(stream, left)| {
            while *left > 0 && connection.room(*stream) > 0 {
                let len = (*left).min(connection.room(*stream) as usize);
                connection.send_data(*stream, len as u32, false, out).unwrap();
                out.extend(std::iter::repeat_n(b'x', len));
                *left -= len;
            }
            if *left == 0 {
                let trailers: FieldsBuf = [("X-End", "yes")].into_iter().collect();
                let mut block = Vec::new();
                encode::trailers(&mut block, trailers.view(), Strings::Plain);
                connection.send_trailers(*stream, &block, out).unwrap();
            }
            *left > 0
        });
    }

    /// Runs until the peer closes, or until `done`.
    async fn run(&mut self, mut io: DuplexStream, done: impl Fn(&Side) -> bool) {
        let (mut buf, mut head) = (Vec::new(), HeadBuf::default());
        loop {
            self.pump();
            io.write_all(&self.out).await.unwrap();
            self.out.clear();
            self.connection.replies_sent();
            if done(self) {
                return;
            }
            if io.read_buf(&mut buf).await.unwrap() == 0 {
                return;
            }
            let mut at = 0;
            loop {
                let mut out = std::mem::take(&mut self.out);
                let received =
                    self.connection.receive(&buf[at..], &mut head, &mut out, Duration::ZERO).unwrap();
                self.out = out;
                at += received.consumed;
                let consumed = received.consumed;
                if let Some(event) = received.event {
                    self.react(event);
                }
                if consumed == 0 {
                    break;
                }
            }
            buf.drain(..at);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a body and its trailers from the crate's side.
async fn drain(mut body: h2::RecvStream) -> (usize, Option<HeaderMap>) {
    let mut len = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        len += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    (len, body.trailers().await.unwrap())
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([("x-end".parse().unwrap(), "yes".parse().unwrap())])
}

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}

#[test]
fn a_client_of_the_h2_crate_is_served() {
    run(async {
        let (near, far) = duplex(4096);
        let mut out = Vec::new();
        let mut server = Side::new(Connection::server(&Config::default(), &mut out), out);
        let client = tokio::spawn(async move {
            let (mut requests, connection) = h2::client::handshake(far).await.unwrap();
            let connection = tokio::spawn(connection);
            for count in 0..REQUESTS {
                let request = Request::post(format!("https://a.example/{count}?q"))
                    .header("user-agent", "second opinion")
                    .header("cookie", "a=1")
                    .header("cookie", "b=2")
                    .header("x-count", count.to_string());
                requests = requests.ready().await.unwrap();
                let (response, mut body) = requests.send_request(request.body(()).unwrap(), false).unwrap();
                body.send_data(Bytes::from(vec![b'y'; 50_000]), false).unwrap();
                body.send_trailers(trailers()).unwrap();
                let response = response.await.unwrap();
                assert_eq!(
                    (response.status(), &response.headers()["server"]),
                    (200.try_into().unwrap(), &"ours".parse().unwrap())
                );
                let (len, trailers) = drain(response.into_body()).await;
                assert_eq!((len, trailers), (BODY, Some(self::trailers())));
            }
            connection.abort();
        });
        server.run(near, |_| false).await;
        client.await.unwrap();
        let expected: Vec<_> = (0..REQUESTS)
            .map(|count| format!("/{count}?q a.example|second opinion|a=1; b=2|{count}"))
            .collect();
        assert_eq!(server.heads, expected);
        assert_eq!((server.received, server.trailers), (REQUESTS * 50_000, REQUESTS));
    });
}

#[test]
fn a_server_of_the_h2_crate_is_used() {
    run(async {
        let (near, far) = duplex(4096);
        let server = tokio::spawn(async move {
            let mut connection = h2::server::handshake(far).await.unwrap();
            while let Some(accepted) = connection.accept().await {
                let Ok((request, mut respond)) = accepted else { break };
                tokio::spawn(async move {
                    assert_eq!(request.uri(), "https://a.example/up");
                    assert_eq!(request.headers()["x-name"], "Value, with text");
                    let (len, trailers) = drain(request.into_body()).await;
                    assert_eq!((len, trailers), (BODY, Some(self::trailers())));
                    let response = Response::builder().header("server", "h2").body(()).unwrap();
                    let mut body = respond.send_response(response, false).unwrap();
                    body.send_data(Bytes::from(vec![b'y'; 50_000]), false).unwrap();
                    body.send_trailers(self::trailers()).unwrap();
                });
            }
        });
        let mut out = Vec::new();
        let mut client = Side::new(Connection::client(&Config::default(), &mut out), out);
        let fields: FieldsBuf = [("X-Name", "Value, with text")].into_iter().collect();
        for strings in [Strings::Plain, Strings::Shortest] {
            let line = RequestLine {
                method: b"POST",
                scheme: b"https",
                authority: b"a.example",
                path: b"/up",
                protocol: None,
            };
            let mut block = Vec::new();
            encode::request(&mut block, &line, fields.view(), strings);
            let id = client.connection.open(Method::Post, &block, false, &mut client.out).unwrap();
            client.pending.push((id, BODY));
        }
        client.run(near, |side| side.trailers == 2).await;
        server.await.unwrap();
        assert_eq!(client.heads, ["200 h2", "200 h2"]);
        assert_eq!((client.received, client.connection.streams()), (100_000, 0));
    });
}
