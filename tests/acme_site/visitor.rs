//! A client of the site that trusts the CA.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sandarac_test_support::eventually;

use crate::server::Pebble;

pub(crate) struct Visitor(Arc<ClientConfig>);

impl Visitor {
    /// One that trusts certificates of this CA only.
    pub(crate) fn trusting(pebble: &Pebble) -> Visitor {
        let mut roots = RootCertStore::empty();
        roots.add(pebble.root()).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.expect("versions").with_root_certificates(roots).with_no_client_auth();
        Visitor(Arc::new(config))
    }

    /// Gets `/` of a host at an address: the response, and the site's certificate.
    pub(crate) fn get(
        &self,
        address: SocketAddr,
        host: &str,
    ) -> io::Result<(String, CertificateDer<'static>)> {
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        let connection = ClientConnection::new(self.0.clone(), name).expect("a client");
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let certificates = stream.conn.peer_certificates().expect("a server presents one");
        Ok((response, certificates[0].clone().into_owned()))
    }

    /// The same as soon as the certificate is one of the CA's.
    #[track_caller]
    pub(crate) fn get_trusted(&self, address: SocketAddr, host: &str) -> (String, CertificateDer<'static>) {
        eventually("a certificate from the CA", || self.get(address, host).ok())
    }
}
