//! The Sandarac under load: its configuration, its restarts, and what it may take of the machine.

use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use sandarac_test_support::{Address, Memcached, Port, Sandarac, Setup, Signal, TempDir};

use crate::certificate::Certificate;
use crate::files;
use crate::origin::Backend;
use crate::pool::Pool;
use crate::random::Random;
use crate::stage::{Entrances, soon};
use crate::verdict::{Count, Verdict};
use crate::{Arguments, Profile};

/// The limits of the cache that reloads choose from, in MiB.
const LIMITS: [u64; 7] = [32, 48, 64, 96, 128, 192, 256];

/// The limit at the start and at the end, in MiB.
pub(crate) const LIMIT: u64 = 64;

/// How long exchanges in flight may take after SIGTERM.
pub(crate) const DRAIN: Duration = Duration::from_secs(3);

/// How much longer than that the process may take to end.
const TO_END: Duration = Duration::from_secs(5);

const MIB: u64 = 1 << 20;

/// The most memory that the process may take: 1.5 times the limit of the cache, 24 MiB for itself, and 2 MiB for each response
/// that comes faster than its client takes it (docs/manual/running.md). Each client may wait for one such response.
pub(crate) fn peak_bound(limit_mib: u64, clients: usize) -> u64 {
    limit_mib * MIB * 3 / 2 + 24 * MIB + clients as u64 * 2 * MIB
}

/// The process, and what is needed to start it again.
pub(crate) struct Proxy {
    binary: String,
    profile: Profile,
    clients: usize,
    access_log: String,
    ports: [Port; 3],
    /// The files of its certificate, and clients that trust it.
    certificate: Certificate,
    dir: TempDir,
    backends: String,
    /// The servers of the shared tier; none without one.
    tier: Mutex<Vec<Memcached>>,
    /// The setting that names them.
    tier_setting: String,
    running: RwLock<Option<Sandarac>>,
    now: Mutex<Life>,
}

/// What is known of the process that runs.
#[derive(Clone, Copy, Default)]
struct Life {
    /// The largest limit of the cache that was in force, in MiB.
    limit: u64,
    threads: u64,
    descriptors: usize,
}

impl Proxy {
    pub(crate) fn new(arguments: &Arguments) -> Proxy {
        // The process runs in a directory of its own.
        let absolute =
            |path: &str| std::path::absolute(path).map_or(path.into(), |path| path.display().to_string());
        let tier: Vec<Memcached> =
            (0..if arguments.shared { 2 } else { 0 }).map(|_| Memcached::start(&[])).collect();
        let dir = TempDir::new();
        Proxy {
            binary: absolute(&arguments.bin),
            profile: arguments.profile,
            clients: arguments.clients,
            access_log: arguments.access_log.as_deref().map_or("off".to_owned(), absolute),
            ports: [Port::new(), Port::new(), Port::new()],
            certificate: Certificate::new(&dir),
            dir,
            backends: String::new(),
            tier_setting: tier_setting(&tier),
            tier: Mutex::new(tier),
            running: RwLock::new(None),
            now: Mutex::default(),
        }
    }

    pub(crate) fn entrances(&self) -> Entrances {
        let [plain, proxied, tls] = self.ports.each_ref().map(|port| Address::Tcp(port.address()));
        let unix = Address::Unix(self.dir.join("front"));
        let (tls_client, http2_client) =
            (self.certificate.client.clone(), self.certificate.http2_client.clone());
        Entrances { plain, proxied, tls, tls_client, http2_client, unix }
    }

    /// A directory for the sockets of backends.
    pub(crate) fn dir(&self) -> &TempDir {
        &self.dir
    }

    /// Takes note of the backends, before the start.
    pub(crate) fn serve(&mut self, backends: &[Backend]) {
        let files = self.dir.join("files");
        files::write_all(&files);
        let of = |pool: Pool| {
            if pool == Pool::Files {
                return files::table(&files);
            }
            // The backend of the one is that of the other, too.
            let pool_of = if pool == Pool::Shared { Pool::Steady } else { pool };
            let urls: Vec<String> = backends
                .iter()
                .filter(|backend| backend.pool == pool_of)
                .map(|backend| backend.url.clone())
                .collect();
            pool.tables(&urls)
        };
        self.backends = Pool::ALL.map(of).concat();
    }

