//! What is known of the peer of a TLS connection after the handshake.

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
        })
    }
}
