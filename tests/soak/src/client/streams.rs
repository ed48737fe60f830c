//! Conversations over HTTP/2, with requests on many streams at a time.

use std::time::Duration;

use sandarac_test_support::Trouble;
use sandarac_test_support::http2::{END_STREAM, Ended, Http2, INITIAL_WINDOW, frame, kind};

use super::{About, BODY_PATIENCE, Line, SLOW_PATIENCE, Visitor};
use crate::oracle::{Pace, Received, Sent};
use crate::verdict::Count;

/// The window of a stream unless that setting says otherwise (RFC 9113 §6.9.2).
const USUAL_WINDOW: u32 = 65_535;

impl Visitor {
    pub(super) fn converse_by_streams(&mut self) {
        let entrances = &self.stage.entrances;
        let (entrance, address) = match self.random.below(2) {
            0 => ("plain", entrances.plain.clone()),
            _ => ("streams", entrances.tls.clone()),
        };
        let Some(Line { conn, mut about }) = self.connect_to(entrance, &address) else { return };
        let mut conn = conn.patient_for(BODY_PATIENCE);
        if self.random.percent(4) {
            self.stage.verdict.count(Count::Slow);
            about.pace = Pace::Slow;
            conn.shrink_receive_buffer();
            let (bytes, pause) = (self.random.within(2 << 10, 32 << 10), self.random.within(1, 10));
            conn = conn.paced(bytes as usize, Duration::from_millis(pause)).patient_for(SLOW_PATIENCE);
        }
        let window = self.random.weighted(&[(4, USUAL_WINDOW), (2, 1 << 20), (1, 5000)]);
        if window < USUAL_WINDOW && about.pace != Pace::Slow {
            about.pace = Pace::Narrow;
        }
        let Ok(mut client) = Http2::try_over(conn, &[(INITIAL_WINDOW, window)]) else { return };
        for _ in 0..self.random.within(1, 8) {
            if self.stage.verdict.is_stopping() || !self.ask_by_streams(&mut client, &mut about) {
                return;
            }
        }
    }

    /// Sends some requests at a time, and judges the responses. `false` ends the connection.
    fn ask_by_streams(&mut self, client: &mut Http2, about: &mut About) -> bool {
        let count = self.random.weighted(&[(10, 1), (6, 4), (4, 12), (1, 60)]);
        let mut open: Vec<(u32, Sent)> = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..count {
            let sent = Sent::now(self.plan(about), &self.stage);
            let verdict = &self.stage.verdict;
            verdict.count(Count::Requests);
            match sent.ask.method {
                "HEAD" => verdict.count(Count::Heads),
                "POST" => verdict.count(Count::Posts),
                _ => {}
            }
            let body = sent.ask.body.clone().unwrap_or_default();
            let (stream, request) = client.request(&sent.ask.to_fields(about.entrance == "streams"), &body);
            bytes.extend(request);
            if self.random.percent(10) {
                let urgency = [b"u=", &[b'0' + self.random.below(8) as u8][..], b", i"].concat();
                bytes.extend(frame(
                    kind::PRIORITY_UPDATE,
                    0,
                    0,
                    [&stream.to_be_bytes()[..], &urgency].concat(),
                ));
            }
            open.push((stream, sent));
        }
        // A connection that takes no more has ended, and reading says how.
        let _ = client.try_send(&bytes);
        if self.random.percent(8) {
            // Leaves without a word.
            self.stage.verdict.count(Count::Aborts);
            return false;
        }
        if self.random.percent(20) {
            open.retain(|(stream, _)| {
                let gives_up = self.random.percent(20);
                if gives_up {
                    self.stage.verdict.count(Count::Aborts);
                    let _ = client.try_send(frame(kind::RST_STREAM, 0, *stream, 8u32.to_be_bytes()));
                }
                !gives_up
            });
        }
        for (stream, sent) in open {
            about.requests += 1;
            match client.outcome(stream) {
                Ok(response) => {
                    self.consider(about, &sent, &Received { response, end: Ok(()), pace: about.pace });
                }
                Err(Ended::Reset(_)) => {
                    let cut = Trouble::Reset(Vec::new());
                    match client.take_partial(stream).filter(|response| response.status > 0) {
                        Some(response) => {
                            self.consider(
                                about,
                                &sent,
                                &Received { response, end: Err(cut), pace: about.pace },
                            );
                        }
                        None => self.unanswered(about, &sent, &cut),
                    }
                }
                Err(ended) => {
                    let trouble = match ended {
                        Ended::TimedOut if about.pace == Pace::Slow => return false,
                        Ended::TimedOut => Trouble::TimedOut,
                        Ended::Malformed(what) => Trouble::Malformed(what),
                        other => Trouble::Closed(format!("{other:?} after {:?}", client.others).into_bytes()),
                    };
                    self.unanswered(about, &sent, &trouble);
                    return false;
                }
            }
        }
        let ends =
            client.others.iter().any(|other| other.kind == kind::GOAWAY && other.flags & END_STREAM == 0);
        client.others.clear();
        client.order.clear();
        !ends
    }
}
