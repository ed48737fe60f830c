//! The membership of a pool: its backends and their origin, which go on from one configuration to the next.

use super::AbsentSkills;
use sandarac_balance::{Address, Backend, Pool};
use sandarac_config::{BackendConfig, PoolConfig, Source};
use sandarac_discover::{LiveSettings, Memory};
use std::collections::HashSet;

/// The most backends that are remembered to be removed by order, and to be drained: as many as a source may name.
const MAX_REMEMBERED: usize = 1000;

/// A backend that is not in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it is.
    pub address: Address,
    /// Its share of the load relative to others.
    pub weight: u32,
}

/// How a source of backends is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceState {
    /// Whether anything was heard of it yet.
    pub told: bool,
    /// How many backends it names.
    pub members: usize,
    /// How many of its entries were not taken.
    pub ignored: u32,
    /// The settings that it gives beside the list.
    pub settings: LiveSettings,
    /// Why it cannot be reached or read, if it cannot; what it named last stays in force.
    pub lost: Option<String>,
}

/// A source of the configuration, with all that is known by it.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub(crate) source: Source,
    /// The backends that it named last.
    pub(crate) found: Vec<Member>,
    pub(crate) state: SourceState,
    /// What is to be remembered to go on following it.
    pub(crate) memory: Memory,
}

impl Followed {
    fn new(source: Source) -> Followed {
        Followed { source, found: Vec::new(), state: SourceState::default(), memory: Memory::default() }
    }
}

/// The backends of a pool by their origin, with the orders about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership {
    /// The sources of the pool, in the order of the configuration.
    pub(crate) sources: Vec<Followed>,
    /// Added by order.
    pub(crate) added: Vec<Member>,
    /// Removed by order.
    pub(crate) removed: Vec<Address>,
    /// To be drained by order, whether they are there or not.
    drained: Vec<Address>,
    /// The inferred skills of backends that have left.
    pub(crate) absent_skills: AbsentSkills,
    /// The backends under the configuration before. They count as long as the pool would have nobody without them: it has sources
    /// now that did not tell yet, or that are not there.
    left_over: Vec<Member>,
}

impl Membership {
    /// The same membership under another configuration, after one whose backends were these. A source that is in both goes on,
    /// wherever it stands now.
    pub(crate) fn under(mut self, config: &PoolConfig, before: &[Backend]) -> Membership {
        let sources = config.discover.iter().map(|source| {
            match self.sources.iter().position(|followed| followed.source == *source) {
                Some(at) => self.sources.remove(at),
                None => Followed::new(source.clone()),
            }
        });
        let sources = sources.collect();
        let member =
            |backend: &Backend| Member { address: backend.address().clone(), weight: backend.weight() };
        Membership { sources, left_over: before.iter().map(member).collect(), ..self }
    }

    /// An order to remove a backend: it stays away until it is added.
    pub(crate) fn remove(&mut self, address: &Address) {
        self.added.retain(|member| member.address != *address);
        remember(&mut self.removed, address);
    }

    /// An order to add a backend ends all orders to be rid of it.
    pub(crate) fn ask_back(&mut self, address: &Address) {
        self.removed.retain(|removed| removed != address);
        self.drained.retain(|drained| drained != address);
    }

    /// An order to drain a backend, or not to.
    pub(crate) fn drain(&mut self, address: &Address, draining: bool) {
        self.drained.retain(|drained| drained != address);
        if draining {
            remember(&mut self.drained, address);
        }
    }

    /// Drains the backends of `pool` that are to be drained, unless that leaves none that gets new requests: then the orders for
    /// these are given up, and this says so.
    pub(crate) fn obey(&mut self, pool: &Pool) -> bool {
        let is_drained = |backend: &Backend| self.drained.contains(backend.address());
        let lifted = !pool.backends().is_empty() && pool.backends().iter().all(is_drained);
        for (backend, &id) in pool.backends().iter().zip(pool.ids()) {
            let draining = !lifted && is_drained(backend);
            if backend.is_draining() != draining {
                pool.drain(id, draining);
            }
        }
        if lifted {
            let is_there =
                |address: &Address| pool.backends().iter().any(|backend| backend.address() == address);
            self.drained.retain(|address| !is_there(address));
        }
        lifted
    }

    /// The settings that sources give; where several give one, that of the first.
    pub(crate) fn settings(&self) -> LiveSettings {
        self.sources.iter().fold(LiveSettings::default(), |told, followed| told.or(followed.state.settings))
    }

    /// Forgets what is left over of an earlier configuration once there are others; and gives up the orders to remove backends
    /// where they leave none. Says whether that brings any back.
    pub(crate) fn tidy(&mut self, config: &PoolConfig) -> bool {
        if !self.own(config).is_empty() {
            self.left_over.clear();
            return false;
        }
        let removed = std::mem::take(&mut self.removed);
        let brings_back = !self.own(config).is_empty();
        if !brings_back {
            self.removed = removed;
        }
        brings_back
    }

    /// The backends, each address once: as it is configured, else as it was added or found first.
    pub(crate) fn backends(&self, config: &PoolConfig) -> Vec<Backend> {
        let own = self.own(config);
        if own.is_empty() { self.of(&[], self.left_over.iter(), config) } else { own }
    }

    /// The backends, without those that are left over.
    fn own(&self, config: &PoolConfig) -> Vec<Backend> {
        let found = self.sources.iter().flat_map(|followed| &followed.found);
        self.of(&config.backends, self.added.iter().chain(found), config)
    }

    fn of<'a>(
        &self,
        configured: &[BackendConfig],
        others: impl Iterator<Item = &'a Member>,
        config: &PoolConfig,
    ) -> Vec<Backend> {
        let mut seen: HashSet<Address> = self.removed.iter().cloned().collect();
        let configured = configured.iter().filter(|backend| seen.insert(backend.address.clone()));
        let mut backends: Vec<Backend> = configured.map(BackendConfig::build).collect();
        let others = others.filter(|member| seen.insert(member.address.clone()));
        backends.extend(others.map(|member| {
            let discovered = config.discovered(member.address.clone());
            BackendConfig { weight: member.weight, ..discovered }.build()
        }));
        backends
    }
}

/// Whoever orders ever new ones is not to fill the memory with them.
fn remember(orders: &mut Vec<Address>, address: &Address) {
    orders.push(address.clone());
    orders.drain(..orders.len().saturating_sub(MAX_REMEMBERED));
}
