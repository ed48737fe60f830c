//! State that all cores of a process share.

use crate::log_throttle::{LogTopic, Throttle};
use crate::purge_target::purge_target;
use crate::site::Site;
use crate::tally::Tally;
use crate::unbelieved::Unbelieved;
use crate::upkeep::Mailbox;
use crate::{CountByReason, Counter, Counters, Latency};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sandarac_balance::{BackendId, Believed, Pool};
use sandarac_cache::{Purge, Store};
use sandarac_message::printable::escaped;
use sandarac_message::target::{Form, Target, route_path};
use sandarac_message::{Fields, Method, RequestHead, Version};
use sandarac_net::Moment;
use sandarac_policy::Edits;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Fetches that go on without their client, as a share of the client connections that are served: each takes one descriptor,
/// where a client with its fetch takes two.
const DETACHED_SHARE: usize = 8;

/// The part of the store's memory that clients may hold of what has left it, before they are to hurry: half of what the
/// store gives to those it does not know as popular, so that there is some left for what is new.
const HELD_SHARE: usize = 20;

/// What all cores of a process share.
pub struct Shared {
    site: ArcSwap<Site>,
    /// The configuration that the upkeep looks after: the one in force, or the one that is to be.
    tended: ArcSwap<Site>,
    /// Counts the configurations, so that a core can tell with one read whether its own is still in force.
    generation: AtomicU64,
    /// The store.
    pub store: Arc<Store>,
    /// One set for each core, and the upkeep's.
    pub counters: Box<[Arc<Counters>]>,
    /// What tells this process from others in the ids of requests.
    run: u64,
    /// The zero of the balancer's clock.
    pub(crate) epoch: Moment,
    connections: AtomicUsize,
    /// Fetches that go on without their client.
    detached: AtomicUsize,
    connection_limit: AtomicUsize,
    /// Whether clients are to take their responses faster.
    pub(crate) memory_pressure: AtomicBool,
    pub(crate) upkeep_mailbox: Mailbox,
    log_throttle: Mutex<Throttle>,
    /// Writes to the process's own log.
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// A place for a fetch whose client has left.
pub(crate) struct Detached(Arc<Shared>);

impl Drop for Detached {
    fn drop(&mut self) {
        self.0.detached.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// The shared part of a process with so many cores. `connection_limit` is for client connections;
    /// `log` writes to the process's own log.
    pub fn new(
        site: Site,
        store: Arc<Store>,
        cores: usize,
        connection_limit: usize,
        log: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Arc<Shared> {
        let site = Arc::new(site);
        Arc::new(Shared {
            site: ArcSwap::new(site.clone()),
            tended: ArcSwap::new(site),
            generation: AtomicU64::new(0),
            store,
            counters: (0..cores + 1).map(|_| Arc::default()).collect(),
            run: RandomState::new().build_hasher().finish(),
            epoch: Moment::now(),
            connections: AtomicUsize::new(0),
            detached: AtomicUsize::new(0),
            connection_limit: AtomicUsize::new(connection_limit),
            memory_pressure: AtomicBool::new(false),
            upkeep_mailbox: Mailbox::default(),
            log_throttle: Mutex::default(),
            log,
        })
    }

    /// The configuration in force.
    pub fn site(&self) -> Arc<Site> {
        self.site.load_full()
    }

    /// What the request to an origin is called, where `edits` tell it that: what the field `X-Request-Id` says among those of a
    /// trusted `peer`, if it is one word of up to 128 bytes, or what no other request is called.
    pub(crate) fn request_id(
        &self,
        edits: &Edits,
        peer: Option<Fields<'_>>,
        transaction: u64,
    ) -> Option<String> {
        const MOST: usize = 128;
        if !edits.needs_id() {
            return None;
        }
        let mut lines = peer.into_iter().flat_map(|fields| fields.all_named(b"X-Request-Id"));
        let only = lines.next().filter(|_| lines.next().is_none());
        let kept = only.filter(|id| id.len() <= MOST && id.iter().all(u8::is_ascii_graphic));
        let kept = kept.and_then(|id| String::from_utf8(id.to_vec()).ok()).filter(|id| !id.is_empty());
        Some(kept.unwrap_or_else(|| format!("{:016x}-{transaction}", self.run)))
    }

    /// Puts another configuration in force, once its pools have what a start waits for, or after `patience`. Exchanges that have
    /// begun end under the one they began with.
    pub fn set_site(&self, site: Site, patience: Duration) {
        let site = Arc::new(site);
        self.tended.store(site.clone());
        self.upkeep_mailbox.change_site();
        self.wait_until_ready(patience);
        self.site.store(site);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Blocks the thread until every pool that the upkeep looks after has what it should have before it serves, at most for
    /// `patience`: a process that reports itself ready earlier has no backend for its first requests. What did not come in time is
    /// logged.
    pub fn wait_until_ready(&self, patience: Duration) {
        let site = self.tended();
        site.wait_until_ready(patience);
        for pool in site.pools() {
            if let Some(what) = pool.awaits() {
                let (name, seconds) = (pool.name(), patience.as_secs_f64());
                self.log(&format!("pool {name}: begins without {what}, for which it has waited {seconds} s"));
            }
        }
    }

    /// The configuration that the upkeep looks after.
    pub(crate) fn tended(&self) -> Arc<Site> {
        self.tended.load_full()
    }

    /// Which configuration is in force.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A counter, summed over all cores.
    pub fn count(&self, counter: Counter) -> u64 {
        self.counters.iter().map(|counters| counters.get(counter)).sum()
    }

    /// What is counted by reason, summed over all cores: every reason there is, those of one metric together.
    pub fn counts_by_reason(&self) -> Vec<CountByReason> {
        let cores = || self.counters.iter();
        let refused = Tally::sum(cores().map(|counters| &counters.refused));
        let failed = Tally::sum(cores().map(|counters| &counters.failed));
        let passes = Tally::sum(cores().map(|counters| &counters.passes));
        let misses = Tally::sum(cores().map(|counters| &counters.misses));
        let unstored = Tally::sum(cores().map(|counters| &counters.unstored));
        let unbelieved = Tally::sum(cores().map(|counters| &counters.unbelieved));
        let repaired = Tally::sum(cores().map(|counters| &counters.repaired));
        let responses = Tally::sum(cores().map(|counters| &counters.responses));
        let of_requests = responses.chain(refused).chain(failed).chain(passes).chain(misses);
        of_requests.chain(unstored).chain(repaired).chain(unbelieved).collect()
    }

    /// The latency histograms, one for each core.
    pub fn latencies(&self) -> impl Iterator<Item = &Latency> {
        self.counters.iter().map(|counters| &counters.latency)
    }

    /// Lets clients hurry while they hold too much of what has left the store: memory that serves nobody else. To be called
    /// several times a second.
    pub fn look_at_clients(&self) {
        let held = self.store.held_bytes();
        self.memory_pressure.store(held > self.store.settings().limit / HELD_SHARE, Ordering::Relaxed);
    }

    /// Open client connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Limit on client connections.
    pub fn connection_limit(&self) -> usize {
        self.connection_limit.load(Ordering::Relaxed)
    }

    /// Changes the limit; connections above it that are open stay.
    pub fn set_connection_limit(&self, limit: usize) {
        self.connection_limit.store(limit, Ordering::Relaxed);
    }

    /// The time by the balancer's clock.
    pub fn now(&self) -> Duration {
        Moment::now().since(self.epoch)
    }

    /// Purges everything that is stored for an absolute URL, all variants and either scheme. Returns how many objects
    /// there were; `None` where it is no absolute URL of http or https with a host.
    pub fn purge_url(&self, url: &str, purge: Purge) -> Option<usize> {
        let request = RequestHead {
            method: Method::Get,
            method_text: b"GET",
            target: url.as_bytes(),
            version: Version::Http10,
            fields: Fields::default(),
        };
        let target = Target::of(&request).ok().filter(|target| target.form == Form::Absolute)?;
        let host = target.authority?.normalised(target.scheme?);
        let site = self.site.load();
        route_path(target.path()).ok()?;
        Some(purge_target(&self.store, &site.config.routes, &host, target.path_and_query, purge))
    }

    /// Takes a place for a client connection, if there is one.
    pub(crate) fn admit(&self) -> bool {
        if self.connections.fetch_add(1, Ordering::Relaxed) < self.connection_limit() {
            return true;
        }
        self.closed();
        self.log_throttled(LogTopic::Clients, || {
            "too many client connections: some are answered 503".to_owned()
        });
        false
    }

    /// Lets a fetch go on whose client has left, if there is a place for that: clients that ask and leave hold no place
    /// among the connections, and could have any number of backend connections made.
    pub(crate) fn detach(self: &Arc<Shared>) -> Option<Detached> {
        let most = (self.connection_limit() / DETACHED_SHARE).max(1);
        let place = Detached(self.clone());
        (self.detached.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }

    pub(crate) fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Logs a message, unless one about the same topic was logged a short while ago.
    pub(crate) fn log_throttled(&self, topic: LogTopic, message: impl FnOnce() -> String) {
        if self.log_throttle.lock().is_due(topic, Moment::now()) {
            (self.log)(&escaped(&message()));
        }
    }

    /// Counts in `counters`, a set of the caller's own, and logs a report of a worker that is not believed.
    pub(crate) fn unbelieved(&self, counters: &Counters, pool: &Pool, worker: BackendId, why: Unbelieved) {
        counters.unbelieved.one(&why);
        self.log_throttled(LogTopic::Worker(pool.name().into(), worker, why.name()), || {
            let worker = pool.backend(worker).map(|backend| backend.address().to_string());
            let worker = worker.unwrap_or_default();
            format!("pool {}: what {worker} says of its skills is not believed: {}", pool.name(), why.text())
        });
    }

    /// The same of what was passed over in a résumé of which the rest is believed.
    pub(crate) fn passed_over(
        &self,
        counters: &Counters,
        pool: &Pool,
        worker: BackendId,
        believed: &Believed,
    ) {
        for &why in believed.ignored.keys() {
            self.unbelieved(counters, pool, worker, Unbelieved::Disbelief(why));
        }
    }

    /// Logs a message.
    pub(crate) fn log(&self, message: &str) {
        (self.log)(&escaped(message));
    }

    /// The counters of the upkeep, which alone may write them.
    pub(crate) fn upkeep_counters(&self) -> &Arc<Counters> {
        self.counters.last().expect("one set more than there are cores")
    }
}
