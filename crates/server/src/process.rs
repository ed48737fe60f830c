//! The running accelerator: its cores, its listeners, its store, its logs and its admin interface.

mod acme;
mod admin_server;
mod certificate_watch;
mod control;
mod cores;
pub(crate) mod descriptors;
mod listeners;
mod log_target;
mod objects;
mod pages;
mod pools;
mod relatives;
mod reload;
mod resource_usage;
mod shared_tier;
mod site;
mod snapshot;
mod socket_files;
mod state;
mod stats;
mod sweeper;
mod tls;
mod upgrade;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use sandarac_cache::{Settings, Store};
use sandarac_config::{Config, Credentials};
use sandarac_net::{Ending, Inherited, ListenAddress, Listener, remove_stale_socket, wall};
use sandarac_proxy::{Shared, Upkeep};
use sandarac_tls::WhenExpired;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::acme::AcmeThreads;
use crate::admin::{Endpoint, Refusal, Reloaded, Server, Token, Upgrade};
use crate::cli::RunArgs;
use crate::failure::with_context;
use crate::logs::{AccessLog, Feed};
use crate::service_manager;
use crate::stderr::print_line;
use crate::takeover::{Taken, Takeover};
use crate::tls::{TlsState, load as load_tls};
use admin_server::{bind_admin, serve_admin};
use certificate_watch::start_certificate_watch;
use cores::Cores;
use descriptors::descriptor_limits;
use listeners::{Passed, bind_all, bind_optional};
use log_target::log_target;
use relatives::{ListeningToOlder, Relatives};
use site::{DISCOVERY_PATIENCE, site};
use socket_files::socket_files;
use state::{Arriving, ProcessState};
use sweeper::start_sweeper;
use upgrade::Predecessors;

/// How long connections may last after the process that has taken over has died.
const ORPHAN_DRAIN: Duration = Duration::from_secs(1);

/// How often to look whether another process has ended.
const LOOK: Duration = Duration::from_millis(50);

/// A running accelerator. Dropping it stops it at once.
pub struct Process {
    state: Arc<ProcessState>,
    admin: Option<Server>,
    /// Dropped before the rest of the process.
    upkeep: Option<Upkeep>,
    /// The threads of the cores.
    threads: Vec<JoinHandle<()>>,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every exchange has ended.
    Whole,
    /// The configured `time` has passed, and client connections are left.
    Late {
        /// The configured time.
        time: Duration,
        /// How many are left.
        connections: usize,
    },
}

/// The parts of a process, besides its configuration, that it needs to run until it is stopped.
#[derive(Default)]
pub struct Daemon {
    /// The arguments for a reload.
    pub args: Option<RunArgs>,
    /// What protects the shared tier, if one is configured.
    pub credentials: Option<Credentials>,
    /// Listening sockets that were passed to the process.
    pub inherited: Inherited,
    /// The process from which it takes over.
    pub(crate) takeover: Option<Takeover>,
}

