//! Seals: checksums without a secret, keyed digests with one.

use super::{EntryError, EntryKey, LogId};
use xxhash_rust::xxh3::Xxh3;

/// Bytes of a seal. A checksum has 128 bits, and a keyed digest of 128 bits cannot be guessed: each attempt
/// needs a node that reads it, and nobody without the secret gains from two items with the same seal.
pub const SEAL_LEN: usize = 16;

/// The fewest bytes of a secret: as many as the key that is derived from it.
pub const MIN_SECRET: usize = 32;

/// The key id of an item with a checksum.
const NO_KEY: u8 = 0;

/// A secret shorter than [`MIN_SECRET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortSecret {
    /// Its length in bytes.
    pub len: usize,
}

impl std::fmt::Display for ShortSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a secret of {} bytes; at least {MIN_SECRET} are needed", self.len)
    }
}

impl std::error::Error for ShortSecret {}

/// The keys derived from a secret.
#[derive(Clone)]
pub struct Secret {
    id: u8,
    seal: [u8; 32],
    /// The key of the digests in server keys.
    pub(super) names: [u8; 32],
}

impl Secret {
    /// The keys of a secret: all bytes of its file, a line end included. They MUST be random, because an
    /// attacker can test guesses against one item without any limit.
    pub fn new(secret: &[u8]) -> Result<Secret, ShortSecret> {
        if secret.len() < MIN_SECRET {
            return Err(ShortSecret { len: secret.len() });
        }
        let [id, ..] = blake3::derive_key("Sandarac shared tier 1: key id", secret);
        Ok(Secret {
            id: id.max(NO_KEY + 1),
            seal: blake3::derive_key("Sandarac shared tier 1: seal", secret),
            names: blake3::derive_key("Sandarac shared tier 1: server key", secret),
        })
    }

    /// The number in items by which a reader finds the secret. Two secrets may have the same.
    pub fn id(&self) -> u8 {
        self.id
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.id)
    }
}

/// Seals items and verifies them.
#[derive(Clone, Debug, Default)]
pub struct Sealer {
    /// The first one seals. Empty for checksums.
    secrets: Vec<Secret>,
}

/// The bytes that a seal covers, besides its own place in them.
pub(super) struct Sealed<'a> {
    /// The server key under which they are stored.
    pub key: &'a EntryKey,
    /// The purge log that a record belongs to; `None` for an item.
    pub log: Option<&'a LogId>,
    /// Up to the seal, the key id included.
    pub before: &'a [u8],
    /// After the seal.
    pub after: &'a [u8],
    /// What follows, in pieces.
    pub body: &'a [&'a [u8]],
}

impl Sealed<'_> {
    /// All that is covered. Every piece but the last has a fixed length, or declares it, so that no two
    /// inputs have the same bytes.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let context = match self.log {
            None => [&b"item"[..], &[]],
            Some(log) => [&b"purg"[..], &log.0],
        };
        let pieces = [self.key.as_bytes(), self.before, self.after];
        context.into_iter().chain(pieces).chain(self.body.iter().copied())
    }

    fn checksum(&self) -> [u8; SEAL_LEN] {
        let mut hasher = Xxh3::new();
        self.pieces().for_each(|piece| hasher.update(piece));
        hasher.digest128().to_le_bytes()
    }

    fn digest(&self, secret: &Secret) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&secret.seal);
        self.pieces().for_each(|piece| _ = hasher.update(piece));
        hasher.finalize()
    }
}

impl Sealer {
    /// Checksums: they detect damage, and do not detect forgery.
    pub fn checksum() -> Sealer {
        Sealer::default()
    }

    /// Keyed digests. `first` seals; items sealed by `second` are accepted too, while secrets rotate.
    pub fn keyed(first: Secret, second: Option<Secret>) -> Sealer {
        Sealer { secrets: std::iter::once(first).chain(second).collect() }
    }

    /// Whether there is a secret.
    pub fn is_keyed(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The secret that seals; `None` for checksums.
    pub(super) fn secret(&self) -> Option<&Secret> {
        self.secrets.first()
    }

    /// The key id that [`Sealer::seal`] expects among the bytes before the seal.
    pub(super) fn key_id(&self) -> u8 {
        self.secret().map_or(NO_KEY, Secret::id)
    }

    pub(super) fn seal(&self, sealed: &Sealed<'_>) -> [u8; SEAL_LEN] {
        match self.secret() {
            None => sealed.checksum(),
            Some(secret) => *sealed.digest(secret).as_bytes().first_chunk().expect("a digest has 32 bytes"),
        }
    }

    /// Verifies a seal made by the secret with `key_id`, in constant time. Returns whether it is by the secret
    /// that seals.
    pub(super) fn verify(
        &self,
        key_id: u8,
        seal: &[u8; SEAL_LEN],
        sealed: &Sealed<'_>,
    ) -> Result<bool, EntryError> {
        match (self.secrets.is_empty(), key_id == NO_KEY) {
            (true, false) => return Err(EntryError::Sealed),
            (false, true) => return Err(EntryError::Unsealed),
            (true, true) if sealed.checksum() == *seal => return Ok(true),
            (true, true) => return Err(EntryError::Checksum),
            (false, false) => {}
        }
        let mut error = EntryError::UnknownSecret;
        for (place, secret) in self.secrets.iter().enumerate().filter(|(_, secret)| secret.id == key_id) {
            let digest = sealed.digest(secret);
            // The comparison of whole digests takes constant time, so the claimed half is completed.
            let mut claimed = *digest.as_bytes();
            claimed[..SEAL_LEN].copy_from_slice(seal);
            if digest == blake3::Hash::from_bytes(claimed) {
                return Ok(place == 0);
            }
            error = EntryError::Seal;
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_secrets_are_refused() {
        assert_eq!(Secret::new(&[7; MIN_SECRET - 1]).err(), Some(ShortSecret { len: 31 }));
        let secret = Secret::new(&[7; MIN_SECRET]).unwrap();
        assert_ne!(secret.id(), NO_KEY);
        assert_eq!(format!("{secret:?}"), format!("Secret({})", secret.id()), "no key is logged");
    }

    #[test]
    fn every_key_of_a_secret_is_its_own() {
        let (one, other) = (Secret::new(&[1; 32]).unwrap(), Secret::new(&[2; 32]).unwrap());
        let keys = [one.seal, one.names, other.seal, other.names];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key));
        }
    }
}
