//! A pool: its backends and where they come from, how one is chosen, and how long each is waited for.

mod make;
mod settings;
mod source;
mod status;
mod sticky;

use std::path::PathBuf;
use std::time::Duration;

use sandarac_balance::{Address, Algorithm, Backend, Pool, RetryBudget, Settings};
use sandarac_policy::Classifier;

pub(crate) use make::pool_config;
pub(crate) use settings::{BackendSettings, CheckSettings, PoolName, PoolSettings};
pub(crate) use source::Sources;
pub use source::{Password, Server, Source};
pub use status::StatusRange;
pub use sticky::{SameSite, Sticky};

/// A pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolConfig {
    /// Its name.
    pub name: String,
    /// The backends that the file names, all different. None is needed where there is something in `discover`.
    pub backends: Vec<BackendConfig>,
    /// Where more backends are found.
    pub discover: Vec<Source>,
    /// The most requests in flight to a backend that says nothing else, such as one that was discovered.
    pub max_in_flight: Option<u32>,
    /// How a backend is chosen. The seed is 0; the fingerprint of the classifier is that of `classifier`.
    pub settings: Settings,
    /// What sorts requests into classes; `None` where the algorithm does not tell requests apart.
    pub classifier: Option<Classifier>,
    /// Where inferred skills are saved.
    pub skills_file: Option<PathBuf>,
    /// How backends are checked; they are not where it is `None`.
    pub check: Option<CheckConfig>,
    /// How sessions stick to a backend; they do not where it is `None`.
    pub sticky: Option<Sticky>,
    /// How long one request waits in the queue.
    pub queue_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a backend may take from the request to the first byte of its response.
    pub first_byte_timeout: Duration,
    /// How long a backend may pause between two reads.
    pub between_bytes_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// How long a connection is used at most.
    pub connection_age: Duration,
    /// How often a request is tried again, at most 2.
    pub retries: u32,
    /// How many retries the pool bears.
    pub retry_budget: RetryBudgetConfig,
    /// After how long without an answer a GET or HEAD is sent to a second backend as well; never where it is `None`.
    pub hedge_after: Option<Duration>,
    /// Whether a request that had no answer in time is tried again.
    pub retry_timeouts: bool,
    /// Whether a request is given up when its client closes the connection.
    pub abort_on_close: bool,
    /// Whether trailers of requests go on.
    pub forward_trailers: bool,
}

/// A backend of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackendConfig {
    /// Where it is.
    pub address: Address,
    /// How much of the load it is to bear, compared with others: 1 to [`Backend::MAX_WEIGHT`].
    pub weight: u32,
    /// The most requests in flight to it, its own limit or the pool's.
    pub max_in_flight: Option<u32>,
}

impl BackendConfig {
    /// The backend that this describes.
    pub fn build(&self) -> Backend {
        let limit = self.max_in_flight.unwrap_or(u32::MAX);
        Backend::new(self.address.clone()).weighing(self.weight).max_in_flight(limit)
    }
}

/// How many retries a pool bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetConfig {
    /// For every hundred requests.
    pub percent: u32,
    /// For every second, beside those.
    pub per_second: u32,
}

impl RetryBudgetConfig {
    /// The budget that this describes.
    pub fn build(self) -> RetryBudget {
        RetryBudget::new(self.percent, self.per_second)
    }
}

/// How backends are checked. How many checks change a backend's standing is said in [`Settings::checks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckConfig {
    /// The target of the request: a path, and a query or not.
    pub path: String,
    /// The value of `Host`; the backend's own where it is `None`.
    pub host: Option<String>,
    /// The statuses that pass.
    pub status: Vec<StatusRange>,
    /// From one check of a backend to the next.
    pub interval: Duration,
    /// How long a check may take, connecting included.
    pub timeout: Duration,
}

impl CheckConfig {
    /// Whether a response of this status passes.
    pub fn passes(&self, status: u16) -> bool {
        self.status.iter().any(|range| range.contains(status))
    }
}

impl PoolConfig {
    /// The pool that this describes, of the backends that the file names, choosing by `seed`.
    pub fn build(&self, seed: u64) -> Pool {
        self.of_backends(self.backends.iter().map(BackendConfig::build).collect(), seed, None)
    }

    /// The pool that this describes, of these backends, choosing by `seed`. It takes the place of the one `before`, if there
    /// was one, see [`Pool::succeeded_by`].
    pub fn of_backends(&self, backends: Vec<Backend>, seed: u64, before: Option<&Pool>) -> Pool {
        let settings = Settings { seed, ..self.settings.clone() };
        match before {
            Some(before) => before.succeeded_by(backends, settings),
            None => Pool::new(&self.name, backends, settings),
        }
    }

    /// A backend that was discovered at `address`; where the file names it too, it is as the file says.
    pub fn discovered(&self, address: Address) -> BackendConfig {
        let named = self.backends.iter().find(|backend| backend.address == address);
        named.cloned().unwrap_or(BackendConfig { address, weight: 1, max_in_flight: self.max_in_flight })
    }

    /// The same pool with another classifier, such as one whose table was read anew: what is known of classes is known
    /// under its fingerprint.
    pub fn with_classifier(mut self, classifier: Classifier) -> PoolConfig {
        self.settings.resume.classifier = classifier.fingerprint();
        self.classifier = Some(classifier);
        self
    }

    /// How a backend is chosen.
    pub fn algorithm(&self) -> Algorithm {
        self.settings.algorithm
    }
}
