//! The state that all threads of the soak share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use sandarac_test_support::Address;

use crate::Profile;
use crate::pool::Pool;
use crate::site::Site;
use crate::verdict::Verdict;

/// How long after its end a disturbance still explains what goes wrong.
const AFTERMATH: Duration = Duration::from_secs(3);

/// The soak in progress.
pub(crate) struct Stage {
    pub(crate) seed: u64,
    pub(crate) profile: Profile,
    pub(crate) site: Site,
    pub(crate) verdict: Verdict,
    pub(crate) disturbances: Disturbances,
    pub(crate) ledger: Ledger,
    pub(crate) entrances: Entrances,
    next_nonce: AtomicU64,
}

/// Where Sandarac listens.
#[derive(Clone, Debug)]
pub(crate) struct Entrances {
    pub(crate) plain: Address,
    /// Where connections begin with a PROXY header.
    pub(crate) proxied: Address,
    /// Where connections speak TLS.
    pub(crate) tls: Address,
    /// TLS with it.
    pub(crate) tls_client: Arc<ClientConfig>,
    pub(crate) http2_client: Arc<ClientConfig>,
    pub(crate) unix: Address,
}

impl Stage {
    pub(crate) fn new(seed: u64, profile: Profile, site: Site, entrances: Entrances) -> Stage {
        Stage {
            seed,
            profile,
            site,
            verdict: Verdict::new(seed),
            disturbances: Disturbances::default(),
            ledger: Ledger::default(),
            entrances,
            next_nonce: AtomicU64::new(1),
        }
    }

    /// A number that no other request has.
    pub(crate) fn nonce(&self) -> u64 {
        self.next_nonce.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a chore does that makes good requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    Restart,
    /// There are no descriptors left for connections.
    Drought,
    /// A backend of this pool is down.
    Down(Pool),
    /// A reload, which explains nothing.
    Reload,
}

/// When there were disturbances.
#[derive(Default)]
pub(crate) struct Disturbances(Mutex<Vec<(Disturbance, Instant, Option<Instant>)>>);

impl Disturbances {
    /// Records a disturbance for as long as `work` takes.
    pub(crate) fn during<T>(&self, disturbance: Disturbance, work: impl FnOnce() -> T) -> T {
        let at = {
            let mut list = self.0.lock().expect("no thread panics here");
            list.push((disturbance, Instant::now(), None));
            list.len() - 1
        };
        let result = work();
        self.0.lock().expect("no thread panics here")[at].2 = Some(Instant::now());
        result
    }

    /// Whether there was a disturbance of the process at any time since `from`, or shortly before.
    pub(crate) fn explain(&self, from: Instant) -> bool {
        self.any(from, |disturbance| matches!(disturbance, Disturbance::Restart | Disturbance::Drought))
    }

    /// Whether a connection that was made at `opened` has lost its process since then.
    pub(crate) fn restarted(&self, opened: Instant) -> bool {
        let list = self.0.lock().expect("no thread panics here");
        list.iter().any(|&(disturbance, _, end)| {
            disturbance == Disturbance::Restart && end.is_none_or(|end| end > opened)
        })
    }

    /// Whether a backend of `pool` was down at any time since `from`, or shortly before.
    pub(crate) fn of_pool(&self, pool: Pool, from: Instant) -> bool {
        self.any(from, |disturbance| disturbance == Disturbance::Down(pool))
    }

    /// When a backend of `pool` came back last.
    pub(crate) fn last_of_pool(&self, pool: Pool) -> Option<Instant> {
        let list = self.0.lock().expect("no thread panics here");
        let of_pool = list.iter().filter(|(disturbance, ..)| *disturbance == Disturbance::Down(pool));
        of_pool.filter_map(|&(.., end)| end).max()
    }

    /// The latest disturbances of each kind, for reports.
    pub(crate) fn latest(&self) -> String {
        let list = self.0.lock().expect("no thread panics here");
        let mut latest: Vec<(Disturbance, String)> = Vec::new();
        for &(disturbance, begin, end) in list.iter().rev() {
            if latest.iter().all(|(other, _)| *other != disturbance) {
                let ago = |time: Instant| format!("{:.3} s ago", time.elapsed().as_secs_f64());
                let end = end.map_or("now".to_owned(), ago);
                latest.push((disturbance, format!("{disturbance:?} from {} to {end}", ago(begin))));
            }
        }
        let shown: Vec<String> = latest.into_iter().map(|(_, text)| text).collect();
        shown.join(", ")
    }

    fn any(&self, from: Instant, of: impl Fn(Disturbance) -> bool) -> bool {
        let list = self.0.lock().expect("no thread panics here");
        list.iter()
            .any(|&(disturbance, _, end)| of(disturbance) && end.is_none_or(|end| end + AFTERMATH > from))
    }
}

/// How a tunnel ended for one of its sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In order, after so many bytes.
    Orderly(u64),
    /// With a reset, after so many bytes at most.
    Reset(u64),
    /// With bytes that are wrong, or not at all.
    Wrong(String),
}

/// What origins know of requests.
#[derive(Default)]
pub(crate) struct Ledger {
    attempts: Mutex<HashMap<u64, u32>>,
    excused: Mutex<HashSet<u64>>,
    tunnels: Mutex<HashMap<u64, End>>,
    /// When the latest answer of each backend reached a client.
    answers: Mutex<HashMap<String, Instant>>,
}

impl Ledger {
    /// Counts a request with this nonce: the how many-th it is, from 1.
    pub(crate) fn attempt(&self, nonce: u64) -> u32 {
        let mut attempts = self.attempts.lock().expect("no thread panics here");
        let attempt = attempts.entry(nonce).or_default();
        *attempt += 1;
        *attempt
    }

    /// Forgets a request that was answered.
    pub(crate) fn forget(&self, nonce: u64) {
        self.attempts.lock().expect("no thread panics here").remove(&nonce);
        self.tunnels.lock().expect("no thread panics here").remove(&nonce);
    }

    /// A request whose answer cannot be told from a stray response that crossed it on the way.
    pub(crate) fn excuse(&self, nonce: u64) {
        self.excused.lock().expect("no thread panics here").insert(nonce);
    }

    /// Whether a request is excused; the origin may be a moment behind the client.
    pub(crate) fn is_excused(&self, nonce: u64) -> bool {
        let excused = || self.excused.lock().expect("no thread panics here").contains(&nonce);
        soon(Duration::from_millis(500), || excused().then_some(())).is_some()
    }

    /// Takes note of an answer of a backend that has reached a client.
    pub(crate) fn answered(&self, backend: &str) {
        self.answers.lock().expect("no thread panics here").insert(backend.to_owned(), Instant::now());
    }

    /// When the latest answer of a backend reached a client.
    pub(crate) fn last_answer(&self, backend: &str) -> Option<Instant> {
        self.answers.lock().expect("no thread panics here").get(backend).copied()
    }

    /// How a tunnel ended for the origin.
    pub(crate) fn tunnel_ended(&self, nonce: u64, end: End) {
        self.tunnels.lock().expect("no thread panics here").insert(nonce, end);
    }

    pub(crate) fn tunnel_end(&self, nonce: u64, patience: Duration) -> Option<End> {
        soon(patience, || self.tunnels.lock().expect("no thread panics here").remove(&nonce))
    }
}

/// Asks `check` until it gives something, for `patience` at most.
pub(crate) fn soon<T>(patience: Duration, mut check: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + patience;
    loop {
        let found = check();
        if found.is_some() || Instant::now() > until {
            return found;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
