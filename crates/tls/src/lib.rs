//! Certificates, the choice among them by name, session tickets, and the settings of TLS to clients and origins.
//!
//! The protocol is rustls; this crate loads and checks files, and makes rustls' configurations. It opens no
//! connections. Time is an argument.
//!
//! ```no_run
//! # use std::sync::Arc;
//! use sandarac_tls::{CertificateFiles, Loading, RuntimeCertificates, ServerSettings, WhenExpired};
//! use rustls::pki_types::UnixTime;
//! use rustls::time_provider::DefaultTimeProvider;
//!
//! let loading = Loading {
//!     now: UnixTime::now(),
//!     clock: Arc::new(DefaultTimeProvider),
//!     process_secret: Arc::default(),
//!     runtime: Arc::new(RuntimeCertificates::default()),
//!     when_expired: WhenExpired::Refuse,
//! };
//! let files = CertificateFiles { chain: "example.org.crt".into(), key: "example.org.key".into() };
//! match ServerSettings::of(vec![files]).load(&loading) {
//!     Ok(tls) => tls.warnings.iter().for_each(|warning| eprintln!("{warning}")),
//!     Err(faults) => faults.iter().for_each(|fault| eprintln!("{fault}")),
//! }
//! ```

mod certificate;
mod certificates;
mod choices;
mod client;
mod client_auth;
mod directory;
mod expiry;
mod facts;
mod fault;
mod file;
mod identity;
mod key_log;
mod names;
mod patience;
mod provider;
mod runtime;
mod server;
mod stamps;
mod tickets;
mod time;
mod warning;
mod when_expired;

#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod handshake_tests;
#[cfg(test)]
mod made_tests;
#[cfg(test)]
mod settings_tests;

pub use certificate::{Certificate, CertificateFiles, CertificateWarning, Use};
pub use certificates::{ACME_TLS_ALPN, Certificates, Match, Shadowed};
pub use client::{ClientSettings, ClientTls};
pub use client_auth::{ClientCertificates, ClientMode};
pub use directory::{MAX_CERTIFICATES, certificates_in};
pub use expiry::{ExpiryWarnings, expires_soon};
pub use facts::KeyType;
pub use fault::{Fault, Reason};
pub use file::MAX_FILE_BYTES;
pub use identity::Identity;
pub use names::Name;
pub use patience::patiently;
pub use provider::{Version, cipher_suite, provider, registered_name};
pub use runtime::{ChallengeFallback, RuntimeCertificates};
pub use server::{Loading, ServerSettings, ServerTls};
pub use stamps::{Stamps, Watch};
pub use tickets::{MIN_SECRET_BYTES, TicketSecret, Tickets};
pub use time::civil;
pub use warning::Warning;
pub use when_expired::WhenExpired;
