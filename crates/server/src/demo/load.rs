//! A bounded load: a number of visitors, each requesting the next page as soon as the last has arrived, for a fixed
//! time.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sandarac_balance::Histogram;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::visitors::{Kind, Visitor, Wish, Wrong};
use crate::load_client::{self, LoadClient, LoadResponse};

/// How long one response may take before it counts as an error.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a visitor waits after an error, so that a site that is down is not requested in a tight loop.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// How many errors are kept as messages; all are counted.
const MAX_EXAMPLES: usize = 3;

/// The visitors and the duration.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Visitors who read without signing in.
    pub readers: usize,
    /// Visitors who are signed in, so that nothing personal of what they get may come from a cache.
    pub members: usize,
    /// Visitors of the page that no cache may keep.
    pub watchers: usize,
    /// How long new requests are sent; requests in progress then finish.
    pub duration: Duration,
    /// The seed of every choice.
    pub seed: u64,
}

impl Plan {
    /// 64 visitors, nine of ten without a login, as on a large public site.
    pub fn lasting(duration: Duration) -> Plan {
        Plan { readers: 56, members: 6, watchers: 2, duration, seed: 2026 }
    }

    /// The total number of visitors.
    pub fn visitors(&self) -> usize {
        self.readers + self.members + self.watchers
    }
}

/// The measurements.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Complete and correct responses.
    pub answers: u64,
    /// Time from the first request to the last response.
    pub elapsed: Duration,
    /// Time from sending a request to the end of its response, of correct responses; to 1/16.
    pub latencies: Histogram<4>,
    /// The same of the pages with a personal corner alone.
    pub corner_latencies: Histogram<4>,
    /// Responses with `Cache-Status`.
    pub labelled: u64,
    /// Responses that `Cache-Status` reports as hits.
    pub hits: u64,
    /// Requests without a response or with a wrong one, including leaks.
    pub errors: u64,
    /// Private responses that reached another visitor, or came from a cache at all.
    pub leaks: u64,
    /// The first errors, as messages.
    pub examples: Vec<String>,
}

impl Measured {
    /// Correct responses per second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// The share of responses from memory; `None` if there was no cache.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.labelled > 0).then(|| self.hits as f64 / self.answers.max(1) as f64)
    }

    fn merge(&mut self, other: Measured) {
        self.answers += other.answers;
        self.latencies.merge(&other.latencies);
        self.corner_latencies.merge(&other.corner_latencies);
        self.labelled += other.labelled;
        self.hits += other.hits;
        self.errors += other.errors;
        self.leaks += other.leaks;
        self.examples.extend(other.examples);
        self.examples.truncate(MAX_EXAMPLES);
    }

    fn error(&mut self, what: impl fmt::Display) {
        self.errors += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(what.to_string());
        }
    }

    fn leak(&mut self, what: impl fmt::Display) {
        self.leaks += 1;
        // A leak replaces lesser errors: it must be among the examples.
        self.examples.insert(0, what.to_string());
        self.examples.truncate(MAX_EXAMPLES);
        self.errors += 1;
    }
}

/// Drives the load against `target` and waits for its end. It runs on the calling thread alone.
pub fn drive(target: SocketAddr, plan: &Plan) -> io::Result<Measured> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    Ok(runtime.block_on(visit(target, *plan)))
}

async fn visit(target: SocketAddr, plan: Plan) -> Measured {
    let kinds = [(Kind::Reader, plan.readers), (Kind::Member, plan.members), (Kind::Watcher, plan.watchers)];
    let kinds = kinds.into_iter().flat_map(|(kind, count)| std::iter::repeat_n(kind, count));
    let begun = Instant::now();
    let mut visits = JoinSet::new();
    for (number, kind) in kinds.enumerate() {
        let visitor = Visitor::new(kind, number, plan.seed);
        visits.spawn_local(browse(target, visitor, begun + plan.duration));
    }
    let mut total = Measured::default();
    while let Some(visit) = visits.join_next().await {
        match visit {
            Ok(measured) => total.merge(measured),
            Err(panicked) => total.error(panicked),
        }
    }
    total.elapsed = begun.elapsed();
    total
}

async fn browse(target: SocketAddr, mut visitor: Visitor, end: Instant) -> Measured {
    let mut client = LoadClient::new(target);
    let mut measured = Measured::default();
    let mut request = Vec::new();
    while Instant::now() < end {
        if visitor.kind == Kind::Member && visitor.cookie.is_none() {
            if let Err(error) = sign_in(&mut client, &mut visitor, target).await {
                measured.error(error);
                sleep(PAUSE_AFTER_ERROR).await;
            }
            continue;
        }
        let wish = visitor.choose();
        visitor.request(&wish, target, &mut request);
        let asked = Instant::now();
        let wrong = match timeout(ANSWER_TIMEOUT, client.ask(&request)).await {
            Ok(Ok(answer)) => match visitor.check(&wish, answer) {
                Ok(()) => {
                    measured.latencies.record(asked.elapsed());
                    if wish.has_corner() {
                        measured.corner_latencies.record(asked.elapsed());
                    }
                    measured.right(&visitor, answer, &wish);
                    continue;
                }
                Err(wrong) => wrong,
            },
            Ok(Err(fault)) => {
                measured.error(format_args!("{}: {fault}", wish.path()));
                sleep(PAUSE_AFTER_ERROR).await;
                continue;
            }
            Err(_) => {
                client.close();
                measured.error(format_args!(
                    "{}: no answer within {} s",
                    wish.path(),
                    ANSWER_TIMEOUT.as_secs()
                ));
                continue;
            }
        };
        match wrong {
            Wrong::Leak { .. } => measured.leak(wrong),
            Wrong::Kept { .. } | Wrong::Status { .. } | Wrong::Body { .. } => measured.error(wrong),
        }
        sleep(PAUSE_AFTER_ERROR).await;
    }
    measured
}

