//! Keys that objects are stored under, and tags that they are purged by.

use sandarac_message::vary::VaryKey;

/// The key of a stored response: 128 bits of the BLAKE3 digest of its parts. The digest is cryptographic
/// because clients choose the parts and must not be able to construct a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u64; 2]);

impl Key {
    pub(crate) const ZERO: Key = Key([0; 2]);

    /// The key of a target without extra parts; see [`KeyBuilder`].
    pub fn of(scheme: &[u8], host: &[u8], target: &[u8]) -> Key {
        KeyBuilder::new(scheme, host, target).finish()
    }

    /// The key as bytes, for logs and for tiers beyond this one.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.0[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.0[1].to_le_bytes());
        bytes
    }

    /// The key of these bytes, which [`Key::to_bytes`] gave.
    pub fn from_bytes(bytes: [u8; 16]) -> Key {
        let [low, high] = [0, 8]
            .map(|at| bytes[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        Key([low, high])
    }

    /// The key of one variant.
    pub(crate) fn variant(self, vary: &VaryKey) -> Key {
        KeyBuilder::new(b"variant", &self.to_bytes(), vary.as_bytes()).finish()
    }

    /// Half of the key chooses the shard.
    pub(crate) fn shard_bits(self) -> u64 {
        self.0[0]
    }

    /// The other half chooses the place within it.
    pub(crate) fn hash(self) -> u32 {
        self.0[1] as u32
    }
}

/// Parts that together are shorter than this are digested in one go.
const INLINE: usize = 256;

/// Replaces a length of one byte: a length of eight bytes follows. Most keys are short and fit one block of
/// the digest.
const LONG: u8 = u8::MAX;

/// Digests the parts of a key. Every part is preceded by its length, so that no two lists of parts give the
/// same byte string.
pub struct KeyBuilder {
    buffer: [u8; INLINE],
    filled: usize,
    /// The hasher, once the parts have outgrown the buffer. It takes two kilobytes, and few keys need it.
    hasher: Option<Box<blake3::Hasher>>,
}

impl KeyBuilder {
    /// A key of a scheme, a host in its normal form (lower case, default port removed) and the bytes of a
    /// target as they are forwarded.
    pub fn new(scheme: &[u8], host: &[u8], target: &[u8]) -> KeyBuilder {
        let mut builder = KeyBuilder { buffer: [0; INLINE], filled: 0, hasher: None };
        builder.part(scheme).part(host).part(target);
        builder
    }

    /// Adds a part: anything else that, by the configuration, the response depends on.
    pub fn part(&mut self, part: &[u8]) -> &mut KeyBuilder {
        match u8::try_from(part.len()) {
            Ok(len) if len < LONG => self.write(&[len]),
            _ => {
                self.write(&[LONG]);
                self.write(&(part.len() as u64).to_le_bytes());
            }
        }
        self.write(part);
        self
    }

    /// The key of all parts.
    pub fn finish(&self) -> Key {
        let (low, high) = halves(&self.digest());
        Key([low, high])
    }

    fn digest(&self) -> blake3::Hash {
        let buffered = &self.buffer[..self.filled];
        match &self.hasher {
            None => blake3::hash(buffered),
            Some(hasher) => hasher.clone().update(buffered).finalize(),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(room) = self.buffer.get_mut(self.filled..self.filled + bytes.len()) {
            room.copy_from_slice(bytes);
            self.filled += bytes.len();
            return;
        }
        let hasher = self.hasher.get_or_insert_with(Box::default);
        hasher.update(&self.buffer[..self.filled]);
        hasher.update(bytes);
        self.filled = 0;
    }
}

/// A tag that stored responses carry and are purged by: 64 bits of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u64);

impl Tag {
    pub(crate) const ZERO: Tag = Tag(0);

    /// The tag of this text, as `Surrogate-Key`, `Cache-Tag` and `xkey` give it.
    pub fn new(text: &[u8]) -> Tag {
        let (low, _) = halves(&blake3::hash(text));
        Tag(low)
    }

    /// A cache group of an origin (RFC 9875): groups of one name at different origins are different groups,
    /// and no group is a tag.
    pub fn group(origin: &[u8], group: &[u8]) -> Tag {
        let (_, high) = halves(&KeyBuilder::new(b"group", origin, group).digest());
        Tag(high)
    }

    /// The tag of all responses to a target whose keys have parts beside the target, so that all of them can
    /// be found. It equals no group and no other tag.
    pub fn target(host: &[u8], path_and_query: &[u8]) -> Tag {
        let (_, high) = halves(&KeyBuilder::new(b"target", host, path_and_query).digest());
        Tag(high)
    }

    /// The tag of these bits, from another node.
    pub fn from_bits(bits: u64) -> Tag {
        Tag(bits)
    }

    /// Its bits, for other nodes.
    pub fn bits(self) -> u64 {
        self.0
    }
}

fn halves(digest: &blake3::Hash) -> (u64, u64) {
    let half = |at: usize| {
        digest.as_bytes()[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    };
    (half(0), half(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cannot_be_confused() {
        let key = Key::of(b"http", b"a", b"/b");
        assert_eq!(key, Key::of(b"http", b"a", b"/b"));
        assert_ne!(key, Key::of(b"http", b"a/", b"b"));
        assert_ne!(key, Key::of(b"https", b"a", b"/b"));
        assert_ne!(key, KeyBuilder::new(b"http", b"a", b"/b").part(b"").finish());
        let extra = |parts: &[&[u8]]| {
            let mut builder = KeyBuilder::new(b"http", b"a", b"/b");
            parts.iter().for_each(|part| _ = builder.part(part));
            builder.finish()
        };
        assert_ne!(extra(&[b"x", b"y"]), extra(&[b"xy"]));
        assert_ne!(extra(&[b"x", b"y"]), extra(&[b"y", b"x"]));
    }

    #[test]
    fn long_targets_make_the_same_key_however_they_meet_the_buffer() {
        for len in [INLINE - 40, INLINE - 25, INLINE, INLINE * 3] {
            let target = vec![b'x'; len];
            let key = Key::of(b"http", b"example.org", &target);
            let mut bytes = Vec::new();
            for part in [&b"http"[..], b"example.org", &target] {
                match part.len() {
                    len @ ..255 => bytes.push(len as u8),
                    len => {
                        bytes.push(255);
                        bytes.extend_from_slice(&(len as u64).to_le_bytes());
                    }
                }
                bytes.extend_from_slice(part);
            }
            assert_eq!(key.to_bytes(), blake3::hash(&bytes).as_bytes()[..16], "{len}");
        }
    }

    #[test]
    fn groups_belong_to_their_origin_and_are_no_tags() {
        assert_eq!(Tag::group(b"https://a", b"g"), Tag::group(b"https://a", b"g"));
        assert_ne!(Tag::group(b"https://a", b"g"), Tag::group(b"https://b", b"g"));
        assert_ne!(Tag::group(b"", b"g"), Tag::new(b"g"));
    }
}
