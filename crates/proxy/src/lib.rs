//! The exchange: one request from receipt to record.
//!
//! A [`Core`] answers a request from the store at once if it can. Every other request becomes an exchange,
//! whose steps are named as in the Varnish Configuration Language: receive, hash, lookup, then hit, miss,
//! pass, pipe, synth or purge, then fetch, store, deliver and record.

mod at_once;
pub mod client;
mod client_connections;
mod core;
mod downstream;
mod exchange;
mod fastcgi;
mod files;
mod forward;
mod fragments;
mod lender;
mod listener_tls;
mod origin;
mod outgoing;
mod pool;
mod purger;
mod recode;
mod report;
mod request;
mod respond;
mod resume;
mod service;
mod shared;
mod site;
mod site_tls;
mod spool;
mod step;
mod sticky;
mod tier;
mod trailers;
mod upkeep;

pub use self::core::Core;
pub use exchange::Deferred;
pub use listener_tls::{ListenerTls, client_settings};
pub use origin::timeouts::OriginTimeouts;
pub use origin::tls::OriginTls;
pub use pool::{Live, Member, Orders, PoolRefusal, SitePool, SourceState};
pub use purger::{Purged, Purger, Selection};
pub use report::counters::{Counter, Counters};
pub use report::fault::Fault;
pub use report::file_refusal::FileRefusal;
pub use report::fragment_failure::FragmentFailure;
pub use report::latency::Latency;
pub use report::reason::reason;
pub use report::record::{Outcome, Record, Recorder};
pub use report::tally::CountByReason;
pub use report::tls_fault::TlsFault;
pub use shared::{ChallengeAnswers, DescriptorLimits, Shared};
pub use site::Site;
pub use site_tls::SiteTls;
pub use tier::{Inspected, InspectedResponse, TierCount, TierServerState};
pub use upkeep::Upkeep;
