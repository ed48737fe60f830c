//! Certificates from a CA by ACME (RFC 8555), kept valid without an operator.
//!
//! An [`Acme`] is one certificate with one or more names. Its state directory holds the account's key, the certificates,
//! the challenges of pending orders, and the record of failed attempts. Several certificates, and several nodes, may
//! share a state directory: one of them orders at a time, every node answers the challenges of all, and a certificate that
//! one node obtained is served by the others.
//!
//! Nothing from the CA is trusted: responses are bounded in size and time, tokens are checked before they name a file, and
//! a certificate is used only if it is for the ordered names, for the key made here, and valid now.
//!
//! ```no_run
//! use sandarac_acme::{Acme, ChallengeCertificate, Event, KeyedChain, Settings, Sink};
//! use sandarac_message::Timestamp;
//! use std::sync::Arc;
//! use std::time::SystemTime;
//!
//! struct Listener;
//!
//! impl Sink for Listener {
//!     fn challenge(&self, name: &str, certificate: Option<ChallengeCertificate>) {
//!         // into the resolver of certificates, for handshakes that offer `acme-tls/1`
//!     }
//!     fn issued(&self, names: &[String], certificate: &KeyedChain) {
//!         // into the resolver of certificates, for all other handshakes
//!     }
//!     fn event(&self, event: &Event) {
//!         eprintln!("sandarac: {event}");
//!     }
//! }
//!
//! # fn main() -> Result<(), sandarac_acme::Fault> {
//! // 1. At the start, before listeners are bound: a fault here is one of the configuration.
//! let settings = Settings::new(vec!["example.org".to_owned()], "/var/lib/sandarac/acme".into());
//! let acme = Acme::open(settings, Arc::new(|| Timestamp::from(SystemTime::now())))?;
//! let first = acme.certificate();
//! // A stand-in is not trusted: no HSTS before the first `issued`.
//! let may_send_hsts = !acme.is_stand_in();
//!
//! // 2. Listeners on port 80 answer tokens of pending orders, before routes are looked at.
//! let challenges = acme.challenges();
//! let now = Timestamp::from(SystemTime::now());
//! let body: Option<String> = challenges.http01("token of /.well-known/acme-challenge/", now);
//! // Listeners with TLS answer `acme-tls/1`; orders of other nodes are found like this.
//! let certificate: Option<ChallengeCertificate> = challenges.tls_alpn01("example.org", now);
//!
//! // 3. Once the listeners accept, on a thread of its own.
//! std::thread::spawn(move || {
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
//!     runtime.expect("a runtime").block_on(acme.run(Arc::new(Listener), 42))
//! });
//! # Ok(())
//! # }
//! ```

mod attempts;
mod ca;
mod certificate;
mod challenges;
mod client;
mod event;
mod fault;
mod files;
mod inspection;
mod layout;
mod lease;
mod make;
mod manager;
mod order;
mod progress;
mod schedule;
mod settings;
mod sink;

pub use certificate::KeyedChain;
pub use challenges::Challenges;
pub use client::Clock;
pub use event::Event;
pub use fault::{CertificateFault, Fault};
pub use inspection::{Inspection, Kept, inspect};
pub use make::{ChallengeCertificate, stand_in};
pub use manager::Acme;
pub use progress::{Progress, Report};
pub use schedule::{Validity, Window, renewal};
pub use settings::{ChallengeKind, ExternalAccount, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Limits, Settings};
pub use sink::Sink;
