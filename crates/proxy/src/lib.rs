//! The exchange: one request from receipt to record.
//!
//! A [`Core`] answers a request from the store at once if it can. Every other request becomes an exchange,
//! whose steps are named as in the Varnish Configuration Language: receive, hash, lookup, then hit, miss,
//! pass, pipe, synth or purge, then fetch, store, deliver and record.

mod at_once;
pub mod client;
mod client_certificate;
mod client_connections;
mod core;
mod counters;
mod downstream;
mod exchange;
mod fastcgi;
mod fault;
mod field_counts;
mod files;
mod forward;
mod fragments;
mod gathered;
mod handling;
mod latency;
mod lender;
mod listener_tls;
mod log_throttle;
mod origin;
mod origin_timeouts;
mod origin_tls;
mod outgoing;
mod pass_reason;
mod pool;
mod purge_target;
mod purger;
mod reason;
mod recode;
mod record;
mod requester;
mod respond;
mod resume;
mod sending;
mod service;
mod shared;
mod site;
mod site_tls;
mod spool;
mod step;
mod sticky;
mod tally;
mod tier;
mod tls_fault;
mod trailers;
mod unbelieved;
mod unkeyed;
mod upkeep;
mod upload;

pub use self::core::Core;
pub use counters::{Counter, Counters};
pub use exchange::Deferred;
pub use fault::Fault;
pub use files::FileRefusal;
pub use fragments::FragmentFailure;
pub use latency::Latency;
pub use listener_tls::{ListenerTls, client_settings};
pub use origin_timeouts::OriginTimeouts;
pub use origin_tls::OriginTls;
pub use pool::{Live, Member, Orders, PoolRefusal, SitePool, SourceState};
pub use purger::{Purged, Purger, Selection};
pub use reason::reason;
pub use record::{Outcome, Record, Recorder};
pub use shared::{ChallengeAnswers, DescriptorLimits, Shared};
pub use site::Site;
pub use site_tls::SiteTls;
pub use tally::CountByReason;
pub use tier::{Inspected, InspectedResponse, TierCount, TierServerState};
pub use tls_fault::TlsFault;
pub use upkeep::Upkeep;
