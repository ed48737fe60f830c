//! The site of a configuration, as used by a start and a reload.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use sandarac_config::{Config, Credentials};
use sandarac_net::Listener;
use sandarac_proxy::{Site, SiteTls};

/// How long a start, and a reload, waits for pools to find their first backends.
pub(super) const DISCOVERY_PATIENCE: Duration = Duration::from_secs(3);

/// The site of a configuration, with the listeners `bound`; `before` is the one that it replaces. `credentials`
/// are those of the shared tier; `tls` was loaded for this configuration.
pub(super) fn site(
    config: Config,
    credentials: Option<Credentials>,
    tls: SiteTls,
    bound: &[Listener],
    before: Option<&Site>,
) -> Site {
    Site::new(config, credentials, tls, bound, before, seed())
}

/// A random seed: two processes should not make the same choices.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
