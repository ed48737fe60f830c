//! A pool: its backends and their sources, how one is chosen, and timeouts.

mod fastcgi;
mod make;
mod settings;
mod source;
mod status;
mod sticky;

use std::path::PathBuf;
use std::time::Duration;

use sandarac_balance::{Address, Algorithm, Backend, Pool, RetryBudget, Settings};
use sandarac_policy::Classifier;

use crate::tls::PoolTls;

pub use fastcgi::FastCgiConfig;
pub(crate) use fastcgi::FastCgiSettings;
pub(crate) use make::pool_config;
pub(crate) use settings::{BackendSettings, CheckSettings, PoolName, PoolSettings};
pub(crate) use source::{EtcdSettings, ServiceName, Sources, ZooKeeperSettings, etcd, zookeeper};
pub use source::{Password, Server, Source};
pub use status::StatusRange;
pub use sticky::{SameSite, Sticky};

/// A pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolConfig {
    /// Its name.
    pub name: String,
    /// The backends listed in the file, all different. It may be empty if `discover` is not.
    pub backends: Vec<BackendConfig>,
    /// Sources of more backends.
    pub discover: Vec<Source>,
    /// The most requests in flight to a backend without its own limit, such as a discovered one.
    pub max_in_flight: Option<u32>,
    /// How a backend is chosen. The seed is 0; the fingerprint of the classifier is that of `classifier`.
    pub settings: Settings,
    /// The classifier of requests; `None` if the algorithm does not use classes.
    pub classifier: Option<Classifier>,
    /// Where inferred skills are saved.
    pub skills_file: Option<PathBuf>,
    /// How backends are checked; `None` for no checks.
    pub check: Option<CheckConfig>,
    /// How sessions stick to a backend; `None` if they do not.
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
    /// How many retries the pool permits.
    pub retry_budget: RetryBudgetConfig,
    /// After this time without a response, a GET or HEAD is also sent to a second backend; `None` for never.
    pub hedge_after: Option<Duration>,
    /// Whether a request that timed out is retried.
    pub retry_timeouts: bool,
    /// Whether a request is abandoned when its client closes the connection.
    pub abort_on_close: bool,
    /// Whether request trailers are forwarded.
    pub forward_trailers: bool,
    /// The most bytes of a response that are read ahead of its client; 0 for none.
    pub read_ahead: u64,
    /// The most bytes of a request body that is gathered.
    pub gather_limit: u64,
    /// TLS to backends that speak it.
    pub tls: PoolTls,
    /// FastCGI to the backends; `None` if they speak HTTP.
    pub fastcgi: Option<FastCgiConfig>,
    /// The directory tree whose files `X-Sendfile` may name.
    pub x_sendfile: Option<PathBuf>,
    /// Whether `X-Accel-Redirect` leads to routes that are internal.
    pub x_accel_redirect: bool,
}

/// A backend of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackendConfig {
    /// Where it is.
    pub address: Address,
    /// Its share of the load relative to others: 1 to [`Backend::MAX_WEIGHT`].
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

/// How many retries a pool permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetConfig {
    /// For every hundred requests.
    pub percent: u32,
    /// In addition, for every second.
    pub per_second: u32,
}

impl RetryBudgetConfig {
    /// The budget that this describes.
    pub fn build(self) -> RetryBudget {
        RetryBudget::new(self.percent, self.per_second)
    }
}

/// How backends are checked. [`Settings::checks`] has the number of checks that change a backend's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckConfig {
    /// The target of the request: a path with an optional query.
    pub path: String,
    /// The value of `Host`; `None` for the backend's own.
    pub host: Option<String>,
    /// The statuses that pass.
    pub status: Vec<StatusRange>,
    /// The time from one check of a backend to the next.
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
    /// The pool that this describes, with the backends listed in the file, choosing by `seed`.
    pub fn build(&self, seed: u64) -> Pool {
        self.of_backends(self.backends.iter().map(BackendConfig::build).collect(), seed, None)
    }

    /// The pool that this describes, with these backends, choosing by `seed`. It replaces the pool `before`, if any;
    /// see [`Pool::succeeded_by`].
    pub fn of_backends(&self, backends: Vec<Backend>, seed: u64, before: Option<&Pool>) -> Pool {
        let settings = Settings { seed, ..self.settings.clone() };
        match before {
            Some(before) => before.succeeded_by(backends, settings),
            None => Pool::new(&self.name, backends, settings),
        }
    }

    /// The backend discovered at `address`; if the file lists it too, the file's settings apply. Sources know only
    /// places, so the backend speaks what its pool speaks.
    pub fn discovered(&self, address: Address) -> BackendConfig {
        let address = if self.fastcgi.is_some() { address.over_fastcgi() } else { address };
        let named = self.backends.iter().find(|backend| backend.address == address);
        named.cloned().unwrap_or(BackendConfig { address, weight: 1, max_in_flight: self.max_in_flight })
    }

    /// The same pool with another classifier, for example one whose table was reread: knowledge about classes is kept
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
