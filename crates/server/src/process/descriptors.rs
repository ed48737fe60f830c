//! The limits on connections, on files of spools and on files that are sent, and the limit on open files from
//! which they follow.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandarac_config::Config;
use sandarac_policy::Action;
use sandarac_proxy::DescriptorLimits;

use crate::human::{count, grouped};

/// Descriptors for other uses, independent of the number of cores: logs, the admin interface, sources of
/// pools.
const OWN_DESCRIPTORS: u64 = 64;

/// A warning is given if the limit on open files allows fewer client connections than this, and no number is
/// configured.
const FEW_CONNECTIONS: u64 = 256;

/// Descriptors of each core's runtime. In addition, a core has a socket for each listener, of which the
/// process keeps a copy for the one that takes over from it.
const CORE_DESCRIPTORS: u64 = 4;

/// The share that spools have of the descriptors that are left by clients.
const SPOOLS: u64 = 8;

/// The share that files have of these, where some are served.
const FILES: u64 = 4;

/// The shares of the descriptors that a process may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// How many there are.
    files: u64,
    /// How many are reserved.
    own: u64,
    limits: DescriptorLimits,
}

/// The shares of `files` descriptors for a process with so many cores: of clients the configured number, or
/// half of what is not reserved; of backends, spools and files the rest.
fn shares(config: &Config, cores: usize, files: u64) -> Shares {
    let per_core = CORE_DESCRIPTORS + 2 * config.listeners.len() as u64;
    let own = OWN_DESCRIPTORS + cores as u64 * per_core;
    let possible = (files.saturating_sub(own) / 2).max(1);
    let clients = possible.min(config.limits.connections.map_or(u64::MAX, |most| most.get().into()));
    let others = files.saturating_sub(own).saturating_sub(clients);
    let spools = (others / SPOOLS).max(1);
    let sent = if serves_files(config) { (others / FILES).max(1) } else { 0 };
    let backends = others.saturating_sub(spools + sent).max(1);
    let [clients, backends, spools, sent] =
        [clients, backends, spools, sent].map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    Shares { files, own, limits: DescriptorLimits { clients, backends, spools, files: sent } }
}

/// Whether responses are sent from files: of routes, or those that applications name.
fn serves_files(config: &Config) -> bool {
    let of_files = |action: &Action| matches!(action, Action::Files { .. } | Action::Internal(_));
    config.routes.all().iter().any(|route| of_files(&route.action))
        || config.pools.iter().any(|pool| pool.x_sendfile.is_some())
}

/// The most descriptors that a process may have where the system allows it.
fn most_files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// The limits of this process, and a warning if they are low. Its limit on open files is raised as far as the system allows.
pub(super) fn descriptor_limits(config: &Config, cores: usize) -> (DescriptorLimits, Option<String>) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    let shares = shares(config, cores, getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
    (shares.limits, shares.warning(config))
}

/// The same warning for a process that is started here, for `sandarac check`.
pub(crate) fn warning(config: &Config, cores: usize) -> Option<String> {
    shares(config, cores, most_files()).warning(config)
}

impl Shares {
    fn warning(&self, config: &Config) -> Option<String> {
        let needed = config.limits.connections.map_or(FEW_CONNECTIONS, |most| most.get().into());
        (self.limits.clients < usize::try_from(needed).unwrap_or(usize::MAX)).then(|| {
            format!(
                "the limit on open files, {}, leaves room for {} at a time; {needed} take {}: raise it with `ulimit -n`, or \
                 LimitNOFILE= in a systemd unit",
                self.files,
                count(self.limits.clients as u64, "client connection"),
                self.own + 2 * needed
            )
        })
    }
}

/// The shares of a process that is started here, for `sandarac check`.
pub(crate) fn explain(config: &Config, cores: usize) -> String {
    let Shares { files, own, limits } = shares(config, cores, most_files());
    let [files, own] = [files, own].map(grouped);
    let DescriptorLimits { clients, backends, spools, files: sent } = limits;
    let [clients, backends, spools] = [clients, backends, spools].map(|most| grouped(most as u64));
    let sent =
        if sent > 0 { format!("{} for files that are sent, ", grouped(sent as u64)) } else { String::new() };
    format!(
        "Open files, if started from here: {files}, of which {clients} are for clients, {backends} for connections to backends, \
         {spools} for bodies of slow clients, {sent}and {own} for everything else.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_has_a_share_and_all_of_them_fit() {
        let config = |limits: &str| {
            let text = format!(
                "[[listen]]\naddress = \":80\"\n\n[pool.a]\nbackends = [\"http://a\"]\n\n[[route]]\npool = \"a\"\n{limits}"
            );
            Config::from_toml("a.toml", &text).expect("a configuration").0
        };
        let of = |limits, files| shares(&config(limits), 2, files);
        let limits = |clients, backends, spools, files| DescriptorLimits { clients, backends, spools, files };
        assert_eq!(of("", 2000), Shares { files: 2000, own: 76, limits: limits(962, 842, 120, 0) });
        assert_eq!(of("[limits]\nconnections = 300\n", 2000).limits, limits(300, 1421, 203, 0));
        let files = "[[route]]\nmatch = \"/files/\"\nfiles = \"/srv\"\n";
        assert_eq!(of(files, 2000).limits, limits(962, 602, 120, 240));
        assert_eq!(of(files, 64).limits, limits(1, 1, 1, 1), "nothing works without one of each");
    }
}
