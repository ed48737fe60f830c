//! State that all cores of a process share.

use crate::client_connections::{ClientConnections, Counted};
use crate::lender::Lender;
use crate::recode::{CodingMemory, InProgress};
use crate::report::field_counts::FieldCounts;
use crate::report::log_throttle::{LogTopic, Throttle};
use crate::report::tally::Tally;
use crate::report::unbelieved::Unbelieved;
use crate::request::hash;
use crate::request::purge_target::route_of_get;
use crate::site::Site;
use crate::spool::SpoolSpace;
use crate::tier::{Inspected, Inspection, Place, PurgeCalls, TierServerState};
use crate::upkeep::Mailbox;
use crate::{CountByReason, Counter, Counters, Latency};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sandarac_balance::{BackendId, Believed, Pool};
use sandarac_cache::Store;
use sandarac_message::caching::BypassReason;
use sandarac_message::printable::escaped;
use sandarac_message::target::{Form, Scheme, Target, route_path};
use sandarac_message::{Fields, FieldsBuf, Method, RequestHead, Version};
use sandarac_net::{Account, Cores, Held, Moment, Places};
use sandarac_policy::{Action, Edits};
use sandarac_wire::entry::{Effect, Purge as SharedPurge};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Fetches that go on without their client, as a share of the client connections. Each takes one descriptor;
/// a client with its fetch takes two.
const DETACHED_SHARE: usize = 8;

/// The part of the store's memory that clients may hold in streams before those that hold most must move.
const HELD_SHARE: usize = 20;

/// The eighths of the store's memory that clients may read of objects that have left it, before they must
/// read faster. From four on no large body is stored.
const READ_EIGHTHS: usize = 3;

/// The state that all cores of a process share.
pub struct Shared {
    site: ArcSwap<Site>,
    /// The configuration that the upkeep works on: the one in force, or the next one.
    tended: ArcSwap<Site>,
    /// Counts the configurations, so that a core can determine with one read whether its own is still in
    /// force.
    generation: AtomicU64,
    /// The store.
    pub store: Arc<Store>,
    /// One set for each core, and one for the upkeep.
    pub counters: Box<[Arc<Counters>]>,
    /// Distinguishes this process from others in the ids of requests.
    run: u64,
    /// The zero of the balancer's clock.
    pub(crate) epoch: Moment,
    connections: AtomicUsize,
    /// The connections of each client, where their number is limited.
    client_connections: Arc<ClientConnections>,
    /// Fetches that go on without their client.
    detached: AtomicUsize,
    connection_limit: AtomicUsize,
    /// Whether clients must read their responses faster.
    pub(crate) memory_pressure: AtomicBool,
    /// All cores, which make room for each other's connections.
    pub(crate) cores: Cores,
    /// The account of what connections hold.
    pub(crate) account: Arc<Account>,
    /// The descriptors of connections to backends.
    pub(crate) backend_places: Arc<Places>,
    /// The descriptors of files that are sent, or kept open to be sent.
    pub(crate) file_places: Arc<Places>,
    /// The memory and the disk of bodies that wait for slow clients.
    pub(crate) spool: Arc<SpoolSpace>,
    /// The memory of encoders, without which a body is sent as it is.
    pub(crate) encoding_memory: CodingMemory,
    /// The memory of decoders, without which a client may get what it cannot read. Encoders leave it alone.
    pub(crate) decoding_memory: CodingMemory,
    /// The recodings of stored objects that are being made.
    pub(crate) recoding: InProgress,
    pub(crate) upkeep_mailbox: Mailbox,
    log_throttle: Mutex<Throttle>,
    /// The fields that keep requests from sharing responses.
    fields: FieldCounts,
    /// The cookies that were logged as lost.
    lost_sessions: Mutex<BTreeSet<Box<[u8]>>>,
    /// The answers to challenges of CAs, by their tokens (RFC 8555 §8.3); `None` if no order waits for one.
    pub challenges: OnceLock<ChallengeAnswers>,
    /// Writes to the process's own log.
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// The most descriptors of each use, which together leave room for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimits {
    /// Connections of clients.
    pub clients: usize,
    /// Connections to backends.
    pub backends: usize,
    /// Bodies that wait in files.
    pub spools: usize,
    /// Files that are sent.
    pub files: usize,
}

