//! One worker's part of the proxy: what it answers from memory at once, and what it hands to an exchange.

use crate::exchange::{self, is_loop};
use crate::handling::Handling;
use crate::log_throttle::Subject;
use crate::origin::Origins;
use crate::record::{Outcome, Recorder};
use crate::respond::Synthetic;
use crate::shared::Shared;
use crate::site::{LocalSite, Site};
use crate::step::deliver::{Delivery, synthetic};
use crate::step::receive::{Judged, Received, RequestFacts, Verdict, receive, verdict};
use crate::step::shared_fetch::revalidate;
use crate::step::{hash, lookup};
use crate::tally::{StatusClass, refused_text};
use crate::{Counter, Counters, Fault, Record};
use sandarac_cache::{Key, Lookup};
use sandarac_message::{Fields, Method, Name, RequestHead, Span, Timestamp, Version};
use sandarac_net::{
    Answer, Client, Incoming, Meter, Next, Output, Peer, Refused, Service, SessionLimits, Sessions, wall,
};
use sandarac_policy::PoolId;
use sandarac_wire::h1::request::Request;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How often idle origin connections are looked through.
const PRUNE_EVERY: Duration = Duration::from_secs(1);

/// One worker's part of the proxy.
pub struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) origins: Rc<Origins>,
    pub(crate) recorder: Box<dyn Recorder>,
    me: Weak<Worker>,
    pub(crate) sessions: Rc<Sessions>,
    /// Memory for parsing response heads, kept from one to the next.
    pub(crate) spans: Cell<Vec<Span>>,
    /// The next transaction number; workers take turns.
    next: Cell<u64>,
    site: RefCell<LocalSite>,
    /// Which configuration that is.
    generation: Cell<u64>,
}

/// What was found out about a request before it became an exchange.
pub struct Deferred {
    pub(crate) site: LocalSite,
    pub(crate) judged: Result<Judged, Fault>,
    pub(crate) found: Option<(Key, Lookup)>,
}

impl Worker {
    /// The part of worker `index` of a process. MUST be called within its runtime.
    pub fn new(
        shared: Arc<Shared>,
        index: usize,
        recorder: Box<dyn Recorder>,
        sessions: Rc<Sessions>,
    ) -> Rc<Worker> {
        let worker = Rc::new_cyclic(|me| Worker {
            counters: shared.counters[index].clone(),
            origins: Origins::new(&shared.site().config.dns, shared.counters[index].clone()),
            recorder,
            me: me.clone(),
            sessions,
            spans: Cell::default(),
            next: Cell::new(index as u64),
            // Read before the configuration, so that one put in force meanwhile is noticed.
            generation: Cell::new(shared.generation()),
            site: RefCell::new(LocalSite::new(shared.site())),
            shared,
        });
        tokio::task::spawn_local(prune(worker.me.clone()));
        worker
    }

    /// A hold on this worker, for tasks that may outlive whoever begins them.
    pub(crate) fn handle(&self) -> Rc<Worker> {
        self.me.upgrade().expect("a worker is made in an Rc, and is there while it is borrowed")
    }

    /// A number for a request or a fetch, unique in the process.
    pub(crate) fn transaction(&self) -> u64 {
        let number = self.next.get();
        // One set of counters is the upkeep's, whose numbers nobody takes.
        self.next.set(number + self.shared.counters.len() as u64);
        number
    }

    /// The configuration in force.
    pub(crate) fn site(&self) -> LocalSite {
        let generation = self.shared.generation();
        if self.generation.replace(generation) != generation {
            self.site.replace(LocalSite::new(self.shared.site()));
            self.origins.ask_from(&self.site.borrow().config.dns);
        }
        self.site.borrow().clone()
    }

    /// Hands a record of `site` on, with what connection and request tell of the client.
    pub(crate) fn record(&self, site: &Site, peer: &Peer, request: Fields<'_>, record: &Record<'_>) {
        let client = site.visitor(peer, request);
        self.recorder.record(&Record { session: peer.number, client, ..*record });
    }
}

/// A request that can be answered at once.
struct Known<'a> {
    worker: &'a Worker,
    site: &'a LocalSite,
    peer: &'a Peer,
    request: &'a Request<'a>,
    began: Instant,
}

