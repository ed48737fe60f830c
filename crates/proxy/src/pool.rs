//! A pool of the configuration in force: its backends, which come and go while requests are under way, and what sorts
//! requests into classes.

use crate::away::Away;
use crate::members::{Member, Members, SourceState};
use crate::step::fetch::OriginTimeouts;
use crate::{Counter, Counters, Latency};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sandarac_balance::{Address, Backend, BackendReport, Pool, QueueReport, RetryBudget, SavedSkills};
use sandarac_config::{Classifier, PoolConfig, Sticky, Subject};
use sandarac_discover::Memory;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// A pool of the configuration in force.
pub struct SitePool {
    /// What requests are balanced over now.
    live: ArcSwap<Live>,
    members: Mutex<Members>,
    changed: Arc<Notify>,
    /// Whether the table of classes was looked for.
    table_told: AtomicBool,
    /// Why the table of classes cannot be read or taken, if it cannot.
    table_lost: Mutex<Option<String>>,
    /// Whether each worker was asked for its résumé.
    resumes_told: AtomicBool,
    /// Whether orders to remove or drain backends were given up, as they would have left none, and nobody has said so yet.
    orders_lifted: AtomicBool,
    /// As configured, but for what a source or a table says of it meanwhile.
    config: Mutex<PoolConfig>,
    seed: u64,
    pub(crate) timeouts: OriginTimeouts,
    pub(crate) retries: u32,
    pub(crate) budget: Arc<RetryBudget>,
    pub(crate) hedge_after: Option<Duration>,
    pub(crate) retry_timeouts: bool,
    pub(crate) abort_on_close: bool,
    /// Whether trailers of requests go on.
    pub(crate) forward_trailers: bool,
    /// Time from the choice of a backend to the head of its response.
    pub(crate) latency: Arc<Latency>,
    pub(crate) sticky: Option<Sticky>,
}

/// What requests are balanced over at a moment.
#[derive(Debug)]
pub struct Live {
    pool: Pool,
    /// What sorts requests into classes, where the pool goes by them. Its fingerprint is the one that the pool knows skills
    /// under.
    pub(crate) classifier: Option<Classifier>,
}

impl Deref for Live {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}

impl Live {
    /// The pool that `config` and `members` make up, which goes on with what `before` knew; and whether orders were given up, as
    /// they would have left no backend to get requests.
    fn new(config: &PoolConfig, members: &mut Members, seed: u64, before: Option<&Live>) -> (Live, bool) {
        let brings_back = members.tidy(config);
        let backends = members.backends(config);
        if let Some(before) = before {
            let stay = backends.iter().map(|backend| backend.address().to_string()).collect();
            members.away.leave(before, &stay, seconds());
        }
        let pool = config.of_backends(backends, seed, before.map(|before| &before.pool));
        members.away.give_back(&pool);
        let lifted = members.obey(&pool) || brings_back;
        (Live { pool, classifier: config.classifier.clone() }, lifted)
    }

    /// What sorts requests into classes, where the pool goes by them.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.classifier.as_ref()
    }

    /// The class of a request, if the pool goes by classes and it has one. What cannot be borrowed is put into `buffer`.
    pub(crate) fn classify<'a>(
        &'a self,
        subject: Subject<'a>,
        buffer: &'a mut Vec<u8>,
        counters: &Counters,
    ) -> Option<&'a [u8]> {
        let class = self.classifier.as_ref()?.classify(subject, buffer);
        if class.is_none() {
            counters.one(Counter::Unclassified);
        }
        class
    }
}

/// Why an order to a pool was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRefusal {
    /// The pool has this backend already.
    There,
    /// The pool has no such backend.
    NotThere,
    /// It is the last one.
    Last,
    /// It is the last one that is not draining.
    LastServing,
}

impl std::fmt::Display for PoolRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PoolRefusal::There => "the pool has this backend already",
            PoolRefusal::NotThere => "the pool has no such backend",
            PoolRefusal::Last => "it is the last backend of the pool",
            PoolRefusal::LastServing => "all the other backends of the pool are draining",
        })
    }
}

