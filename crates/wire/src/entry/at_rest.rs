//! Compression at rest: bodies of items, compressed by zstd where that saves room.

use bytes::Bytes;
use sandarac_coding::{Encoder, Level, inflate_zstd};
use sandarac_message::codings::Coding;

use super::{EntryError, MAX_BODY};

/// Shorter bodies stay plain: the item around them is as long.
const SHORTEST: u64 = 512;

/// A compressed body is kept only if it is shorter than the plain one by this part. Otherwise inflating it
/// for each reader costs more than the room is worth.
const SAVING: u64 = 8;

/// A body that is being compressed, piece by piece, so that a long one can be compressed in steps.
pub struct Compression {
    /// `None` once it is clear that nothing is saved.
    encoder: Option<Encoder>,
    out: Vec<u8>,
    /// The most bytes that it may have.
    most: usize,
    left: u64,
}

impl Compression {
    /// Begins with a body of `len` bytes in all. `None` if it is too short to be worth it.
    pub fn new(len: u64) -> Option<Compression> {
        let most = usize::try_from(len - len / SAVING).ok().filter(|_| len >= SHORTEST)?;
        let encoder = Encoder::new(Coding::Zstd, Level::Normal, Some(len)).ok()?;
        Some(Compression { encoder: Some(encoder), out: Vec::new(), most, left: len })
    }

    /// Takes the next piece. False if the rest need not be passed in, because nothing is saved.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        self.left = self.left.saturating_sub(piece.len() as u64);
        let out = &mut self.out;
        let failed = self.encoder.as_mut().is_some_and(|encoder| encoder.push(piece, out).is_err());
        if failed || self.out.len() > self.most {
            self.encoder = None;
        }
        self.encoder.is_some()
    }

    /// The compressed body. `None` if it saves too little, or pieces are missing.
    pub fn finish(mut self) -> Option<Bytes> {
        self.encoder.filter(|_| self.left == 0)?.finish(&mut self.out).ok()?;
        (self.out.len() <= self.most).then(|| self.out.into())
    }
}

/// Inflates a body that declares `plain_len` bytes, and takes so many bytes of memory; the caller MUST have
/// found that it accepts them.
pub fn inflate(body: &[u8], plain_len: u64) -> Result<Bytes, EntryError> {
    let len =
        usize::try_from(plain_len).ok().filter(|_| plain_len <= MAX_BODY).ok_or(EntryError::TooLarge)?;
    inflate_zstd(body, len).map(Bytes::from).ok_or(EntryError::Inflated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(body: &[u8]) -> Option<Bytes> {
        let mut compression = Compression::new(body.len() as u64)?;
        body.chunks(1000).all(|piece| compression.push(piece));
        compression.finish()
    }

    fn page(bytes: usize) -> Vec<u8> {
        let words = (0..)
            .flat_map(|n: u32| format!("<p>{} of {n}</p>\n", n.wrapping_mul(2_654_435_761)).into_bytes());
        words.take(bytes).collect()
    }

    /// Bytes that do not shrink.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut reader = blake3::Hasher::new().finalize_xof();
        let mut out = vec![0; bytes];
        reader.fill(&mut out);
        out
    }

    #[test]
    fn text_shrinks_and_comes_back_as_it_was() {
        for len in [512, 30_000, 300_000] {
            let page = page(len);
            let small = compressed(&page).expect("text shrinks");
            assert!(small.len() * 2 < page.len(), "{len} to {}", small.len());
            assert!(inflate(&small, len as u64).unwrap() == page);
        }
    }

    #[test]
    fn what_saves_less_than_an_eighth_stays_plain() {
        assert_eq!(compressed(&noise(100_000)), None);
        let mut mixed = noise(100_000);
        mixed.resize(110_000, b' ');
        assert_eq!(compressed(&mixed), None);
        mixed.resize(120_000, b' ');
        assert!(compressed(&mixed).is_some());
    }

    #[test]
    fn short_bodies_stay_plain() {
        assert_eq!(compressed(&[b' '; 511]), None);
    }

    #[test]
    fn a_body_of_another_length_than_announced_is_not_compressed() {
        for len in [1999, 2001] {
            let mut compression = Compression::new(2000).unwrap();
            compression.push(&page(len));
            assert_eq!(compression.finish(), None, "{len}");
        }
    }

    #[test]
    fn nothing_else_than_the_declared_length_is_inflated() {
        let small = compressed(&page(30_000)).unwrap();
        for declared in [0, 29_999, 30_001, MAX_BODY + 1] {
            assert!(inflate(&small, declared).is_err(), "{declared}");
        }
        assert!(inflate(&small[..small.len() - 1], 30_000).is_err());
        assert!(inflate(&[&small[..], b"x"].concat(), 30_000).is_err());
        assert!(inflate(b"", 30_000).is_err());
        assert!(inflate(&page(100), 30_000).is_err());
    }

    #[test]
    fn a_bomb_is_not_inflated_beyond_what_it_declares() {
        let bomb = compressed(&vec![0; 10_000_000]).unwrap();
        assert!(bomb.len() < 2000);
        assert_eq!(inflate(&bomb, 1000), Err(EntryError::Inflated));
    }
}
