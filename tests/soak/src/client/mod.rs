//! Visitors: each is a thread that makes one connection after the other.

mod aborting;
mod conversation;
mod plan;
mod sticky;
mod streams;
mod tunnel;
mod upload;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sandarac_test_support::{Address, Conn, Trouble};

use crate::Only;
use crate::ask::{Ask, show};
use crate::busy::busy;
use crate::certificate;
use crate::oracle::{Pace, Received, Sent, judge, was_cut_off};
use crate::origin::STACK;
use crate::random::Random;
use crate::stage::Stage;
use crate::verdict::{Complaint, Count, Rule};

/// How long a client waits for the head of a response. No timeout of Sandarac's own is as long.
const PATIENCE: Duration = Duration::from_secs(25);

/// How long a client waits for a body. Bodies of 20 MB to hundreds of clients at once take more than [`PATIENCE`] on few cores.
const BODY_PATIENCE: Duration = Duration::from_secs(100);

/// How long Sandarac waits for a handshake, by default.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a slow reader goes on with one body.
const SLOW_PATIENCE: Duration = Duration::from_secs(8);

/// A client, with what it remembers from one connection to the next.
pub(crate) struct Visitor {
    stage: Arc<Stage>,
    random: Random,
    number: usize,
    only: Option<Only>,
    /// Connections so far.
    connections: usize,
    /// Its cookie for the pool with sessions, and the backend that the cookie names.
    home: Option<(String, String)>,
}

/// A connection of a visitor.
struct Line {
    conn: Conn,
    about: About,
}

/// What there is to know of a connection.
struct About {
    /// Where it goes, for reports.
    entrance: &'static str,
    /// The address that the origin is told of.
    address: String,
    /// The user that it asks for private pages as.
    user: String,
    /// Requests so far.
    requests: usize,
    connection: usize,
    opened: Instant,
    pace: Pace,
    /// Whether its sending side is closed.
    ended: bool,
}

