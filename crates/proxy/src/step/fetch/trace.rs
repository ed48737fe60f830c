//! What is known of a fetch beside its response, for logs and for the client's session.

use crate::site::Site;
use sandarac_balance::BackendId;
use sandarac_message::target::Scheme;
use sandarac_policy::PoolId;
use std::time::Duration;

/// What is known of a fetch beside its response.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchTrace {
    /// Its transaction number.
    pub(crate) number: Option<u64>,
    /// What edits call the request to the origin.
    pub(crate) id: Option<String>,
    /// The backend that answered, or that was asked last; only where that is logged.
    pub(crate) backend: Option<String>,
    /// How long the head of the response took; only where that is logged.
    pub(crate) time: Option<Duration>,
    /// The backend that the client's session is to stick to from now on, by its key.
    pub(crate) stick_to: Option<(u64, Scheme)>,
}

/// The address of a backend, for logs.
pub(crate) fn address(site: &Site, pool: PoolId, backend: BackendId) -> Option<String> {
    Some(site.pool_by_id(pool).live().backend(backend)?.address().to_string())
}
