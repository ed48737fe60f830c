//! Stored objects as items of the tier, and back.

use std::time::Duration;

use bytes::Bytes;
use sandarac_cache::{Attributes as BanAttributes, Expression, Object, Tag};
use sandarac_message::caching::{Lifetimes, RelativeLifetimes};
use sandarac_message::media_type::is_compressible;
use sandarac_message::vary::VarySpec;
use sandarac_message::{Name, StoredHead, Timestamp};
use sandarac_net::wall;
use sandarac_policy::KeyRule;
use sandarac_tier::Subject;
use sandarac_wire::entry::{
    Attributes, Coding, Compression, Content, EntryKey, Item, MAX_TTL, MarkReason, Position, Sealer, Token,
    inflate,
};

use super::chunks::{Chunk, chunk_size, split};
use super::{Links, Place};
use crate::request::tags::tags_of;

/// An entry that was found, in the form of RAM.
pub(crate) struct TierObject {
    pub(crate) head: StoredHead,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) vary: VarySpec,
    pub(crate) tags: Vec<Tag>,
    pub(crate) body: Bytes,
    /// The bytes of memory that the body is a part of.
    pub(crate) memory: usize,
}

impl TierObject {
    /// The response with these attributes and this body at rest, which is a part of so many bytes of memory.
    /// `None` if it is larger than `max_body`, or damaged.
    pub(super) fn of(
        attributes: Attributes,
        (lain, softened): (Duration, bool),
        (body, memory): (Bytes, usize),
        vary: VarySpec,
        max_body: u64,
    ) -> Option<TierObject> {
        let plain_len = attributes.coding.plain_len(body.len() as u64).ok()?;
        let (body, memory) = match attributes.coding {
            _ if plain_len > max_body => return None,
            Coding::Plain => (body, memory),
            Coding::Zstd { plain_len } => (inflate(&body, plain_len).ok()?, plain_len as usize),
        };
        let now = wall();
        let lifetimes = attributes.lifetimes.at(now, lain);
        Some(TierObject {
            head: attributes.head,
            lifetimes: if softened { lifetimes.soft_purged(now) } else { lifetimes },
            vary,
            tags: attributes.tags.into_iter().map(Tag::from_bits).collect(),
            body,
            memory,
        })
    }
}

/// How long a mark stays that has no time of its own.
const MARK_TIME: Duration = Duration::from_secs(120);

/// The reason why an object does not enter the tier, and for how long that is remembered.
pub(super) type Unshared = Option<(MarkReason, Duration)>;

/// The TTL of an object in seconds, or why it stays out of the tier. A part of a representation stays out
/// without a reason that others could use. So does a joined object, because a purge by the tags or fields of
/// any part must match it, and an item has those of one head.
pub(super) fn ttl(object: &Object, max_object: u64, now: Timestamp) -> Result<u32, Unshared> {
    let lifetimes = object.lifetimes();
    if object.range().is_some() || object.is_joined() || !object.body().is_whole() {
        return Err(None);
    }
    if object.body().len().is_none_or(|len| len > max_object) {
        return Err(Some((MarkReason::TooLarge, MARK_TIME)));
    }
    let left = lifetimes.ends_at().since(now).as_secs();
    match u32::try_from(left.min(u64::from(MAX_TTL))) {
        Ok(left) if left > 0 && !lifetimes.no_cache() && lifetimes.ttl(now) > 0 => Ok(left),
        _ => Err(Some((MarkReason::ShortLived, MARK_TIME))),
    }
}

/// An object as it is stored in the tier.
pub(super) struct Stored {
    /// The chunks of its body, if it is large. They are stored first.
    pub(super) chunks: Vec<Chunk>,
    /// The item in pieces.
    pub(super) value: Vec<Bytes>,
}