impl Process {
    /// Starts the accelerator that `config` describes. Without `daemon` there is no admin interface and no reload.
    ///
    /// # Errors
    /// [`TlsFaults`](crate::tls::TlsFaults) in an [`io::Error`] if a certificate or another file of TLS cannot be used.
    pub fn start(mut config: Config, daemon: Option<Daemon>) -> io::Result<Process> {
        let has_admin = daemon.is_some();
        let Daemon { args, credentials, inherited, takeover } = daemon.unwrap_or_default();
        let (taken, before) = takeover
            .map(|Takeover { from, version, older, taken }| (taken, Predecessors { from, version, older }))
            .unzip();
        let Taken { sockets: taken, passed, admin: taken_admin, tickets, marks } = taken.unwrap_or_default();
        let inherited = if inherited.addresses().next().is_some() { inherited } else { passed };
        let passed = Passed { inherited: &inherited, taken: &taken };
        let count = core_count(&config);
        let log = AccessLog::open(log_target(&config.log))?;
        let optional = bind_optional(&mut config, passed, count);
        let tls = TlsState::new(tickets);
        let loaded = load_tls(&config, &tls.loading(WhenExpired::Serve))?;
        loaded.expiring().iter().for_each(|warning| print_line(format_args!("warning: {warning}")));
        loaded.warnings.iter().for_each(|warning| print_line(format_args!("warning: {warning}")));
        let acme = Arc::new(AcmeThreads::default());
        let opened = acme.open(&config).map_err(|fault| io::Error::other(fault.to_string()))?;
        let listeners = bind_all(&config, passed, count, optional)?;
        // First of all: a process that cannot have its admin interface must not have sent requests to backends.
        let admin = if has_admin { Some(bind_admin(&config.admin, taken_admin)?) } else { None };
        let bound: Vec<Listener> = listeners.iter().map(|sockets| sockets.listener.clone()).collect();
        let store = Arc::new(Store::new(Settings::new(config.cache.memory.get())));
        let (descriptors, low) = descriptor_limits(&config, count);
        if let Some(low) = low {
            print_line(format_args!("sandarac: warning: {low}"));
        }
        let (token, read_token) = (Token::default(), Token::default());
        token.set(config.admin.token.as_deref());
        read_token.set(config.admin.read_token.as_deref());
        let site = site(config, credentials, loaded.site, &bound, None);
        let complain = Box::new(|what: &str| print_line(format_args!("sandarac: {what}")));
        let shared = Shared::new(site, store.clone(), count, descriptors.clients, complain);
        shared.limit_descriptors(&descriptors);
        let feed = Feed::new();
        let (cores, threads) = Cores::start(count, &shared, &log, &feed)?;
        let upkeep = Upkeep::start(shared.clone());
        let upkeep = Some(upkeep.map_err(|error| with_context("cannot start the upkeep of pools", &error))?);
        shared.wait_until_ready(DISCOVERY_PATIENCE);
        let answers = acme.clone();
        _ = shared.challenges.set(Box::new(move |token| answers.http01(token)));
        let answers = Arc::downgrade(&acme);
        tls.runtime().set_challenge_fallback(Box::new(move |name| answers.upgrade()?.tls_alpn01(name)));
        // Handshakes need the first certificates, and the CA's checks need listeners: an order takes longer to be checked than
        // these take to listen.
        acme.apply(&shared.site().config, opened, tls.runtime())?;
        let copies: io::Result<HashMap<_, _>> =
            listeners.iter().map(|sockets| Ok((sockets.listener.id, sockets.copies()?))).collect();
        let relatives = Arc::new(Relatives::new(marks)?);
        shared.store.join(relatives.clone());
        let begun = shared.store.begun();
        let state = Arc::new(ProcessState {
            shared,
            cores,
            socket_files: Mutex::new(socket_files(&bound, &inherited)),
            listeners: Mutex::new(bound),
            inherited,
            tls,
            acme,
            log,
            feed,
            args,
            started: Instant::now(),
            started_at: wall(),
            admin: Mutex::default(),
            token,
            read_token,
            draining_since: OnceLock::new(),
            reloading: Mutex::new(()),
            sockets: Mutex::new(copies?),
            admin_server: Mutex::default(),
            upgrading: Mutex::new(()),
            handed_over: Notify::new(),
            has_to_end: Arc::default(),
            is_orphan: Arc::default(),
            noted: Mutex::default(),
            is_saving: RwLock::default(),
            is_moving: watch::Sender::new(false),
            arriving: Arriving::default(),
            relatives,
            listening_to_older: ListeningToOlder::default(),
            older: Mutex::default(),
        });
        if let Some(predecessors) = before {
            state.take_over(predecessors, begun);
        }
        for sockets in listeners {
            state.cores.listen(sockets)?;
        }
        let last_start = admin.as_ref().and_then(|bound| snapshot::note_start(bound.endpoint()));
        if let Some(path) = state.shared.site().config.cache.snapshot.clone().filter(|_| has_admin) {
            snapshot::begin_reading(&state.shared.store, path, begun, last_start, state.arriving.hold());
        }
        start_sweeper(Arc::downgrade(&state))?;
        start_certificate_watch(Arc::downgrade(&state))?;
        let admin = admin.map(|bound| serve_admin(&state, bound)).transpose()?;
        // Those of listeners that are no more.
        drop(taken);
        Ok(Process { state, admin, upkeep, threads })
    }

    /// The addresses bound.
    pub fn listeners(&self) -> Vec<ListenAddress> {
        self.state.listeners.lock().iter().map(|listener| listener.address.clone()).collect()
    }

    /// Where the admin interface is.
    pub fn admin(&self) -> Option<&Endpoint> {
        self.admin.as_ref().map(Server::endpoint)
    }

