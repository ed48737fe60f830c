//! Items with a valid seal and invalid content. There is one way to write each item.

use crate::samples::{self, HEADER, LOG};
use crate::{forge, sealers, server_key};
use proptest::prelude::*;
use sandarac_wire::entry::{Content, EntryError, Item, Kind, PurgeLog};

/// The bytes of the frame.
const FRAME: usize = 39;
/// The places of some attributes of a response among its fields.
const TTL: usize = 24;
const FLAGS: usize = TTL + 4 + 3 * 8 + 3 * 4;
const CODING: usize = FLAGS + 1;
const TAGS: usize = CODING + 1;

fn decode(kind: Kind, fields: &[u8], body: &[u8]) -> Result<Item, EntryError> {
    let key = server_key(0);
    Item::decode(&sealers()[0], &key, forge::item(&key, kind as u8, fields, body)).map(|(item, _)| item)
}

/// The kind, the fields and the body of a sample.
fn sample(name: &str) -> (Kind, Vec<u8>, &'static [u8]) {
    let mut items = samples::items().into_iter();
    let (_, item, body) = items.find(|(known, ..)| *known == name).expect("a sample");
    let bytes = item.encode(&sealers()[0], &server_key(0), &[body]).unwrap();
    (item.content.kind(), bytes[FRAME..].to_vec(), body)
}

#[track_caller]
fn refused(name: &str, expected: EntryError, change: impl FnOnce(&mut Vec<u8>)) {
    let (kind, mut fields, body) = sample(name);
    assert!(decode(kind, &fields, body).is_ok());
    change(&mut fields);
    assert_eq!(decode(kind, &fields, body), Err(expected));
}

/// Replaces text of the same length.
fn replace(fields: &mut [u8], old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len());
    let at = fields.windows(old.len()).position(|window| window == old).expect("it is there");
    fields[at..at + new.len()].copy_from_slice(new);
}

#[test]
fn attributes_are_refused_by_name() {
    let of_response = |expected, change: fn(&mut Vec<u8>)| refused("representation", expected, change);
    of_response(EntryError::Ttl, |it| it[TTL..TTL + 4].fill(0));
    of_response(EntryError::Ttl, |it| it[TTL + 3] = 1);
    of_response(EntryError::Lifetimes, |it| it[FLAGS] = 128);
    of_response(EntryError::Coding, |it| it[CODING] = 2);
    of_response(EntryError::Truncated, |it| it[TAGS + 1] = 0xff);
    of_response(EntryError::Truncated, |it| _ = it.pop());
    of_response(EntryError::TrailingBytes, |it| it.push(0));
    of_response(EntryError::Vary, |it| replace(it, b"accept-language:en\n", b"accept-language:en:"));
    of_response(EntryError::Head, |it| replace(it, b"Vary: Acc", b"Vary:  cc"));
    of_response(EntryError::Head, |it| replace(it, b"HTTP/1.1", b"HTTP/1.0"));
    of_response(EntryError::Head, |it| replace(it, b"X-Served-By: cache", b"Keep-Alive: cache1"));
    of_response(EntryError::Head, |it| replace(it, b"\r\n\r\n", b"\r\n:\n"));
    of_response(EntryError::Status, |it| replace(it, b"200", b"206"));
    of_response(EntryError::Head, |it| replace(it, b"200", b"204"));
    of_response(EntryError::Length, |it| replace(it, b"Content-Length: 14", b"Content-Length: 15"));
    refused("manifest", EntryError::Chunks, |it| it[12] = 5);
    refused("manifest", EntryError::TooLarge, |it| it[4] = 1);
}

#[test]
fn other_fields_are_refused_by_name() {
    refused("index", EntryError::Vary, |it| replace(it, b"cookie", b"Cookie"));
    refused("index", EntryError::Vary, |it| replace(it, b"cookie", b"aaaaaa"));
    refused("index", EntryError::TooLarge, |it| it[24] = 65);
    refused("index", EntryError::Truncated, |it| it[24] = 3);
    refused("index", EntryError::TrailingBytes, |it| it[24] = 1);
    refused("mark", EntryError::Mark, |it| it[24] = 200);
    refused("claim", EntryError::Truncated, |it| it.truncate(7));
    refused("tombstone", EntryError::TrailingBytes, |it| it.push(0));
    assert_eq!(decode(Kind::Tombstone, b"", b"body"), Err(EntryError::TrailingBytes));
    assert_eq!(decode(Kind::Chunk, &[0; 4], b""), Err(EntryError::Chunks));
}

#[test]
fn records_are_refused_by_name() {
    let (sealer, key) = (&sealers()[0], server_key(0));
    let log = |fields: &[u8]| {
        let header = HEADER.encode(sealer, &key).unwrap();
        let bytes = [header, forge::record(&key, &LOG.0, fields)].concat();
        PurgeLog::decode(sealer, &key, bytes, None).map(|log| log.records().count())
    };
    let fields = |effect, form, rest: &[u8]| [&[0; 24], &[effect, form][..], rest].concat();
    assert_eq!(log(&fields(0, 6, b"")), Ok(1));
    assert_eq!(log(&fields(2, 6, b"")), Err(EntryError::Purge));
    assert_eq!(log(&fields(0, 0, b"")), Err(EntryError::Purge));
    assert_eq!(log(&fields(0, 8, b"")), Err(EntryError::Purge));
    assert_eq!(log(&fields(0, 7, b"\x01\0\xff")), Err(EntryError::Purge));
    assert_eq!(log(&fields(0, 4, b"\x02\0a")), Err(EntryError::Truncated));
    assert_eq!(log(&fields(0, 6, b"\0")), Err(EntryError::TrailingBytes));
    let mut late = fields(0, 6, b"");
    late[16..24].fill(0xff);
    assert_eq!(log(&late), Err(EntryError::Purge));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_read_is_written_the_same(
        which in 0usize..7,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (name, ..) = samples::items()[which];
        let (kind, mut fields, body) = sample(name);
        for (at, byte) in changes {
            if !fields.is_empty() {
                let at = at.index(fields.len());
                fields[at] = byte;
            }
        }
        if let Some(cut) = cut {
            fields.truncate(cut.index(fields.len() + 1));
        }
        if let Ok(item) = decode(kind, &fields, body) {
            let bytes = item.encode(&sealers()[0], &server_key(0), &[body])?;
            prop_assert_eq!(&bytes[FRAME..], &*fields);
        }
    }

    #[test]
    fn any_fields_are_read_or_refused(kind in 1u8..9, fields: Vec<u8>, body: Vec<u8>) {
        let key = server_key(0);
        let bytes = forge::item(&key, kind, &fields, &body);
        if let Ok((Item { content: Content::Chunk { number }, .. }, read)) =
            Item::decode(&sealers()[0], &key, bytes.clone())
        {
            prop_assert_eq!(&number.to_le_bytes()[..], &*fields);
            prop_assert_eq!(&*read, &*body);
        }
        let _ = PurgeLog::decode(&sealers()[0], &key, [&*bytes, &*body].concat(), None);
        let header = HEADER.encode(&sealers()[0], &key)?;
        let bytes = [header, forge::record(&key, &LOG.0, &fields)].concat();
        let _ = PurgeLog::decode(&sealers()[0], &key, bytes, None);
    }
}
