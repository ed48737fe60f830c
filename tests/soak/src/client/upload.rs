//! Clients that send bodies.

use std::time::Duration;

use super::{Line, Visitor};
use crate::ask::{Ask, Echo, Wants};
use crate::behaviour::{self, Behaviour};
use crate::oracle::{Received, Sent};
use crate::origin::upload::{ANSWER, LENGTH, sum};
use crate::pool::Pool;
use crate::verdict::Count;

/// How long a client waits for 100 before it sends the body all the same.
const CONTINUE: Duration = Duration::from_millis(500);

/// How long a client tries to send a body that is not taken.
const WRITE_PATIENCE: Duration = Duration::from_secs(4);

impl Visitor {
    pub(super) fn upload(&mut self) {
        let Some(mut line) = self.connect() else { return };
        line.conn.set_write_patience(WRITE_PATIENCE);
        for _ in 0..self.random.within(1, 4) {
            if self.stage.verdict.is_stopping() || !self.upload_once(&mut line) {
                return;
            }
        }
        self.expect_silence(&mut line);
    }

    /// Sends one body. `false` ends the connection.
    fn upload_once(&mut self, line: &mut Line) -> bool {
        let length = match self.random.below(10) {
            0 => 0,
            1..6 => self.random.within(1, 5000),
            6..9 => self.random.within(5000, 100_000),
            _ => self.random.within(100_000, 2_000_000),
        };
        let nonce = self.stage.nonce();
        let pool = self.random.weighted(&[(3, Pool::Upload), (1, Pool::Cgi)]);
        let behaviour = Behaviour::choose(pool, "POST", &mut self.random);
        let body: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| self.random.next().to_le_bytes()).collect();
        let body = &body[..length as usize];
        let echo = Echo {
            nonce,
            length: ANSWER,
            behaviour,
            address: Some(line.address.clone()),
            sum: Some(sum(body)),
        };
        let mut ask = Ask { method: "POST", ..Ask::get(pool, "/upload".to_owned(), Wants::Echo(echo)) }
            .with("X-Nonce", nonce.to_string())
            .with(behaviour::FIELD, behaviour.value(false))
            .with(LENGTH, length.to_string());
        let chunked = self.random.percent(40);
        ask = if chunked {
            ask.with("Transfer-Encoding", "chunked")
        } else {
            ask.with("Content-Length", length.to_string())
        };
        let expects = length > 0 && self.random.percent(40);
        if expects {
            ask = ask.with("Expect", "100-continue");
        }
        let verdict = &self.stage.verdict;
        [Count::Requests, Count::Posts, Count::Uploads].into_iter().for_each(|count| verdict.count(count));
        let sent = Sent::now(ask, &self.stage);
        let _ = line.conn.try_send(sent.ask.to_bytes());
        if expects && line.conn.is_ready(CONTINUE) {
            match line.conn.try_response_head() {
                Ok(head) if head.status == 100 => {}
                // The body was not wanted.
                Ok(head) if head.status >= 200 => {
                    line.requests += 1;
                    let mut response = head;
                    let end = line.conn.try_response_body("POST", &mut response);
                    self.consider(line, &sent, &Received { response, end, pace: line.pace });
                    return false;
                }
                Ok(_) => {}
                Err(trouble) => {
                    self.unanswered(line, &sent, &trouble);
                    return false;
                }
            }
        }
        if self.random.percent(8) {
            // Leaves in the middle of the body.
            let _ = line.conn.try_send(&body[..body.len() / 2]);
            self.stage.verdict.count(Count::Aborts);
            return false;
        }
        self.send_body(line, body, chunked);
        self.receive(line, &sent)
    }

    /// Sends a body in pieces, until the peer takes no more: it may have answered before.
    fn send_body(&mut self, line: &mut Line, body: &[u8], chunked: bool) {
        let mut rest = body;
        while !rest.is_empty() {
            let piece = rest.len().min(self.random.within(1, 64 << 10) as usize);
            let mut bytes = Vec::with_capacity(piece + 16);
            if chunked {
                bytes.extend_from_slice(format!("{piece:x}\r\n").as_bytes());
            }
            bytes.extend_from_slice(&rest[..piece]);
            if chunked {
                bytes.extend_from_slice(b"\r\n");
            }
            if line.conn.try_send(&bytes).is_err() {
                return;
            }
            rest = &rest[piece..];
        }
        if chunked {
            let _ = line.conn.try_send("0\r\n\r\n");
        }
    }
}
