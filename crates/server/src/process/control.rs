//! Orders of the admin interface to the running process.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sandarac_cache::{Expression, Purge as Kind, Removal, Settings, Tag};
use sandarac_message::caching::Profile;
use sandarac_message::civil::Civil;
use sandarac_net::{Command, ListenAddress, Listener, ListenerId, Listeners, wall};
use sandarac_proxy::{Counter, Site};

use super::{
    DISCOVERY_PATIENCE, Inner, bind, check_inherited, connection_limit, identity, is_at, listen, log_target,
    pools, seed, socket_files, usage, warn_of_mode,
};
use crate::admin::{
    AddBackend, AskPools, Banned, CacheStatus, Control, DrainBackend, Latency, Metric, Ordered, Pools, Purge,
    Purged, Refusal, Reloaded, RemoveBackend, State, Stats, Status,
};
use crate::check;
use crate::logs::{Filter, Subscription, Viewer};
use crate::service_manager;
use crate::stderr::say;

/// The process as the admin interface sees it.
pub(super) struct ProcessControl(pub(super) Arc<Inner>);

impl Control for ProcessControl {
    fn status(&self) -> Status {
        let inner = &*self.0;
        let site = inner.shared.site();
        let store = inner.shared.store.stats();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: if inner.draining.load(Relaxed) { State::Draining } else { State::Running },
            started: Civil::of(inner.started_at).rfc3339().to_string(),
            uptime_seconds: inner.started.elapsed().as_secs(),
            config: inner.args.as_ref().and_then(|args| Some(args.config.as_ref()?.display().to_string())),
            profile: match site.config.cache.profile {
                Profile::Safe => "safe",
                Profile::Rfc => "rfc",
            }
            .to_owned(),
            threads: inner.workers.len() as u64,
            listeners: inner.listeners.lock().iter().map(|listener| listener.address.to_string()).collect(),
            admin: inner.admin.lock().clone(),
            cache: CacheStatus { limit_bytes: store.limit, used_bytes: store.bytes, objects: store.objects },
            pools: pools::status(&inner.shared),
        }
    }

    fn stats(&self) -> Stats {
        let inner = &*self.0;
        let shared = &inner.shared;
        let counted = Counter::ALL
            .iter()
            .map(|&counter| Metric::counter(counter.name(), counter.text(), shared.count(counter)));
        let by_reason = shared.counts_by_reason().into_iter();
        let by_reason = by_reason.map(|counted| {
            Metric::counter(counted.name, counted.text, counted.count).with(counted.label, counted.reason)
        });
        let mut metrics: Vec<Metric> = counted.chain(by_reason).collect();
        metrics.push(Metric::counter(
            "log_lines_dropped",
            "Access log lines lost because they could not be written, or not fast enough.",
            inner.log.dropped(),
        ));
        metrics.push(Metric::gauge(
            "connections_open",
            "Client connections that are open.",
            shared.connections() as u64,
        ));
        metrics.push(Metric::gauge(
            "connections_limit",
            "The most client connections that are served.",
            shared.connection_limit() as u64,
        ));
        store_metrics(&shared.store.stats(), &mut metrics);
        pools::metrics(shared, &mut metrics);
        usage::metrics(inner.started_at, &mut metrics);
        let site = shared.site();
        let origin = site.pools().iter().map(|pool| (pool.name(), latency([pool.latency()])));
        Stats {
            at_ms: wall().as_millis(),
            metrics,
            latency: latency(shared.latencies()),
            origin_latency: origin.collect(),
        }
    }

    fn purge(&self, purge: &Purge) -> Result<Purged, Refusal> {
        let shared = &self.0.shared;
        let kind = if purge.soft { Kind::Soft } else { Kind::Hard };
        let mut objects = 0;
        for url in &purge.urls {
            objects += shared.purge_url(url, kind).ok_or_else(|| {
                Refusal::invalid(format!("{url:?} is not an absolute URL"))
                    .instead("write it whole, as http://example.com/path")
            })?;
        }
        if !purge.tags.is_empty() {
            let tags: Vec<Tag> = purge.tags.iter().map(|tag| Tag::new(tag.as_bytes())).collect();
            objects += shared.store.purge_tags(&tags, kind, wall());
        }
        if purge.all {
            objects += shared.store.purge_all(kind, wall());
        }
        Ok(Purged { objects: objects as u64 })
    }

    fn ban(&self, expression: &str) -> Result<Banned, Refusal> {
        let parsed = Expression::parse(expression).map_err(|error| {
            Refusal::invalid(error.what.clone())
                .at(format!("column {} of the expression", error.at.start + 1))
                .instead(error.instead)
        })?;
        let store = &self.0.shared.store;
        store.ban(parsed, wall());
        Ok(Banned { active: store.stats().bans })
    }

    fn reload(&self) -> Result<Reloaded, Refusal> {
        self.0.reload()
    }

    fn pools(&self, ask: &AskPools) -> Result<Pools, Refusal> {
        pools::pools(&self.0.shared, ask)
    }

    fn add_backend(&self, order: &AddBackend) -> Result<Ordered, Refusal> {
        self.0.order(|| pools::add(&self.0.shared, order))
    }

    fn remove_backend(&self, order: &RemoveBackend) -> Result<Ordered, Refusal> {
        self.0.order(|| pools::remove(&self.0.shared, order))
    }

    fn drain_backend(&self, order: &DrainBackend) -> Result<Ordered, Refusal> {
        self.0.order(|| pools::drain(&self.0.shared, order))
    }

    fn subscribe(&self, viewer: Viewer, limit: u64, filter: Filter) -> Option<Subscription> {
        self.0.feed.subscribe(viewer, limit, filter)
    }
}

