//! The attributes of a stored response: all but its body.

use std::time::Duration;

use super::reader::{Reader, put_len, put_text};
use super::{EntryError, MAX_BODY, MAX_TTL, Position};
use crate::h1::response::{self, Kind};
use crate::h1::{BodyFraming, Limits, MAX_FIELDS, Parsed};
use bytes::Bytes;
use sandarac_message::caching::{LifetimeFlags, RelativeLifetimes};
use sandarac_message::hop::is_standing;
use sandarac_message::tags::is_for_proxies;
use sandarac_message::vary::VaryKey;
use sandarac_message::{Fields, MAX_HEAD, Method, StoredHead};

/// A stored response without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The position of the server's purge log when the fetch began.
    pub position: Position,
    /// The TTL given to the server, in seconds: 1 to [`MAX_TTL`].
    pub ttl: u32,
    /// The lifetimes relative to the moment of writing.
    pub lifetimes: RelativeLifetimes,
    /// The coding of the body at rest. It is not the content coding, which is part of the response.
    pub coding: Coding,
    /// The tags and groups by which it is purged.
    pub tags: Vec<u64>,
    /// The host by which it is purged.
    pub host: Bytes,
    /// The path and query by which it is purged.
    pub path: Bytes,
    /// The fields it varies on, with their values in the request it answered.
    pub vary: VaryKey,
    /// The head.
    pub head: StoredHead,
}

/// The coding of a body at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As it goes to clients.
    Plain,
    /// Compressed by zstd.
    Zstd {
        /// Bytes of the body when it is inflated. A reader MUST inflate no more.
        plain_len: u64,
    },
}

/// The time that an item has lain on the server, given its TTL and what the server says is left of it, both
/// in seconds. At least the true time: the server counts whole seconds, so that the difference may be one too
/// small. `None` if more is left than was given.
pub fn time_on_server(ttl: u32, left: u32) -> Option<Duration> {
    Some(Duration::from_secs(u64::from(ttl.checked_sub(left)?) + 1))
}

impl Attributes {
    /// Appends the attributes of a response with `body_len` bytes of body at rest.
    pub(super) fn encode(&self, body_len: u64, out: &mut Vec<u8>) -> Result<(), EntryError> {
        check_ttl(self.ttl)?;
        check_vary(&self.vary)?;
        self.position.encode(out);
        out.extend_from_slice(&self.ttl.to_le_bytes());
        let RelativeLifetimes { held, initial_age, freshness, grace, stale_if_error, keep, flags } =
            self.lifetimes;
        [held, initial_age, freshness].iter().for_each(|ms| out.extend_from_slice(&ms.to_le_bytes()));
        [grace, stale_if_error, keep].iter().for_each(|s| out.extend_from_slice(&s.to_le_bytes()));
        out.push(flags.bits());
        match self.coding {
            Coding::Plain => out.push(0),
            Coding::Zstd { plain_len } => {
                out.push(1);
                out.extend_from_slice(&plain_len.to_le_bytes());
            }
        }
        put_len(out, self.tags.len())?;
        self.tags.iter().for_each(|tag| out.extend_from_slice(&tag.to_le_bytes()));
        put_text(out, &self.host)?;
        put_text(out, &self.path)?;
        put_text(out, self.vary.as_bytes())?;
        let [for_clients, for_both, _] = self.head.sections();
        put_len(out, for_clients.len())?;
        put_len(out, for_both.len())?;
        let head = [self.head.encoded_with_hidden(), b"\r\n"].concat();
        put_text(out, &head)?;
        // What is written can be read.
        read_head(&head, for_clients.len(), for_both.len(), self.coding.plain_len(body_len)?)?;
        Ok(())
    }

