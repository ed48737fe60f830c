//! The backends of a pool at one moment, and the classifier of its requests.

use super::absent_skills::unix_seconds;
use super::membership::Membership;
use crate::{Counter, Counters};
use sandarac_balance::Pool;
use sandarac_config::PoolConfig;
use sandarac_policy::{Classifier, Subject};
use std::ops::Deref;

/// What requests are balanced over at a moment.
#[derive(Debug)]
pub struct Live {
    pool: Pool,
    /// What sorts requests into classes, where the pool goes by them. Its fingerprint is the one that the pool knows skills
    /// under.
    pub(crate) classifier: Option<Classifier>,
}

impl Deref for Live {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}

impl Live {
    /// The pool of `config` and `membership`, which keeps what `before` knew. The flag reports whether orders were given up
    /// because they would have left no backend that gets requests.
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

    /// What sorts requests into classes, where the pool goes by them.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.classifier.as_ref()
    }

    /// The class of a request, if the pool goes by classes and it has one. What cannot be borrowed is put into `buffer`.
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
