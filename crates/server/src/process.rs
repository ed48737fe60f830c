//! The running accelerator: its workers, its listeners, its store, its logs and its admin interface.

mod control;
mod pools;
mod usage;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sandarac_cache::{Settings, Store};
use sandarac_config::{Config, LogTarget};
use sandarac_net::{Command, Inherited, ListenAddress, Listener, Listeners, remove_stale_socket, run_core};

use sandarac_proxy::{Shared, Site, Upkeep, Worker, settle};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::admin::{Access, Bound, Callers, Endpoint, Server, Token};
use crate::cli::RunArgs;
use crate::logs::{AccessLog, Destination, Feed, Format, Target};
use crate::recorder::WorkerRecorder;
use crate::stderr::say;
use control::ProcessControl;

/// How often the store is swept, and for how many places each time: a million objects in about a minute.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
const SWEEP_PLACES: usize = 2048;

/// How long a start, and a reload, waits for pools to find their first backends.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(3);

/// Descriptors that are not for connections, whatever the number of workers: logs, the admin interface, sources of pools.
const OWN_DESCRIPTORS: u64 = 64;

/// What to do where a port is refused.
const LOW_PORT: &str = "; a port below 1024 takes the capability CAP_NET_BIND_SERVICE \
                        (AmbientCapabilities=CAP_NET_BIND_SERVICE in a systemd unit)";

/// Client connections below which a limit on open files is warned of, where no number is configured.
const FEW_CONNECTIONS: u64 = 256;

/// Descriptors of each worker's runtime. Beside them, it has a socket for each listener.
const WORKER_DESCRIPTORS: u64 = 4;

/// A running accelerator. Dropping it ends it at once.
pub struct Process {
    inner: Arc<Inner>,
    admin: Option<Server>,
    /// Gone before the rest of the process is.
    upkeep: Option<Upkeep>,
    threads: Vec<JoinHandle<()>>,
}

/// What a process has beside its configuration that runs until it is told to stop.
#[derive(Default)]
pub struct Daemon {
    /// What a reload reads again.
    pub args: Option<RunArgs>,
    /// Listening sockets that whoever started it has opened.
    pub inherited: Inherited,
}

/// What the admin interface and the signals act on.
struct Inner {
    shared: Arc<Shared>,
    workers: Vec<UnboundedSender<Command>>,
    /// The addresses bound, in the order of the configuration's listeners.
    listeners: Mutex<Vec<Listener>>,
    /// The files of Unix sockets that this process has made, by what tells each from another file at its path.
    socket_files: Mutex<HashMap<PathBuf, FileIdentity>>,
    /// Sockets that whoever started the process has opened.
    inherited: Inherited,
    log: AccessLog,
    feed: Feed,
    /// What a reload reads again; nothing where there is no file.
    args: Option<RunArgs>,
    started: Instant,
    started_at: sandarac_message::Timestamp,
    admin: Mutex<String>,
    /// What callers of the admin interface present on TCP.
    token: Token,
    /// What those present who only read.
    read_token: Token,
    draining: std::sync::atomic::AtomicBool,
    /// Held during a reload.
    reloading: Mutex<()>,
}

