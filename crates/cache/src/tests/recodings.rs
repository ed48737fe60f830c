//! Recodings: the body of an object in other codings.

use bytes::Bytes;
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;

use super::*;
use crate::{Purge, Recoding};

const GZIP: Option<Coding> = Some(Coding::Gzip);

fn keep(store: &Store, object: &Arc<Object>, coding: Option<Coding>, body: &'static str) -> Arc<Object> {
    let head = object.head().recoded(coding).unwrap();
    store.keep_recoding(object, coding, head, Bytes::from_static(body.as_bytes()))
}

fn kept(object: &Object, coding: Option<Coding>) -> String {
    match object.recoding(coding) {
        Some(Recoding::Made(recoded)) => text(recoded),
        Some(Recoding::TooLong) => "too long".to_owned(),
        Some(Recoding::Useless(reason)) => reason.text().to_owned(),
        None => "none".to_owned(),
    }
}

#[test]
fn a_recoding_stays_with_its_original() {
    let store = store(1 << 20);
    let object = response("/").put(&store, b"plain");
    assert_eq!(kept(&object, GZIP), "none");
    let recoded = keep(&store, &object, GZIP, "small");
    assert_eq!(recoded.head().shown().get(sandarac_message::Name::ContentEncoding), Some(&b"gzip"[..]));
    assert_eq!(kept(&object, GZIP), "small");
    // The first stays.
    keep(&store, &object, GZIP, "other");
    store.keep_useless(&object, GZIP, Uncompressed::NotSmaller);
    assert_eq!(kept(&object, GZIP), "small");
    store.keep_useless(&object, None, Uncompressed::CodingCorrupt);
    assert_eq!(kept(&object, None), "coding-corrupt");
    store.keep_too_long(&object, Some(Coding::Zstd));
    assert_eq!(kept(&object, Some(Coding::Zstd)), "too long");
    assert_eq!(look(&store, &get("/"), at(0)), "hit plain");
    assert_eq!(store.stats().objects, 1);
}

#[test]
fn a_recoding_is_charged_and_freed_with_its_original() {
    let store = store(1 << 20);
    let object = response("/").put(&store, b"plain");
    let alone = store.stats().bytes;
    let recoded = keep(&store, &object, GZIP, "small");
    store.keep_block_of_recoding(&object, &recoded, vec![0; 1000].into());
    assert_eq!(recoded.block().map(<[u8]>::len), Some(1000));
    let stats = store.stats();
    assert!(stats.bytes > alone + 1000);
    // All of it belongs to an object in the index: it is not held outside.
    assert_eq!(stats.held_bytes, 0);
    store.purge(key("/"), Purge::Hard, START);
    drop((object, recoded));
    store.sweep(100, START);
    let index: usize = (0..store.shards()).map(|at| store.shard(at).index_bytes()).sum();
    assert_eq!(store.stats().bytes, index as u64);
}

#[test]
fn an_object_that_has_left_the_index_keeps_none() {
    let store = store(1 << 20);
    let object = response("/").put(&store, b"plain");
    store.discard(&object, crate::Removal::Replaced);
    assert_eq!(text(&keep(&store, &object, GZIP, "small")), "small");
    assert_eq!(kept(&object, GZIP), "none");
}

#[test]
fn a_recoding_without_room_is_for_one_client() {
    let store = store(100_000);
    let object = response("/").put(&store, b"plain");
    let recoded = store.keep_recoding(&object, GZIP, object.head().clone(), vec![0; 200_000].into());
    assert_eq!(recoded.body().len(), Some(200_000));
    assert_eq!(kept(&object, GZIP), "none");
    assert!(store.stats().bytes < 100_000);
}
