//! Bytes that are counted wherever they are passed on to.

use crate::account::{Held, Holder, Lease};
use bytes::Bytes;

/// Memory beside the bytes themselves, where these have a lease of their own.
const OWNED: usize = 64;

/// Bytes with their lease.
struct Leased<B> {
    bytes: B,
    _lease: Lease,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Leased<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl Holder {
    /// Bytes that are counted as held until nothing refers to them any more.
    pub fn keep(&self, class: Held, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        let lease = self.holds(class, bytes.as_ref().len() + OWNED);
        Bytes::from_owner(Leased { bytes, _lease: lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::account::tests::Cache;

    #[test]
    fn bytes_are_counted_until_their_last_part_is_dropped() {
        let account = Account::new(Cache::of(1 << 20));
        let holder = account.connection();
        let mut kept = holder.keep(Held::Text, vec![b'x'; 1000]);
        let part = kept.split_to(1);
        drop(kept);
        assert_eq!([account.bytes(), account.of(Held::Text), holder.bytes()], [1000 + OWNED; 3]);
        drop(part);
        assert_eq!(account.bytes(), 0);
    }
}
