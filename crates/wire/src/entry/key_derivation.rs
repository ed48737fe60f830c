//! The derivation of server keys from keys of the cache.

use super::key::DIGEST;
use super::{EntryKey, Sealer, Token};
use sandarac_message::vary::VaryKey;

/// A key of the cache, and a digest of the rules that change which bytes are stored under it or who may have
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalKey {
    /// The key under which RAM holds the response.
    pub key: [u8; 16],
    /// The digest of the rules.
    pub rules: [u8; 16],
}

/// Derives the server keys of a namespace. With a secret, they do not tell what is stored under them.
#[derive(Clone)]
pub struct EntryKeys {
    namespace: Box<[u8]>,
    key: [u8; 32],
    /// Of the purge log: independent of the secret.
    log_key: [u8; 32],
}

impl EntryKeys {
    /// The keys of `namespace`, by the secret with which `sealer` seals.
    pub fn new(namespace: &[u8], sealer: &Sealer) -> EntryKeys {
        let plain = blake3::derive_key("Sandarac shared tier 1: server key without a secret", b"");
        EntryKeys {
            namespace: namespace.into(),
            key: sealer.secret().map_or(plain, |secret| secret.names),
            log_key: plain,
        }
    }

    /// Where a lookup begins: a representation, or an item in its place. A mark, a tombstone and a fill replace
    /// each other.
    pub fn entry(&self, local: &LocalKey) -> EntryKey {
        self.make(&self.key, b"e1", &[&local.key, &local.rules])
    }

    /// The same for one variant, if an index with this token stands under [`EntryKeys::entry`]. Variants of its
    /// successor have other keys.
    pub fn variant(&self, local: &LocalKey, index: Token, vary: &VaryKey) -> EntryKey {
        self.make(&self.key, b"v1", &[&local.key, &local.rules, &index.0.to_le_bytes(), vary.as_bytes()])
    }

    /// A chunk of the manifest that is stored under `manifest` with this token. Chunks of its successor have
    /// other keys.
    pub fn chunk(&self, manifest: &EntryKey, token: Token, number: u32) -> EntryKey {
        let (token, number) = (token.0.to_le_bytes(), number.to_le_bytes());
        self.make(&self.key, b"c1", &[manifest.as_bytes(), &token, &number])
    }

    /// The claim of the node that fetches what belongs under `entry`, an entry or a variant. It stands beside
    /// the entry, on the same server, so that a stale response survives the claim.
    pub fn claim(&self, entry: &EntryKey) -> EntryKey {
        self.make(&self.key, b"f1", &[entry.as_bytes()])
    }

    /// The purge log of each server. The same with every secret, because nodes that rotate secrets one after
    /// another must read each other's purges.
    pub fn purge_log(&self) -> EntryKey {
        self.make(&self.log_key, b"l1", &[])
    }

    fn make(&self, key: &[u8; 32], place: &[u8; 2], parts: &[&[u8]]) -> EntryKey {
        // Usually enough. One digest of one text costs half of what a hasher does that is given it in parts.
        let mut text = Vec::with_capacity(256);
        for part in [place, &*self.namespace].iter().chain(parts) {
            text.extend_from_slice(&(part.len() as u64).to_le_bytes());
            text.extend_from_slice(part);
        }
        let digest = blake3::keyed_hash(key, &text);
        EntryKey::new(place, digest.as_bytes().first_chunk::<DIGEST>().expect("a digest has 32 bytes"))
    }
}

impl std::fmt::Debug for EntryKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EntryKeys({})", self.namespace.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Secret;
    use std::collections::HashSet;

    fn all(keys: &EntryKeys) -> Vec<EntryKey> {
        let vary = |text: &[u8]| VaryKey::from_bytes(text);
        let mut all = Vec::new();
        for (key, rules) in [([0; 16], [0; 16]), ([1; 16], [0; 16]), ([0; 16], [1; 16])] {
            let local = LocalKey { key, rules };
            all.extend([keys.entry(&local), keys.claim(&keys.entry(&local))]);
            for token in [Token(0), Token(1)] {
                all.extend([b"a\n", b"b\n"].map(|text| keys.variant(&local, token, &vary(text))));
                all.extend([0, 1].map(|number| keys.chunk(&keys.entry(&local), token, number)));
            }
        }
        all
    }

    #[test]
    fn no_two_places_share_a_server_key() {
        let secret = |byte| Sealer::keyed(Secret::new(&[byte; 32]).unwrap(), None);
        let mut seen = HashSet::new();
        let mut logs = HashSet::new();
        for namespace in [&b""[..], b"a", b"b"] {
            for sealer in [Sealer::checksum(), secret(1), secret(2)] {
                let keys = EntryKeys::new(namespace, &sealer);
                for key in all(&keys) {
                    assert!(seen.insert(key), "{key}");
                    assert!(key.as_bytes().iter().all(u8::is_ascii_graphic));
                }
                logs.insert(keys.purge_log());
            }
        }
        assert_eq!(logs.len(), 3, "a log for each namespace, whatever the secret");
        assert!(logs.is_disjoint(&seen));
    }

    #[test]
    fn the_first_secret_decides() {
        let [one, two] = [1, 2].map(|byte| Secret::new(&[byte; 32]).unwrap());
        let keys = |first: &Secret, second: Option<&Secret>| {
            all(&EntryKeys::new(b"", &Sealer::keyed(first.clone(), second.cloned())))
        };
        assert_eq!(keys(&one, None), keys(&one, Some(&two)));
        assert_ne!(keys(&one, Some(&two)), keys(&two, Some(&one)));
    }

    #[test]
    fn the_readable_part_names_the_place() {
        let keys = EntryKeys::new(b"", &Sealer::checksum());
        assert!(keys.purge_log().as_str().starts_with("sandarac:l1:"));
        assert_eq!(keys.purge_log().as_str().len(), 44);
        assert!(keys.entry(&LocalKey { key: [0; 16], rules: [0; 16] }).as_str().starts_with("sandarac:e1:"));
    }
}