impl Inner {
    /// Reads the configuration again and takes it up if it is valid; otherwise nothing changes. Exchanges in flight end
    /// under the old one, and the store stays as it is. Whoever asked for it, standard error is told what came of it.
    pub(super) fn reload(&self) -> Result<Reloaded, Refusal> {
        if self.draining.load(Relaxed) {
            self.log.reopen();
            let refusal = Refusal::failed("nothing is reloaded: this process is draining and ends");
            say(format_args!("sandarac: {refusal}"));
            return Err(refusal.instead("start another process; it takes over when this one has ended"));
        }
        let _one_at_a_time = self.reloading.lock();
        service_manager::reloading();
        let outcome = self.take_up();
        match &outcome {
            Ok(reloaded) => {
                for warning in &reloaded.warnings {
                    say(warning);
                }
                say(format_args!("sandarac: reloaded {}", reloaded.config));
                service_manager::reloaded("reloaded");
            }
            Err(refusal) => {
                say(format_args!("sandarac: not reloaded, the configuration in force stays: {refusal}"));
                service_manager::reloaded(format_args!("not reloaded: {}", refusal.what));
            }
        }
        outcome
    }

    /// Carries out an order to a pool. Not while a reload puts another pool in its place, which would not know of it.
    fn order<T>(&self, order: impl FnOnce() -> T) -> T {
        let _no_reload = self.reloading.lock();
        order()
    }

    fn take_up(&self) -> Result<Reloaded, Refusal> {
        self.log.reopen();
        let args = self.args.as_ref().filter(|args| args.config.is_some());
        let args = args.ok_or_else(|| {
            Refusal::failed(
                "there is no configuration file to read again: this process was started with flags",
            )
        })?;
        let (config, warnings) = check::effective(args)?;
        let mut warnings: Vec<String> =
            warnings.iter().map(|warning| warning.to_string().trim_end().to_owned()).collect();
        let before = self.shared.site();
        for setting in config.needs_restart(&before.config) {
            warnings.push(format!("`{setting}` takes effect only at the next start"));
        }
        let log = self.log.prepare(log_target(&config.log));
        let log = log.map_err(|error| Refusal::failed(error.to_string()).at("[log] access"))?;
        check_inherited(&config, &self.inherited).map_err(|error| Refusal::failed(error.to_string()))?;
        let binding = self.bind(&config, &before)?;
        if let Some(log) = log {
            self.log.exchange(log);
        }
        // Without any, callers of an interface on TCP, which stays until the next start, keep theirs.
        if config.admin.token.is_some() || config.admin.read_token.is_some() {
            self.token.set(config.admin.token.as_deref());
            self.read_token.set(config.admin.read_token.as_deref());
        }
        self.shared.store.configure(Settings::new(config.cache.memory.get()));
        self.shared.set_connection_limit(connection_limit(&config, self.workers.len()));
        let site = Site::new(config, &binding.bound, Some(&before), seed());
        // Before anything is asked of it: a pool that is new finds its backends first.
        self.shared.set_site(site, DISCOVERY_PATIENCE);
        self.listen_on(binding);
        let name = args.config.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        Ok(Reloaded { config: name, warnings })
    }

