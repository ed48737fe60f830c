//! The handling of certificates that have expired.

use std::collections::HashSet;

/// What happens to a certificate of a listener that has expired.
#[derive(Clone, Debug, Default)]
pub enum WhenExpired {
    /// It is refused: nobody should put it in force.
    #[default]
    Refuse,
    /// It is kept if its digest is among these, which were in force before. Otherwise one dead name would keep the
    /// renewals of all others from being taken over.
    Keep(HashSet<[u8; 32]>),
    /// It is served, because a restart should not take down the other names.
    Serve,
}

impl WhenExpired {
    /// Whether the certificate with this digest is served.
    pub(crate) fn serves(&self, digest: &[u8; 32]) -> bool {
        match self {
            WhenExpired::Refuse => false,
            WhenExpired::Keep(known) => known.contains(digest),
            WhenExpired::Serve => true,
        }
    }
}
