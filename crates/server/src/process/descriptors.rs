//! The limits on connections and on files of spools, and the limit on open files from which they follow.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandarac_config::Config;
use sandarac_policy::Action;
use sandarac_proxy::{DescriptorLimits, file_descriptors};

use crate::human::count;
use crate::stderr::print_line;

/// Descriptors for other uses, independent of the number of cores: logs, the admin interface, sources of pools.
const OWN_DESCRIPTORS: u64 = 64;

/// A warning is given if the limit on open files allows fewer client connections than this, and no number is
/// configured.
const FEW_CONNECTIONS: u64 = 256;

/// Descriptors of each core's runtime. In addition, a core has a socket for each listener.
const CORE_DESCRIPTORS: u64 = 4;

/// The share of the descriptors for backends and spools that spools have.
const SPOOLS: u64 = 8;

/// The limits: of clients the configured number, or half of what the limit on open files leaves; of backends and spools the
/// rest. The limit itself is raised as far as the system allows.
pub(super) fn descriptor_limits(config: &Config, cores: usize) -> DescriptorLimits {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let per_core = CORE_DESCRIPTORS + config.listeners.len() as u64;
    let serves_files = config
        .routes
        .all()
        .iter()
        .any(|route| matches!(route.action, Action::Files { .. } | Action::Internal(_)));
    let of_files = if serves_files { cores * file_descriptors(files, cores) } else { 0 };
    let own = OWN_DESCRIPTORS + cores as u64 * per_core + of_files as u64;
    let possible = (files.saturating_sub(own) / 2).max(1);
    let configured = config.limits.connections.map(|most| u64::from(most.get()));
    let needed = configured.unwrap_or(FEW_CONNECTIONS);
    if possible < needed {
        print_line(format_args!(
            "sandarac: warning: the limit on open files, {files}, leaves room for {} at a time; {needed} take {}: raise it \
             with `ulimit -n`, or LimitNOFILE= in a systemd unit",
            count(possible, "client connection"),
            own + 2 * needed
        ));
    }
    let clients = possible.min(configured.unwrap_or(u64::MAX));
    let others = files.saturating_sub(own).saturating_sub(clients);
    let spools = (others / SPOOLS).max(1);
    let [clients, backends, spools] = [clients, others.saturating_sub(spools).max(1), spools]
        .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    DescriptorLimits { clients, backends, spools }
}
