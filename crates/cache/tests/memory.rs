//! The bytes that the store reports, against those it really allocates.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sandarac_cache::{Intent, Key, Lookup, NewObject, PageMarkup, Query, Settings, Store, Tag};
use sandarac_esi::TemplateBuilder;
use sandarac_message::caching::{Lifetimes, RequestDirectives};
use sandarac_message::vary::{VaryKey, VaryRule, VarySpec};
use sandarac_message::{FieldsBuf, Piece, StoredHead, Timestamp};

/// Counts allocated bytes as glibc rounds them: an eight-byte header, and multiples of sixteen.
struct Counting;

thread_local! {
    // Counted per thread, because the test runner's thread allocates now and then, too.
    static HELD: Cell<usize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn chunk(layout: Layout) -> usize {
    (layout.size() + 8).next_multiple_of(16).max(32)
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(chunk(layout)));
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(chunk(layout)));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const HOST: &[u8] = b"www.example.org";

fn head() -> StoredHead {
    let fields: FieldsBuf = [
        ("Date", "Tue, 14 Nov 2023 22:13:20 GMT"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", "1000"),
        ("Cache-Control", "max-age=3600"),
        ("ETag", "\"0123456789abcdef\""),
    ]
    .into_iter()
    .collect();
    StoredHead::new(200, b"OK", &fields).unwrap()
}

fn new_object(path: &[u8]) -> NewObject<'_> {
    NewObject {
        head: head(),
        lifetimes: Lifetimes::fixed(NOW, Duration::from_secs(3600), Duration::ZERO, Duration::ZERO),
        vary: VaryKey::default(),
        host: HOST,
        path,
        tags: &[],
        range: None,
        len: None,
        limit: None,
        resumable: false,
        copy: None,
        transaction: 1,
    }
}

fn path(n: usize) -> Vec<u8> {
    format!("/articles/{n:010}").into_bytes()
}

fn held() -> usize {
    HELD.get()
}

/// Bytes of memory that the system says memory files of bodies take.
fn in_files() -> usize {
    let is_ours = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path())
            .is_ok_and(|link| link.to_string_lossy().contains("memfd:sandarac-bodies"))
    };
    let entries = std::fs::read_dir("/proc/self/fd").expect("Linux has it").flatten().filter(is_ours);
    entries.map(|entry| entry.path().metadata().expect("an open file").blocks() as usize * 512).sum()
}

/// One test, because what one part leaves behind would affect the next in any case.
#[test]
fn what_is_charged_is_what_is_held() {
    overhead_is_at_most_256_bytes_an_object();
    a_shared_body_is_charged_with_the_memory_it_is_a_part_of();
    a_large_body_is_charged_with_its_pages();
    the_limit_holds_for_the_allocator_too(10_000, 18);
    the_limit_holds_for_the_allocator_too(1500, 22);
    a_page_is_charged_with_its_markup();
    a_hit_allocates_nothing();
}

fn overhead_is_at_most_256_bytes_an_object() {
    // The table of a shard is fullest just before it doubles and emptiest just after; both are tried.
    for count in [60_000, 80_000, 100_000] {
        let body = vec![b'x'; 1000];
        // The size of head, body and key alone.
        let before = held();
        let heads: Vec<(StoredHead, [u8; 16])> = (0..1000).map(|_| (head(), [0; 16])).collect();
        let text = HOST.len() + path(0).len();
        let bare = count * ((held() - before) / heads.len() + text + chunk(Layout::for_value(&*body)));

        let before = held();
        let store = Arc::new(Store::new(Settings::new(1 << 30)));
        for n in 0..count {
            let path = path(n);
            store.open(Key::of(b"http", HOST, &path)).store_complete(new_object(&path), &[&body], None);
        }
        let stats = store.stats();
        assert_eq!(stats.objects, count as u64);
        let real = held() - before;
        let overhead = (real - bare) / count;
        println!("{count} objects: {overhead} bytes of overhead each, charged {} for {real}", stats.bytes);
        assert!(overhead <= 256, "{overhead} bytes of overhead each");
        assert!(stats.bytes as usize >= real - (64 << 10), "charged {} for {real}", stats.bytes);
        // Other allocators have coarser size classes than those counted here.
        assert!(stats.bytes as usize <= real + real / 5, "charged {} for {real}", stats.bytes);
    }
}

