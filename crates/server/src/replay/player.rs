//! A bounded load: the requests of a log, each sent when it is due and a connection is free.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use sandarac_balance::Histogram;
use sandarac_lab::{Log, LogError, LogRequest, LogTally};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout, timeout_at};

use crate::human::count;
use crate::load_client::{LoadClient, LoadResponse, is_hit};
use crate::signals::{Event, Signals};

/// The number of requests read ahead.
const MAX_READ_AHEAD: usize = 1024;

/// How long one response may take. The balancer times out earlier.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a connection pauses after a failure, so that an unavailable target is not requested in a tight loop.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// A request sent this much after its due time is late.
const LATE_AFTER: Duration = Duration::from_millis(100);

/// The sampling interval of backlogs.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// How long the reader may take to report what it read, once no more requests are needed.
const READER_TIMEOUT: Duration = Duration::from_millis(500);

/// How long requests in flight at the end of the requested time may take. Longer than most responses, and no longer
/// than a user waits after asking for an end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// No wait is longer.
const MAX_WAIT: Duration = Duration::from_secs(100 * 366 * 86_400);

/// How many failures, and how many errors, are kept as messages; all are counted.
const MAX_EXAMPLES: usize = 3;

/// How a log is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The pace relative to the log; `None` for as fast as responses arrive.
    pub(super) pace: Option<f64>,
    /// The most requests in flight at a time.
    pub(super) connections: u32,
    /// The most requests in all.
    pub(super) requests: u64,
    /// How long new requests are sent; requests in flight then have [`END_TIMEOUT`] left.
    pub(super) span: Option<Duration>,
}

/// The results.
#[derive(Debug, Default)]
pub(super) struct Played {
    /// Complete responses that are not errors: below 500.
    pub(super) answers: u64,
    /// The same by status.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Complete responses that are errors, by status: 500 and above.
    pub(super) errors: BTreeMap<u16, u64>,
    /// The first of these, as messages.
    pub(super) error_examples: Vec<String>,
    /// Requests in flight.
    in_flight: u64,
    /// Requests without a complete response, including those in flight at the end.
    pub(super) failures: u64,
    /// The first of these, as messages.
    pub(super) examples: Vec<String>,
    /// Requests that were sent late because all connections were in use.
    pub(super) late: u64,
    /// The time from when a request was due, or sent if the log has no times, to the end of its response, unless that
    /// is an error; to 1/16.
    pub(super) latencies: Histogram<4>,
    /// Responses from memory, without errors.
    pub(super) hits: u64,
    /// The time from the first request to the last response.
    pub(super) elapsed: Duration,
    /// The mean of the samples taken.
    pub(super) spread: f64,
    /// Whether a signal ended it.
    pub(super) interrupted: bool,
    /// What was read of the log; `None` if its reader still waits for more of it.
    pub(super) log: LogTally,
    /// The reason why the log was not read to its end.
    pub(super) error: Option<LogError>,
}

/// Plays a log against `target`, and repeatedly calls `sample`, which may return `None`. It runs on the calling thread,
/// beside one that reads.
pub(super) fn play(
    target: SocketAddr,
    log: Log,
    plan: Plan,
    sample: impl Fn() -> Option<f64>,
) -> io::Result<Played> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(drive(target, log, plan, sample))
}

async fn drive(
    target: SocketAddr,
    log: Log,
    plan: Plan,
    sample: impl Fn() -> Option<f64>,
) -> io::Result<Played> {
    let mut signals = Signals::listen()?;
    let (sender, receiver) = mpsc::channel(MAX_READ_AHEAD);
    let (told, read) = oneshot::channel();
    thread::Builder::new().name("log-reader".to_owned()).spawn(move || {
        // No receiver is left after a signal.
        let _ = told.send(send_all(log, plan.requests, &sender));
    })?;
    let shared = Arc::new(Load {
        target,
        plan,
        begun: OnceLock::new(),
        requests: tokio::sync::Mutex::new(receiver),
        played: Mutex::default(),
    });
    let mut visits = JoinSet::new();
    (0..plan.connections).for_each(|_| _ = visits.spawn_local(shared.clone().visit()));
    let mut ticks = interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut sum, mut samples) = (0.0, 0_u64);
    let interrupted = loop {
        tokio::select! {
            visit = visits.join_next() => if visit.is_none() { break false },
            _ = ticks.tick() => {
                if shared.end().is_some_and(|end| end.elapsed() >= END_TIMEOUT) {
                    break false;
                }
                if let Some(value) = sample() {
                    sum += value;
                    samples += 1;
                }
            }
            event = signals.next() => if event != Event::Reload { break true },
        }
    };
    visits.shutdown().await;
    shared.requests.lock().await.close();
    let mut played = std::mem::take(&mut *shared.played.lock());
    if played.in_flight > 0 {
        played.failures += played.in_flight;
        played.elapsed = shared.begun.get().map_or(Duration::ZERO, Instant::elapsed);
        if played.examples.len() < MAX_EXAMPLES {
            played.examples.push(format!("{} in flight when it ended", count(played.in_flight, "request")));
        }
    }
    if let Ok(Ok((tally, ended))) = timeout(READER_TIMEOUT, read).await {
        (played.log, played.error) = (tally, ended.err());
    }
    played.interrupted = interrupted;
    played.spread = sum / samples.max(1) as f64;
    Ok(played)
}

