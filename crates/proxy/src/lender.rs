//! The store lends memory to the account of what connections hold.

use sandarac_cache::Store;
use sandarac_net::Reserve;
use std::sync::Arc;

/// The store as that which lends memory for connections.
pub(crate) struct Lender(pub(crate) Arc<Store>);

impl Reserve for Lender {
    fn take(&self, bytes: usize) -> bool {
        self.0.lend(bytes)
    }

    fn give(&self, bytes: usize) {
        self.0.lend_anyway(bytes);
    }

    fn release(&self, bytes: usize) {
        self.0.take_back(bytes);
    }

    fn given(&self) -> usize {
        self.0.lent()
    }

    fn passing(&self) -> usize {
        self.0.passing()
    }

    fn most(&self) -> usize {
        self.0.most_lent()
    }
}