/// Stores bodies of `len` bytes that came in memory of `memory` bytes, of which others keep another part for a
/// while. Returns the bytes charged and held for each.
fn store_shared(len: usize, memory: usize) -> (usize, usize) {
    let (count, before) = (200, held());
    let store = Arc::new(Store::new(Settings::new(1 << 30)));
    for n in 0..count {
        let path = path(n);
        let mut item = vec![b'-'; memory - len];
        item.resize(memory, b'x');
        let item = Bytes::from(item);
        let attribute = item.slice(..(memory - len).min(4));
        let flight = store.open(Key::of(b"http", HOST, &path));
        let object = flight.store_shared(new_object(&path), item.slice(memory - len..), memory);
        drop((item, attribute));
        let body: Vec<Piece> = object.body().segments().collect();
        assert!(matches!(&body[..], [Piece::Bytes(body)] if *body == vec![b'x'; len]));
        assert_eq!((object.host(), object.path()), (HOST, &path[..]));
    }
    let each = (store.stats().bytes as usize / count, (held() - before) / count);
    assert_eq!(store.stats().objects, count as u64);
    drop(store);
    assert!(held() - before < 4096, "{} bytes are left", held() - before);
    each
}

fn a_shared_body_is_charged_with_the_memory_it_is_a_part_of() {
    for (len, memory) in [(30_000, 30_500), (30_000, 30_000), (200_000, 201_000)] {
        let (charged, held) = store_shared(len, memory);
        assert!((memory..memory + 2000).contains(&held), "{held} bytes are held for {memory}");
        assert!((held..held + held / 4).contains(&charged), "charged {charged} for {held}");
    }
    // A body that shares its pages with others is copied, and one beside which much would be held.
    for (len, memory) in [(1000, 1500), (30_000, 90_000)] {
        let (charged, held) = store_shared(len, memory);
        assert!((len..len + 1500).contains(&held), "{held} bytes are held for {len}");
        assert!((held - 200..held + held / 4).contains(&charged), "charged {charged} for {held}");
    }
}

/// How a body arrives.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    Complete,
    Known,
    Unknown,
    /// Of a longer body, the rest of which does not arrive.
    Part,
}

/// Stores bodies of `len` bytes. Returns the bytes charged and held for each.
fn store_large(len: usize, arrival: Arrival) -> (usize, usize) {
    let (count, before) = (10, held());
    let store = Arc::new(Store::new(Settings::new(1 << 30)));
    let body = vec![b'x'; len];
    let held_before = held();
    for n in 0..count {
        let path = path(n);
        let flight = store.open(Key::of(b"http", HOST, &path));
        let announced = match arrival {
            Arrival::Known => Some(len as u64),
            Arrival::Part => Some(2 * len as u64),
            Arrival::Complete | Arrival::Unknown => None,
        };
        let new_object = NewObject { len: announced, resumable: true, ..new_object(&path) };
        if let Arrival::Complete = arrival {
            flight.store_complete(new_object, &[&body[..1000], &body[1000..]], None);
            continue;
        }
        let mut writer = flight.store(new_object);
        body.chunks(9000).for_each(|piece| writer.append(piece));
        match arrival {
            Arrival::Part => writer.break_off(NOW),
            _ => drop(writer.finish(None)),
        }
    }
    let stats = store.stats();
    assert_eq!((stats.objects, stats.file_failures), (count as u64, 0), "{arrival:?}");
    assert_eq!(stats.file_bytes as usize, in_files());
    let each = (stats.bytes as usize / count, (held() - held_before + in_files()) / count);
    drop((store, body));
    assert!(
        held() - before < 4096 && in_files() == 0,
        "{} and {} bytes are left",
        held() - before,
        in_files()
    );
    each
}

