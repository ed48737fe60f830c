//! Bodies that are not stored, on their way past the store to their readers.

use super::*;

/// Regression: what streamed past the store was charged nowhere, 256 KiB for each reader.
#[test]
fn a_body_that_passes_its_readers_is_lent_until_it_is_sent_and_kept_short_where_there_is_little_room() {
    let store = Arc::new(Store::new(Settings::new(8 << 20)));
    let mut cx = Context::from_waker(Waker::noop());
    let mut readers = Vec::new();
    let mut last = None;
    for n in 0..100 {
        let mut writer = fill(&store, &Response { limit: Some(1), ..response(&format!("/{n}")) });
        readers.push(writer.object().reader().unwrap());
        while writer.poll_room(&mut cx, START).is_ready() {
            writer.append(&[b'x'; 1 << 14]);
        }
        assert!(!writer.is_stored());
        last = Some(writer);
    }
    // As much as a few readers may have, and 16 KiB for each of the others.
    let passing = store.passing();
    assert!((3 << 19..5 << 19).contains(&passing), "{passing}");
    assert_eq!((store.lent(), store.held_bytes() >= passing), (passing, true));
    let mut reader = readers.pop().unwrap();
    // The part that had arrived while it was to be stored is charged as before.
    let pieces: Vec<Piece> = std::iter::from_fn(|| match reader.poll_chunk(&mut cx) {
        Poll::Ready(Some(chunk)) => Some(chunk.unwrap()),
        _ => None,
    })
    .collect();
    drop((readers, reader, last));
    // A client keeps the pieces that it has yet to take.
    let passing = store.passing();
    assert!((1 << 14..1 << 15).contains(&passing), "{passing}");
    drop(pieces);
    assert_eq!((store.passing(), store.lent()), (0, 0));
}
