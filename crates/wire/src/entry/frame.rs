//! The frame of an item: what precedes its fields.

use super::seal::{SEAL_LEN, Sealed};
use super::{EntryError, EntryKey, MAX_BODY, Sealer, Token};
use bytes::Bytes;

/// The first bytes of every item.
pub const MAGIC: [u8; 4] = *b"Sdrc";

/// The version of the format.
pub const VERSION: u8 = 1;

/// The bytes before the seal: magic, version, kind, key id.
const BEFORE: usize = 7;
/// The bytes of the frame: then the seal, the token, the length of the fields, the length of the body.
pub(super) const FRAME: usize = BEFORE + SEAL_LEN + 8 + 4 + 4;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $number:literal $name:literal),* $(,)?) => {
        /// What an item is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $variant = $number),*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// The name, for logs and commands.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),* }
            }
        }
    };
}

kinds! {
    /// A stored response.
    Representation = 1 "representation",
    /// The names of fields by which variants of a response are told apart.
    Index = 2 "index",
    /// A stored response whose body is in chunks.
    Manifest = 3 "manifest",
    /// A part of a body.
    Chunk = 4 "chunk",
    /// A note that responses cannot be stored, so that nobody waits for one.
    Mark = 5 "mark",
    /// A note that a node is fetching.
    Claim = 6 "claim",
    /// A note that the key was purged.
    Tombstone = 7 "tombstone",
    /// The purges of a server.
    PurgeLog = 8 "purge-log",
}

/// An item whose frame is valid and whose seal was verified.
pub(super) struct Frame {
    pub kind: Kind,
    pub token: Token,
    pub fields: Bytes,
    pub body: Bytes,
    /// Whether the seal is by the secret that seals now.
    pub is_sealed_anew: bool,
    /// What follows the declared end; empty for every kind but the purge log.
    pub rest: Bytes,
}

impl Sealer {
    /// Writes the frame and the fields of an item, sealed together with its body.
    pub(super) fn frame(
        &self,
        key: &EntryKey,
        (kind, token): (Kind, Token),
        fields: &[u8],
        body: &[&[u8]],
    ) -> Result<Vec<u8>, EntryError> {
        let body_len: u64 = body.iter().map(|piece| piece.len() as u64).sum();
        if body_len > MAX_BODY {
            return Err(EntryError::TooLarge);
        }
        let mut out = Vec::with_capacity(FRAME + fields.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, kind as u8, self.key_id()]);
        out.extend_from_slice(&[0; SEAL_LEN]);
        out.extend_from_slice(&token.0.to_le_bytes());
        // Both fit: fields are a few texts of at most 64 KiB each.
        out.extend_from_slice(&(fields.len() as u32).to_le_bytes());
        out.extend_from_slice(&(body_len as u32).to_le_bytes());
        out.extend_from_slice(fields);
        let (before, after) = out.split_at(BEFORE);
        let seal = self.seal(&Sealed { key, log: None, before, after: &after[SEAL_LEN..], body });
        out[BEFORE..BEFORE + SEAL_LEN].copy_from_slice(&seal);
        Ok(out)
    }

    /// Reads the frame of an item and verifies its seal.
    pub(super) fn unframe(&self, key: &EntryKey, mut bytes: Bytes) -> Result<Frame, EntryError> {
        let (kind, key_id) = kind_of(&bytes)?;
        let Some(frame) = bytes.first_chunk::<FRAME>() else { return Err(EntryError::Truncated) };
        let (before, after) = frame.split_at(BEFORE);
        let (seal, after) = after.split_first_chunk().expect("a frame has a seal");
        let (token, lengths) = after.split_first_chunk().expect("a frame has a token");
        let (fields, body) = lengths.split_first_chunk().expect("a frame has two lengths");
        let body = body.first_chunk().expect("a frame has two lengths");
        let (fields, body) = (u32::from_le_bytes(*fields) as usize, u32::from_le_bytes(*body) as usize);
        let end = FRAME.saturating_add(fields).saturating_add(body);
        if body as u64 > MAX_BODY {
            return Err(EntryError::TooLarge);
        }
        if bytes.len() < end {
            return Err(EntryError::Truncated);
        }
        if bytes.len() > end && kind != Kind::PurgeLog {
            return Err(EntryError::TrailingBytes);
        }
        let content = &[&bytes[FRAME..end]];
        let sealed = Sealed { key, log: None, before, after, body: content };
        let is_sealed_anew = self.verify(key_id, seal, &sealed)?;
        let token = Token(u64::from_le_bytes(*token));
        let rest = bytes.split_off(end);
        let body = bytes.split_off(FRAME + fields);
        Ok(Frame { kind, token, fields: bytes.split_off(FRAME), body, is_sealed_anew, rest })
    }
}

/// The kind of an item, and the id of the key that sealed it.
fn kind_of(bytes: &[u8]) -> Result<(Kind, u8), EntryError> {
    let Some(start) = bytes.first_chunk::<BEFORE>() else { return Err(EntryError::Truncated) };
    let [magic @ .., version, kind, key_id] = *start;
    if magic != MAGIC {
        return Err(EntryError::Magic);
    }
    if version != VERSION {
        return Err(EntryError::Version);
    }
    let kind = Kind::ALL.iter().copied().find(|known| *known as u8 == kind).ok_or(EntryError::Kind)?;
    Ok((kind, key_id))
}