impl Known<'_> {
    /// Answers from the store where the object is there whole; says whether the connection stays open, or what was looked up.
    fn stored(
        &self,
        received: &Received<'_>,
        pool: PoolId,
        output: &mut Output,
    ) -> Result<bool, Option<(Key, Lookup)>> {
        let Known { worker, site, request: &Request { ref head, keep_alive, .. }, .. } = *self;
        let rule = received.route.cache_rule().ok_or(None)?;
        let now = wall();
        let directives = rule.policy.directives(head.fields);
        let path = received.target.path_and_query;
        let key = hash::key(&rule.key, received.asker.scheme, &received.host, path, head.fields);
        let query = lookup::query(head, rule, &directives);
        let (object, flight, outcome) = match worker.shared.store.lookup(key, &query, now) {
            Lookup::Hit(object) if object.body().is_whole() => (object, None, Outcome::Hit),
            Lookup::Stale(object, flight) if object.body().is_whole() => (object, flight, Outcome::Stale),
            other => return Err(Some((key, other))),
        };
        if let Some(flight) = flight {
            revalidate(worker, site, head, received, pool, flight);
        }
        let ttl = object.lifetimes().ttl(now);
        let handling = Handling { ttl: Some(ttl), ..Handling::new(outcome) };
        let delivery = Delivery {
            site,
            object: &object,
            request: head,
            now,
            handling: &handling,
            own: None,
            keep_alive,
        };
        let delivered = delivery.encode(output);
        self.answered(&handling, Some(object.transaction()), delivered.status, delivered.bytes, now);
        Ok(delivered.keep_alive)
    }

    /// Answers with what the route says; says whether the connection stays open.
    fn fixed(&self, answer: &Synthetic, output: &mut Output) -> bool {
        let now = wall();
        let keep_alive = self.request.keep_alive;
        synthetic(output, answer, Some(&self.request.head), None, now, keep_alive);
        self.answered(&Handling::new(Outcome::Synth), None, answer.status, answer.body.len() as u64, now);
        keep_alive
    }

    /// Counts and records the answer.
    fn answered(&self, handling: &Handling, fetch: Option<u64>, status: u16, bytes: u64, now: Timestamp) {
        let Known { worker, site, peer, request, began } = *self;
        worker.counters.one(Counter::Requests);
        worker.counters.outcome(handling, None);
        let duration = began.elapsed();
        worker.counters.responses.one(&StatusClass(status));
        worker.counters.latency.observe(duration);
        if worker.recorder.wants() {
            worker.record(
                site,
                peer,
                request.head.fields,
                &Record {
                    request: worker.transaction(),
                    fetch,
                    status,
                    bytes,
                    outcome: handling.outcome,
                    duration,
                    first_byte: Some(duration),
                    ..Record::of(&request.head, now)
                },
            );
        }
    }
}

impl Meter for Worker {
    fn wrote(&self, bytes: u64) {
        self.counters.add(Counter::BytesToClients, bytes);
    }
}

impl Service for Worker {
    type Deferred = Deferred;

    fn limits(&self) -> SessionLimits {
        self.site().session
    }

    fn number(&self) -> u64 {
        self.transaction()
    }

    fn admit(&self) -> bool {
        let admitted = self.shared.admit();
        self.counters.one(if admitted { Counter::Connections } else { Counter::ConnectionsRefused });
        admitted
    }

    fn closed(&self) {
        self.shared.closed();
    }

    fn panicked(&self) {
        self.counters.one(Counter::Panics);
    }

    fn cut_off(&self) {
        self.counters.one(Counter::ClientsSlow);
    }

    fn hurry(&self) -> &AtomicBool {
        &self.shared.hurry
    }

    fn accept_failed(&self, error: &io::Error) {
        self.counters.one(Counter::AcceptFailures);
        self.shared.log_throttled(Subject::Accepting, || format!("cannot accept connections: {error}"));
    }