/// The most client connections of a core without a finished TLS handshake, whatever the limit of connections.
/// Each holds a few kilobytes.
const MAX_HANDSHAKES: usize = 1024;

/// Bytes that connections may hold before those that hold most of it have to give way, however small the
/// store is.
const HELD_IN_ANY_CASE: usize = 8 << 20;

/// Finds the answer to a challenge by its token.
pub type ChallengeAnswers = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A place for a fetch whose client has left.
pub(crate) struct Detached(Arc<Shared>);

impl Drop for Detached {
    fn drop(&mut self) {
        self.0.detached.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// The shared part of a process with `cores` cores. `connection_limit` is for client connections; `log`
    /// writes to the process's own log.
    pub fn new(
        site: Site,
        store: Arc<Store>,
        cores: usize,
        connection_limit: usize,
        log: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Arc<Shared> {
        let site = Arc::new(site);
        let account = Account::new(Lender(store.clone()));
        Arc::new(Shared {
            site: ArcSwap::new(site.clone()),
            tended: ArcSwap::new(site),
            generation: AtomicU64::new(0),
            backend_places: Places::new(usize::MAX),
            file_places: Places::new(usize::MAX),
            spool: SpoolSpace::new(store.clone()),
            encoding_memory: CodingMemory::of_encoders(&account),
            decoding_memory: CodingMemory::of_decoders(&account),
            account,
            store,
            counters: (0..cores + 1).map(|_| Arc::default()).collect(),
            run: RandomState::new().build_hasher().finish(),
            epoch: Moment::now(),
            connections: AtomicUsize::new(0),
            client_connections: Arc::default(),
            detached: AtomicUsize::new(0),
            connection_limit: AtomicUsize::new(connection_limit),
            memory_pressure: AtomicBool::new(false),
            cores: Cores::default(),
            recoding: InProgress::default(),
            upkeep_mailbox: Mailbox::default(),
            log_throttle: Mutex::default(),
            fields: FieldCounts::default(),
            lost_sessions: Mutex::default(),
            challenges: OnceLock::new(),
            log,
        })
    }

    /// The number of cores.
    pub(crate) fn cores(&self) -> usize {
        // One set of counters belongs to no core.
        self.counters.len() - 1
    }

    /// The configuration in force.
    pub fn site(&self) -> Arc<Site> {
        self.site.load_full()
    }

    /// The id of the request to an origin, if `edits` use it: the `X-Request-Id` of a trusted `peer`, if that
    /// is one word of up to 128 bytes, else a new unique one.
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

    /// Puts another configuration in force, once its pools are as ready as for a start, or after `patience`.
    /// Exchanges that have begun end under their own configuration.
    pub fn set_site(&self, site: Site, patience: Duration) {
        let site = Arc::new(site);
        self.tended.store(site.clone());
        self.upkeep_mailbox.change_site();
        self.wait_until_ready(patience);
        self.site.store(site);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Blocks the thread until every pool that the upkeep works on is ready to serve, at most for `patience`.
    /// A process that reports itself ready earlier has no backend for its first requests. What is missing
    /// after `patience` is logged.
    pub fn wait_until_ready(&self, patience: Duration) {
        let site = self.tended();
        site.wait_until_ready(patience);
        for pool in site.pools() {
            if let Some(what) = pool.awaits() {
                let (name, seconds) = (pool.name(), patience.as_secs_f64());
                self.log(&format!("pool {name}: starts without {what} after waiting {seconds} s"));
            }
        }
    }

    /// The configuration that the upkeep works on.
    pub(crate) fn tended(&self) -> Arc<Site> {
        self.tended.load_full()
    }

    /// The generation of the configuration in force.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A counter, summed over all cores.
    pub fn count(&self, counter: Counter) -> u64 {
        self.counters.iter().map(|counters| counters.get(counter)).sum()
    }

    /// The counts by reason, summed over all cores. Contains every reason, grouped by metric.
    pub fn counts_by_reason(&self) -> Vec<CountByReason> {
        let cores = || self.counters.iter();
        let refused = Tally::sum(cores().map(|counters| &counters.refused));
        let failed = Tally::sum(cores().map(|counters| &counters.failed));
        let passes = Tally::sum(cores().map(|counters| &counters.passes));
        let misses = Tally::sum(cores().map(|counters| &counters.misses));
        let unstored = Tally::sum(cores().map(|counters| &counters.unstored));
        let unbelieved = Tally::sum(cores().map(|counters| &counters.unbelieved));
        let uncompressed = Tally::sum(cores().map(|counters| &counters.uncompressed));
        let fragments_failed = Tally::sum(cores().map(|counters| &counters.fragments_failed));
        let coded_from = Tally::sum(cores().map(|counters| &counters.coded_from));
        let coded_to = Tally::sum(cores().map(|counters| &counters.coded_to));
        let repaired = Tally::sum(cores().map(|counters| &counters.repaired));
        let responses = Tally::sum(cores().map(|counters| &counters.responses));
        let handshakes = Tally::sum(cores().map(|counters| &counters.handshakes));
        let handshakes_failed = Tally::sum(cores().map(|counters| &counters.handshakes_failed));
        let http2_faults = Tally::sum(cores().map(|counters| &counters.http2_faults));
        let of_requests = responses.chain(refused).chain(failed).chain(passes).chain(misses);
        of_requests
            .chain(unstored)
            .chain(repaired)
            .chain(unbelieved)
            .chain(uncompressed)
            .chain(fragments_failed)
            .chain(coded_from)
            .chain(coded_to)
            .chain(handshakes)
            .chain(handshakes_failed)
            .chain(http2_faults)
            .collect()
    }

    /// The latency histograms, one for each core.
    pub fn latencies(&self) -> impl Iterator<Item = &Latency> {
        self.counters.iter().map(|counters| &counters.latency)
    }

    /// Bytes that connections hold of each class, besides objects.
    pub fn held(&self) -> [(Held, usize); Held::ALL.len()] {
        Held::ALL.map(|class| (class, self.account.of(class)))
    }

    /// All bytes that connections hold besides objects, and the most that they may.
    pub fn held_in_all(&self) -> (usize, usize) {
        (self.account.bytes(), self.account.limit())
    }

    /// Requires clients to read while they hold too much memory of objects that have left the store, which
    /// serves no one else. What else they hold counts against those that hold most of it: to cut others off
    /// would free little. MUST be called several times a second.
    pub fn look_at_clients(&self) {
        let limit = self.store.settings().limit;
        let read = self.store.held_bytes().saturating_sub(self.store.passing());
        self.memory_pressure.store(read > limit / 8 * READ_EIGHTHS, Ordering::Relaxed);
        self.account.press_above((limit / HELD_SHARE).max(HELD_IN_ANY_CASE));
        self.store.fit();
    }

    /// Bodies that wait for slow clients: bytes in memory, bytes in files, and how often a file could not be
    /// made or written.
    pub fn spooled(&self) -> (u64, u64, u64) {
        (self.spool.memory() as u64, self.spool.disk(), self.spool.failures())
    }

    /// The number of open client connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The limit of client connections.
    pub fn connection_limit(&self) -> usize {
        self.connection_limit.load(Ordering::Relaxed)
    }

    /// The most client connections of a core without a finished TLS handshake: of all cores together half of
    /// all connections, so that clients who leave theirs unfinished do not keep out the others.
    pub(crate) fn max_handshakes(&self) -> usize {
        let limit = self.connection_limit();
        // While there are places for others, a burst of handshakes is one of visitors.
        let most = if self.connections() < limit / 4 * 3 { limit } else { limit / 2 };
        (most / self.cores().max(1)).clamp(1, MAX_HANDSHAKES)
    }

    /// Sets the limits on descriptors. What is open above them stays so.
    pub fn limit_descriptors(&self, limits: &DescriptorLimits) {
        self.connection_limit.store(limits.clients, Ordering::Relaxed);
        self.backend_places.set_most(limits.backends);
        self.spool.places.set_most(limits.spools);
        self.file_places.set_most(limits.files);
    }

    /// The descriptors that are taken for clients, for connections to backends, for bodies in files, and for
    /// files that are sent, each with the most.
    pub fn descriptors(&self) -> [(&'static str, usize, usize); 4] {
        let of = |name, places: &Places| (name, places.taken(), places.most());
        [
            ("clients", self.connections(), self.connection_limit()),
            of("backends", &self.backend_places),
            of("spools", &self.spool.places),
            of("files", &self.file_places),
        ]
    }

    /// The time on the balancer's clock.
    pub fn now(&self) -> Duration {
        Moment::now().since(self.epoch)
    }

    /// Whether an absolute URL is answered with a file, which is never stored.
    pub fn is_answered_by_file(&self, url: &str) -> bool {
        let site = self.site.load();
        let routes = &site.config.routes;
        let find = |host: &[u8], path: &[u8]| route_of_get(routes, host, path);
        let route = with_target(url, find).flatten();
        // Where a pool has the rest, the URL may be one of its pages.
        route.is_some_and(|route| matches!(routes[route].action, Action::Files { fallback: None, .. }))
    }

    /// Notes purges, so that the servers of the shared tier are told of them within `patience`. `None` if
    /// there is no tier, or nothing to tell. For [`Purger`](crate::Purger) alone.
    pub(crate) fn note_purges(
        &self,
        purges: Vec<SharedPurge>,
        effect: Effect,
        patience: Duration,
    ) -> Option<PurgeCalls> {
        let tier = self.site.load().tier.clone().filter(|_| !purges.is_empty())?;
        let calls = PurgeCalls::note(tier, purges, effect, patience);
        self.upkeep_mailbox.tier_is_owed();
        Some(calls)
    }

    /// The entries of the shared tier for an absolute URL and a GET with these `fields`: under either scheme,
    /// on the server that has its keys, or on all servers if `everywhere`. Without `asks`, only keys and
    /// servers are told. `removes` removes the entries. Blocks the thread until the servers have answered.
    /// `None` if it is no such URL; an error if the URL is not in a tier.
    pub fn inspect(
        &self,
        url: &str,
        fields: &FieldsBuf,
        (everywhere, asks, removes): (bool, bool, bool),
    ) -> Option<Result<Vec<Inspected>, &'static str>> {
        with_target(url, |host, path| {
            let site = self.site.load_full();
            if site.tier.is_none() {
                return Err("there is no shared tier");
            }
            let routes = &site.config.routes;
            let route = route_of_get(routes, host, path).map(|route| &routes[route]);
            let rule = route.and_then(|route| route.cache_rule()).ok_or("responses to it are not cached")?;
            let target = hash::target(&rule.key, path);
            let mut results = Vec::new();
            for scheme in [Scheme::Http, Scheme::Https] {
                let key = hash::key(&rule.key, scheme, host, path, fields.view());
                let place = route.and_then(|route| Place::of(&site, route, key, host, &target));
                let place = place.ok_or("its route does not use the shared tier, or there are no servers")?;
                let servers = match (everywhere, &site.tier) {
                    (true, Some(tier)) => tier.servers().list.clone(),
                    _ => vec![place.server().clone()],
                };
                for server in servers {
                    let told = Inspected {
                        key: place.entry_key(),
                        server: server.name().to_owned(),
                        why: "not asked".to_owned(),
                        ..Inspected::default()
                    };
                    let (sender, result) = std::sync::mpsc::channel();
                    if asks {
                        let (place, fields) = (place.clone(), FieldsBuf::copy_of(fields.view()));
                        let inspection = Inspection { place, server, fields, removes };
                        self.upkeep_mailbox.inspect((inspection, sender));
                    }
                    let patience = Duration::from_secs(2);
                    let told = if asks { result.recv_timeout(patience).unwrap_or(told) } else { told };
                    results.push(Inspected { scheme: scheme.text(), ..told });
                }
            }
            Ok(results)
        })
    }

    /// The number of objects in RAM for an absolute URL and a GET with these `fields`, under either scheme.
    pub fn objects_of_url(&self, url: &str, fields: &FieldsBuf) -> usize {
        let site = self.site.load();
        let count = |host: &[u8], path: &[u8]| {
            let routes = &site.config.routes;
            let route = route_of_get(routes, host, path).map(|route| &routes[route]);
            let Some(rule) = route.and_then(|route| route.cache_rule()) else { return 0 };
            let key = |scheme| hash::key(&rule.key, scheme, host, path, fields.view());
            [Scheme::Http, Scheme::Https].into_iter().map(|scheme| self.store.count(key(scheme))).sum()
        };
        with_target(url, count).unwrap_or_default()
    }

    /// The servers of the shared tier, if one is configured.
    pub fn tier(&self) -> Option<Vec<TierServerState>> {
        let servers = self.site.load().tier.as_ref()?.servers();
        Some(servers.list.iter().map(|server| server.state()).collect())
    }

    /// Takes a place for a client connection, if there is one.
    pub(crate) fn admit(&self) -> bool {
        if self.connections.fetch_add(1, Ordering::Relaxed) < self.connection_limit() {
            return true;
        }
        self.closed();
        false
    }

    /// Counts a connection of a client against the most that it may have, if there is such a limit. `Err` if
    /// it has as many.
    pub(crate) fn admit_client(&self, client: Option<IpAddr>) -> Result<Option<Counted>, ()> {
        let site = self.site.load();
        let limits = &site.config.limits;
        let (Some(most), Some(ip)) = (&limits.connections_per_client, client) else { return Ok(None) };
        if limits.connections_per_client_exempt.iter().any(|network| network.contains(client)) {
            return Ok(None);
        }
        self.client_connections.admit(ip, most.get()).map(Some).ok_or(())
    }

    /// Takes a place for a fetch whose client has left, if there is one. Clients that send a request and
    /// leave hold no place among the connections; without this limit they could cause any number of backend
    /// connections.
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

    /// Counts a request that a field of this name keeps from sharing responses, and logs a name that is new.
    pub(crate) fn bypassed_for(&self, name: &[u8], why: BypassReason) {
        let Some(name) = self.fields.one(name, why) else { return };
        let message = match why {
            BypassReason::FormField => format!(
                "requests with the field {name} select a form of the page and bypass the cache: if responses depend \
                 on it, send `Vary: {name}` or set `key_fields`, else `harmless_fields`"
            ),
            _ => format!(
                "requests with the field {name} share only responses that are said to be for all, because it may \
                 identify somebody: if it does not, set `harmless_fields = [\"{name}\"]` \
                 (docs/how-to/why-not-cached.md)"
            ),
        };
        (self.log)(&escaped(&message));
    }

    /// Logs, once for each name, that a cookie which looks like one of a session does not reach the
    /// application.
    pub(crate) fn lost_session(&self, name: &[u8]) {
        const MOST: usize = 16;
        let mut known = self.lost_sessions.lock();
        if known.len() < MOST && name.len() <= 64 && known.insert(name.into()) {
            let name = String::from_utf8_lossy(name);
            (self.log)(&escaped(&format!(
                "the cookie {name} is not forwarded with requests that may be cached, because `bypass_cookies` does not \
                 name it: if visitors log in by it, add it there, else to `ignore_cookies`"
            )));
        }
    }

    /// How often a field kept a request from sharing responses: its name, the reason and the count. The name
    /// of those that are counted together is empty.
    pub fn bypassing_fields(&self) -> Vec<(Box<str>, &'static str, u64)> {
        self.fields.all()
    }

    /// Counts in `counters`, a set of the caller's own, and logs a worker's report that is rejected.
    pub(crate) fn unbelieved(&self, counters: &Counters, pool: &Pool, worker: BackendId, why: Unbelieved) {
        counters.unbelieved.one(&why);
        self.log_throttled(LogTopic::Worker(pool.name().into(), worker, why.name()), || {
            let worker = pool.backend(worker).map(|backend| backend.address().to_string());
            let worker = worker.unwrap_or_default();
            format!("pool {}: the report of {worker} is rejected: {}", pool.name(), why.text())
        });
    }

    /// The same for the entries that were ignored in a résumé that is otherwise accepted.
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

    /// The counters of the upkeep. Only the upkeep may write them.
    pub(crate) fn upkeep_counters(&self) -> &Arc<Counters> {
        self.counters.last().expect("one set more than there are cores")
    }
}

/// Works with the host and the path and query of an absolute URL; `None` if it is not one of http or https
/// with a host.
pub(crate) fn with_target<T>(url: &str, work: impl FnOnce(&[u8], &[u8]) -> T) -> Option<T> {
    let request = RequestHead {
        method: Method::Get,
        method_text: b"GET",
        target: url.as_bytes(),
        version: Version::Http10,
        fields: Fields::default(),
    };
    let target = Target::of(&request).ok().filter(|target| target.form == Form::Absolute)?;
    let host = target.authority?.normalised(target.scheme?);
    route_path(target.path()).ok()?;
    Some(work(&host, target.path_and_query))
}
