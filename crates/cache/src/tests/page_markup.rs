//! The markup of pages, kept beside their objects.

use sandarac_esi::TemplateBuilder;

use super::*;
use crate::{PageMarkup, Purge};

fn markup(body: &[u8]) -> PageMarkup {
    let mut builder = TemplateBuilder::default();
    builder.push(body);
    builder.finish().map_or(PageMarkup::TooMany, PageMarkup::Parts)
}

const PAGE: &[u8] = b"<esi:include src=\"/a\"/>b<esi:include src=\"/$(QUERY_STRING{c})\" alt=\"/d\"/>";

#[test]
fn markup_is_charged_and_freed_with_its_object() {
    let store = store(1 << 20);
    let object = response("/").put(&store, PAGE);
    let alone = store.stats().bytes;
    assert!(object.markup().is_none());
    store.keep_markup(&object, markup(PAGE));
    assert!(matches!(object.markup(), Some(PageMarkup::Parts(template)) if template.parts().len() == 3));
    let stats = store.stats();
    assert!(stats.bytes > alone + 100);
    // All of it belongs to an object in the index: it is not held outside.
    assert_eq!(stats.held_bytes, 0);
    // The first stays.
    store.keep_markup(&object, PageMarkup::Plain);
    assert!(matches!(object.markup(), Some(PageMarkup::Parts(_))));
    assert_eq!(store.stats().bytes, stats.bytes);
    store.purge(key("/"), Purge::Hard, START);
    drop(object);
    store.sweep(100, START);
    let index: usize = (0..store.shards()).map(|at| store.shard(at).index_bytes()).sum();
    assert_eq!(store.stats().bytes, index as u64);
}

#[test]
fn an_object_that_has_left_the_index_keeps_none() {
    let store = store(1 << 20);
    let object = response("/").put(&store, PAGE);
    store.discard(&object, crate::Removal::Replaced);
    store.keep_markup(&object, PageMarkup::Plain);
    assert!(object.markup().is_none());
}

#[test]
fn markup_without_room_is_not_kept() {
    let store = store(100_000);
    let object = response("/").put(&store, b"small");
    let large = markup(&PAGE.repeat(330));
    assert!(matches!(large, PageMarkup::Parts(_)));
    store.keep_markup(&object, large);
    assert!(object.markup().is_none());
    assert!(store.stats().bytes < 100_000);
}
