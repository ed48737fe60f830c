//! One item of each kind, as printed in `docs/protocols/entry.md`.

use bytes::Bytes;
use sandarac_message::caching::{LifetimeFlags, Reason, RelativeLifetimes};
use sandarac_message::vary::{VaryKey, VarySpec};
use sandarac_message::{FieldsBuf, StoredHead, Timestamp};
use sandarac_wire::entry::{
    Attributes, Coding, Content, Effect, Item, LogHeader, LogId, MarkReason, Position, Purge, Record,
    RecordId, Token,
};

pub(crate) const TOKEN: Token = Token(0x0807_0605_0403_0201);
pub(crate) const LOG: LogId = LogId(*b"0123456789abcdef");
pub(crate) const BODY: &[u8] = b"Hello, world!\n";
const POSITION: Position = Position { log: LOG, offset: 4096 };

fn attributes(length: &str, coding: Coding) -> Attributes {
    let fields: FieldsBuf =
        [("Content-Type", "text/plain"), ("Vary", "Accept-Language"), ("Xkey", "a b")].into_iter().collect();
    let mut fields = fields;
    fields.push(b"Content-Length", length.as_bytes()).unwrap();
    let mut edited = fields.clone();
    edited.push(b"X-Served-By", b"cache").unwrap();
    Attributes {
        position: POSITION,
        ttl: 3600,
        lifetimes: RelativeLifetimes {
            held: 250,
            initial_age: 1500,
            freshness: 600_000,
            grace: 60,
            stale_if_error: 300,
            keep: 3600,
            flags: LifetimeFlags::from_bits(4).unwrap(),
        },
        coding,
        tags: vec![1, 0xffff_ffff_ffff_ffff],
        host: Bytes::from_static(b"example.org"),
        path: Bytes::from_static(b"/hello?x=1"),
        vary: VaryKey::from_bytes(&b"accept-language:en\n"[..]),
        head: StoredHead::edited(200, b"OK", &fields, &edited).unwrap(),
    }
}

/// One item of each kind, with its name and its body.
pub(crate) fn items() -> Vec<(&'static str, Item, &'static [u8])> {
    let names = [&b"accept-language"[..], b"cookie"].map(Box::from).to_vec();
    let inflated = Coding::Zstd { plain_len: 1_000_000 };
    let contents = [
        ("representation", Content::Representation(attributes("14", Coding::Plain)), BODY),
        ("index", Content::Index { position: POSITION, vary: VarySpec::of_names(names).unwrap() }, b""),
        (
            "manifest",
            Content::Manifest {
                attributes: attributes("1000000", inflated),
                total: 250_000,
                chunk_size: 65_536,
            },
            b"",
        ),
        ("chunk", Content::Chunk { number: 3 }, BODY),
        (
            "mark",
            Content::Mark { position: POSITION, reason: MarkReason::NotStorable(Reason::SetCookie) },
            b"",
        ),
        ("claim", Content::Claim { node: 0x1122_3344_5566_7788 }, b""),
        ("tombstone", Content::Tombstone, b""),
    ];
    contents.map(|(name, content, body)| (name, Item { token: TOKEN, content }, body)).to_vec()
}

pub(crate) const HEADER: LogHeader = LogHeader { token: TOKEN, id: LOG, base: 4096 };

/// A record of each form of purge.
pub(crate) fn records() -> Vec<Record> {
    let text = Bytes::from_static;
    let (host, path) = (text(b"example.org"), text(b"/hello?x=1"));
    let purges = [
        Purge::Target { host: host.clone(), path },
        Purge::Tag(0xfedc_ba98_7654_3210),
        Purge::Prefix { host: host.clone(), path: text(b"/news/") },
        Purge::Host(host),
        Purge::Glob { host: text(b"*.example.org"), path: text(b"*.css") },
        Purge::All,
        Purge::Ban("status == 404".to_owned()),
    ];
    let record = |(at, purge): (usize, Purge)| Record {
        id: RecordId([at as u8 + 1; 16]),
        made: Timestamp::from_secs(1_795_000_000),
        effect: if at == 5 { Effect::Soft } else { Effect::Hard },
        purge,
    };
    purges.into_iter().enumerate().map(record).collect()
}
