//! A pool of the configuration in force: its backends, which may change while requests are in flight, and the
//! classifier of its requests.

mod absent_skills;
mod changes;
mod class_table;
mod live;
mod membership;
mod orders;
mod readiness;
mod sources;
#[cfg(test)]
mod tests;

pub(crate) use absent_skills::{AbsentSkills, AbsentWorker, unix_seconds};
pub(crate) use changes::PoolChanges;
pub use live::Live;
pub use membership::{Member, Orders, SourceState};
pub use orders::PoolRefusal;

use crate::Latency;
use crate::fastcgi::Application;
use crate::origin::timeouts::OriginTimeouts;
use crate::origin::tls::OriginTls;
use arc_swap::ArcSwap;
use membership::Membership;
use parking_lot::Mutex;
use sandarac_balance::{Backend, BackendReport, QueueReport, RetryBudget, SavedSkills};
use sandarac_config::{PoolConfig, Sticky};
use sandarac_policy::FileRule;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A pool of the configuration in force.
pub struct SitePool {
    /// The state by which requests are balanced now.
    live: ArcSwap<Live>,
    membership: Mutex<Membership>,
    changes: Arc<PoolChanges>,
    /// Whether the table of classes was looked for.
    table_told: AtomicBool,
    /// Why the table of classes cannot be read or used, if so.
    table_lost: Mutex<Option<String>>,
    /// Whether each worker was asked for its résumé.
    resumes_told: AtomicBool,
    /// Whether orders to remove or drain backends were given up, because they would have left none, and this
    /// was not reported yet.
    orders_lifted: AtomicBool,
    /// As configured, with later changes from a source or a table.
    config: Mutex<PoolConfig>,
    seed: u64,
    pub(crate) timeouts: OriginTimeouts,
    pub(crate) retries: u32,
    pub(crate) budget: Arc<RetryBudget>,
    pub(crate) hedge_after: Option<Duration>,
    pub(crate) retry_timeouts: bool,
    pub(crate) abort_on_close: bool,
    /// Whether trailers of requests are forwarded.
    pub(crate) forward_trailers: bool,
    /// The most bytes of a response that are read ahead of its client.
    pub(crate) read_ahead: u64,
    /// The most bytes of a request body that is gathered.
    pub(crate) gather_limit: u64,
    /// Time from the choice of a backend to the head of its response.
    pub(crate) latency: Arc<Latency>,
    pub(crate) sticky: Option<Sticky>,
    /// TLS to backends whose addresses ask for it.
    pub(crate) tls: Option<OriginTls>,
    /// The application, if the backends speak FastCGI.
    pub(crate) application: Option<Arc<Application>>,
    /// The files that a response may name in X-Sendfile.
    pub(crate) x_sendfile: Option<Arc<FileRule>>,
    /// Whether a response may name a file of an internal route in X-Accel-Redirect.
    pub(crate) x_accel_redirect: bool,
}

impl SitePool {
    /// The pool that `config` describes. It keeps the state that `before` has of the same backends, and the
    /// backends that were found or ordered since. It reports its changes to `changes`.
    pub(crate) fn new(
        config: &PoolConfig,
        before: Option<&SitePool>,
        seed: u64,
        changes: Arc<PoolChanges>,
    ) -> SitePool {
        let mut membership = match before {
            Some(before) => before.membership.lock().clone().under(config, before.live().backends()),
            None => Membership::default().under(config, &[]),
        };
        let mut config = config.clone();
        config.settings = membership.settings().applied_to(&config.settings, &config.settings);
        let path = |config: &PoolConfig| Some(config.classifier.as_ref()?.table_path()?.to_path_buf());
        let mut table_told = path(&config).is_none();
        if let Some((before, was_told)) = before.map(|before| (before.config.lock(), &before.table_told))
            && path(&config).is_some_and(|table| path(&before).is_some_and(|before| before == table))
            && let Some(classifier) = &before.classifier
        {
            // The table is read again later. Until then the old one is used, so that the learnt classes are
            // kept.
            config = config.with_classifier(classifier.clone());
            table_told = was_told.load(Ordering::Relaxed);
        }
        let resumes_told = before.is_some_and(|before| before.resumes_told.load(Ordering::Relaxed));
        let (live, lifted) = Live::new(&config, &mut membership, seed, before.map(SitePool::live).as_deref());
        SitePool {
            live: ArcSwap::from_pointee(live),
            membership: Mutex::new(membership),
            changes,
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
            read_ahead: config.read_ahead,
            gather_limit: config.gather_limit,
            sticky: config.sticky.clone(),
            tls: None,
            application: config
                .fastcgi
                .as_ref()
                .map(|fastcgi| Arc::new(Application::new(&config.name, fastcgi))),
            x_sendfile: config.x_sendfile.clone().map(|root| Arc::new(FileRule::of(root))),
            x_accel_redirect: config.x_accel_redirect,
            latency: before.map_or_else(Arc::default, |before| before.latency.clone()),
            budget: Arc::new(config.retry_budget.build()),
            config: Mutex::new(config),
        }
    }

    /// The pool, with TLS to its backends.
    pub(crate) fn with_tls(self, tls: Option<OriginTls>) -> SitePool {
        SitePool { tls, ..self }
    }

    /// The state by which requests are balanced now.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// The pool's name.
    pub fn name(&self) -> String {
        self.live.load().name().to_owned()
    }

    /// The state of each backend.
    pub fn report(&self, now: Duration) -> Vec<BackendReport> {
        self.live.load().report(now)
    }

    /// Time from the choice of a backend to the head of its response, since a pool of this name exists.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    /// The state of the queue for a place.
    pub fn queue_report(&self) -> QueueReport {
        self.live.load().queue_report()
    }

    /// The inferred skills of the present and of the absent backends.
    pub(crate) fn skills(&self) -> (SavedSkills, AbsentSkills) {
        let mut membership = self.membership.lock();
        membership.absent_skills.forget(unix_seconds());
        (self.live().save_skills(), membership.absent_skills.clone())
    }

    /// Takes back saved skills, for backends that are present or return.
    pub(crate) fn recall(&self, saved: AbsentSkills) {
        let mut membership = self.membership.lock();
        membership.absent_skills.take(saved);
        membership.absent_skills.give_back(&self.live());
    }

    /// Applies changed settings from now on.
    pub(crate) fn reconfigure(&self, change: impl FnOnce(PoolConfig) -> PoolConfig) {
        let mut membership = self.membership.lock();
        let before = self.config.lock().clone();
        let changed = change(before.clone());
        if changed != before {
            *self.config.lock() = changed;
            self.put(&mut membership);
        }
    }

    /// Puts the pool of this membership in force. It keeps the state of its backends.
    fn put(&self, membership: &mut Membership) {
        let (live, lifted) = Live::new(&self.config.lock(), membership, self.seed, Some(&self.live()));
        self.live.store(Arc::new(live));
        self.orders_lifted.fetch_or(lifted, Ordering::Relaxed);
        self.changes.backends_changed();
    }

    fn all(&self, membership: &Membership) -> Vec<Backend> {
        membership.backends(&self.config.lock())
    }
}
