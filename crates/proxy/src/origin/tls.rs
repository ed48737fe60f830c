//! TLS to backends.

use crate::Fault;
use crate::report::tls_fault::TlsFault;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sandarac_balance::{Endpoint, Host};
use sandarac_net::Stream;
use sandarac_net::tls::{ClientSide, TlsStream, connect};
use std::sync::Arc;

/// TLS to the backends of a pool. Two are equal if their connections may be used in place of each other.
#[derive(Clone, Debug)]
pub struct OriginTls {
    config: Arc<ClientConfig>,
    /// The same without an offer of HTTP/2.
    without_http2: Arc<ClientConfig>,
    /// The name that is asked for and verified; that of the address if `None`.
    server_name: Option<ServerName<'static>>,
}

impl PartialEq for OriginTls {
    fn eq(&self, other: &OriginTls) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.server_name == other.server_name
    }
}

impl OriginTls {
    /// TLS with `config`. `server_name` is asked for and verified, if given, else the host of each address.
    pub fn new(config: Arc<ClientConfig>, server_name: Option<ServerName<'static>>) -> OriginTls {
        let mut without_http2 = config.clone();
        if config.alpn_protocols.iter().any(|name| name == b"h2") {
            Arc::make_mut(&mut without_http2).alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        OriginTls { config, without_http2, server_name }
    }

    /// Whether HTTP/2 is offered.
    pub(crate) fn offers_http2(&self) -> bool {
        !Arc::ptr_eq(&self.config, &self.without_http2)
    }

    /// Whether HTTP/2 is offered, and nothing else.
    pub(crate) fn offers_only_http2(&self) -> bool {
        self.offers_http2() && self.config.alpn_protocols.len() == 1
    }

    /// The same without an offer of HTTP/2.
    pub(crate) fn without_http2(&self) -> OriginTls {
        OriginTls { config: self.without_http2.clone(), ..self.clone() }
    }

    /// Serves the handshake on a connection to `endpoint`.
    pub(crate) async fn begin(
        &self,
        stream: Stream,
        endpoint: &Endpoint,
    ) -> Result<TlsStream<ClientSide>, Fault> {
        let name = match (&self.server_name, endpoint) {
            (Some(name), _) => name.clone(),
            (None, Endpoint::Tcp(Host::Ip(ip), _)) => ServerName::IpAddress((*ip).into()),
            (None, Endpoint::Tcp(Host::Name(name), _)) => {
                ServerName::try_from(name.to_string()).map_err(|_| Fault::TlsFailed(TlsFault::WrongName))?
            }
            (None, Endpoint::Unix(_)) => return Err(Fault::TlsFailed(TlsFault::WrongName)),
        };
        connect(stream, self.config.clone(), name)
            .await
            .map_err(|fault| Fault::TlsFailed(TlsFault::of(&fault)))
    }
}
