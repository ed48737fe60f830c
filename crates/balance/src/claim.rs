//! Claims: requests that wait for a place at their best backend, and count as its own meanwhile.

use std::sync::atomic::Ordering;

use crate::algorithm::resume::Expected;
use crate::candidates::RequestContext;
use crate::choices::Chosen;
use crate::{BackendId, Pool};

/// A claim to a place at a backend. While it exists, the backlog of the backend includes the request, and
/// later choices take that into account. Dropping it gives the claim up.
#[derive(Debug)]
pub(crate) struct Claim {
    pool: Pool,
    pub(crate) chosen: Chosen,
    /// The expectation of the request, until a pick takes it over.
    expected: Option<Expected>,
}

impl Claim {
    /// A claim to the backend that was `chosen` among those of `pool`.
    pub(crate) fn new(pool: &Pool, chosen: Chosen, request: &RequestContext<'_>) -> Claim {
        pool.backends()[chosen.at].state.claims.fetch_add(1, Ordering::Relaxed);
        Claim { pool: pool.clone(), chosen, expected: Some(pool.assign(chosen.at, request)) }
    }

    /// The backend.
    pub(crate) fn id(&self) -> BackendId {
        self.pool.ids()[self.chosen.at]
    }

    /// Ends the claim after a place was taken. The caller becomes responsible for the expectation.
    pub(crate) fn honoured(mut self) -> Expected {
        self.expected.take().unwrap_or_default()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.pool.backends()[self.chosen.at].state.claims.fetch_sub(1, Ordering::Relaxed);
        if let Some(expected) = self.expected {
            self.pool.unassign(self.chosen.at, expected);
        }
    }
}