    /// The state shared by its cores: the pools, the store and the counters.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.state.shared
    }

    /// Reads the configuration again and applies it if it is valid. Reopens the access log in any case.
    pub fn reload(&self) -> Result<Reloaded, Refusal> {
        self.state.reload()
    }

    /// Reopens the access log.
    pub fn reopen_logs(&self) {
        self.state.log.reopen();
    }

    /// Starts the program again, on another thread, and hands over to the new process.
    pub fn upgrade(&self) {
        let state = self.state.clone();
        let upgrade = move || state.upgrade(&Upgrade::default());
        let started = std::thread::Builder::new().name("upgrade".to_owned()).spawn(upgrade);
        if let Err(error) = started {
            print_line(format_args!("sandarac: no upgrade: {error}"));
        }
    }

    /// Waits until another process has taken over.
    pub async fn handed_over(&self) {
        self.state.handed_over.notified().await;
    }

    /// Waits until the process that has taken over says that this one has to end, however many connections
    /// are left.
    pub async fn has_to_end(&self) {
        self.state.has_to_end.notified().await;
    }

    /// Stops accepting connections, and waits until every exchange has ended, at most for the configured time: also those
    /// of the processes that this one took over from. Whoever waits for the end of this one would otherwise start beside them, and
    /// they would not know of each other's purges.
    pub async fn drain(&self) -> Drained {
        let time = match self.state.is_orphan.load(Relaxed) && service_manager::is_there() {
            // It starts the service again when this process has ended, and nobody accepts until then.
            true => ORPHAN_DRAIN,
            false => *self.state.shared.site().config.timeouts.drain,
        };
        self.state.end_older();
        let older = async {
            while !self.state.predecessors().is_empty() {
                sleep(LOOK).await;
            }
        };
        // They have the same time, and begin a moment later.
        tokio::join!(self.drain_within(time, Ending::Now), timeout(time + 2 * LOOK, older)).0
    }

    /// Keeps what is stored for the next process, if there is a file for that. Nothing is purged any more from here on: it
    /// would come back.
    pub fn save_cache(&self) {
        let Some(path) = &self.state.shared.site().config.cache.snapshot else { return };
        *self.state.is_saving.write() = true;
        self.state.cores.stop();
        let older = self.state.predecessors();
        if let [pid, ..] = older[..] {
            print_line(format_args!(
                "sandarac: the cache is not saved, because process {pid}, from which this one took over, may still purge"
            ));
            return;
        }
        snapshot::save(&self.state.shared.store, path);
    }

    /// The same after another process has taken over: nobody waits for the end of this one, so that its
    /// connections have longer.
    pub async fn outlive(&self) -> Drained {
        let time = *self.state.shared.site().config.timeouts.drain_tunnels;
        let drained = self.drain_within(time, Ending::AfterOne).await;
        let noted = self.state.noted.lock().take();
        if let Some(noted) = noted {
            _ = tokio::task::spawn_blocking(|| noted.wait()).await;
        }
        drained
    }

    async fn drain_within(&self, time: Duration, ending: Ending) -> Drained {
        self.state.draining_since.get_or_init(Instant::now);
        self.state.sockets.lock().clear();
        let mut moving = self.state.is_moving.subscribe();
        let ended = async { tokio::join!(self.state.cores.drain(ending), moving.wait_for(|moving| !moving)) };
        match timeout(time, ended).await {
            Ok(_) => Drained::Whole,
            Err(_) => Drained::Late { time, connections: self.state.shared.connections() },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.state.cores.stop();
        self.upkeep = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for listener in self.state.listeners.lock().iter() {
            if let ListenAddress::Unix(path, _) = &listener.address
                && !self.state.inherited.has(&listener.address)
            {
                // Unless another process already listens there.
                let _ = remove_stale_socket(path);
            }
        }
        // The sweeper may be running and hold the last reference to the log: the program's end does not wait for it.
        self.state.log.finish();
        // Last: when it is gone, a process that waits for this one starts.
        self.admin = None;
    }
}

/// The number of cores: the configured one, or that of the machine.
pub(crate) fn core_count(config: &Config) -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    config.threads.map_or(available, |threads| threads as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::{Address, Conn, TempDir, get};

    #[test]
    fn the_log_is_written_to_its_end_whoever_still_holds_it() {
        let dir = TempDir::new();
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nanswer = {{ status = 200 }}\n\
             [log]\naccess = \"{}\"",
            dir.join("access.log").display()
        );
        let (config, _) = Config::from_toml("test.toml", &text).unwrap();
        let process = Process::start(config, None).unwrap();
        let held = process.state.clone();
        let address = Address::parse(&process.listeners()[0].to_string());
        Conn::to(&address).exchange(&get("/last")).expect(200);
        drop(process);
        let written = std::fs::read_to_string(dir.join("access.log")).unwrap();
        assert!(written.contains("GET /last"), "{written:?}");
        drop(held);
    }
}
