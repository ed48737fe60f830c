//! The sources of a pool as discovery reports them: backends, settings, state.

use super::SitePool;
use super::membership::{Member, SourceState};
use sandarac_config::PoolConfig;
use sandarac_discover::Memory;

impl SitePool {
    /// Takes the current backends of a source. `source` is its position among the pool's, here and below.
    pub fn found(&self, source: usize, found: Vec<Member>) {
        let mut membership = self.membership.lock();
        if membership.sources[source].found != found {
            membership.sources[source].found = found;
            self.put(&mut membership);
        }
    }

    /// Removes the backends of a source that no longer names any, if they are certainly gone. Returns whether
    /// any were removed: they stay if the pool would be left without backends.
    pub(crate) fn emptied(&self, source: usize) -> bool {
        let mut membership = self.membership.lock();
        let before = std::mem::take(&mut membership.sources[source].found);
        if before.is_empty() || self.all(&membership).is_empty() {
            membership.sources[source].found = before;
            return false;
        }
        self.put(&mut membership);
        true
    }

    /// Whether the pool has any backend from a source.
    pub(crate) fn has_found(&self, source: usize) -> bool {
        !self.membership.lock().sources[source].found.is_empty()
    }

    /// The sources of the pool, each with its state.
    pub fn sources(&self) -> Vec<(String, SourceState)> {
        let membership = self.membership.lock();
        membership
            .sources
            .iter()
            .map(|followed| (followed.source.to_string(), followed.state.clone()))
            .collect()
    }

    /// The state of a source, and the memory that another watch of it needs.
    pub(crate) fn followed(&self, source: usize) -> (SourceState, Memory) {
        let followed = &self.membership.lock().sources[source];
        (followed.state.clone(), followed.memory.clone())
    }

    /// Sets the state of a source, and puts its settings in force. The first source that provides a setting
    /// determines it.
    pub(crate) fn set_source_state(&self, configured: &PoolConfig, source: usize, state: SourceState) {
        let told = {
            let mut membership = self.membership.lock();
            membership.sources[source].state = state;
            membership.settings()
        };
        self.reconfigure(|now| PoolConfig {
            settings: told.applied_to(&now.settings, &configured.settings),
            ..now
        });
        self.changes.readiness_changed();
    }
}