    /// Reads the attributes of a response with `body_len` bytes of body at rest.
    pub(super) fn decode(reader: &mut Reader, body_len: u64) -> Result<Attributes, EntryError> {
        let position = Position::decode(reader)?;
        let ttl = reader.u32()?;
        check_ttl(ttl)?;
        let lifetimes = RelativeLifetimes {
            held: reader.u64()?,
            initial_age: reader.u64()?,
            freshness: reader.u64()?,
            grace: reader.u32()?,
            stale_if_error: reader.u32()?,
            keep: reader.u32()?,
            flags: LifetimeFlags::from_bits(reader.u8()?).ok_or(EntryError::Lifetimes)?,
        };
        let coding = match reader.u8()? {
            0 => Coding::Plain,
            1 => Coding::Zstd { plain_len: reader.u64()? },
            _ => return Err(EntryError::Coding),
        };
        let tags = usize::from(reader.u16()?);
        let tags = reader.bytes(tags * 8)?.as_chunks().0.iter().map(|tag| u64::from_le_bytes(*tag)).collect();
        let (host, path, vary) = (reader.text()?, reader.text()?, reader.text()?);
        let key = VaryKey::from_bytes(&*vary);
        if key.as_bytes() != vary {
            return Err(EntryError::Vary);
        }
        check_vary(&key)?;
        let (for_clients, shared) = (reader.u16()?.into(), reader.u16()?.into());
        let head = read_head(&reader.text()?, for_clients, shared, coding.plain_len(body_len)?)?;
        Ok(Attributes { position, ttl, lifetimes, coding, tags, host, path, vary: key, head })
    }
}

impl Coding {
    /// Bytes of the body that clients get, if `body_len` are stored.
    pub fn plain_len(self, body_len: u64) -> Result<u64, EntryError> {
        let plain_len = match self {
            Coding::Plain => body_len,
            Coding::Zstd { plain_len } => plain_len,
        };
        if plain_len.max(body_len) > MAX_BODY { Err(EntryError::TooLarge) } else { Ok(plain_len) }
    }
}

fn check_ttl(ttl: u32) -> Result<(), EntryError> {
    if (1..=MAX_TTL).contains(&ttl) { Ok(()) } else { Err(EntryError::Ttl) }
}

/// Refuses the key of a response that answers no other request.
fn check_vary(key: &VaryKey) -> Result<(), EntryError> {
    if key.is_star() { Err(EntryError::Vary) } else { Ok(()) }
}

/// The limits of a stored head: those of the types that hold it.
const LIMITS: Limits = Limits { head: MAX_HEAD, fields: MAX_FIELDS, target: 0 };

/// Few heads have more fields.
const USUAL_FIELDS: usize = 16;

/// Reads a head, of whose fields the first `for_clients` are for clients only, and the next `for_both` for
/// clients and rules. It has one form: bytes that the parser accepts and that are not written like this are
/// refused.
fn read_head(
    bytes: &[u8],
    for_clients: usize,
    for_both: usize,
    plain_len: u64,
) -> Result<StoredHead, EntryError> {
    let mut spans = Vec::with_capacity(USUAL_FIELDS);
    let response = match response::parse(bytes, &LIMITS, &mut spans, Method::Get) {
        Ok(Parsed::Complete(response)) if response.head_len == bytes.len() => response,
        _ => return Err(EntryError::Head),
    };
    let (status, fields) = (response.head.status, response.head.fields);
    if response.kind != Kind::Final || matches!(status, 206 | 304) {
        return Err(EntryError::Status);
    }
    match response.framing {
        BodyFraming::None if plain_len > 0 => return Err(EntryError::Length),
        BodyFraming::Length(length) if length != plain_len => return Err(EntryError::Length),
        _ => {}
    }
    if for_clients + for_both > fields.len() || fields.iter().any(|field| is_standing(field.id)) {
        return Err(EntryError::Head);
    }
    let (shown, for_rules) = fields.split_at(for_clients + for_both);
    if shown.iter().any(|field| is_for_proxies(&field)) {
        return Err(EntryError::Head);
    }
    let (for_clients, for_both) = shown.split_at(for_clients);
    let sections: [Fields<'_>; 3] = [for_clients, for_both, for_rules];
    let head =
        StoredHead::from_sections(status, response.head.reason, sections).map_err(|_| EntryError::Head)?;
    match bytes.strip_suffix(b"\r\n") {
        Some(lines) if lines == head.encoded_with_hidden() => Ok(head),
        _ => Err(EntryError::Head),
    }
}
