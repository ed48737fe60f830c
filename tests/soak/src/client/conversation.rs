//! Requests on one connection, one after the other or several at once.

use std::time::Duration;

use sandarac_test_support::Trouble;

use super::{About, Line, Visitor};
use crate::ask::Ask;
use crate::oracle::{Pace, Sent};
use crate::verdict::{Complaint, Count, Rule};

impl Visitor {
    pub(super) fn converse(&mut self) {
        let Some(mut line) = self.connect() else { return };
        if self.random.percent(4) {
            line = self.slow_down(line);
        }
        for _ in 0..self.random.within(1, 12) {
            if self.stage.verdict.is_stopping() {
                break;
            }
            let count = self.random.weighted(&[(28, 1), (4, 2), (2, 5), (2, 16), (1, 48)]);
            let mut batch: Vec<Sent> = (0..count).map(|_| Sent::now(self.pad(&line), &self.stage)).collect();
            if batch.iter().any(|sent| sent.shaky) {
                batch.iter_mut().for_each(|sent| sent.shaky = true);
            }
            let aborting = self.random.percent(12);
            let cut = aborting && self.random.percent(15);
            self.send(&mut line, &batch, cut);
            if aborting {
                return self.abort(line, if cut { &[] } else { &batch });
            }
            if !batch.iter().all(|sent| self.receive(&mut line, sent)) {
                return;
            }
            if self.random.percent(15) {
                self.expect_silence(&mut line);
            }
            if self.random.percent(5) {
                let pause = self.random.within(1, 200);
                self.stage.verdict.sleep(Duration::from_millis(pause));
            }
        }
        self.expect_silence(&mut line);
        if self.random.percent(15) {
            self.say_goodbye(line);
        }
    }

    /// A request, some with a long head.
    fn pad(&mut self, line: &Line) -> Ask {
        let ask = self.plan(line);
        if !self.random.percent(5) {
            return ask;
        }
        let padding = if self.random.percent(80) { 500 } else { 20_000 };
        ask.with("X-Padding", "x".repeat(self.random.within(1, padding) as usize))
    }

    /// Sends a last request, as one of HTTP/1.0, with `Connection: close`, or with the end of all requests behind it. The
    /// connection ends after the response.
    fn say_goodbye(&mut self, line: Line) {
        let mut line = line;
        let mut ask = self.plan(&line);
        // A body that only its connection ends has to break off with a reset, which a Unix socket does not have.
        let first = u64::from(line.entrance == "unix");
        let manner = self.random.within(first, 2);
        match manner {
            0 => ask.old = true,
            1 => ask = ask.with("Connection", "close"),
            _ => {}
        }
        let batch = [Sent::now(ask, &self.stage)];
        self.send(&mut line, &batch, false);
        if manner == 2 {
            line.conn.finish();
            line.ended = true;
        }
        let [sent] = &batch;
        self.receive(&mut line, sent);
        match line.conn.try_read(1) {
            Err(Trouble::Closed(_) | Trouble::Reset(_)) => {}
            other => {
                let complaint = Complaint::new(Rule::Unasked, "the end of the connection");
                self.report(&line, sent, complaint, format!("{other:?}"));
            }
        }
    }

    /// Makes a client that reads slowly.
    fn slow_down(&mut self, line: Line) -> Line {
        self.stage.verdict.count(Count::Slow);
        line.conn.shrink_receive_buffer();
        let (bytes, pause) = (self.random.within(2 << 10, 32 << 10), self.random.within(1, 10));
        let conn = line.conn.paced(bytes as usize, Duration::from_millis(pause));
        Line { conn, about: About { pace: Pace::Slow, ..line.about } }
    }

    /// Sends a batch of requests, or the beginning of it, at once or in two writes. A connection that takes no more has ended,
    /// and reading says how.
    fn send(&mut self, line: &mut Line, batch: &[Sent], cut: bool) {
        let mut bytes = Vec::new();
        for sent in batch {
            bytes.extend(sent.ask.to_bytes());
            let verdict = &self.stage.verdict;
            verdict.count(Count::Requests);
            match sent.ask.method {
                "HEAD" => verdict.count(Count::Heads),
                "POST" => verdict.count(Count::Posts),
                _ => {}
            }
        }
        if cut {
            bytes.truncate(self.random.below(bytes.len() as u64) as usize);
        }
        if self.random.percent(90) {
            let _ = line.conn.try_send(&bytes);
            return;
        }
        let middle = self.random.below(bytes.len() as u64 + 1) as usize;
        let _ = line.conn.try_send(&bytes[..middle]);
        std::thread::sleep(Duration::from_millis(self.random.within(0, 5)));
        let _ = line.conn.try_send(&bytes[middle..]);
    }
}
