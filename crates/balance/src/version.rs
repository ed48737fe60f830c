//! The version in service: the one that most backends run.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::announcements::Contact;
use crate::pool::Inner;
use crate::{BackendId, Pool, WorkerState};

/// The most bytes kept of a version. A longer one is truncated.
const MAX_VERSION_BYTES: usize = 128;

impl Pool {
    /// The version in service if only one may serve; `None` if several may, or if the backends in service
    /// have announced none.
    pub fn version_in_service(&self) -> Option<Box<str>> {
        let inner = self.inner();
        let serving = || inner.serving().lock().unwrap_or_else(PoisonError::into_inner).clone();
        inner.settings().single_version.then(serving).flatten()
    }
}

impl Inner {
    /// Notes the version that a backend announced.
    pub(crate) fn version_of(&self, backend: BackendId, said: &WorkerState<'_>, contact: Contact) {
        let Some(at) = self.places().of(backend) else { return };
        let version = said.version.map(|version| &version[..version.floor_char_boundary(MAX_VERSION_BYTES)]);
        let mut known = self.backends()[at].state.load.announced();
        let another = known.instance.as_deref().is_some_and(|instance| instance != said.instance);
        let unmet = another || known.instance.is_none();
        match contact {
            Contact::Later if another => return,
            // Asked before the last identification, and answered after it.
            Contact::Met(since) if unmet && since < known.since => return,
            Contact::Met(since) => {
                known.since = known.since.max(since);
                if unmet {
                    known.instance = Some(said.instance.into());
                }
            }
            Contact::Later => {}
        }
        if known.version.as_deref() != version {
            known.version = version.map(Box::from);
            drop(known);
            self.elect();
        }
    }

    /// Puts the largest group of backends of one version in service; of several as large, the one already in
    /// service. Backends without a version are a group too, until they announce one.
    pub(crate) fn elect(&self) {
        if !self.settings().single_version {
            return;
        }
        let mut serving = self.serving().lock().unwrap_or_else(PoisonError::into_inner);
        let versions: Vec<Option<Box<str>>> =
            self.backends().iter().map(|backend| backend.state.load.announced().version.clone()).collect();
        let mut groups: BTreeMap<&Option<Box<str>>, usize> = BTreeMap::new();
        for (version, backend) in versions.iter().zip(self.backends()) {
            let state = &backend.state;
            let ejected = state.is_ejected() || state.down.load(Ordering::Relaxed);
            let counts = !ejected && !state.draining.load(Ordering::Relaxed);
            *groups.entry(version).or_default() += usize::from(counts);
        }
        let most = groups.values().copied().max().unwrap_or_default();
        if groups.get(&*serving) != Some(&most)
            && let Some((&largest, _)) = groups.iter().find(|&(_, &count)| count == most)
        {
            serving.clone_from(largest);
        }
        for (version, backend) in versions.iter().zip(self.backends()) {
            backend.state.sidelined.store(*version != *serving, Ordering::Relaxed);
        }
    }
}
