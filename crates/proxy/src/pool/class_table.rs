//! The table of classes of a pool, by which requests are classified.

use super::SitePool;
use sandarac_policy::Classifier;
use std::sync::atomic::Ordering;

impl SitePool {
    /// Classifies requests by this classifier from now on. Returns whether it differs from the previous one.
    pub(crate) fn classify_by(&self, classifier: Classifier) -> bool {
        let news = self.live().classifier.as_ref() != Some(&classifier);
        if news {
            self.reconfigure(|config| config.with_classifier(classifier));
        }
        news
    }

    /// Reports that the table of classes was looked for, and the reason if it is `lost`.
    pub(crate) fn table_told(&self, lost: Option<String>) {
        *self.table_lost.lock() = lost;
        self.table_told.store(true, Ordering::Relaxed);
        self.changes.readiness_changed();
    }

    /// The lines of the table of classes in force, if the pool has one; 0 until it was read.
    pub fn table_lines(&self) -> Option<usize> {
        self.live().classifier.as_ref()?.table_len()
    }

    /// Why the table of classes cannot be read or used, if so. The previous table stays in force.
    pub fn table_lost(&self) -> Option<String> {
        self.table_lost.lock().clone()
    }
}
