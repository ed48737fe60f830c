//! Answers with the nonce of the request, and the ways in which they go wrong.

use std::thread;
use std::time::{Duration, Instant};

use sandarac_test_support::{Conn, Request};

use super::{After, CROSSING, Server, head};
use crate::behaviour::{self, Behaviour};
use crate::page::{self, Page};
use crate::verdict::Count;

/// The page that answers a request with a nonce.
pub(crate) fn echoed(place: String, length: u64, nonce: &str) -> Page {
    Page { place, version: 0, length, owner: format!("nonce-{nonce}") }
}

impl Server {
    pub(super) fn echo(&mut self, conn: &mut Conn, request: &Request, attempt: u32) -> After {
        use Behaviour::*;
        let behaviour = Behaviour::asked(request.field(behaviour::FIELD).unwrap_or_default(), attempt);
        match behaviour {
            Delayed => self.pause(1, 30),
            Slow => self.pause(80, 120),
            Hangs => return self.hang(conn),
            Resets => return After::Reset,
            Closes => return After::Closed,
            _ => {}
        }
        let nonce = request.field("x-nonce").unwrap_or("none").to_owned();
        let length = request.target.rsplit('/').next().and_then(|length| length.parse().ok()).unwrap_or(0);
        let host = request.field("host").unwrap_or_default();
        let page = echoed(format!("{host}{}", request.target), length, &nonce);
        let mut fields = self.echo_fields(request, &nonce);
        let answer = self.response(200, &page, behaviour, request.method == "HEAD", &mut fields);
        self.finish(conn, answer, behaviour, request)
    }

    /// The fields of an answer to `request`.
    pub(super) fn echo_fields(&self, request: &Request, nonce: &str) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("X-Nonce", nonce.to_owned()),
            ("X-Backend", self.name.clone()),
            ("X-Client", request.fields.list("x-forwarded-for")),
            ("Cache-Control", "no-store".to_owned()),
        ];
        if request.fields.has("request-class") {
            fields.push(("Worker-State", self.worker_state()));
        }
        fields
    }

    /// The bytes of a response with `page`, as whole as `behaviour` has it.
    pub(super) fn response(
        &mut self,
        status: u16,
        page: &Page,
        behaviour: Behaviour,
        is_head: bool,
        fields: &mut Vec<(&'static str, String)>,
    ) -> Vec<u8> {
        fields.push((page::FIELD, page.to_string()));
        fields.push(match behaviour {
            Behaviour::Chunked => ("Transfer-Encoding", "chunked".to_owned()),
            Behaviour::UntilClose => ("Connection", "close".to_owned()),
            _ => ("Content-Length", page.length.to_string()),
        });
        if matches!(behaviour, Behaviour::ThenCloses | Behaviour::EarlyCloses | Behaviour::Refuses) {
            fields.push(("Connection", "close".to_owned()));
        }
        let mut bytes = Vec::new();
        if behaviour == Behaviour::Hints {
            bytes.extend_from_slice(b"HTTP/1.1 102 Processing\r\n\r\n");
            bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
        }
        bytes.append(&mut head(status, fields));
        if is_head {
            return bytes;
        }
        let mut body = page.bytes(0, usize::MAX);
        match behaviour {
            Behaviour::Chunked => {
                let mut rest = &body[..];
                while !rest.is_empty() {
                    let (chunk, after) =
                        rest.split_at(rest.len().min(self.random.within(1, 20_000) as usize));
                    let extension = if self.random.percent(10) { ";soak=\"yes\"" } else { "" };
                    bytes.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                    rest = after;
                }
                let trailer = if self.random.percent(20) { "X-Trailer: soak\r\n" } else { "" };
                bytes.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
            }
            Behaviour::Truncates | Behaviour::Breaks => {
                body.truncate(body.len() / 2);
                bytes.append(&mut body);
            }
            _ => bytes.append(&mut body),
        }
        bytes
    }

    /// Sends an answer, and what `behaviour` has come after it.
    pub(super) fn finish(
        &mut self,
        conn: &mut Conn,
        answer: Vec<u8>,
        behaviour: Behaviour,
        request: &Request,
    ) -> After {
        use Behaviour::*;
        let mut answer = answer;
        if matches!(behaviour, Twice | HeadBody) {
            answer.append(&mut self.stray(request));
            self.stage.verdict.count(Count::Strays);
        }
        while behaviour == Dribbles && answer.len() > 1 && self.random.percent(80) {
            let rest = answer.split_off(self.random.within(1, answer.len() as u64 - 1) as usize);
            if conn.try_send(&answer).is_err() {
                return After::Closed;
            }
            answer = rest;
            self.pause(0, 3);
        }
        if conn.try_send(&answer).is_err() {
            return After::Closed;
        }
        match behaviour {
            UntilClose | ThenCloses | Truncates | EarlyCloses | Refuses => After::Closed,
            Breaks => After::Reset,
            Vanishes => {
                self.pause(0, 20);
                After::Closed
            }
            Late | HeadBodyLate => {
                let stray = self.stray(request);
                self.send_late(conn, &stray)
            }
            _ => After::Open,
        }
    }

    /// A response that nobody asked for. After the head of a response to HEAD it is a body that reads as a response.
    pub(super) fn stray(&mut self, request: &Request) -> Vec<u8> {
        let host = request.field("host").unwrap_or_default();
        let page = echoed(format!("{host}{}", request.target), 500, "stray");
        let mut fields = self.echo_fields(request, "stray");
        self.response(200, &page, Behaviour::Plain, false, &mut fields)
    }

    /// Sends bytes that belong to no request, some time after an answer.
    fn send_late(&mut self, conn: &mut Conn, bytes: &[u8]) -> After {
        let until = Instant::now() + Duration::from_millis(self.random.within(2, 40));
        while Instant::now() < until {
            // A request that is here already would take the bytes for its answer: there is nothing to learn from that.
            if conn.is_ready(Duration::from_millis(1)) {
                return After::Open;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.stage.verdict.count(Count::Strays);
        if conn.try_send(bytes).is_err() {
            return After::Closed;
        }
        if conn.is_ready(CROSSING) { After::Excusing } else { After::Open }
    }
}