    fn answer(
        &self,
        peer: &Peer,
        request: &Request<'_>,
        began: Instant,
        output: &mut Output,
    ) -> Answer<Deferred> {
        let site = self.site();
        let head = &request.head;
        let mut found = None;
        let judged = receive(&site, peer, head).map(|received| {
            let verdict = verdict(&site, &received, head);
            (received, verdict)
        });
        // A body has to be read first, or let through.
        if let Ok((received, Ok(verdict))) = &judged
            && request.framing.is_empty()
        {
            let known = Known { worker: self, site: &site, peer, request, began };
            match verdict {
                Verdict::Lookup(pool) => match known.stored(received, *pool, output) {
                    Ok(keep_alive) => return Answer::Answered { keep_alive },
                    Err(looked_up) => found = looked_up,
                },
                Verdict::Synth(answer) if !is_loop(&site, head) => {
                    return Answer::Answered { keep_alive: known.fixed(answer, output) };
                }
                _ => {}
            }
        }
        let judged = judged.map(|(received, verdict)| Judged { facts: RequestFacts::of(&received), verdict });
        Answer::Deferred(Deferred { site, judged, found })
    }

    async fn exchange(&self, client: &mut Client, request: Box<Incoming<Deferred>>) -> Next {
        exchange::run(self, client, request).await
    }

    fn refuse(&self, peer: &Peer, refused: &Refused, received: &[u8], output: &mut Output) {
        let site = self.site();
        let answer = match refused {
            Refused::Message(refusal) => Synthetic::refusal(*refusal, site.name()),
            Refused::Late => {
                Synthetic::turned_away(408, "the request head did not arrive in time", site.name())
            }
            Refused::Crowded => Synthetic::turned_away(503, "too many connections are open", site.name()),
        };
        self.counters.refused.one(refused);
        self.counters.responses.one(&StatusClass(answer.status));
        let now = wall();
        synthetic(output, &answer, None, None, now, false);
        if self.recorder.wants() {
            let (method_text, target) = request_line(received);
            let what_came = RequestHead {
                method: Method::Other,
                method_text,
                target,
                version: Version::Http11,
                fields: Fields::default(),
            };
            self.record(
                &site,
                peer,
                what_came.fields,
                &Record {
                    request: self.transaction(),
                    status: answer.status,
                    bytes: answer.body.len() as u64,
                    outcome: Outcome::Error,
                    reason: Some(refused_text(refused)),
                    ..Record::of(&what_came, now)
                },
            );
        }
    }
}

/// Method and target of what was refused, as far as it shows them: for the log, which must not take up more than the
/// beginning of what is no request.
fn request_line(received: &[u8]) -> (&[u8], &[u8]) {
    const METHOD: usize = 32;
    const TARGET: usize = 1024;
    let line = received
        .split(|byte| matches!(byte, b'\r' | b'\n'))
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let method = words.next().filter(|word| word.len() <= METHOD && word.iter().all(u8::is_ascii_graphic));
    match (method, words.next()) {
        (Some(method), Some(target)) => (method, &target[..target.len().min(TARGET)]),
        _ => (b"", b""),
    }
}

/// Closes idle origin connections in their time, for as long as the worker is there.
async fn prune(worker: Weak<Worker>) {
    loop {
        tokio::time::sleep(PRUNE_EVERY).await;
        let Some(worker) = worker.upgrade() else { return };
        let site = worker.site();
        let now = worker.shared.epoch.elapsed();
        site.pools.iter().for_each(|pool| pool.live().look_for_silence(now));
        let longest = site.pools.iter().map(|pool| pool.timeouts.idle).max().unwrap_or_default();
        worker.origins.prune(longest);
    }
}

/// What is known of a request alone.
impl<'a> Record<'a> {
    pub(crate) fn of(request: &RequestHead<'a>, now: Timestamp) -> Record<'a> {
        let fields = request.fields;
        Record {
            session: 0,
            request: 0,
            fetch: None,
            id: None,
            time: now,
            client: None,
            method: request.method_text,
            target: request.target,
            version: request.version,
            host: fields.get(Name::Host).unwrap_or_default(),
            status: 0,
            bytes: 0,
            referer: fields.get(Name::Referer),
            user_agent: fields.get(Name::UserAgent),
            authorization: fields.get(Name::Authorization),
            outcome: Outcome::Error,
            reason: None,
            duration: Duration::ZERO,
            first_byte: None,
            origin: None,
            backend: None,
            error: None,
        }
    }
}
