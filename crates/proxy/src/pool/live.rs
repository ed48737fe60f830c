//! The backends of a pool at one moment, and the classifier of its requests.

use super::absent_skills::unix_seconds;
use super::membership::Membership;
use crate::{Counter, Counters};
use sandarac_balance::Pool;
use sandarac_config::PoolConfig;
use sandarac_policy::{Classifier, Subject};
use std::ops::Deref;

/// The state by which requests are balanced at one moment.
#[derive(Debug)]
pub struct Live {
    pool: Pool,
    /// Classifies requests, if the pool uses classes. The pool stores skills under its fingerprint.
    pub(crate) classifier: Option<Classifier>,
}

impl Deref for Live {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}

impl Live {
    /// The pool of `config` and `membership`; it keeps the state of `before`. The flag reports whether orders
    /// were given up because they would have left no backend that gets requests.
    pub(super) fn new(
        config: &PoolConfig,
        membership: &mut Membership,
        seed: u64,
        before: Option<&Live>,
    ) -> (Live, bool) {
        let brings_back = membership.tidy(config);
        let backends = membership.backends(config);
        if let Some(before) = before {
            let stay = backends.iter().map(|backend| backend.address().to_string()).collect();
            membership.absent_skills.leave(before, &stay, unix_seconds());
        }
        let pool = config.of_backends(backends, seed, before.map(|before| &before.pool));
        membership.absent_skills.give_back(&pool);
        let lifted = membership.obey(&pool) || brings_back;
        (Live { pool, classifier: config.classifier.clone() }, lifted)
    }

    /// The classifier of requests, if the pool uses classes.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.classifier.as_ref()
    }

    /// The class of a request, if the pool uses classes and it has one. `buffer` holds a class that cannot be
    /// borrowed.
    pub(crate) fn classify<'a>(
        &'a self,
        subject: Subject<'a>,
        buffer: &'a mut Vec<u8>,
        counters: &Counters,
    ) -> Option<&'a [u8]> {
        let class = self.classifier.as_ref()?.classify(subject, buffer);
        if class.is_none() {
            counters.one(Counter::Unclassified);
        }
        class
    }
}
