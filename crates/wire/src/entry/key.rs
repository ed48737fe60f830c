//! Server keys: the names under which items are stored in memcached.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// Before the digest: `sandarac:`, a letter for the place, a digit for the version, a colon.
const PREFIX: usize = 12;
/// Bytes of the digest; 32 characters in base64url. Clients choose what is digested, so that 128 bits would
/// allow them to find two targets with one server key.
pub(super) const DIGEST: usize = 24;
/// Bytes of a server key. memcached allows 250.
const LEN: usize = PREFIX + DIGEST.div_ceil(3) * 4;

/// A server key: ASCII without blanks and control bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryKey([u8; LEN]);

impl EntryKey {
    /// The key of a place, named by a letter and the version of the keys, and a digest.
    pub(super) fn new(place: &[u8; 2], digest: &[u8; DIGEST]) -> EntryKey {
        let mut text = [b':'; LEN];
        text[..9].copy_from_slice(b"sandarac:");
        text[9..11].copy_from_slice(place);
        let written = BASE64_URL_SAFE_NO_PAD.encode_slice(digest, &mut text[PREFIX..]);
        debug_assert_eq!(written, Ok(LEN - PREFIX));
        EntryKey(text)
    }

    /// The key as bytes, as memcached gets it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("base64url is ASCII")
    }
}

impl std::fmt::Display for EntryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Debug for EntryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EntryKey({self})")
    }
}
