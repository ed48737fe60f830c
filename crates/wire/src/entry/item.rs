//! Items: a token, and a response or what stands in its place.

use super::attributes::Attributes;
use super::frame::Frame;
use super::reader::{Reader, put_len};
use super::{
    EntryError, EntryKey, Kind, MAX_BODY, MAX_CHUNKS, MAX_VARY_NAMES, MarkReason, Position, Sealer, Token,
};
use bytes::Bytes;
use sandarac_message::MAX_NAME;
use sandarac_message::vary::VarySpec;

/// Any item but a purge log, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its random number. A chunk has that of its manifest.
    pub token: Token,
    /// What it is.
    pub content: Content,
}

/// What an item says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A stored response. Its body follows.
    Representation(Attributes),
    /// Variants are stored, each under its own key.
    Index {
        /// The position of the server's purge log when the fetch began.
        position: Position,
        /// The names that select a variant: [`VarySpec::Names`], at most [`MAX_VARY_NAMES`].
        vary: VarySpec,
    },
    /// A stored response whose body is in chunks under keys of their own.
    Manifest {
        /// All of the response but its body.
        attributes: Attributes,
        /// Bytes of the body at rest.
        total: u64,
        /// Bytes of each chunk but the last, which may have fewer.
        chunk_size: u32,
    },
    /// A part of a body, which follows.
    Chunk {
        /// Its place in the body, from zero.
        number: u32,
    },
    /// The response is not stored. Requests for it MUST NOT wait for each other.
    Mark {
        /// The position of the server's purge log when the fetch began.
        position: Position,
        /// The reason.
        reason: MarkReason,
    },
    /// A node is fetching the response.
    Claim {
        /// The random number of the node.
        node: u64,
    },
    /// The response was purged.
    Tombstone,
}

impl Content {
    /// The kind of the item.
    pub fn kind(&self) -> Kind {
        match self {
            Content::Representation(_) => Kind::Representation,
            Content::Index { .. } => Kind::Index,
            Content::Manifest { .. } => Kind::Manifest,
            Content::Chunk { .. } => Kind::Chunk,
            Content::Mark { .. } => Kind::Mark,
            Content::Claim { .. } => Kind::Claim,
            Content::Tombstone => Kind::Tombstone,
        }
    }

    /// The position of the server's purge log when the fetch began, if the kind has one.
    pub fn position(&self) -> Option<&Position> {
        match self {
            Content::Representation(attributes) | Content::Manifest { attributes, .. } => {
                Some(&attributes.position)
            }
            Content::Index { position, .. } | Content::Mark { position, .. } => Some(position),
            Content::Chunk { .. } | Content::Claim { .. } | Content::Tombstone => None,
        }
    }
}

impl Item {
    /// The bytes of the item up to its body; the pieces of `body` MUST follow them as they are. Kinds without
    /// a body take none.
    pub fn encode(&self, sealer: &Sealer, key: &EntryKey, body: &[&[u8]]) -> Result<Vec<u8>, EntryError> {
        let body_len = body.iter().map(|piece| piece.len() as u64).sum();
        let mut fields = Vec::new();
        match &self.content {
            Content::Representation(attributes) => attributes.encode(body_len, &mut fields)?,
            Content::Index { position, vary } => {
                position.encode(&mut fields);
                encode_names(vary, &mut fields)?;
            }
            Content::Manifest { attributes, total, chunk_size } => {
                fields.extend_from_slice(&total.to_le_bytes());
                fields.extend_from_slice(&chunk_size.to_le_bytes());
                fields.extend_from_slice(&chunks(*total, *chunk_size)?.to_le_bytes());
                attributes.encode(*total, &mut fields)?;
            }
            Content::Chunk { number } => fields.extend_from_slice(&number.to_le_bytes()),
            Content::Mark { position, reason } => {
                position.encode(&mut fields);
                fields.push(reason.code());
            }
            Content::Claim { node } => fields.extend_from_slice(&node.to_le_bytes()),
            Content::Tombstone => {}
        }
        self.content.check_body(body_len)?;
        sealer.frame(key, (self.content.kind(), self.token), &fields, body)
    }