impl Process {
    /// Starts what `config` describes. Without `daemon` there is no admin interface, and nothing to reload.
    pub fn start(config: Config, daemon: Option<Daemon>) -> io::Result<Process> {
        let has_admin = daemon.is_some();
        let Daemon { args, inherited } = daemon.unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = config.threads.map_or(cores, |threads| threads as usize);
        let log = AccessLog::open(log_target(&config.log))?;
        let listeners = bind_all(&config, &inherited, count)?;
        // Before anything is begun: a process that cannot have its admin interface must not have asked backends.
        let admin = if has_admin { Some(bind_admin(&config.admin)?) } else { None };
        let bound: Vec<Listener> = listeners.iter().map(|sockets| sockets.listener.clone()).collect();
        let store = Arc::new(Store::new(Settings::new(config.cache.memory.get())));
        let connections = connection_limit(&config, count);
        let (token, read_token) = (Token::default(), Token::default());
        token.set(config.admin.token.as_deref());
        read_token.set(config.admin.read_token.as_deref());
        let site = Site::new(config, &bound, None, seed());
        let complain = Box::new(|what: &str| say(format_args!("sandarac: {what}")));
        let shared = Shared::new(site, store.clone(), count, connections, complain);
        let feed = Feed::new();
        let mut workers = Vec::with_capacity(count);
        let mut threads = Vec::with_capacity(count + 1);
        for index in 0..count {
            let (commands, received) = unbounded_channel();
            let (shared, feed) = (shared.clone(), feed.clone());
            let outlet = log.outlet();
            let thread = std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                let ended = run_core(received, || {
                    Worker::new(shared, index, Box::new(WorkerRecorder::new(outlet, feed)))
                });
                if let Err(error) = ended {
                    say(format_args!("sandarac: worker {index} cannot start: {error}"));
                }
            });
            let thread = thread.map_err(|error| about(&format!("cannot start worker {index}"), &error))?;
            workers.push(commands);
            threads.push(thread);
        }
        let upkeep = Upkeep::start(shared.clone());
        let upkeep = Some(upkeep.map_err(|error| about("cannot start to look after pools", &error))?);
        settle(&shared, DISCOVERY_PATIENCE);
        for sockets in listeners {
            listen(&workers, sockets);
        }
        let inner = Arc::new(Inner {
            shared,
            workers,
            socket_files: Mutex::new(socket_files(&bound, &inherited)),
            listeners: Mutex::new(bound),
            inherited,
            log,
            feed,
            args,
            started: Instant::now(),
            started_at: sandarac_net::wall(),
            admin: Mutex::default(),
            token,
            read_token,
            draining: std::sync::atomic::AtomicBool::new(false),
            reloading: Mutex::new(()),
        });
        threads.push(sweep(Arc::downgrade(&inner))?);
        let admin = admin.map(|bound| serve_admin(&inner, bound)).transpose()?;
        Ok(Process { inner, admin, upkeep, threads })
    }

    /// The addresses bound.
    pub fn listeners(&self) -> Vec<ListenAddress> {
        self.inner.listeners.lock().iter().map(|listener| listener.address.clone()).collect()
    }

    /// Where the admin interface is.
    pub fn admin(&self) -> Option<&Endpoint> {
        self.admin.as_ref().map(Server::endpoint)
    }

    /// What its workers share: the pools, the store and the counters.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Reads the configuration again and takes it up if it is valid. Opens the access log anew in any case.
    pub fn reload(&self) -> Result<crate::admin::Reloaded, crate::admin::Refusal> {
        self.inner.reload()
    }

    /// Opens the access log anew.
    pub fn reopen_logs(&self) {
        self.inner.log.reopen();
    }

    /// Takes no more connections, and waits until every exchange has ended, at most as long as is configured. Returns
    /// whether all have.
    pub async fn drain(&self) -> bool {
        self.inner.draining.store(true, std::sync::atomic::Ordering::Relaxed);
        let patience = *self.inner.shared.site().config.timeouts.drain;
        let drained = self.inner.workers.iter().filter_map(|worker| {
            let (done, drained) = oneshot::channel();
            worker.send(Command::Drain(done)).ok().map(|()| drained)
        });
        let drained: Vec<_> = drained.collect();
        let all = async {
            for worker in drained {
                let _ = worker.await;
            }
        };
        tokio::time::timeout(patience, all).await.is_ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for worker in &self.inner.workers {
            let _ = worker.send(Command::Stop);
        }
        self.upkeep = None;
        for thread in self.threads.drain(..self.inner.workers.len()) {
            let _ = thread.join();
        }
        for listener in self.inner.listeners.lock().iter() {
            if let ListenAddress::Unix(path, _) = &listener.address
                && !self.inner.inherited.addresses().any(|inherited| is_at(inherited, path))
            {
                // Unless another process listens there by now.
                let _ = remove_stale_socket(path);
            }
        }
        // The sweeper may be at work and the last to let go of the log: it is not waited for when the program ends.
        self.inner.log.finish();
        // Last: when it is gone, a process that waits for this one starts.
        self.admin = None;
    }
}

fn listen(workers: &[UnboundedSender<Command>], sockets: Listeners) {
    for (worker, socket) in workers.iter().zip(sockets.split()) {
        let _ = worker.send(Command::Listen(socket));
    }
}

