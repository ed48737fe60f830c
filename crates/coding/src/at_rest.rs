//! Whole bodies in zstd whose length is known.

use std::cell::RefCell;
use std::io;

use zstd::bulk::Decompressor;

thread_local! {
    /// Kept between bodies: its tables take longer to allocate and clear than a page takes to inflate. Some
    /// 160 KB per thread that inflates. `None` until the first body.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Inflates a whole body in zstd, which MUST have `len` bytes; `None` if it has not, or is damaged. Takes so many bytes of
/// memory.
pub fn inflate_zstd(body: &[u8], len: usize) -> Option<Vec<u8>> {
    let plain = decompress(body, len).ok()?;
    (plain.len() == len).then_some(plain)
}

fn decompress(body: &[u8], most: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress(body, most)
    })
}
