//! A FastCGI application before a backend: each request becomes a connection to the backend, whatever that does with
//! it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use sandarac_test_support::fastcgi::{CgiRequest, END, STDERR, STDOUT, record_of};
use sandarac_test_support::{Address, Conn, Listener, Response, Trouble, request};

use super::{LOOK, STACK};
use crate::random::Random;
use crate::stage::Stage;
use crate::verdict::{Count, Rule};

/// The status of END_REQUEST of an application that did not handle a request.
const OVERLOADED: u8 = 2;

/// A connection of the application.
struct Application {
    stage: Arc<Stage>,
    backend: Address,
    random: Random,
}

/// Starts an application before the backend at `port`, and gives its URL.
pub(super) fn before(port: SocketAddr, stage: &Arc<Stage>) -> String {
    let listener = Listener::new();
    let url = listener.fcgi_url();
    let stage = Arc::clone(stage);
    thread::spawn(move || {
        let mut part = 1 << 33;
        loop {
            let Some(conn) = listener.try_accept(LOOK) else { continue };
            part += 1;
            let mut application = Application {
                stage: Arc::clone(&stage),
                backend: Address::Tcp(port),
                random: Random::new(stage.seed, part),
            };
            let serve = thread::Builder::new().stack_size(STACK).spawn(move || application.serve(conn));
            if serve.is_err() {
                stage.verdict.violation(Rule::Harness, &[("application", "no thread".to_owned())]);
            }
        }
    });
    url
}

impl Application {
    fn serve(&mut self, mut conn: Conn) {
        loop {
            while !conn.is_ready(LOOK) {}
            let asked = match conn.try_cgi_request() {
                Ok(asked) => asked,
                Err(Trouble::Malformed(what)) => {
                    return self.stage.verdict.violation(Rule::Framing, &[("came", what)]);
                }
                Err(_) => return,
            };
            self.stage.verdict.count(Count::Cgi);
            // An application may close a connection although it was asked to keep it.
            if !self.answer(&mut conn, &asked) || !asked.keep || self.random.percent(10) {
                return;
            }
        }
    }

    /// Answers a request. `false` if the connection has to end, because the answer did not.
    fn answer(&mut self, conn: &mut Conn, asked: &CgiRequest) -> bool {
        if self.random.percent(3) {
            return conn.try_send(end(asked.id, OVERLOADED)).is_ok();
        }
        let (response, is_whole) = match self.forward(asked) {
            Some(answered) => answered,
            // Without a word, or with the end of a response that has not begun.
            None => return self.random.percent(50) && conn.try_send(end(asked.id, 0)).is_ok(),
        };
        let mut records = Vec::new();
        let output = output(&response);
        let mut rest = &output[..];
        while !rest.is_empty() {
            if self.random.percent(10) {
                let message = self.record(asked.id, STDERR, b"PHP Notice: a notice of the soak");
                records.extend(message);
            }
            let (piece, after) = rest.split_at(rest.len().min(self.random.within(1, 32 << 10) as usize));
            records.extend(self.record(asked.id, STDOUT, piece));
            rest = after;
        }
        if is_whole {
            if self.random.percent(50) {
                records.extend(self.record(asked.id, STDOUT, b""));
            }
            records.extend(end(asked.id, 0));
        }
        conn.try_send(records).is_ok() && is_whole
    }

    /// Asks the backend. The response, and whether its body is whole.
    fn forward(&self, asked: &CgiRequest) -> Option<(Response, bool)> {
        let param = |name: &str| {
            let found = asked.params.iter().find(|(sent, _)| sent == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let method = param("REQUEST_METHOD");
        let mut forwarded = request(method, param("REQUEST_URI")).host(param("HTTP_HOST"));
        for (name, value) in &asked.params {
            if let Some(name) = name.strip_prefix("HTTP_").filter(|name| *name != "HOST") {
                forwarded = forwarded.with(&name.replace('_', "-"), value);
            }
        }
        if !param("CONTENT_LENGTH").is_empty() {
            forwarded = forwarded.body(&asked.body);
        }
        let mut backend = Conn::try_to(&self.backend).ok()?;
        backend.try_send(forwarded.to_bytes()).ok()?;
        loop {
            let mut response = backend.try_response_head().ok()?;
            if response.status >= 200 {
                let is_whole = backend.try_response_body(method, &mut response).is_ok();
                return Some((response, is_whole));
            }
        }
    }

    fn record(&mut self, id: u16, kind: u8, content: &[u8]) -> Vec<u8> {
        let padding = if self.random.percent(50) { self.random.below(8) as u8 } else { 0 };
        record_of(id, kind, content, padding)
    }
}

/// A response as an application puts it out.
fn output(response: &Response) -> Vec<u8> {
    let mut head = format!("Status: {}\r\n", response.status);
    let of_connection =
        |name: &str| ["connection", "transfer-encoding"].iter().any(|of| name.eq_ignore_ascii_case(of));
    for (name, value) in response.fields.lines().into_iter().filter(|(name, _)| !of_connection(name)) {
        head += &format!("{name}: {value}\r\n");
    }
    [head.as_bytes(), b"\r\n", &response.body].concat()
}

/// The record that ends a response, with this status of the protocol.
fn end(id: u16, status: u8) -> Vec<u8> {
    record_of(id, END, &[0, 0, 0, 0, status, 0, 0, 0], 0)
}