impl std::error::Error for PoolRefusal {}

impl SitePool {
    /// The pool that `config` describes. It goes on with what `before` knew of the same backends, and with the backends
    /// that were found or ordered meanwhile. `changed` is told whenever its backends change.
    pub(crate) fn new(
        config: &PoolConfig,
        before: Option<&SitePool>,
        seed: u64,
        changed: Arc<Notify>,
    ) -> SitePool {
        let mut members = match before {
            Some(before) => before.members.lock().clone().under(config, before.live().backends()),
            None => Members::default().under(config, &[]),
        };
        let mut config = config.clone();
        config.settings = members.settings().applied_to(&config.settings, &config.settings);
        let path = |config: &PoolConfig| Some(config.classifier.as_ref()?.table_path()?.to_path_buf());
        let mut table_told = path(&config).is_none();
        if let Some((before, was_told)) = before.map(|before| (before.config.lock(), &before.table_told))
            && path(&config).is_some_and(|table| path(&before).is_some_and(|before| before == table))
            && let Some(classifier) = &before.classifier
        {
            // Its table is read anew by and by. Until then it is what it was, or all that is known of classes would be lost.
            config = config.with_classifier(classifier.clone());
            table_told = was_told.load(Ordering::Relaxed);
        }
        let resumes_told = before.is_some_and(|before| before.resumes_told.load(Ordering::Relaxed));
        let (live, lifted) = Live::new(&config, &mut members, seed, before.map(SitePool::live).as_deref());
        SitePool {
            live: ArcSwap::from_pointee(live),
            members: Mutex::new(members),
            changed,
            resumes_told: AtomicBool::new(resumes_told),
            table_told: AtomicBool::new(table_told),
            table_lost: Mutex::default(),
            orders_lifted: AtomicBool::new(lifted),
            seed,
            timeouts: OriginTimeouts {
                queue: config.queue_timeout,
                connect: config.connect_timeout,
                first_byte: config.first_byte_timeout,
                between_bytes: config.between_bytes_timeout,
                idle: config.idle_timeout,
                age: config.connection_age,
            },
            retries: config.retries,
            hedge_after: config.hedge_after,
            retry_timeouts: config.retry_timeouts,
            abort_on_close: config.abort_on_close,
            forward_trailers: config.forward_trailers,
            sticky: config.sticky.clone(),
            latency: before.map_or_else(Arc::default, |before| before.latency.clone()),
            budget: Arc::new(config.retry_budget.build()),
            config: Mutex::new(config),
        }
    }

    /// What requests are balanced over now.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// The pool's name.
    pub fn name(&self) -> String {
        self.live.load().name().to_owned()
    }

    /// What is known of each backend.
    pub fn report(&self, now: Duration) -> Vec<BackendReport> {
        self.live.load().report(now)
    }

    /// Time from the choice of a backend to the head of its response, since the pool has its name.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    /// How many wait for a place.
    pub fn queue_report(&self) -> QueueReport {
        self.live.load().queue_report()
    }

    /// The source at this place among the pool's has found these backends, and no others.
    pub fn found(&self, source: usize, found: Vec<Member>) {
        let mut members = self.members.lock();
        if members.sources[source].found != found {
            members.sources[source].found = found;
            self.put(&mut members);
        }
    }

    /// The source at this place among the pool's names nobody any more, and those that it named are gone for sure. Returns
    /// whether there were any, and they went: they stay where the pool would be left without backends.
    pub(crate) fn emptied(&self, source: usize) -> bool {
        let mut members = self.members.lock();
        let before = std::mem::take(&mut members.sources[source].found);
        if before.is_empty() || self.all(&members).is_empty() {
            members.sources[source].found = before;
            return false;
        }
        self.put(&mut members);
        true
    }

    /// Whether any backend is in the pool because the source at this place among the pool's named it.
    pub(crate) fn has_found(&self, source: usize) -> bool {
        !self.members.lock().sources[source].found.is_empty()
    }