    /// Binds listeners that are new. Where one cannot be bound, nothing changes.
    fn bind(&self, config: &sandarac_config::Config, before: &Site) -> Result<Binding, Refusal> {
        let mut current = self.listeners.lock();
        let mut kept = vec![false; current.len()];
        let mut bound = Vec::with_capacity(config.listeners.len());
        let mut fresh = Vec::new();
        let mut modes = Vec::new();
        for listener in &config.listeners {
            let is_same = |at: &usize| !kept[*at] && listener.address == before.config.listeners[*at].address;
            match (0..current.len()).find(is_same) {
                Some(at) => {
                    kept[at] = true;
                    let mut same = current[at].clone();
                    if let ListenAddress::Unix(path, mode) = &mut same.address
                        && *mode != listener.mode
                    {
                        *mode = listener.mode;
                        modes.push((path.clone(), listener.mode));
                    }
                    bound.push(same);
                }
                None => {
                    let sockets = bind(listener, &self.inherited, self.workers.len())
                        .map_err(|error| Refusal::failed(error.to_string()))?;
                    bound.push(sockets.listener.clone());
                    fresh.push(sockets);
                }
            }
        }
        let before = std::mem::replace(&mut *current, bound.clone());
        let gone = before.into_iter().zip(kept).filter(|(_, kept)| !kept).map(|(listener, _)| listener.id);
        Ok(Binding { bound, fresh, modes, gone: gone.collect() })
    }

    /// Listens on what was bound, and closes the listeners that are gone.
    fn listen_on(&self, binding: Binding) {
        // While the sockets are open, so that no other file can be taken for theirs.
        let mut files = socket_files(&binding.bound, &self.inherited);
        let mut current = self.socket_files.lock();
        // Another process may have put its own file in the place of one that stays.
        for (path, file) in &mut files {
            *file = current.get(path).copied().unwrap_or(*file);
        }
        let before = std::mem::replace(&mut *current, files);
        drop(current);
        for (path, file) in before {
            let is_gone = !binding.bound.iter().any(|bound| is_at(&bound.address, &path));
            if is_gone
                && identity(&path) == Some(file)
                && let Err(error) = std::fs::remove_file(&path)
            {
                say(format_args!("sandarac: cannot remove the socket {}: {error}", path.display()));
            }
        }
        for (path, mode) in binding.modes {
            if self.inherited.addresses().any(|inherited| is_at(inherited, &path)) {
                warn_of_mode(&path, mode);
            } else if let Some(mode) = mode
                && let Err(error) = std::fs::set_permissions(&path, Permissions::from_mode(mode))
            {
                say(format_args!("sandarac: cannot set the mode of the socket {}: {error}", path.display()));
            }
        }
        for listener in binding.gone {
            for worker in &self.workers {
                let _ = worker.send(Command::Unlisten(listener));
            }
        }
        for sockets in binding.fresh {
            listen(&self.workers, sockets);
        }
    }
}

/// What becomes of the listeners with another configuration.
struct Binding {
    /// The listeners, in the order of the configuration.
    bound: Vec<Listener>,
    /// The sockets of those that are new.
    fresh: Vec<Listeners>,
    /// The paths of sockets that stay, and the mode that they have from now on, where one is configured.
    modes: Vec<(PathBuf, Option<u32>)>,
    /// Those that are none any more.
    gone: Vec<ListenerId>,
}

/// The sum of several histograms.
fn latency<'a>(histograms: impl IntoIterator<Item = &'a sandarac_proxy::Latency>) -> Latency {
    let mut latency = Latency::default();
    for histogram in histograms {
        latency.sum_us += histogram.sum();
        for (at, (upper, count)) in histogram.buckets().enumerate() {
            match latency.buckets.get_mut(at) {
                Some(bucket) => bucket.1 += count,
                None => latency.buckets.push((upper, count)),
            }
        }
    }
    latency.buckets.retain(|&(_, count)| count > 0);
    latency
}

fn store_metrics(stats: &sandarac_cache::Stats, metrics: &mut Vec<Metric>) {
    metrics.extend([
        Metric::gauge("cache_objects", "Objects in the store.", stats.objects),
        Metric::gauge("cache_used_bytes", "Bytes that the store holds, index included.", stats.bytes),
        Metric::gauge(
            "cache_held_bytes",
            "Of these, bytes of objects that have left the store and that clients have yet to take.",
            stats.held_bytes,
        ),
        Metric::gauge("cache_limit_bytes", "The most bytes that the store may hold.", stats.limit),
        Metric::gauge("cache_index_bytes", "Bytes of the store's index.", stats.index_bytes),
        Metric::gauge("cache_flights", "Fetches for the store that are under way.", stats.flights),
        Metric::gauge("cache_waiters", "Requests that wait for the fetch of another.", stats.waiters),
        Metric::gauge("cache_bans", "Bans that some object was not tested against yet.", stats.bans),
        Metric::counter("cache_stored", "Objects stored.", stats.stored),
        Metric::counter("cache_refreshed", "Objects freshened by a 304.", stats.refreshed),
        Metric::counter(
            "cache_parts_kept",
            "Objects whose body broke off at the origin, kept as parts.",
            stats.kept,
        ),
    ]);
    for (removal, count) in Removal::ALL.iter().zip(stats.removed) {
        let metric = Metric::counter("cache_removed", "Objects that left the store.", count);
        metrics.push(metric.with("reason", removal.word()));
    }
}
