//! Data of a fetch beside its response, for logs and for the client's session.

use crate::site::Site;
use sandarac_balance::BackendId;
use sandarac_message::target::Scheme;
use sandarac_policy::PoolId;
use std::time::Duration;

/// Data of a fetch beside its response.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchTrace {
    /// Its transaction number.
    pub(crate) number: Option<u64>,
    /// The `{id}` that edits send to the origin.
    pub(crate) id: Option<String>,
    /// The backend that responded, or that was tried last; only if it is logged.
    pub(crate) backend: Option<String>,
    /// The protocol over which a backend responded; only if it is logged.
    pub(crate) backend_protocol: Option<&'static str>,
    /// The time until the head of the response; only if it is logged.
    pub(crate) time: Option<Duration>,
    /// The key of the backend that the client's session sticks to from now on.
    pub(crate) stick_to: Option<(u64, Scheme)>,
}

/// The address of a backend, for logs.
pub(crate) fn address(site: &Site, pool: PoolId, backend: BackendId) -> Option<String> {
    Some(site.pool_by_id(pool).live().backend(backend)?.address().to_string())
}