fn bind_all(config: &Config, inherited: &Inherited, workers: usize) -> io::Result<Vec<Listeners>> {
    check_inherited(config, inherited)?;
    config.listeners.iter().map(|listener| bind(listener, inherited, workers)).collect()
}

/// Every socket that was passed to the process has a listener in the configuration.
fn check_inherited(config: &Config, inherited: &Inherited) -> io::Result<()> {
    let listens_at =
        |address: &&ListenAddress| config.listeners.iter().any(|listener| is_for(&listener.address, address));
    let unserved = "connections to it would wait for ever";
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if let Some(stray) = inherited.addresses().find(|address| !listens_at(address)) {
        return wrong(format!(
            "a socket for {stray} was passed to this process (LISTEN_FDS), but no [[listen]] has that address: {unserved}"
        ));
    }
    for listener in &config.listeners {
        let mut passed = inherited.addresses().filter(|address| is_for(&listener.address, address));
        if let (Some(first), Some(second)) = (passed.next(), passed.next()) {
            return wrong(format!(
                "two sockets were passed to this process (LISTEN_FDS) for the [[listen]] {}, {first} and {second}, of which \
                 one is used: {unserved}",
                listener.address
            ));
        }
    }
    Ok(())
}

/// Whether a listener of the configuration may take a socket that is bound to `bound`.
fn is_for(listener: &sandarac_config::ListenAddress, bound: &ListenAddress) -> bool {
    match (listener, bound) {
        (sandarac_config::ListenAddress::Any(port), ListenAddress::Tcp(bound)) => {
            bound.ip().is_unspecified() && bound.port() == *port
        }
        (sandarac_config::ListenAddress::Tcp(address), ListenAddress::Tcp(bound)) => address == bound,
        (sandarac_config::ListenAddress::Unix(path), bound) => is_at(bound, path),
        _ => false,
    }
}

/// Device and inode. As long as a socket is open, no other file has those of its own.
type FileIdentity = (u64, u64);

fn identity(path: &Path) -> Option<FileIdentity> {
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The files of those of the sockets `bound` that were not passed to the process.
fn socket_files(bound: &[Listener], inherited: &Inherited) -> HashMap<PathBuf, FileIdentity> {
    let made = bound.iter().filter_map(|listener| match &listener.address {
        ListenAddress::Unix(path, _) if !inherited.addresses().any(|passed| is_at(passed, path)) => {
            Some((path.clone(), identity(path)?))
        }
        _ => None,
    });
    made.collect()
}

fn is_at(address: &ListenAddress, path: &Path) -> bool {
    matches!(address, ListenAddress::Unix(bound, _) if bound == path)
}

/// Binds a listener, unless its socket is inherited. One without a host takes all addresses: IPv6 and IPv4 together, or IPv4 alone
/// where the system has no IPv6.
fn bind(
    listener: &sandarac_config::Listener,
    inherited: &Inherited,
    workers: usize,
) -> io::Result<Listeners> {
    if let Some(found) = inherited.find(|bound| is_for(&listener.address, bound), workers) {
        let mut listeners = found?;
        if let ListenAddress::Unix(path, mode) = &mut listeners.listener.address {
            *mode = listener.mode;
            warn_of_mode(path, listener.mode);
        }
        return Ok(listeners);
    }
    let tcp = |address: SocketAddr| Listeners::bind(&ListenAddress::Tcp(address), workers);
    let bound = match &listener.address {
        sandarac_config::ListenAddress::Any(port) => {
            tcp((Ipv6Addr::UNSPECIFIED, *port).into()).or_else(|error| {
                let no_ipv6 = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
                    || error.kind() == io::ErrorKind::AddrNotAvailable;
                if no_ipv6 { tcp((Ipv4Addr::UNSPECIFIED, *port).into()) } else { Err(error) }
            })
        }
        sandarac_config::ListenAddress::Tcp(address) => tcp(*address),
        sandarac_config::ListenAddress::Unix(path) => {
            Listeners::bind(&ListenAddress::Unix(path.clone(), listener.mode), workers)
        }
    };
    bound.map_err(|error| {
        let is_tcp = !matches!(listener.address, sandarac_config::ListenAddress::Unix(_));
        let hint = if is_tcp && error.kind() == io::ErrorKind::PermissionDenied { LOW_PORT } else { "" };
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}{hint}", listener.address))
    })
}

