//! The times and bounds of the protocol.

use std::time::Duration;

use sandarac_balance::Backoff;

/// The times and bounds of the protocol. All nodes of a namespace SHOULD have the same.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long RAM serves a copy before the server is asked whether it still agrees, and how old the known
    /// state of a purge log may be.
    pub local_ttl: Duration,
    /// The age from which a copy that is requested is checked ahead of time. Less than `local_ttl` by more
    /// than a deadline.
    pub check_ahead: Duration,
    /// The pause after a check that was not answered. It bounds how often requests wait for a dead server.
    pub check_retry: Duration,
    /// How long nodes remember purges that a server has acknowledged, for servers that lose their logs.
    pub purge_memory: Duration,
    /// The longest wait for the fetch of another node.
    pub shared_wait: Duration,
    /// Seconds after which a claim ends that is not renewed.
    pub claim_ttl: u32,
    /// The time between renewals of a claim.
    pub claim_renewal: Duration,
    /// The pauses between polls of a claimed key.
    pub poll: Backoff,
    /// Bytes of a purge log beyond which old records are dropped.
    pub log_bound: usize,
    /// The most purges that a node keeps for a server that has not acknowledged them. More become one purge
    /// of everything.
    pub max_owed: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            local_ttl: Duration::from_secs(5),
            check_ahead: Duration::from_secs(4),
            check_retry: Duration::from_secs(1),
            purge_memory: Duration::from_secs(3600),
            shared_wait: Duration::from_secs(5),
            claim_ttl: 3,
            claim_renewal: Duration::from_secs(1),
            // The first pause is about the time of a quick page; the longest bounds what a finished page
            // waits.
            poll: Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(200) },
            log_bound: 64 << 10,
            max_owed: 4096,
        }
    }
}