impl Measured {
    fn right(&mut self, visitor: &Visitor, answer: &LoadResponse, wish: &Wish) {
        self.answers += 1;
        if let Some(cache_status) = &answer.cache_status {
            self.labelled += 1;
            if load_client::is_hit(cache_status) {
                self.hits += 1;
                if visitor.kind == Kind::Member && !wish.has_corner() {
                    let path = wish.path();
                    self.leak(format_args!("{path}, private to {}, came out of a cache", visitor.name));
                }
            }
        }
    }
}

async fn sign_in(client: &mut LoadClient, visitor: &mut Visitor, target: SocketAddr) -> Result<(), String> {
    let answer = match timeout(ANSWER_TIMEOUT, client.ask(&visitor.sign_in(target))).await {
        Ok(answer) => answer.map_err(|fault| format!("/login: {fault}"))?,
        Err(_) => {
            client.close();
            return Err(format!("/login: no answer within {} s", ANSWER_TIMEOUT.as_secs()));
        }
    };
    let cookie = answer.set_cookie.as_deref().and_then(|cookie| cookie.split(|&byte| byte == b';').next());
    match cookie {
        Some(cookie) if answer.status == 303 => {
            visitor.cookie = Some(String::from_utf8_lossy(cookie).into_owned());
            Ok(())
        }
        _ => Err(format!("/login: status {} and no cookie", answer.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::site::{Options, Site};
    use sandarac_test_support::{Port, within};

    fn site() -> Site {
        Site::start("127.0.0.1:0".parse().unwrap(), Options { workers: 32, slowness: 0.02 }).unwrap()
    }

    fn plan() -> Plan {
        Plan { readers: 6, members: 2, watchers: 1, duration: Duration::from_millis(400), seed: 1 }
    }

    #[test]
    fn the_site_alone_answers_everyone_rightly_and_counts_what_it_answered() {
        // A busy machine may get little done in so short a time: then repeat it, with a new site.
        let (site, measured) = within("more than 20 answers", || {
            let site = site();
            let measured = drive(site.address(), &plan()).unwrap();
            assert_eq!(measured.errors, 0, "{:?}", measured.examples);
            assert_eq!(measured.leaks, 0, "{:?}", measured.examples);
            (measured.answers > 20).then_some((site, measured))
        });
        assert_eq!(site.requests(), measured.answers + 2, "two members signed in");
        assert_eq!(measured.hit_ratio(), None);
        assert!(*measured.latencies.quantile(0.5).unwrap().end() >= Duration::from_micros(200));
    }

    #[test]
    fn a_site_that_is_down_is_errors_and_not_a_busy_loop() {
        let port = Port::new();
        let measured = within("every visitor to have asked", || {
            let measured = drive(port.address(), &plan()).unwrap();
            assert_eq!(measured.answers, 0);
            assert!(measured.errors < 200, "{}", measured.errors);
            (measured.errors >= 9).then_some(measured)
        });
        assert_eq!(measured.examples.len(), MAX_EXAMPLES);
    }

    #[test]
    fn a_careless_cache_is_caught_leaking() {
        let site = site();
        let careless = careless_cache(site.address());
        within("a leak", || (drive(careless, &plan()).unwrap().leaks > 0).then_some(()));
    }

    /// A cache that keeps the first response for each target and serves it to every client.
    fn careless_cache(origin: SocketAddr) -> SocketAddr {
        use std::collections::HashMap;
        use std::io::{BufRead, BufReader, Read, Write};
        use std::sync::{Arc, Mutex};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let kept: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, kept) = (client.unwrap(), Arc::clone(&kept));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(client.try_clone().unwrap());
                    loop {
                        let (mut head, mut length) = (String::new(), 0);
                        while !head.ends_with("\r\n\r\n") {
                            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                                return;
                            }
                        }
                        for line in head.lines() {
                            length = line
                                .strip_prefix("Content-Length: ")
                                .map_or(length, |text| text.parse().unwrap());
                        }
                        let mut body = vec![0; length];
                        reader.read_exact(&mut body).unwrap();
                        let target = head.lines().next().unwrap().to_owned();
                        let known =
                            kept.lock().unwrap().get(&target).cloned().filter(|_| target.starts_with("GET"));
                        let answer = known.unwrap_or_else(|| {
                            let mut origin = std::net::TcpStream::connect(origin).unwrap();
                            let head = head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
                            origin.write_all(head.as_bytes()).unwrap();
                            origin.write_all(&body).unwrap();
                            let mut answer = Vec::new();
                            origin.read_to_end(&mut answer).unwrap();
                            kept.lock().unwrap().insert(target, answer.clone());
                            answer
                        });
                        if client.write_all(&answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }
}
