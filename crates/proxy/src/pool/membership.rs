//! The membership of a pool: its backends and their origin, which survive a change of configuration.

use super::AbsentSkills;
use sandarac_balance::{Address, Backend, Pool};
use sandarac_config::{BackendConfig, PoolConfig, Source};
use sandarac_discover::{LiveSettings, Memory};
use std::collections::HashSet;

/// The most backends in each list of orders, to remove and to drain: as many as a source may name.
const MAX_REMEMBERED: usize = 1000;

/// A backend that is not in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its address.
    pub address: Address,
    /// Its share of the load, relative to other backends.
    pub weight: u32,
}

/// The orders of the administrator about the backends of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Backends that were added.
    pub added: Vec<Member>,
    /// Those that were removed, and not added again.
    pub removed: Vec<Address>,
    /// Those that drain, present or not.
    pub drained: Vec<Address>,
}

/// The state of a source of backends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceState {
    /// Whether it has reported yet.
    pub told: bool,
    /// How many backends it names.
    pub members: usize,
    /// How many of its entries were rejected.
    pub ignored: u32,
    /// The settings that it provides beside the list.
    pub settings: LiveSettings,
    /// Why it cannot be reached or read, if so. Its last backends stay in force.
    pub lost: Option<String>,
}

/// A configured source, with everything known from it.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub(crate) source: Source,
    /// The backends that it named last.
    pub(crate) found: Vec<Member>,
    pub(crate) state: SourceState,
    /// What another watch of it needs to continue.
    pub(crate) memory: Memory,
}

impl Followed {
    fn new(source: Source) -> Followed {
        Followed { source, found: Vec::new(), state: SourceState::default(), memory: Memory::default() }
    }
}

/// The backends of a pool by origin, with the orders about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership {
    /// The sources of the pool, in the order of the configuration.
    pub(crate) sources: Vec<Followed>,
    pub(crate) orders: Orders,
    /// The inferred skills of backends that have left.
    pub(crate) absent_skills: AbsentSkills,
    /// The backends under the previous configuration. They count while the pool would be empty without them,
    /// because its new sources have not reported yet or are unreachable.
    left_over: Vec<Member>,
}

impl Membership {
    /// The same membership under a new configuration, after one with the backends `before`. A source in both
    /// configurations continues, whatever its position.
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
        self.orders.added.retain(|member| member.address != *address);
        remember(&mut self.orders.removed, address);
    }

    /// An order to add a backend. It cancels all orders to remove or drain it.
    pub(crate) fn ask_back(&mut self, address: &Address) {
        self.orders.removed.retain(|removed| removed != address);
        self.orders.drained.retain(|drained| drained != address);
    }

    /// An order to drain a backend, or to stop draining it.
    pub(crate) fn drain(&mut self, address: &Address, draining: bool) {
        self.orders.drained.retain(|drained| drained != address);
        if draining {
            remember(&mut self.orders.drained, address);
        }
    }

    /// Drains the backends of `pool` as ordered. If that would leave no backend for new requests, these
    /// orders are given up and the result is true.
    pub(crate) fn obey(&mut self, pool: &Pool) -> bool {
        let is_drained = |backend: &Backend| self.orders.drained.contains(backend.address());
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
            self.orders.drained.retain(|address| !is_there(address));
        }
        lifted
    }

    /// The settings that sources provide. The first source that provides a setting determines it.
    pub(crate) fn settings(&self) -> LiveSettings {
        self.sources.iter().fold(LiveSettings::default(), |told, followed| told.or(followed.state.settings))
    }

    /// Forgets the backends left over from the previous configuration once there are others, and gives up the
    /// orders to remove backends if they leave none. Returns whether any backends come back.
    pub(crate) fn tidy(&mut self, config: &PoolConfig) -> bool {
        if !self.own(config).is_empty() {
            self.left_over.clear();
            return false;
        }
        let removed = std::mem::take(&mut self.orders.removed);
        let brings_back = !self.own(config).is_empty();
        if !brings_back {
            self.orders.removed = removed;
        }
        brings_back
    }

    /// The backends, each address once: as configured, else as first added or found.
    pub(crate) fn backends(&self, config: &PoolConfig) -> Vec<Backend> {
        let own = self.own(config);
        if own.is_empty() { self.of(&[], self.left_over.iter(), config) } else { own }
    }

    /// The backends without those left over.
    fn own(&self, config: &PoolConfig) -> Vec<Backend> {
        let found = self.sources.iter().flat_map(|followed| &followed.found);
        self.of(&config.backends, self.orders.added.iter().chain(found), config)
    }

    fn of<'a>(
        &self,
        configured: &[BackendConfig],
        others: impl Iterator<Item = &'a Member>,
        config: &PoolConfig,
    ) -> Vec<Backend> {
        let mut seen: HashSet<Address> = self.orders.removed.iter().cloned().collect();
        let configured = configured.iter().filter(|backend| seen.insert(backend.address.clone()));
        let mut backends: Vec<Backend> = configured.map(BackendConfig::build).collect();
        let others = others.map(|member| {
            let discovered = config.discovered(member.address.clone());
            BackendConfig { weight: member.weight, ..discovered }
        });
        let others = others.filter(|backend| seen.insert(backend.address.clone()));
        backends.extend(others.map(|backend| backend.build()));
        backends
    }
}

/// Bounds the list, so that orders cannot exhaust memory.
fn remember(orders: &mut Vec<Address>, address: &Address) {
    orders.push(address.clone());
    orders.drain(..orders.len().saturating_sub(MAX_REMEMBERED));
}
