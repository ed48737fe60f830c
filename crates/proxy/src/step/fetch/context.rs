//! The surroundings of a fetch: its core, its site, its pool as it is now, and the class of its request.

use crate::core::Core;
use crate::origin::OriginConn;
use crate::pool::{Live, SitePool};
use crate::report::log_throttle::LogTopic;
use crate::site::Site;
use crate::{Counters, Fault};
use sandarac_balance::{BackendId, Pick};
use sandarac_policy::PoolId;
use std::sync::Arc;
use std::time::Duration;

/// The surroundings of a fetch.
#[derive(Clone, Copy)]
pub(crate) struct FetchContext<'a> {
    pub(crate) core: &'a Core,
    pub(crate) site: &'a Site,
    pub(crate) pool: PoolId,
    /// The pool at the start of the fetch, or at its last change of backend.
    pub(crate) live: &'a Live,
    pub(crate) class: Option<&'a [u8]>,
    /// The backend that the client's session sticks to.
    pub(crate) sticks_to: Option<BackendId>,
}

impl<'a> FetchContext<'a> {
    /// The pool's configuration.
    pub(crate) fn pool(&self) -> &'a SitePool {
        self.site.pool_by_id(self.pool)
    }

    pub(crate) fn counters(&self) -> &'a Counters {
        &self.core.counters
    }

    /// The pool in force, if it is a newer one with the same classes.
    pub(super) fn newer(&self) -> Option<Arc<Live>> {
        let live = self.pool().live();
        let other = !std::ptr::eq(&*live, self.live);
        (other && live.classifier() == self.live.classifier()).then_some(live)
    }

    /// Logs that a backend gave no response.
    pub(super) fn complain(&self, backend: BackendId, fault: &Fault) {
        let pool = self.live.name();
        self.core.shared.log_throttled(LogTopic::Backend(pool.into(), backend, fault.name()), || {
            let address = self.live.backend(backend).map(|backend| backend.address().to_string());
            format!("pool {pool}: {}: {}", address.unwrap_or_default(), fault.text())
        });
    }

    /// A kept connection to the backend of a pick.
    pub(super) fn kept(&self, pick: &Pick) -> Option<OriginConn> {
        let resumes = self.resumes_to_check();
        let current = |instance: &str| resumes.as_ref().is_none_or(|known| known.is_at(pick.id(), instance));
        let pool = self.pool();
        if pick.backend().address().is_fastcgi() {
            let idle = pool.application.as_ref()?.idle.as_ref()?;
            let kept = idle.take(pick.backend().address(), &pool.timeouts, self.counters());
            return kept.map(|(conn, provenance)| OriginConn::Http1(conn, provenance));
        }
        self.core.origins.checkout(pick.backend().address(), pool.tls.as_ref(), &pool.timeouts, current)
    }

    /// The time on the balancer's clock.
    pub(crate) fn now(&self) -> Duration {
        self.core.shared.epoch.elapsed()
    }
}
