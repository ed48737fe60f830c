//! The configuration of Sandarac: TOML and command-line flags, converted to one validated [`Config`].
//!
//! Every setting is defined once, with its type, default and text; reading, the listing of defaults, the JSON schema
//! and the manual page come from that definition. This crate reads no file, clock or environment variable.

mod address;
mod classify;
mod compress;
mod config;
mod definition;
mod diagnostics;
mod edits;
mod explain;
mod field;
mod file;
mod file_names;
mod files;
mod flags;
mod fragments;
mod limited;
mod make;
mod manual;
mod other_words;
mod path;
mod pattern;
mod php;
mod pool;
mod quoted;
mod report;
mod route_settings;
mod rules;
mod section;
mod setting;
mod shared;
mod suggest;
mod template;
mod tls;
mod value;
mod warnings;

pub use address::{Group, ListenAddress, Mode, NameServer, Network, User, contains};
pub use classify::{TABLE_BYTES, TableError, classifier, read_class_table};
pub use config::{Cache, Config, Listener, SpoolConfig};
pub use diagnostics::{Diagnostic, Diagnostics, Severity, Warning};
pub use explain::explain;
pub use field::Token;
pub use flags::{AdminToken, Flags};
pub use limited::{Bounded, BoundedSize, Decimal, Timeout};
pub use manual::{defaults, manual, schema, settings};
pub use pool::{
    BackendConfig, CheckConfig, FastCgiConfig, Password, PoolConfig, RetryBudgetConfig, SameSite, Server,
    Source, StatusRange, Sticky,
};
pub use section::{Admin, Dns, Forwarded, Limits, Log, LogFormat, LogTarget, Purge, Timeouts};
pub use setting::{Absent, Kind, Setting};
pub use shared::{
    Credentials, SecretContent, SecretFile, SharedConfig, SharedEjection, SharedLogin, SharedServer,
    SharedServers,
};
pub use suggest::closest;
pub use tls::{
    AcmeConfig, ApplicationProtocol, CIPHER_SUITES, CertificateConfig, ClientCertificateForward,
    ClientCertificateMode, ClientCertificatesConfig, ExternalAccountConfig, ListenerTls, PoolTls, TlsVersion,
};
pub use value::{Secret, duration};