fn a_large_body_is_charged_with_its_pages() {
    for len in [262_144, 300_000, 1_000_000, 3_000_001] {
        for arrival in [Arrival::Complete, Arrival::Known, Arrival::Unknown, Arrival::Part] {
            let (charged, held) = store_large(len, arrival);
            assert!((len..len + 4 * 4096).contains(&held), "{held} bytes are held for {len}, {arrival:?}");
            assert!((held..held + held / 50).contains(&charged), "charged {charged} for {held}, {arrival:?}");
        }
    }
}

fn a_page_is_charged_with_its_markup() {
    let page = b"text<esi:include src=\"/a?b=$(QUERY_STRING{c})\" alt=\"/d\"/>".repeat(40);
    let store = Arc::new(Store::new(Settings::new(1 << 30)));
    let objects: Vec<_> = (0..100)
        .map(|n| {
            let path = path(n);
            store.open(Key::of(b"http", HOST, &path)).store_complete(new_object(&path), &[&page], None)
        })
        .collect();
    let (charged, before) = (store.stats().bytes as usize, held());
    for object in &objects {
        let mut template = TemplateBuilder::default();
        template.push(&page);
        let template = template.finish().expect("a template");
        store.keep_markup(object, PageMarkup::Parts(template));
        assert!(object.markup().is_some());
    }
    let (charged, held) = (store.stats().bytes as usize - charged, held() - before);
    assert!((held..held + held / 5).contains(&charged), "charged {charged} for {held}");
}

/// Stores `count` bodies of up to 2 to the power of `sizes - 1` bytes.
fn the_limit_holds_for_the_allocator_too(count: usize, sizes: u64) {
    let limit = 16 << 20;
    let before = held();
    let store = Arc::new(Store::new(Settings::new(limit)));
    let mut most = 0;
    let mut random = 1u64;
    for n in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let len = 1 << ((random >> 33) % sizes);
        let path = path(n);
        let tags: Vec<Tag> = (0..random % 4).map(|tag| Tag::new(&tag.to_le_bytes())).collect();
        let new_object = NewObject { tags: &tags, ..new_object(&path) };
        let flight = store.open(Key::of(b"http", HOST, &path));
        if (random >> 20).is_multiple_of(3) {
            let mut writer = flight.store(new_object);
            for _ in 0..len / 1000 + 1 {
                writer.append(&[b'x'; 1000]);
                most = most.max(held() - before);
            }
            writer.finish(None);
        } else if (random >> 20).is_multiple_of(2) {
            flight.store_complete(new_object, &[&vec![b'x'; len]], None);
        } else {
            flight.store_shared(new_object, vec![b'x'; len].into(), len);
        }
        most = most.max(held() - before + in_files());
        assert!(store.stats().bytes as usize <= limit);
    }
    println!("at most {most} bytes for a limit of {limit}");
    assert!(most <= limit + (64 << 10), "{most} bytes for a limit of {limit}");
    assert!(store.stats().bytes as usize > limit * 9 / 10, "{:?}", store.stats());
    drop(store);
    assert!(held() - before < 4096 && in_files() == 0, "{} bytes are left", held() - before);
}

fn a_hit_allocates_nothing() {
    let store = Arc::new(Store::new(Settings::new(16 << 20)));
    let vary = VarySpec::of(
        [("Vary", "Accept-Encoding")].into_iter().collect::<FieldsBuf>().view(),
        &VaryRule::default(),
    );
    let fields: FieldsBuf = [("Accept-Encoding", "gzip, br;q=0.5")].into_iter().collect();
    let key = Key::of(b"http", HOST, b"/");
    let new_object = NewObject { vary: vary.key(fields.view()), ..new_object(b"/") };
    store.open(key).store_complete(new_object, &[b"body"], None);
    let before = ALLOCATIONS.get();
    for _ in 0..1000 {
        let directives = RequestDirectives::of(fields.view());
        let query =
            Query { fields: fields.view(), directives: &directives, part: None, intent: Intent::Fill };
        let Lookup::Hit(object) = store.lookup(Key::of(b"http", HOST, b"/"), &query, NOW) else {
            panic!("no hit")
        };
        assert_eq!(object.body().segments().next().unwrap().bytes().unwrap(), &b"body"[..]);
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
