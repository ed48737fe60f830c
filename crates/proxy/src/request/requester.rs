//! The requester: the client of a request, as seen by rules and origins.

use sandarac_config::ClientCertificateForward;
use sandarac_message::target::Scheme;
use sandarac_net::tls::TlsPeer;
use std::net::IpAddr;

/// The client of a request, as described to origins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The address of the connection, or the one that the PROXY protocol announced.
    pub(crate) ip: Option<IpAddr>,
    /// The port of that address.
    pub(crate) port: Option<u16>,
    /// The visitor's address as logged, if an edit of the request or an application uses it.
    pub(crate) visitor: Option<IpAddr>,
    /// Whether its forwarding fields are trusted.
    pub(crate) trusted: bool,
    pub(crate) scheme: Scheme,
    /// The requested host as received. If the response may be stored, it is in its keyed form, because
    /// applications write it into pages. Empty if the request has none.
    pub(crate) host: &'a [u8],
    /// The TLS of its connection. `None` over a connection in clear, and for fetches for the store: what they
    /// bring is not for this client alone.
    pub(crate) tls: Option<&'a TlsPeer>,
    /// What backends get of its certificates; `None` if its listener asks for none.
    pub(crate) certificate_forward: Option<ClientCertificateForward>,
}

impl Requester<'_> {
    /// The same requester, for a request to `host` over `tls`.
    pub(crate) fn asking_for<'b>(self, host: &'b [u8], tls: Option<&'b TlsPeer>) -> Requester<'b> {
        let Requester { ip, port, visitor, trusted, scheme, host: _, tls: _, certificate_forward } = self;
        Requester { ip, port, visitor, trusted, scheme, host, tls, certificate_forward }
    }
}