/// Reads the log until its end, until the number of requests is reached, or until no more are needed.
fn send_all(mut log: Log, most: u64, sender: &mpsc::Sender<LogRequest>) -> (LogTally, Result<(), LogError>) {
    for _ in 0..most {
        match log.next_request() {
            Ok(Some(request)) => {
                if sender.blocking_send(request).is_err() {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => return (log.tally().clone(), Err(error)),
        }
    }
    (log.tally().clone(), Ok(()))
}

/// The state shared by all connections.
struct Load {
    target: SocketAddr,
    plan: Plan,
    /// The time of the first request.
    begun: OnceLock<Instant>,
    /// Held by the one connection that waits for the next request's due time, so that requests are sent in order.
    requests: tokio::sync::Mutex<mpsc::Receiver<LogRequest>>,
    played: Mutex<Played>,
}

impl Load {
    /// The time after which no new requests are sent, if limited and the first was sent.
    fn end(&self) -> Option<Instant> {
        self.begun.get().zip(self.plan.span).and_then(|(begun, span)| begun.checked_add(span))
    }

    /// The next request once it is due, with its due time; `None` if there is none, or no more are to be sent.
    async fn next(&self) -> Option<(LogRequest, Instant)> {
        let mut requests = self.requests.lock().await;
        let end = self.end().unwrap_or_else(|| Instant::now() + MAX_WAIT);
        let request = timeout_at(end, requests.recv()).await.ok()??;
        let now = Instant::now();
        let due = match self.plan.pace {
            None => now,
            Some(pace) => {
                let after = Duration::try_from_secs_f64(request.at.as_secs_f64() / pace).unwrap_or(MAX_WAIT);
                *self.begun.get_or_init(|| now) + after.min(MAX_WAIT)
            }
        };
        self.begun.get_or_init(|| now);
        if due.max(now) > end {
            requests.close();
            sleep_until(end).await;
            return None;
        }
        sleep_until(due).await;
        Some((request, due))
    }

    /// Sends requests over one connection, one after the other.
    async fn visit(self: Arc<Load>) {
        let mut client = LoadClient::without_bodies(self.target);
        let mut text = Vec::new();
        while let Some((request, due)) = self.next().await {
            write(&request, &mut text);
            let late = due.elapsed() > LATE_AFTER;
            self.played.lock().in_flight += 1;
            let answer = timeout(ANSWER_TIMEOUT, client.ask(&text)).await;
            let answered = match answer {
                Ok(answer) => self.note(&request, due, late, answer.map_err(|fault| fault.to_string())),
                Err(_) => {
                    client.close();
                    self.note(
                        &request,
                        due,
                        late,
                        Err(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())),
                    )
                }
            };
            if !answered {
                sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }

    /// Counts a finished request, and returns whether it was answered.
    fn note(
        &self,
        request: &LogRequest,
        due: Instant,
        late: bool,
        answer: Result<&LoadResponse, String>,
    ) -> bool {
        let mut played = self.played.lock();
        played.in_flight -= 1;
        played.late += u64::from(late);
        played.elapsed = self.begun.get().map_or(Duration::ZERO, Instant::elapsed);
        match answer {
            Ok(answer) if answer.status >= 500 => {
                *played.errors.entry(answer.status).or_default() += 1;
                if played.error_examples.len() < MAX_EXAMPLES {
                    let why = answer.proxy_status.as_deref().unwrap_or(b"the backend gives no reason");
                    let why = String::from_utf8_lossy(why);
                    played
                        .error_examples
                        .push(format!("{}: {why}", String::from_utf8_lossy(&request.target)));
                }
                true
            }
            Ok(answer) => {
                played.answers += 1;
                *played.statuses.entry(answer.status).or_default() += 1;
                played.hits += u64::from(answer.cache_status.as_deref().is_some_and(is_hit));
                played.latencies.record(due.elapsed());
                true
            }
            Err(why) => {
                played.failures += 1;
                if played.examples.len() < MAX_EXAMPLES {
                    played.examples.push(format!("{}: {why}", String::from_utf8_lossy(&request.target)));
                }
                false
            }
        }
    }
}

/// Writes a request as a client would send it. Values of the log cannot contain characters that would break its syntax.
fn write(request: &LogRequest, out: &mut Vec<u8>) {
    let method: &[u8] = if request.head { b"HEAD " } else { b"GET " };
    let agent = request.user_agent.as_deref().unwrap_or(b"sandarac-replay");
    out.clear();
    for part in [method, &request.target, b" HTTP/1.1\r\nHost: ", &request.host, b"\r\nUser-Agent: ", agent] {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\nAccept: */*\r\n");
    if let Some(referer) = &request.referer {
        out.extend_from_slice(&[b"Referer: ", &referer[..], b"\r\n"].concat());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_as_a_client_would() {
        let mut request = LogRequest {
            at: Duration::ZERO,
            head: false,
            host: b"a.example".to_vec(),
            target: b"/x?y".to_vec(),
            referer: None,
            user_agent: None,
        };
        let mut out = Vec::new();
        write(&request, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "GET /x?y HTTP/1.1\r\nHost: a.example\r\nUser-Agent: sandarac-replay\r\nAccept: */*\r\n\r\n"
        );
        (request.head, request.user_agent, request.referer) =
            (true, Some(b"b/1".to_vec()), Some(b"/".to_vec()));
        write(&request, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "HEAD /x?y HTTP/1.1\r\nHost: a.example\r\nUser-Agent: b/1\r\nAccept: */*\r\nReferer: /\r\n\r\n"
        );
    }
}