/// A mode that is configured for a socket that was passed to the process, and that its file has not.
fn warn_of_mode(path: &Path, mode: Option<u32>) {
    let Some(mode) = mode else { return };
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o777 != mode) {
        say(format_args!(
            "sandarac: warning: [[listen]] mode = \"{mode:04o}\" has no effect: unix:{} was passed to this process \
             (LISTEN_FDS); set SocketMode= in the systemd socket unit",
            path.display()
        ));
    }
}

/// `error`, with what was being done.
fn about(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn log_target(log: &sandarac_config::Log) -> Target {
    let destination = match &log.access {
        LogTarget::Off => return None,
        LogTarget::Stdout => Destination::Stdout,
        LogTarget::Stderr => Destination::Stderr,
        LogTarget::File(path) => Destination::File(path.clone()),
    };
    let format = match log.format {
        sandarac_config::LogFormat::Combined => Format::Combined,
        sandarac_config::LogFormat::Json => Format::Json,
    };
    Some((destination, format))
}

fn bind_admin(admin: &sandarac_config::Admin) -> io::Result<Bound> {
    let endpoint = Endpoint::of(admin.listen.as_ref());
    let callers = Callers {
        mode: admin.mode.map(|mode| mode.0),
        group: admin.group.as_ref().map(|group| group.as_str().to_owned()),
    };
    Bound::bind(&endpoint, &callers).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; give this process its own with --admin PATH",
            _ => "",
        };
        let what = format!("the admin interface cannot listen on {endpoint}: {error}{hint}");
        io::Error::new(error.kind(), what)
    })
}

fn serve_admin(inner: &Arc<Inner>, bound: Bound) -> io::Result<Server> {
    *inner.admin.lock() = bound.endpoint().to_string();
    let (token, read_token) = (inner.token.clone(), inner.read_token.clone());
    let access = Access { token, read_token, ..Access::default() };
    Server::start(bound, access, Arc::new(ProcessControl(inner.clone())))
        .map_err(|error| about("cannot start the admin interface", &error))
}

/// The most client connections: what is configured, or as many as the limit on open files allows, where each may need
/// a connection to a backend too. The limit itself is raised as far as the system lets it.
fn connection_limit(config: &Config, workers: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let worker = WORKER_DESCRIPTORS + config.listeners.len() as u64;
    let own = OWN_DESCRIPTORS + workers as u64 * worker;
    let possible = (files.saturating_sub(own) / 2).max(1);
    let configured = config.limits.connections.map(|most| u64::from(most.get()));
    let needed = configured.unwrap_or(FEW_CONNECTIONS);
    if possible < needed {
        say(format_args!(
            "sandarac: warning: the limit on open files, {files}, leaves room for {} at a time; {needed} take {}: raise it \
             with `ulimit -n`, or LimitNOFILE= in a systemd unit",
            crate::human::count(possible, "client connection"),
            own + 2 * needed
        ));
    }
    let wanted = configured.unwrap_or(u64::MAX);
    usize::try_from(possible.min(wanted)).unwrap_or(usize::MAX)
}

/// Sweeps the store for as long as the process is there.
fn sweep(inner: std::sync::Weak<Inner>) -> io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("sweeper".to_owned()).spawn(move || {
        while let Some(inner) = inner.upgrade() {
            inner.shared.store.sweep(SWEEP_PLACES, sandarac_net::wall());
            inner.shared.look_at_clients();
            drop(inner);
            std::thread::sleep(SWEEP_EVERY);
        }
    });
    thread.map_err(|error| about("cannot start the sweeper", &error))
}

/// A seed for choices among equals: two processes should not choose alike.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
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
        let held = process.inner.clone();
        let address = Address::parse(&process.listeners()[0].to_string());
        Conn::to(&address).exchange(&get("/last")).expect(200);
        drop(process);
        let written = std::fs::read_to_string(dir.join("access.log")).unwrap();
        assert!(written.contains("GET /last"), "{written:?}");
        drop(held);
    }
}