    fn config(&self, limit_mib: u64, extra: &str) -> String {
        let Entrances { plain, proxied, tls, unix, .. } = self.entrances();
        let certificate = &self.certificate.files;
        let profile = self.profile.name();
        let tier = &self.tier_setting;
        format!(
            "threads = 2\n\n[[listen]]\naddress = \"{plain}\"\nhttp2 = true\n\n[[listen]]\naddress = \"{proxied}\"\n\
             proxy_protocol = true\n\n[[listen]]\naddress = \"{unix}\"\n\n[[listen]]\naddress = \"{tls}\"\n\
             tls = {{ certificates = {certificate} }}\n\n{}\
             [cache]\nmemory = \"{limit_mib}MiB\"\nprofile = \"{profile}\"\nharmless_fields = [\"X-*\"]\n{tier}{extra}\n\n\
             [timeouts]\ndrain = \"{}s\"\n\n[purge]\nallow = [\"127.0.0.1\"]\n\n\
             [log]\naccess = \"{}\"\nformat = \"json\"\n",
            self.backends,
            DRAIN.as_secs(),
            self.access_log
        )
    }

    /// The servers of the shared tier. The process is not restarted while this is held.
    pub(crate) fn tier(&self) -> MutexGuard<'_, Vec<Memcached>> {
        self.tier.lock().expect("no thread panics here")
    }

    /// Starts the process.
    pub(crate) fn start(&self) {
        let sandarac = Setup::new(&self.binary).config(self.config(LIMIT, "")).start();
        *self.now.lock().expect("no thread panics here") =
            Life { limit: LIMIT, threads: sandarac.threads(), descriptors: sandarac.open_descriptors() };
        *self.running.write().expect("no thread panics here") = Some(sandarac);
    }

    /// The process, which does not end while this is held.
    pub(crate) fn running(&self) -> RwLockReadGuard<'_, Option<Sandarac>> {
        self.running.read().expect("no thread panics here")
    }

    pub(crate) fn admin(&self) -> Option<Address> {
        self.running().as_ref().map(|sandarac| Address::Unix(sandarac.admin_path()))
    }

    /// Writes a configuration with another limit of the cache, and gives the limit.
    pub(crate) fn choose_config(&self, random: &mut Random) -> u64 {
        let limit = random.pick(&LIMITS);
        let extra = random.pick(&["", "keep = \"10m\"", "max_object = \"2MiB\"", "keep = \"30s\""]);
        self.write_config(limit, extra);
        limit
    }

    pub(crate) fn write_config(&self, limit: u64, extra: &str) {
        let mut now = self.now.lock().expect("no thread panics here");
        now.limit = now.limit.max(limit);
        if let Some(sandarac) = self.running().as_ref() {
            sandarac.write_config(&self.config(limit, extra));
        }
    }

    /// Ends the process with SIGTERM, and sees that it ends in time, in order and within its memory.
    pub(crate) fn stop(&self, verdict: &Verdict) {
        let Some(mut sandarac) = self.running.write().expect("no thread panics here").take() else { return };
        verdict.add(Count::TooSlow, sandarac.metric("clients_slow"));
        let (life, peak) = (*self.now.lock().expect("no thread panics here"), sandarac.peak_resident_bytes());
        let began = Instant::now();
        sandarac.signal(Signal::Terminate);
        let ended = soon(DRAIN + TO_END, || (!sandarac.is_running()).then_some(()));
        if ended.is_none() {
            println!("\nafter SIGTERM: {}\n{}", threads(sandarac.pid()), sandarac.stderr());
            verdict.check(false, format!("SIGTERM: no end after {:.1} s", began.elapsed().as_secs_f64()));
            return;
        }
        let status = sandarac.wait();
        let took = began.elapsed();
        let bound = peak_bound(life.limit, self.clients);
        let text = format!("peak memory {} MiB of at most {} MiB", peak / MIB, bound / MIB);
        verdict.check(peak <= bound, format!("{text}, with a cache of {} MiB", life.limit));
        verdict.check(status.success(), format!("SIGTERM: {status} after {:.1} s", took.as_secs_f64()));
        let panics: Vec<String> =
            sandarac.stderr().lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect();
        verdict.check(panics.is_empty(), format!("no panics on standard error {}", panics.join("; ")));
    }

    /// Threads and descriptors of the process when it had just begun.
    pub(crate) fn at_rest(&self) -> (u64, usize) {
        let now = self.now.lock().expect("no thread panics here");
        (now.threads, now.descriptors)
    }
}

/// The setting of a shared tier.
fn tier_setting(tier: &[Memcached]) -> String {
    let servers: Vec<String> =
        tier.iter().map(|server| format!("\"unix:{}\"", server.socket().display())).collect();
    if servers.is_empty() {
        return String::new();
    }
    // Copies in memory are checked often.
    format!("shared = {{ servers = [{}], local_ttl = \"300ms\" }}\n", servers.join(", "))
}

/// The threads of a process, each with its name and what it waits for in the kernel.
fn threads(pid: u32) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let shown: Vec<String> = tasks
        .map(|task| {
            let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let state =
                read("status").lines().find(|line| line.starts_with("State:")).unwrap_or_default().to_owned();
            format!("{} {} {}", read("comm").trim(), state.trim_start_matches("State:").trim(), read("wchan"))
        })
        .collect();
    shown.join(", ")
}
