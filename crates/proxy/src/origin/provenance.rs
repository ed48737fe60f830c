//! The origin of a connection to a backend: where it leads, since when, and over which TLS.

use crate::origin::tls::OriginTls;
use sandarac_net::Moment;
use sandarac_wire::fastcgi::RequestId;
use std::net::IpAddr;

/// The address, the time and the security of a connection. It is reused only while it is young and its name
/// still has that address, and only by pools with the same TLS.
#[derive(Debug)]
pub(crate) struct Provenance {
    pub(super) ip: Option<IpAddr>,
    pub(super) made: Moment,
    /// TLS of the connection; `None` if it is in clear.
    pub(super) tls: Option<OriginTls>,
    /// The instance of the worker at its end, if it was identified.
    pub(crate) instance: Option<Box<str>>,
    /// The number of the next request on it, if it speaks FastCGI.
    pub(crate) request_id: RequestId,
}

impl Provenance {
    /// When the connection was made.
    pub(crate) fn made(&self) -> Moment {
        self.made
    }
}
