//! TLS in the admin interface: the certificates of listeners, and which of them a name gets.

use serde::{Deserialize, Serialize};

/// A question about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskTls {
    /// The name for which the certificate is asked for.
    pub name: Option<String>,
}

/// TLS of all listeners that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsStatus {
    /// The listeners, in the order of the configuration.
    pub listeners: Vec<TlsListener>,
    /// The certificates by ACME. Of a question about a name, only those for it.
    pub acme: Vec<AcmeStatus>,
}

/// A certificate by ACME.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcmeStatus {
    /// Its names.
    pub names: Vec<String>,
    /// The URL of the CA's directory.
    pub directory: String,
    /// The orders that this process has placed.
    pub orders: u64,
    /// The attempts of this process that failed, with or without an order.
    pub failures: u64,
    /// The attempts that failed since the last success, of all nodes that share the state.
    pub failed_attempts: u32,
    /// The fault of the last one, its name first.
    pub last_fault: Option<String>,
    /// The time of the next order, in seconds since 1970: a renewal, or another attempt. In the past while an order is pending.
    pub next_order: u64,
    /// The time until which the certificate is valid, in seconds since 1970; `None` while a self-signed one stands in.
    pub valid_until: Option<u64>,
}

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsListener {
    /// Its address.
    pub address: String,
    /// The lowest version, `1.2` or `1.3`.
    pub minimum_version: String,
    /// Whether clients present certificates: `optional` or `required`; `None` if they are asked for none.
    pub client_certificates: Option<String>,
    /// The certificates. Of a question about a name, only those of `chosen`.
    pub certificates: Vec<TlsCertificate>,
    /// Why a client that asks for the name gets these: `exact`, `wildcard` or `default`. It gets the first whose kind of
    /// key it accepts. `None` if no name was asked about.
    pub chosen: Option<String>,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsCertificate {
    /// The names it is valid for.
    pub names: Vec<String>,
    /// The file of its chain; `None` if it arrived at run time.
    pub path: Option<String>,
    /// Who issued it.
    pub issuer: String,
    /// The kind of its key.
    pub key: String,
    /// Whether its issuer is its own subject.
    pub self_signed: bool,
    /// The time from which it is valid, in seconds since 1970.
    pub valid_from: i64,
    /// The time until which it is valid, in seconds since 1970.
    pub valid_until: i64,
    /// The SHA-256 digest of the certificate in hexadecimal digits.
    pub sha256: String,
}
