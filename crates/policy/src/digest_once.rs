//! The place of a digest that is computed once.

use std::sync::OnceLock;

/// The place of a route's digest once it is computed. It is asked for by each lookup in the shared tier, and
/// takes longer than the rest of the lookup.
#[derive(Debug, Default)]
pub struct DigestOnce(pub(crate) OnceLock<Option<[u8; 16]>>);

/// Empty, because a clone may be changed.
impl Clone for DigestOnce {
    fn clone(&self) -> DigestOnce {
        DigestOnce::default()
    }
}

/// Always equal, because it follows from the rules.
impl PartialEq for DigestOnce {
    fn eq(&self, _: &DigestOnce) -> bool {
        true
    }
}
