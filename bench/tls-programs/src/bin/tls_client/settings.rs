//! The settings of TLS: one suite, one group, TLS 1.3.

use crate::options::Options;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, NamedGroup, SignatureScheme};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The name that the certificate and the requests have.
pub(crate) const HOST: &str = "bench.test";

pub(crate) fn config(options: &Options) -> Result<Arc<ClientConfig>, Error> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![match options.is_aes256 {
        true => cipher_suite::TLS13_AES_256_GCM_SHA384,
        false => cipher_suite::TLS13_AES_128_GCM_SHA256,
    }];
    provider.kx_groups = vec![if options.is_hybrid { kx_group::X25519MLKEM768 } else { kx_group::X25519 }];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAll))
        .with_no_client_auth();
    config.resumption = match options.is_resumed {
        true => Resumption::store(Arc::new(TicketQueue::default())),
        false => Resumption::disabled(),
    };
    Ok(Arc::new(config))
}

/// How many tickets are kept: more than there are handshakes at once.
pub(crate) const TICKETS: usize = 256;

/// The tickets that were received and not used, the oldest first. Every handshake brings at least one.
#[derive(Debug, Default)]
struct TicketQueue(Mutex<VecDeque<Tls13ClientSessionValue>>);

impl ClientSessionStore for TicketQueue {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut tickets = self.0.lock().expect("one thread");
        tickets.push_back(ticket);
        if tickets.len() > TICKETS {
            tickets.pop_front();
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().expect("one thread").pop_front()
    }
}

/// Verifies nothing, because the client's work is not what is measured.
#[derive(Debug)]
struct AcceptAll;

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
