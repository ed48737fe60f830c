//! The readiness of a pool: what it still waits for before it should serve.

use super::SitePool;
use std::sync::atomic::Ordering;

impl SitePool {
    /// Reports that each worker of the pool was asked for its résumé.
    pub(crate) fn resumes_told(&self) {
        self.resumes_told.store(true, Ordering::Relaxed);
        self.changes.readiness_changed();
    }

    /// The first thing that the pool still waits for before it should serve: its table of classes, if it has
    /// one; backends, unless each of its sources has reported; the résumés of its workers, if it uses them.
    pub(crate) fn awaits(&self) -> Option<&'static str> {
        if !self.table_told.load(Ordering::Relaxed) {
            return Some("its table of classes");
        }
        let live = self.live();
        if live.backends().is_empty() {
            let all_told = self.membership.lock().sources.iter().all(|followed| followed.state.told);
            return (!all_told).then_some("a report from each of its sources");
        }
        let told = live.reported_resumes().is_none() || self.resumes_told.load(Ordering::Relaxed);
        (!told).then_some("the résumés of its workers")
    }
}