    /// The sources of the pool, each with its state.
    pub fn sources(&self) -> Vec<(String, SourceState)> {
        let members = self.members.lock();
        members.sources.iter().map(|followed| (followed.source.to_string(), followed.state.clone())).collect()
    }

    /// How the source at this place among the pool's is, and what is to be remembered to go on following it.
    pub(crate) fn followed(&self, source: usize) -> (SourceState, Memory) {
        let followed = &self.members.lock().sources[source];
        (followed.state.clone(), followed.memory.clone())
    }

    /// From now on, classes are told by this. Says whether that is news.
    pub(crate) fn classify_by(&self, classifier: Classifier) -> bool {
        let news = self.live().classifier.as_ref() != Some(&classifier);
        if news {
            self.reconfigure(|config| config.with_classifier(classifier));
        }
        news
    }

    /// Each worker of the pool was asked for its résumé.
    pub(crate) fn resumes_told(&self) {
        self.resumes_told.store(true, Ordering::Relaxed);
    }

    /// The table of classes was looked for, and is `lost` for this reason if it is.
    pub(crate) fn table_told(&self, lost: Option<String>) {
        *self.table_lost.lock() = lost;
        self.table_told.store(true, Ordering::Relaxed);
    }

    /// How many lines of its table of classes are in force, where it goes by one; 0 where none could be read yet.
    pub fn table_lines(&self) -> Option<usize> {
        self.live().classifier.as_ref()?.table_len()
    }

    /// Why its table of classes cannot be read or taken, if it cannot; the one before stays in force.
    pub fn table_lost(&self) -> Option<String> {
        self.table_lost.lock().clone()
    }

