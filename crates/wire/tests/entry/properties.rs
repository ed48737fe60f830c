//! Properties of every item, and bounds.

use crate::generate;
use crate::samples::{self, BODY};
use crate::{sealers, server_key};
use bytes::Bytes;
use proptest::prelude::*;
use sandarac_message::vary::{VaryKey, VarySpec};
use sandarac_message::{FieldsBuf, StoredHead};
use sandarac_wire::entry::{
    Attributes, Coding, Content, EntryError, Item, MAX_BODY, MAX_LEN, MAX_TTL, PurgeLog, time_on_server,
};
use std::time::Duration;

proptest! {
    #[test]
    fn what_is_written_is_read_back((item, body) in generate::item(), cut in 0usize..100, secret: bool) {
        let (sealer, key) = (&sealers()[usize::from(secret)], server_key(0));
        let (first, second) = body.split_at(cut.min(body.len()));
        let head = item.encode(sealer, &key, &[first, second])?;
        prop_assert_eq!(&head, &item.encode(sealer, &key, &[&body])?, "pieces make no difference");
        let bytes = Bytes::from([&*head, &body].concat());
        let (read, rest) = Item::decode(sealer, &key, bytes.clone())?;
        prop_assert_eq!(read, item);
        prop_assert_eq!(&*rest, &*body);
        if !body.is_empty() {
            prop_assert_eq!(rest.as_ptr(), bytes[head.len()..].as_ptr(), "the body is not copied");
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, kind in 0u8..10, secret: bool) {
        let (sealer, key) = (&sealers()[usize::from(secret)], server_key(0));
        for bytes in [bytes.clone(), [&[b'S', b'd', b'r', b'c', 1, kind, 0], &*bytes].concat()] {
            prop_assert!(Item::decode(sealer, &key, bytes.clone()).is_err());
            prop_assert!(PurgeLog::decode(sealer, &key, bytes, None).is_err());
        }
    }

    #[test]
    fn the_time_on_the_server_is_never_too_short(
        ttl in 1..=MAX_TTL, put in 0u32..5000, lay in 0u32..100_000,
    ) {
        // The server has whole seconds; times here are in milliseconds.
        let left = (u64::from(ttl) + u64::from(put / 1000)).checked_sub(u64::from(put + lay) / 1000);
        let Some(left) = left else { return Ok(()) };
        let time = time_on_server(ttl, left as u32).unwrap().as_millis() as u64;
        prop_assert!((u64::from(lay)..=u64::from(lay) + 2000).contains(&time));
    }
}

#[test]
fn more_left_than_given_is_no_time() {
    assert_eq!(time_on_server(10, 11), None);
    assert_eq!(time_on_server(10, 10), Some(Duration::from_secs(1)));
}

/// The result of writing the sample representation after a change.
#[track_caller]
fn refused(expected: EntryError, change: impl FnOnce(&mut Attributes)) {
    let (_, mut item, body) = samples::items().swap_remove(0);
    let Content::Representation(attributes) = &mut item.content else { panic!("{item:?}") };
    change(attributes);
    assert_eq!(item.encode(&sealers()[0], &server_key(0), &[body]), Err(expected));
}

#[test]
fn attributes_that_a_reader_would_refuse_are_not_written() {
    let head = |status, lines: &[(&str, &str)]| {
        StoredHead::new(status, b"", &lines.iter().copied().collect::<FieldsBuf>()).unwrap()
    };
    refused(EntryError::Ttl, |it| it.ttl = 0);
    refused(EntryError::Ttl, |it| it.ttl = MAX_TTL + 1);
    refused(EntryError::Vary, |it| it.vary = VarySpec::Star.key(Default::default()));
    refused(EntryError::TooLarge, |it| it.host = vec![b'h'; MAX_LEN + 1].into());
    refused(EntryError::TooLarge, |it| it.path = vec![b'p'; MAX_LEN + 1].into());
    refused(EntryError::TooLarge, |it| it.tags = vec![0; MAX_LEN + 1]);
    refused(EntryError::TooLarge, |it| {
        it.vary = VaryKey::from_bytes([b"a:".to_vec(), vec![b'v'; MAX_LEN], b"\n".to_vec()].concat());
    });
    refused(EntryError::TooLarge, |it| it.coding = Coding::Zstd { plain_len: MAX_BODY + 1 });
    refused(EntryError::Length, |it| it.coding = Coding::Zstd { plain_len: 15 });
    refused(EntryError::Length, |it| it.head = head(200, &[("Content-Length", "13")]));
    refused(EntryError::Length, |it| it.head = head(204, &[]));
    refused(EntryError::Status, |it| it.head = head(206, &[]));
    refused(EntryError::Status, |it| it.head = head(304, &[]));
    refused(EntryError::Status, |it| it.head = head(100, &[]));
    refused(EntryError::Head, |it| it.head = head(600, &[]));
    refused(EntryError::Head, |it| it.head = head(200, &[("Connection", "X-A"), ("X-A", "1")]));
    refused(EntryError::Head, |it| it.head = head(200, &[("Transfer-Encoding", "chunked")]));
    refused(EntryError::Head, |it| it.head = head(200, &[("A", " padded ")]));
    refused(EntryError::Head, |it| it.head = head(200, &vec![("A", ""); 1001]));
    refused(EntryError::TooLarge, |it| it.head = head(200, &[("A", &*"x".repeat(65_515))]));
    refused(EntryError::Head, |it| {
        let fields: FieldsBuf = [("Xkey", "a")].into_iter().collect();
        let none = FieldsBuf::new();
        let sections = [fields.view(), none.view(), none.view()];
        it.head = StoredHead::from_sections(200, b"", sections).unwrap();
    });
}

#[test]
fn contents_that_a_reader_would_refuse_are_not_written() {
    let names = |names: Vec<Box<[u8]>>| VarySpec::Names(names);
    let many = (0..65).map(|at| format!("n{at:02}").into_bytes().into()).collect();
    let long = vec![vec![b'n'; 256].into()];
    let (_, manifest, _) = samples::items().swap_remove(2);
    let Content::Manifest { attributes, .. } = manifest.content else { panic!("{manifest:?}") };
    let position = attributes.position;
    let manifest =
        |total, chunk_size| Content::Manifest { attributes: attributes.clone(), total, chunk_size };
    for (content, body, expected) in [
        (Content::Index { position, vary: VarySpec::None }, &b""[..], EntryError::Vary),
        (Content::Index { position, vary: VarySpec::Star }, b"", EntryError::Vary),
        (Content::Index { position, vary: names(vec![Box::from(&b"A"[..])]) }, b"", EntryError::Vary),
        (Content::Index { position, vary: names(many) }, b"", EntryError::TooLarge),
        (Content::Index { position, vary: names(long) }, b"", EntryError::TooLarge),
        (manifest(0, 1), b"", EntryError::Chunks),
        (manifest(1, 0), b"", EntryError::Chunks),
        (manifest(65_537, 1), b"", EntryError::Chunks),
        (manifest(MAX_BODY + 1, 1 << 20), b"", EntryError::TooLarge),
        (manifest(10, 5), b"body", EntryError::TrailingBytes),
        (Content::Chunk { number: 0 }, b"", EntryError::Chunks),
        (Content::Tombstone, b"body", EntryError::TrailingBytes),
    ] {
        let item = Item { token: samples::TOKEN, content };
        assert_eq!(item.encode(&sealers()[0], &server_key(0), &[body]), Err(expected), "{item:?}");
    }
}

#[test]
fn a_manifest_knows_its_chunks() {
    let (_, manifest, _) = samples::items().swap_remove(2);
    let lens: Vec<_> = (0..5).map(|number| manifest.content.chunk_len(number)).collect();
    assert_eq!(lens, [Some(65_536), Some(65_536), Some(65_536), Some(53_392), None]);
    assert_eq!(manifest.content.chunks(), 4);
    assert_eq!(manifest.content.chunk_len(u32::MAX), None);
    assert_eq!(Content::Tombstone.chunk_len(0), None);
}

#[test]
fn every_kind_names_its_position() {
    for (name, item, _) in samples::items() {
        let has_position = ["representation", "index", "manifest", "mark"].contains(&name);
        assert_eq!(item.content.position().is_some(), has_position, "{name}");
    }
    assert_eq!(BODY.len(), 14);
}
