//! The store under every order of its threads that a scheduler comes upon: a writer, readers and eviction share an arriving body.

use std::future::poll_fn;
use std::sync::Arc;

use crate::support::{NOW, check_charges, in_many_orders, lookup, new_object, settings};
use sandarac_model::{BodyWriter, Broken, Lookup, Reader, Store};
use shuttle::future::block_on;
use shuttle::thread;

/// A store that takes everything here.
const LARGE: usize = 4 << 20;

/// Begins to store a response of `len` bytes, which may be announced.
fn begin(store: &Arc<Store>, len: Option<u64>) -> BodyWriter {
    let Lookup::Miss(flight) = lookup(store) else { panic!("the store is empty") };
    flight.store(new_object(len))
}

/// The byte at a place of the body.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Writes the body in pieces, into the object's own memory where it has some, as a fill does.
fn write(mut writer: BodyWriter, len: usize, piece: usize) {
    while writer.len() < len as u64 {
        block_on(poll_fn(|cx| writer.poll_room(cx, NOW)));
        let at = writer.len() as usize;
        let count = piece.min(len - at);
        let read = writer.read_with(|memory| {
            let count = count.min(memory.len());
            assert!(count > 0, "memory that is lent has room");
            memory[..count].iter_mut().enumerate().for_each(|(place, to)| *to = byte(at + place));
            (count, ())
        });
        if read.is_none() {
            let bytes: Vec<u8> = (at..at + count).map(byte).collect();
            writer.append(&bytes);
        }
    }
    writer.finish(None);
}

/// Reads to the end and returns the number of bytes; an error where the writer gave up.
fn read(mut reader: Reader) -> Result<usize, Broken> {
    let mut at = 0;
    while let Some(chunk) = block_on(poll_fn(|cx| reader.poll_chunk(cx))) {
        let chunk = chunk?;
        for (place, found) in chunk.bytes().expect("it is in memory").iter().enumerate() {
            assert_eq!(*found, byte(at + place), "at {}", at + place);
        }
        at += chunk.len();
    }
    Ok(at)
}

/// One writer, its own reader, a reader that comes from a lookup, and a change of the limit that evicts the object.
fn evicted_while_it_arrives(announced: bool, len: usize, piece: usize) {
    let store = Arc::new(Store::new(settings(LARGE)));
    let mut writer = begin(&store, announced.then_some(len as u64));
    let reader = writer.reader().expect("nothing has arrived yet");
    let writing = thread::spawn(move || write(writer, len, piece));
    let reading = thread::spawn(move || read(reader));
    let evicting = {
        let store = store.clone();
        thread::spawn(move || {
            store.configure(settings(1));
            store.configure(settings(LARGE));
        })
    };
    let newcomer = {
        let store = store.clone();
        thread::spawn(move || match lookup(&store) {
            Lookup::Hit(object) => object.reader().map(read),
            _ => None,
        })
    };
    writing.join().expect("the writer ends");
    evicting.join().expect("the eviction ends");
    assert_eq!(reading.join().expect("the reader ends"), Ok(len));
    if let Some(read) = newcomer.join().expect("the newcomer ends") {
        assert_eq!(read, Ok(len));
    }
    check_charges(&store);
}

#[test]
fn an_object_may_be_evicted_at_any_point_of_its_arrival() {
    in_many_orders(|| evicted_while_it_arrives(true, 3000, 700));
}

#[test]
fn an_object_of_unknown_length_may_be_evicted_at_any_point_of_its_arrival() {
    in_many_orders(|| evicted_while_it_arrives(false, 6000, 1500));
}

/// The task of a fill that panics drops its writer. Each reader gets what has arrived, then an error, and the key is free.
fn given_up_while_it_arrives() {
    let store = Arc::new(Store::new(settings(LARGE)));
    let mut writer = begin(&store, Some(3000));
    let reader = writer.reader().expect("nothing has arrived yet");
    let reading = thread::spawn(move || read(reader));
    let waiting = {
        let store = store.clone();
        thread::spawn(move || match lookup(&store) {
            Lookup::Hit(object) => object.reader().map(read),
            _ => None,
        })
    };
    writer.read_with(|memory| {
        memory[..700].iter_mut().enumerate().for_each(|(place, to)| *to = byte(place));
        (700, ())
    });
    drop(writer);
    assert_eq!(reading.join().expect("the reader ends"), Err(Broken::Aborted));
    assert!(matches!(waiting.join().expect("the newcomer ends"), None | Some(Err(Broken::Aborted))));
    assert!(matches!(lookup(&store), Lookup::Miss(_)), "the key is free");
    check_charges(&store);
}

#[test]
fn readers_of_a_body_that_is_given_up_get_an_error_and_the_key_is_free() {
    in_many_orders(given_up_while_it_arrives);
}
