//! The shared tier as a part of the configuration.

use std::time::Duration;

use sandarac_policy::ByteSize;

use crate::pool::Source;
use crate::shared::secret_file::SecretFile;
use crate::shared::server::SharedServer;

/// The shared tier: memcached servers that several nodes use as one cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedConfig {
    /// Where the servers are.
    pub servers: SharedServers,
    /// Separates sites on the same servers. It may be empty.
    pub namespace: Box<str>,
    /// The files of secrets, at most two. The first one seals entries; those of both are accepted. Without
    /// any, all listed servers are local, or the operator accepts the danger.
    pub secret_files: Vec<SecretFile>,
    /// User and password for servers that ask for them.
    pub login: Option<SharedLogin>,
    /// How long RAM serves a copy before it is compared with the shared tier.
    pub local_ttl: Duration,
    /// The deadline of an operation.
    pub timeout: Duration,
    /// When a server is ejected.
    pub ejection: SharedEjection,
    /// The largest response that is written to the shared tier.
    pub max_object: ByteSize,
    /// How long a request waits for the fetch of another node.
    pub wait: Duration,
    /// How long purges are remembered. It is longer than `local_ttl`.
    pub purge_memory: Duration,
    /// Whether entries are compressed at rest.
    pub compression: bool,
}

/// The servers of the shared tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedServers {
    /// These, all different; at least one.
    Listed(Vec<SharedServer>),
    /// Those that a source lists. It is not a directory.
    Discovered(Source),
}

/// A user and the file of its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLogin {
    /// The user.
    pub user: Box<str>,
    /// The file of the password.
    pub password_file: SecretFile,
}

/// When a server of the shared tier is ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEjection {
    /// How many operations in a row must fail.
    pub failures: u32,
    /// How long it is ejected the first time.
    pub first: Duration,
    /// The longest ejection; at least `first`.
    pub longest: Duration,
}