    /// What has not come yet that the pool should have before it serves: its table of classes, if there is to be one; backends,
    /// unless every source of it has told that there is nothing to wait for; the résumés of its workers, if it goes by them.
    pub(crate) fn awaits(&self) -> Option<&'static str> {
        if !self.table_told.load(Ordering::Relaxed) {
            return Some("its table of classes");
        }
        let live = self.live();
        if live.backends().is_empty() {
            let all_told = self.members.lock().sources.iter().all(|followed| followed.state.told);
            return (!all_told).then_some("the word of its sources");
        }
        let told = live.reported_resumes().is_none() || self.resumes_told.load(Ordering::Relaxed);
        (!told).then_some("the résumés of its workers")
    }

    /// The backends that were removed by order and not added again.
    pub fn removed(&self) -> Vec<Address> {
        self.members.lock().removed.clone()
    }

    /// How the source at this place among the pool's is. The settings that it gives are in force from now on; where several
    /// sources give one, that of the first.
    pub(crate) fn set_source_state(&self, configured: &PoolConfig, source: usize, state: SourceState) {
        let told = {
            let mut members = self.members.lock();
            members.sources[source].state = state;
            members.settings()
        };
        self.reconfigure(|now| PoolConfig {
            settings: told.applied_to(&now.settings, &configured.settings),
            ..now
        });
    }

    /// Adds a backend.
    ///
    /// # Errors
    /// [`PoolRefusal::There`].
    pub fn add(&self, member: Member) -> Result<(), PoolRefusal> {
        let mut members = self.members.lock();
        if self.all(&members).iter().any(|backend| *backend.address() == member.address) {
            return Err(PoolRefusal::There);
        }
        members.ask_back(&member.address);
        if !self.all(&members).iter().any(|backend| *backend.address() == member.address) {
            members.added.push(member);
        }
        self.put(&mut members);
        Ok(())
    }

    /// Removes a backend, wherever it came from, until it is added again. Requests in flight to it go on.
    ///
    /// # Errors
    /// [`PoolRefusal::NotThere`], [`PoolRefusal::Last`], [`PoolRefusal::LastServing`].
    pub fn remove(&self, address: &Address) -> Result<(), PoolRefusal> {
        let mut members = self.members.lock();
        let all = self.all(&members);
        if !all.iter().any(|backend| backend.address() == address) {
            return Err(PoolRefusal::NotThere);
        }
        if all.len() == 1 {
            return Err(PoolRefusal::Last);
        }
        if !another_serves(&self.live(), address) {
            return Err(PoolRefusal::LastServing);
        }
        members.remove(address);
        self.put(&mut members);
        Ok(())
    }

    /// Gives a backend no new requests, or gives it some again. Holds for whatever is found under its address later.
    ///
    /// # Errors
    /// [`PoolRefusal::NotThere`], [`PoolRefusal::LastServing`].
    pub fn drain(&self, address: &Address, draining: bool) -> Result<(), PoolRefusal> {
        // No other order comes in between: two that each drain one of the last two must not both be carried out. What a
        // source finds meanwhile waits, and then has the same backends.
        let mut members = self.members.lock();
        let live = self.live();
        let place = live.backends().iter().position(|backend| backend.address() == address);
        let backend = live.ids()[place.ok_or(PoolRefusal::NotThere)?];
        if draining && !another_serves(&live, address) {
            return Err(PoolRefusal::LastServing);
        }
        live.drain(backend, draining);
        members.drain(address, draining);
        Ok(())
    }

    /// The skills that were inferred, of those who are there and of those who are not at present.
    pub(crate) fn skills(&self) -> (SavedSkills, Away) {
        let mut members = self.members.lock();
        members.away.forget(seconds());
        (self.live().save_skills(), members.away.clone())
    }

    /// Takes back skills that were saved: for whoever is there, or comes.
    pub(crate) fn recall(&self, saved: Away) {
        let mut members = self.members.lock();
        members.away.take(saved);
        members.away.give_back(&self.live());
    }

    /// Whether orders were given up, as they would have left no backend to get requests. Says so once.
    pub(crate) fn has_lifted_orders(&self) -> bool {
        self.orders_lifted.swap(false, Ordering::Relaxed)
    }

    /// From now on, `change`d settings count.
    pub(crate) fn reconfigure(&self, change: impl FnOnce(PoolConfig) -> PoolConfig) {
        let mut members = self.members.lock();
        let before = self.config.lock().clone();
        let changed = change(before.clone());
        if changed != before {
            *self.config.lock() = changed;
            self.put(&mut members);
        }
    }

    /// Puts a pool of `members` in force, which goes on with what is known.
    fn put(&self, members: &mut Members) {
        let (live, lifted) = Live::new(&self.config.lock(), members, self.seed, Some(&self.live()));
        self.live.store(Arc::new(live));
        self.orders_lifted.fetch_or(lifted, Ordering::Relaxed);
        self.changed.notify_one();
    }

    fn all(&self, members: &Members) -> Vec<Backend> {
        members.backends(&self.config.lock())
    }
}

