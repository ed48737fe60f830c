//! The pages of the histories, and their items.

use std::sync::Arc;

use bytes::Bytes;
use sandarac_message::caching::{LifetimeFlags, Reason, RelativeLifetimes};
use sandarac_message::vary::VaryKey;
use sandarac_message::{FieldsBuf, StoredHead};
use sandarac_wire::entry::{
    Attributes, Coding, Content, EntryKeys, Item, LocalKey, MarkReason, Position, Purge, Sealer, Token,
};

use crate::lookup::Target;
use crate::purge_index::Subject;

/// The number of pages. The responses for the last are not storable.
pub(super) const PAGES: usize = 5;
/// How long a response is fresh, in milliseconds.
pub(super) const FRESH: u64 = 30_000;

/// A response as the origin rendered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) page: usize,
    pub(super) version: u64,
    /// In true time, which no node knows.
    pub(super) rendered: u64,
}

pub(super) fn keys() -> EntryKeys {
    EntryKeys::new(b"", &Sealer::checksum())
}

pub(super) fn target(page: usize) -> Target {
    let keys = keys();
    let key = keys.entry(&LocalKey { key: [page as u8; 16], rules: [0; 16] });
    Target { key, keys: Arc::new(keys), host: Bytes::from_static(b"a.example"), path: path(page) }
}

fn path(page: usize) -> Bytes {
    format!("/{page}").into()
}

fn tags(page: usize) -> [u64; 1] {
    [page as u64 % 2]
}

/// Calls `judge` with the attributes of a page.
pub(super) fn with_subject<T>(page: usize, judge: impl FnOnce(&Subject<'_>) -> T) -> T {
    let subject =
        Subject { host: b"a.example", path: &path(page), tags: &tags(page), ban: &|text| text == "every" };
    judge(&subject)
}

/// A purge of a page by one of the forms, drawn by `form`, and the form's name.
pub(super) fn purge(page: usize, form: usize) -> Purge {
    let host = Bytes::from_static(b"a.example");
    match form {
        0 => Purge::Tag(tags(page)[0]),
        1 => Purge::All,
        2 => Purge::Prefix { host, path: Bytes::from_static(b"/") },
        3 => Purge::Ban("every".to_owned()),
        _ => Purge::Target { host, path: path(page) },
    }
}

/// The pieces of the item of a page, under `position`.
pub(super) fn encode(page: &Page, token: Token, position: Position, age: u64, ttl: u32) -> Vec<Bytes> {
    let body = Bytes::from(format!("{} {} {}", page.page, page.version, page.rendered));
    let fields: FieldsBuf = [("Content-Type", "text/plain")].into_iter().collect();
    let attributes = Attributes {
        position,
        ttl,
        lifetimes: RelativeLifetimes {
            held: age,
            initial_age: 0,
            freshness: FRESH,
            grace: 0,
            stale_if_error: 0,
            keep: 0,
            flags: LifetimeFlags::from_bits(0).unwrap(),
        },
        coding: Coding::Plain,
        tags: tags(page.page).to_vec(),
        host: Bytes::from_static(b"a.example"),
        path: path(page.page),
        vary: VaryKey::from_bytes(&b""[..]),
        head: StoredHead::edited(200, b"OK", &fields, &fields).unwrap(),
    };
    let item = Item { token, content: Content::Representation(attributes) };
    let key = target(page.page).key;
    vec![item.encode(&Sealer::checksum(), &key, &[&body]).unwrap().into(), body]
}

/// The item of a mark for a page.
pub(super) fn mark(page: usize, token: Token, position: Position) -> Vec<Bytes> {
    let content = Content::Mark { position, reason: MarkReason::NotStorable(Reason::NoStore) };
    vec![Item { token, content }.encode(&Sealer::checksum(), &target(page).key, &[]).unwrap().into()]
}

/// The page that a body is of.
pub(super) fn decode(body: &[u8]) -> Page {
    let text = std::str::from_utf8(body).unwrap();
    let mut numbers = text.split(' ').map(|number| number.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    Page { page: next() as usize, version: next(), rendered: next() }
}
