//! The facts about the peer of a TLS connection after the handshake.

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, CommonState, HandshakeKind, NamedGroup, ProtocolVersion};

/// The outcome of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPeer {
    /// The host name that the client asked for (RFC 6066 §3), in lower case.
    pub server_name: Option<Box<str>>,
    /// The version of the protocol.
    pub version: ProtocolVersion,
    /// The cipher suite.
    pub suite: CipherSuite,
    /// The group of the key exchange; none if a TLS 1.2 session was resumed.
    pub group: Option<NamedGroup>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The client's verified certificates, its own first; empty if it sent none.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The SHA-256 digest of the client's own certificate, in lower-case hexadecimal.
    pub certificate_digest: Option<Box<str>>,
}

impl TlsPeer {
    /// What `state` has negotiated; `None` before the end of the handshake.
    pub(super) fn of(state: &CommonState, server_name: Option<&str>) -> Option<TlsPeer> {
        Some(TlsPeer {
            server_name: server_name.map(Into::into),
            version: state.protocol_version()?,
            suite: state.negotiated_cipher_suite()?.suite(),
            group: state.negotiated_key_exchange_group().map(|group| group.name()),
            resumed: state.handshake_kind()? == HandshakeKind::Resumed,
            certificates: state.peer_certificates().unwrap_or_default().to_vec(),
            certificate_digest: state.peer_certificates().and_then(|all| Some(hex_digest(all.first()?))),
        })
    }

    /// The version as logs and metrics write it, such as `TLSv1.3`.
    pub fn version_name(&self) -> &'static str {
        match self.version {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            // Others are not negotiated.
            _ => "TLSv1.3",
        }
    }

    /// The suite by the name that IANA registered.
    pub fn suite_name(&self) -> String {
        // rustls writes TLS13_ where the registry has TLS_.
        self.suite.as_str().unwrap_or_default().replacen("TLS13_", "TLS_", 1)
    }
}

fn hex_digest(certificate: &CertificateDer<'_>) -> Box<str> {
    digest(&SHA256, certificate).as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