/// The seconds since 1970.
pub(crate) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether orders leave a backend besides this one that gets new requests.
fn another_serves(pool: &Pool, address: &Address) -> bool {
    pool.backends().iter().any(|backend| backend.address() != address && !backend.is_draining())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_balance::Outcome;
    use sandarac_config::Config;
    use sandarac_discover::LiveSettings;

    /// A pool of these backends and of those in two directories.
    fn config(backends: &str) -> PoolConfig {
        discovering(backends, &["/one", "/two"])
    }

    /// A pool of these backends and of those in directories.
    fn discovering(backends: &str, directories: &[&str]) -> PoolConfig {
        let sources: Vec<_> = directories.iter().map(|path| format!("{{ directory = {path:?} }}")).collect();
        let text = format!(
            "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [{backends}]\ndiscover = [{}]\n[[route]]\npool = \"app\"",
            sources.join(", ")
        );
        let (mut config, _) = Config::from_toml("test.toml", &text).unwrap();
        config.pools.remove(0)
    }

    fn pool(backends: &str) -> SitePool {
        SitePool::new(&config(backends), None, 1, Arc::default())
    }

    fn member(address: &str) -> Member {
        Member { address: address.parse().unwrap(), weight: 1 }
    }

    fn addresses(pool: &SitePool) -> Vec<String> {
        pool.live().backends().iter().map(|backend| backend.address().to_string()).collect()
    }

    #[test]
    fn backends_come_from_everywhere_and_each_is_there_once() {
        let pool = pool("\"http://a\"");
        pool.found(1, vec![member("http://b"), member("http://a")]);
        pool.found(0, vec![member("http://c"), member("http://b")]);
        assert_eq!(addresses(&pool), ["http://a", "http://c", "http://b"]);
        pool.found(0, Vec::new());
        assert_eq!(addresses(&pool), ["http://a", "http://b"]);
    }

    #[test]
    fn what_an_order_removes_stays_away_until_an_order_adds_it() {
        let pool = pool("\"http://a\", \"http://b\"");
        pool.remove(&member("http://a").address).unwrap();
        pool.found(0, vec![member("http://a"), member("http://c")]);
        assert_eq!(addresses(&pool), ["http://b", "http://c"]);
        pool.add(member("http://a")).unwrap();
        assert_eq!(addresses(&pool), ["http://a", "http://b", "http://c"]);
        assert_eq!(pool.add(member("http://a")), Err(PoolRefusal::There));
        assert_eq!(pool.remove(&member("http://d").address), Err(PoolRefusal::NotThere));
    }

    /// Regression: an order to drain went with a backend that its source lost for a moment, and did not come back with it.
    #[test]
    fn what_an_order_drains_drains_when_it_is_found_again() {
        let [a, b] = ["http://a", "http://b"].map(member);
        let pool = pool("");
        pool.found(0, vec![a.clone(), b.clone()]);
        pool.drain(&a.address, true).unwrap();
        pool.found(0, vec![b.clone()]);
        let pool = SitePool::new(&config(""), Some(&pool), 1, Arc::default());
        let draining =
            |pool: &SitePool| pool.live().backends().iter().map(Backend::is_draining).collect::<Vec<_>>();
        pool.found(0, vec![a.clone(), b.clone()]);
        assert_eq!(draining(&pool), [true, false]);
        pool.drain(&a.address, false).unwrap();
        pool.found(0, vec![b.clone()]);
        pool.found(0, vec![a.clone(), b.clone()]);
        assert_eq!(draining(&pool), [false, false]);
        // Who removes one and adds it means it to serve.
        pool.drain(&a.address, true).unwrap();
        pool.remove(&a.address).unwrap();
        pool.add(a).unwrap();
        assert_eq!(draining(&pool), [false, false]);
    }

    #[test]
    fn orders_without_end_are_not_all_remembered() {
        let pool = pool("\"http://a\"");
        for port in 1..1100 {
            let added = member(&format!("http://b:{port}"));
            pool.add(added.clone()).unwrap();
            pool.remove(&added.address).unwrap();
        }
        let removed = pool.removed();
        assert_eq!((removed.len(), removed[999].to_string()), (1000, "http://b:1099".to_owned()));
    }

    #[test]
    fn the_last_backend_is_not_removed() {
        let pool = pool("\"http://a\"");
        assert_eq!(pool.remove(&member("http://a").address), Err(PoolRefusal::Last));
    }

    #[test]
    fn the_last_backend_that_is_not_draining_stays() {
        let pool = pool("\"http://a\", \"http://b\"");
        let (a, b) = (member("http://a").address, member("http://b").address);
        pool.drain(&a, true).unwrap();
        assert_eq!(pool.drain(&b, true), Err(PoolRefusal::LastServing));
        assert_eq!(pool.remove(&b), Err(PoolRefusal::LastServing));
        pool.drain(&a, false).unwrap();
        pool.drain(&b, true).unwrap();
        pool.remove(&b).unwrap();
        assert_eq!((addresses(&pool), pool.removed()), (vec!["http://a".to_owned()], vec![b]));
        assert_eq!(pool.drain(&member("http://c").address, true), Err(PoolRefusal::NotThere));
    }

    /// Regression: the pool had no backend at all, and every request got a 503.
    #[test]
    fn orders_that_leave_nobody_are_given_up() {
        let (a, b) = ("\"http://a\"", "\"http://b\"");
        let both = || pool(&format!("{a}, {b}"));
        for order in [
            |pool: &SitePool, address: &Address| pool.remove(address),
            |pool: &SitePool, address: &Address| pool.drain(address, true),
        ] {
            let before = both();
            order(&before, &member("http://a").address).unwrap();
            let reloaded = SitePool::new(&config(a), Some(&before), 1, Arc::default());
            assert_eq!(addresses(&reloaded), ["http://a"]);
            assert!(!reloaded.live().backends()[0].is_draining());
            assert_eq!((reloaded.has_lifted_orders(), reloaded.has_lifted_orders()), (true, false));
            let found = pool("");
            found.found(0, vec![member("http://a"), member("http://b")]);
            order(&found, &member("http://a").address).unwrap();
            assert!(!found.has_lifted_orders());
            found.found(0, vec![member("http://a")]);
            assert_eq!((addresses(&found), found.has_lifted_orders()), (vec!["http://a".to_owned()], true));
            assert!(found.live().pick(None, Duration::ZERO, &[]).is_ok());
        }
    }

    /// Regression: what was found went by the place of its source in the configuration.
    #[test]
    fn a_source_keeps_what_it_found_wherever_a_reload_puts_it() {
        let before = SitePool::new(&discovering("", &["/old", "/main"]), None, 1, Arc::default());
        before.found(0, vec![member("http://c")]);
        before.found(1, vec![member("http://a"), member("http://b")]);
        let without = SitePool::new(&discovering("", &["/main"]), Some(&before), 1, Arc::default());
        assert_eq!(addresses(&without), ["http://a", "http://b"]);
        let with = SitePool::new(&discovering("", &["/new", "/main"]), Some(&without), 1, Arc::default());
        assert_eq!((with.has_found(0), with.has_found(1)), (false, true));
        with.found(1, vec![member("http://a")]);
        assert_eq!(addresses(&with), ["http://a"]);
    }

    #[test]
    fn what_a_pool_had_stays_until_its_new_source_names_somebody() {
        let found = pool("");
        found.found(0, vec![member("http://a")]);
        for before in [found, pool("\"http://a\"")] {
            let reloaded = SitePool::new(&discovering("", &["/new"]), Some(&before), 1, Arc::default());
            let again = SitePool::new(&discovering("", &["/newer"]), Some(&reloaded), 1, Arc::default());
            assert_eq!((addresses(&again), again.has_found(0)), (vec!["http://a".to_owned()], false));
            assert_eq!(again.awaits(), None);
            again.found(0, vec![member("http://b")]);
            assert_eq!(addresses(&again), ["http://b"]);
            again.found(0, Vec::new());
            assert_eq!(addresses(&again), [""; 0]);
        }
    }

    /// Regression: the settings of a registry that is lost were those of the configuration after a reload.
    #[test]
    fn what_a_source_told_last_is_in_force_after_a_reload() {
        let configured = config("\"http://a\"");
        let before = pool("\"http://a\"");
        let settings = LiveSettings { unskilled_score: Some(7.0), ..LiveSettings::default() };
        let lost = Some("unreachable".to_owned());
        let state = SourceState { told: true, settings, lost, ..SourceState::default() };
        before.set_source_state(&configured, 1, state.clone());
        let turned = discovering("\"http://a\"", &["/two", "/one"]);
        let reloaded = SitePool::new(&turned, Some(&before), 1, Arc::default());
        assert_eq!(reloaded.live().settings().resume.unskilled_score, 7.0);
        assert_eq!(reloaded.sources()[0].1, state);
        reloaded.set_source_state(&turned, 0, SourceState::default());
        assert_eq!(reloaded.live().settings().resume, configured.settings.resume);
    }

    #[test]
    fn requests_in_flight_stay_counted_as_backends_come() {
        let pool = pool("\"http://a\"");
        let before = pool.live();
        let pick = before.pick(None, Duration::ZERO, &[]).unwrap();
        pool.found(0, vec![member("http://b")]);
        assert_eq!(pool.report(Duration::ZERO)[0].in_flight, 1);
        pick.finish(Outcome::Answered, Duration::ZERO);
        assert_eq!(pool.report(Duration::ZERO)[0].in_flight, 0);
    }
}