impl Deref for Line {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl DerefMut for Line {
    fn deref_mut(&mut self) -> &mut About {
        &mut self.about
    }
}

impl Visitor {
    /// Starts visitor number `number`.
    pub(crate) fn start(stage: &Arc<Stage>, number: usize, only: Option<Only>) -> JoinHandle<()> {
        let mut visitor = Visitor {
            stage: Arc::clone(stage),
            random: Random::new(stage.seed, number as u64 + 1),
            number,
            only,
            connections: 0,
            home: None,
        };
        let visit = move || {
            while !visitor.stage.verdict.is_stopping() {
                visitor.visit();
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(visit).expect("a thread")
    }

    fn visit(&mut self) {
        let origin = self.only != Some(Only::Cache);
        match self.random.below(if origin { 98 } else { 80 }) {
            0..60 => self.converse(),
            60..80 => self.converse_by_streams(),
            80..88 => self.upload(),
            88..94 => self.tunnel(),
            _ => self.stick(),
        }
        if self.random.percent(10) {
            let pause = self.random.within(1, 60);
            self.stage.verdict.sleep(Duration::from_millis(pause));
        }
    }

    /// Connects by one of the entrances. While the process is disturbed it may refuse.
    fn connect(&mut self) -> Option<Line> {
        let entrances = &self.stage.entrances;
        let (entrance, address) = match self.random.below(10) {
            0..6 => ("plain", &entrances.plain),
            6 => ("proxied", &entrances.proxied),
            7 | 8 => ("tls", &entrances.tls),
            _ => ("unix", &entrances.unix),
        };
        self.connect_to(entrance, &address.clone())
    }

    fn connect_to(&mut self, entrance: &'static str, address: &Address) -> Option<Line> {
        let began = Instant::now();
        let connected = match entrance {
            "streams" => Conn::try_tls(address, &self.stage.entrances.http2_client, certificate::name()),
            "tls" => Conn::try_tls(address, &self.stage.entrances.tls_client, certificate::name()),
            _ => Conn::try_to(address),
        };
        let mut conn = match connected {
            Ok(conn) => conn.patient_for(PATIENCE),
            Err(error) => {
                if !self.stage.disturbances.explain(began) && began.elapsed() < HEAD_TIMEOUT {
                    let lines = [("connect", format!("{address}: {error}"))];
                    self.stage.verdict.violation(Rule::Silence, &lines);
                }
                self.stage.verdict.sleep(Duration::from_millis(100));
                return None;
            }
        };
        self.connections += 1;
        self.stage.verdict.count(Count::Connections);
        let claimed =
            format!("10.{}.{}.{}", self.number / 250, self.number % 250, self.connections % 250 + 1);
        if entrance == "proxied"
            && conn.try_send(format!("PROXY TCP4 {claimed} 127.0.0.1 4000 80\r\n")).is_err()
        {
            return None;
        }
        let address = match entrance {
            "plain" | "tls" | "streams" => "127.0.0.1".to_owned(),
            "proxied" => claimed,
            _ => "unknown".to_owned(),
        };
        let user = format!("user-{}-{}", self.number, self.connections);
        let about = About {
            entrance,
            address,
            user,
            requests: 0,
            connection: self.connections,
            opened: began,
            pace: Pace::Fast { busy_before: busy() },
            ended: false,
        };
        Some(Line { conn, about })
    }

    /// Reads the response to a request and judges it. `false` ends the connection.
    fn receive(&mut self, line: &mut Line, sent: &Sent) -> bool {
        line.requests += 1;
        match self.read_response(line, sent) {
            Ok(received) if line.pace == Pace::Slow && received.end == Err(Trouble::TimedOut) => {
                self.stage.verdict.count(Count::Aborts);
                false
            }
            Ok(received) => {
                let close =
                    received.end.is_err() || received.response.fields.list("connection").contains("close");
                self.consider(line, sent, &received);
                !close
            }
            Err(trouble) => {
                self.unanswered(line, sent, &trouble);
                false
            }
        }
    }

    fn read_response(&mut self, line: &mut Line, sent: &Sent) -> Result<Received, Trouble> {
        line.conn.set_patience(PATIENCE);
        let mut interim = Vec::new();
        let mut response = loop {
            let head = line.conn.try_response_head()?;
            if head.status >= 200 || head.status == 101 {
                break head;
            }
            interim.push(head);
        };
        response.interim = interim;
        line.conn.set_patience(if line.pace == Pace::Slow { SLOW_PATIENCE } else { BODY_PATIENCE });
        let end = line.conn.try_response_body(sent.ask.method, &mut response);
        Ok(Received { response, end, pace: line.pace })
    }

    /// Judges a response and counts it, or reports what is wrong with it.
    fn consider(&self, line: &About, sent: &Sent, received: &Received) {
        use crate::oracle::Outcome;
        let verdict = &self.stage.verdict;
        verdict.add(Count::Bytes, received.response.body.len() as u64);
        match judge(&self.stage, sent, received) {
            Ok(outcome) => {
                verdict.count(match outcome {
                    Outcome::Whole => Count::Whole,
                    Outcome::Cut => Count::Cut,
                    Outcome::Refused => Count::Refused,
                    Outcome::OriginError => Count::OriginErrors,
                });
                if sent.ask.method != "POST" {
                    sent.ask.nonce().into_iter().for_each(|nonce| self.stage.ledger.forget(nonce));
                }
            }
            Err(complaint) => {
                let came = format!(
                    "{}{}",
                    show(&received.response),
                    match &received.end {
                        Ok(()) => String::new(),
                        Err(trouble) => format!(", then {trouble:?}"),
                    }
                );
                self.report(line, sent, complaint, came);
            }
        }
    }

    /// A request without an answer is a fault, and a connection that hangs always. A connection may end while the
    /// process is disturbed, with a reset where an origin broke off and the beginning of the response was still on its
    /// way, or because the client was cut off.
    fn unanswered(&self, line: &About, sent: &Sent, trouble: &Trouble) {
        self.stage.verdict.count(Count::Unanswered);
        let rule = match trouble {
            Trouble::Malformed(_) => Rule::Framing,
            Trouble::TimedOut => Rule::Silence,
            _ if self.stage.disturbances.explain(sent.at) => return,
            // What the client still read may have been in buffers of the system.
            _ if self.stage.disturbances.restarted(line.opened) => return,
            // On a machine that is far too busy, both sides of a handshake may take longer than Sandarac
            // allows for it.
            Trouble::Closed(_)
                if line.requests <= 1
                    && sent.at.duration_since(line.opened) >= HEAD_TIMEOUT / 2
                    && line.opened.elapsed() >= HEAD_TIMEOUT =>
            {
                return;
            }
            Trouble::Reset(_) if sent.shaky => return,
            // A request is given up when its client closes.
            Trouble::Closed(_) if line.ended => return,
            Trouble::Closed(_) | Trouble::Reset(_) if was_cut_off(&self.stage, line.pace) => return,
            _ => Rule::Silence,
        };
        self.report(line, sent, Complaint::new(rule, "a response"), format!("{trouble:?}"));
    }

    fn report(&self, line: &About, sent: &Sent, complaint: Complaint, came: String) {
        let lines = [
            ("asked", self.describe(line, &sent.ask)),
            ("came", came),
            ("expected", complaint.expected),
            ("when", self.when(sent)),
        ];
        self.stage.verdict.violation(complaint.rule, &lines);
    }

    /// How long ago a request was sent, and what was done to the process last.
    fn when(&self, sent: &Sent) -> String {
        let ago = sent.at.elapsed().as_secs_f64();
        format!("sent {ago:.3} s ago; {}", self.stage.disturbances.latest())
    }

    /// A request in one line, for reports.
    fn describe(&self, line: &About, ask: &Ask) -> String {
        let fields: Vec<String> =
            ask.fields.iter().map(|(name, value)| format!("{name}: {value:.100}")).collect();
        format!(
            "{} {} [{}] by client {} as {}, request {} of its connection {} ({}{})",
            ask.method,
            ask.place(),
            fields.join("; "),
            self.number,
            line.user,
            line.requests,
            line.connection,
            line.entrance,
            if line.pace == Pace::Slow { ", slow" } else { "" }
        )
    }

    /// Nothing may come on a connection on which every request was answered.
    fn expect_silence(&self, line: &mut Line) {
        if line.conn.is_silent() {
            return;
        }
        // The process may have closed it; whatever bytes come with that belong to nobody.
        if let Ok(byte) = line.conn.try_read(1) {
            let mut more = byte;
            while let Ok(byte) = line.conn.try_read(1) {
                more.extend(byte);
                if more.len() >= 200 {
                    break;
                }
            }
            let lines = [
                (
                    "asked",
                    format!(
                        "nothing, by client {} on {} after {} requests",
                        self.number, line.entrance, line.requests
                    ),
                ),
                ("came", more.escape_ascii().to_string()),
            ];
            self.stage.verdict.violation(Rule::Unasked, &lines);
        }
    }
}