    /// Reads the item stored under `key`, and its body; the body is a slice of `bytes`. The caller MUST check
    /// that a chunk has the token and the number that it asked for, and [`Content::chunk_len`] bytes.
    pub fn decode(
        sealer: &Sealer,
        key: &EntryKey,
        bytes: impl Into<Bytes>,
    ) -> Result<(Item, Bytes), EntryError> {
        let Frame { kind, token, fields, body, .. } = sealer.unframe(key, bytes.into())?;
        let mut reader = Reader::new(fields);
        let content = match kind {
            Kind::Representation => {
                Content::Representation(Attributes::decode(&mut reader, body.len() as u64)?)
            }
            Kind::Index => {
                Content::Index { position: Position::decode(&mut reader)?, vary: decode_names(&mut reader)? }
            }
            Kind::Manifest => {
                let (total, chunk_size, count) = (reader.u64()?, reader.u32()?, reader.u32()?);
                if chunks(total, chunk_size)? != count {
                    return Err(EntryError::Chunks);
                }
                Content::Manifest { attributes: Attributes::decode(&mut reader, total)?, total, chunk_size }
            }
            Kind::Chunk => Content::Chunk { number: reader.u32()? },
            Kind::Mark => Content::Mark {
                position: Position::decode(&mut reader)?,
                reason: MarkReason::of(reader.u8()?)?,
            },
            Kind::Claim => Content::Claim { node: reader.u64()? },
            Kind::Tombstone => Content::Tombstone,
            Kind::PurgeLog => return Err(EntryError::UnexpectedKind),
        };
        reader.finish()?;
        content.check_body(body.len() as u64)?;
        Ok((Item { token, content }, body))
    }
}

impl Content {
    /// The number of chunks; zero for kinds other than manifests.
    pub fn chunks(&self) -> u32 {
        match self {
            Content::Manifest { total, chunk_size, .. } => chunks(*total, *chunk_size).unwrap_or(0),
            _ => 0,
        }
    }

    /// The bytes of a chunk of this manifest; `None` if it has no chunk with this number.
    pub fn chunk_len(&self, number: u32) -> Option<u32> {
        let Content::Manifest { total, chunk_size, .. } = *self else { return None };
        let before = u64::from(number) * u64::from(chunk_size);
        let left = total.checked_sub(before).filter(|left| *left > 0)?;
        u32::try_from(left.min(u64::from(chunk_size))).ok()
    }

    /// Refuses a body where there is none, and an empty chunk.
    fn check_body(&self, body_len: u64) -> Result<(), EntryError> {
        match self {
            Content::Representation(_) => Ok(()),
            Content::Chunk { .. } if body_len == 0 => Err(EntryError::Chunks),
            Content::Chunk { .. } => Ok(()),
            _ if body_len > 0 => Err(EntryError::TrailingBytes),
            _ => Ok(()),
        }
    }
}

/// The number of chunks of a body.
fn chunks(total: u64, chunk_size: u32) -> Result<u32, EntryError> {
    if total > MAX_BODY {
        return Err(EntryError::TooLarge);
    }
    if total == 0 || chunk_size == 0 {
        return Err(EntryError::Chunks);
    }
    match total.div_ceil(chunk_size.into()) {
        count if count <= MAX_CHUNKS.into() => Ok(count as u32),
        _ => Err(EntryError::Chunks),
    }
}

fn encode_names(vary: &VarySpec, out: &mut Vec<u8>) -> Result<(), EntryError> {
    let VarySpec::Names(names) = vary else { return Err(EntryError::Vary) };
    if names.len() > MAX_VARY_NAMES || names.iter().any(|name| name.len() > MAX_NAME) {
        return Err(EntryError::TooLarge);
    }
    if VarySpec::of_names(names.clone()).is_none() {
        return Err(EntryError::Vary);
    }
    put_len(out, names.len())?;
    for name in names {
        out.push(name.len() as u8);
        out.extend_from_slice(name);
    }
    Ok(())
}

fn decode_names(reader: &mut Reader) -> Result<VarySpec, EntryError> {
    let count = usize::from(reader.u16()?);
    if count > MAX_VARY_NAMES {
        return Err(EntryError::TooLarge);
    }
    let mut name = || {
        let len = reader.u8()?;
        Ok(Box::from(&*reader.bytes(len.into())?))
    };
    let names = (0..count).map(|_| name()).collect::<Result<_, EntryError>>()?;
    VarySpec::of_names(names).ok_or(EntryError::Vary)
}
