//! TLS of a site: towards clients and towards backends.

use crate::listener_tls::ListenerTls;
use crate::origin::tls::OriginTls;
use std::sync::Arc;

/// TLS that was loaded for a configuration.
#[derive(Debug, Default)]
pub struct SiteTls {
    /// An entry for each listener, in the order of the configuration; may be empty if none has TLS.
    pub listeners: Vec<Option<Arc<ListenerTls>>>,
    /// An entry for each pool, in the order of the configuration; may be empty if none has TLS.
    pub pools: Vec<Option<OriginTls>>,
}
