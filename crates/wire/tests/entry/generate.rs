//! Random items.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use sandarac_message::caching::{LifetimeFlags, RelativeLifetimes};
use sandarac_message::vary::{VaryKey, VarySpec};
use sandarac_message::{FieldsBuf, StoredHead, Timestamp};
use sandarac_wire::entry::{
    Attributes, Coding, Content, Effect, Item, LogId, MarkReason, Position, Purge, Record, RecordId, Token,
};

fn text() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

pub(crate) fn position() -> impl Strategy<Value = Position> {
    any::<([u8; 16], u64)>().prop_map(|(log, offset)| Position { log: LogId(log), offset })
}

fn fields() -> impl Strategy<Value = FieldsBuf> {
    vec(("(X-[A-Z]|Xkey|ETag|Cache-Tag|Vary)", "([!-~]([ -~]{0,20}[!-~])?)?"), 0..6)
        .prop_map(FieldsBuf::from_iter)
}

fn head() -> impl Strategy<Value = StoredHead> {
    let status = (200u16..600).prop_filter("a whole response", |status| ![204, 206, 304].contains(status));
    (status, "[ -~]{0,20}", fields(), proptest::option::of(fields())).prop_map(
        |(status, reason, fields, edited)| match edited {
            Some(edited) => StoredHead::edited(status, reason.as_bytes(), &fields, &edited).unwrap(),
            None => StoredHead::new(status, reason.as_bytes(), &fields).unwrap(),
        },
    )
}

prop_compose! {
    fn lifetimes()(
        held: u64, initial_age: u64, freshness: u64, grace: u32, stale_if_error: u32, keep: u32,
        flags in 0..=LifetimeFlags::ALL,
    ) -> RelativeLifetimes {
        let flags = LifetimeFlags::from_bits(flags).unwrap();
        RelativeLifetimes { held, initial_age, freshness, grace, stale_if_error, keep, flags }
    }
}

prop_compose! {
    fn attributes()(
        position in position(), ttl in 1..=sandarac_wire::entry::MAX_TTL, lifetimes in lifetimes(),
        coding in prop_oneof![
            Just(Coding::Plain),
            (0u64..1 << 30).prop_map(|plain_len| Coding::Zstd { plain_len }),
        ],
        tags in vec(any::<u64>(), 0..5), host in text(), path in text(),
        vary in "([a-z-]{1,10}(:[ -~]{0,20})?\n){0,3}", head in head(),
    ) -> Attributes {
        let vary = VaryKey::from_bytes(vary.into_bytes());
        Attributes { position, ttl, lifetimes, coding, tags, host, path, vary, head }
    }
}

fn vary() -> impl Strategy<Value = VarySpec> {
    proptest::collection::btree_set("[a-z-]{1,20}", 1..5).prop_map(|names| {
        VarySpec::of_names(names.iter().map(|name| name.as_bytes().into()).collect()).unwrap()
    })
}

/// An item and its body.
pub(crate) fn item() -> impl Strategy<Value = (Item, Vec<u8>)> {
    let body = || vec(any::<u8>(), 0..100);
    let no_body = |content: Content| (content, Vec::new());
    let manifest = (attributes(), 1u64..1 << 30, 1u32 << 14..1 << 30);
    let reasons: Vec<MarkReason> = MarkReason::all().collect();
    let content = prop_oneof![
        (attributes(), body()).prop_map(|(attributes, body)| (Content::Representation(attributes), body)),
        (position(), vary()).prop_map(move |(position, vary)| no_body(Content::Index { position, vary })),
        manifest.prop_map(move |(attributes, total, chunk_size)| {
            no_body(Content::Manifest { attributes, total, chunk_size })
        }),
        (any::<u32>(), vec(any::<u8>(), 1..100)).prop_map(|(number, body)| (Content::Chunk { number }, body)),
        (position(), proptest::sample::select(reasons))
            .prop_map(move |(position, reason)| no_body(Content::Mark { position, reason })),
        any::<u64>().prop_map(move |node| no_body(Content::Claim { node })),
        Just(no_body(Content::Tombstone)),
    ];
    (any::<u64>(), content).prop_map(|(token, (content, body))| (Item { token: Token(token), content }, body))
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    let purge = prop_oneof![
        (text(), text()).prop_map(|(host, path)| Purge::Target { host, path }),
        any::<u64>().prop_map(Purge::Tag),
        (text(), text()).prop_map(|(host, path)| Purge::Prefix { host, path }),
        text().prop_map(Purge::Host),
        (text(), text()).prop_map(|(host, path)| Purge::Glob { host, path }),
        Just(Purge::All),
        "\\PC{0,40}".prop_map(Purge::Ban),
    ];
    (any::<[u8; 16]>(), 0..u64::MAX / 1000, any::<bool>(), purge).prop_map(|(id, made, soft, purge)| Record {
        id: RecordId(id),
        made: Timestamp::from_secs(made),
        effect: if soft { Effect::Soft } else { Effect::Hard },
        purge,
    })
}