/// An object as an item under `key` with this token, position and TTL. `None` if the format does not take it.
pub(super) async fn item(
    links: &Links,
    place: &Place,
    object: &Object,
    rule: &KeyRule,
    key: &EntryKey,
    (token, position, ttl): (Token, Position, u32),
) -> Option<Stored> {
    let (tier, server) = (&place.tier, &place.server);
    let sealer = server.ask(|server, _| server.sealer().clone());
    let pieces: Option<Vec<Bytes>> = object.body().segments().map(|piece| piece.to_bytes()).collect();
    let pieces = pieces?;
    let plain_len = object.body().len()?;
    let compresses = tier.compression && is_text(object);
    let compressed = if compresses { compress(&pieces, plain_len).await } else { None };
    let (coding, pieces) = match compressed {
        Some(body) => (Coding::Zstd { plain_len }, vec![body]),
        None => (Coding::Plain, pieces),
    };
    let tags = tags_of(object.fields(), object.host(), object.path(), rule);
    let attributes = Attributes {
        position,
        ttl,
        lifetimes: RelativeLifetimes::new(&object.lifetimes(), wall()),
        coding,
        tags: tags.into_iter().map(Tag::bits).collect(),
        host: Bytes::copy_from_slice(object.host()),
        path: Bytes::copy_from_slice(object.path()),
        vary: object.vary().clone(),
        head: object.head().clone(),
    };
    let total = pieces.iter().map(|piece| piece.len() as u64).sum();
    if let Some(chunk_size) = chunk_size(total, links.item_limit(tier, server)) {
        let chunks = split(&pieces, chunk_size, &tier.keys, key, token, &sealer)?;
        let content = Content::Manifest { attributes, total, chunk_size };
        return Some(Stored { chunks, value: small_item(content, key, token, &sealer)? });
    }
    let item = Item { token, content: Content::Representation(attributes) };
    let body: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
    let head = item.encode(&sealer, key, &body).ok()?;
    Some(Stored { chunks: Vec::new(), value: std::iter::once(Bytes::from(head)).chain(pieces).collect() })
}

/// An item without a body.
pub(super) fn small_item(
    content: Content,
    key: &EntryKey,
    token: Token,
    sealer: &Sealer,
) -> Option<Vec<Bytes>> {
    Some(vec![Item { token, content }.encode(sealer, key, &[]).ok()?.into()])
}

/// Whether the body is text that the origin did not compress.
fn is_text(object: &Object) -> bool {
    let fields = object.fields();
    !fields.has(Name::ContentEncoding) && fields.get(Name::ContentType).is_some_and(is_compressible)
}

/// Bytes that are compressed before other work of the core gets its turn.
const STEP: usize = 64 << 10;

async fn compress(pieces: &[Bytes], len: u64) -> Option<Bytes> {
    let mut compression = Compression::new(len)?;
    for piece in pieces.iter().flat_map(|piece| piece.chunks(STEP)) {
        if !compression.push(piece) {
            return None;
        }
        if len > STEP as u64 {
            tokio::task::yield_now().await;
        }
    }
    compression.finish()
}

/// Works with the attributes of an object that purges are compared with.
pub(super) fn with_subject<T>(object: &Object, rule: &KeyRule, work: impl FnOnce(&Subject<'_>) -> T) -> T {
    let tags = tags_of(object.fields(), object.host(), object.path(), rule);
    let tags: Vec<u64> = tags.into_iter().map(Tag::bits).collect();
    let ban = |text: &str| Expression::parse(text).map_or(true, |expression| expression.matches(object));
    work(&Subject { host: object.host(), path: object.path(), tags: &tags, ban: &ban })
}

/// Whether the expression of a ban holds for an entry. One that cannot be read is taken to hold.
pub(super) fn ban_holds(content: &Content, text: &str) -> bool {
    let (Content::Representation(attributes) | Content::Manifest { attributes, .. }) = content else {
        // An index or a mark has no status and no fields; without it a fetch finds out.
        return true;
    };
    let Attributes { host, path, head, .. } = attributes;
    let (status, fields) = (head.status(), head.fields());
    Expression::parse(text).map_or(true, |expression| {
        expression.holds(&BanAttributes { host, path, status, fields: Some(fields) })
    })
}
