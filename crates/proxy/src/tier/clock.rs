//! Time and chance for the machines.

use std::hash::{BuildHasher, Hasher, RandomState};

use sandarac_message::Timestamp;
use sandarac_net::Moment;

/// The time of the machines.
pub(crate) fn now() -> Timestamp {
    Moment::now().timestamp()
}

/// A random number that no other node and no attacker can tell.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
