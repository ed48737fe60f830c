//! Request bodies that are received whole before a backend is chosen.

use crate::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The part of the store's memory that gathered bodies may occupy together.
const SHARE: usize = 8;

/// Bytes of one piece of a body, for which its memory is charged.
const PIECE: usize = 64 << 10;

/// The memory that all gathered bodies occupy together.
#[derive(Clone, Default)]
pub(crate) struct GatheringBudget(Arc<AtomicUsize>);

impl GatheringBudget {
    /// Charges a piece if that is within the share of `memory`.
    fn charge(&self, memory: usize) -> bool {
        let most = memory / SHARE;
        let more = |held: usize| Some(held + PIECE).filter(|held| *held <= most);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// A body that is gathered. Bytes charged are bytes held.
pub(crate) struct Gathered {
    budget: GatheringBudget,
    pieces: Vec<Vec<u8>>,
    bytes: u64,
    /// The next piece to send.
    next: usize,
}

impl Gathered {
    pub(crate) fn new(budget: GatheringBudget) -> Gathered {
        Gathered { budget, pieces: Vec::new(), bytes: 0, next: 0 }
    }

    /// Adds bytes of the body. `memory` is the limit of the store.
    pub(crate) fn append(&mut self, mut data: &[u8], memory: usize) -> Result<(), Fault> {
        while !data.is_empty() {
            if self.pieces.last().is_none_or(|last| last.len() == PIECE) {
                if !self.budget.charge(memory) {
                    return Err(Fault::GatheringFull);
                }
                self.pieces.push(Vec::with_capacity(PIECE));
            }
            let last = self.pieces.last_mut().expect("there is one");
            let (now, later) = data.split_at(data.len().min(PIECE - last.len()));
            last.extend_from_slice(now);
            self.bytes += now.len() as u64;
            data = later;
        }
        Ok(())
    }

    /// Bytes of the body.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// The next piece to send; `None` after the last.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let piece = self.pieces.get(self.next)?;
        self.next += 1;
        Some(piece)
    }

    /// Begins again with the first piece.
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.pieces.len() * PIECE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_sent_as_it_was_gathered_and_again() {
        let body: Vec<u8> = (0..3 * PIECE as u32 + 17).map(|at| at as u8).collect();
        let mut gathered = Gathered::new(GatheringBudget::default());
        body.chunks(1000).for_each(|piece| gathered.append(piece, 1 << 30).unwrap());
        assert_eq!(gathered.len(), body.len() as u64);
        for _ in 0..2 {
            let mut sent = Vec::new();
            while let Some(piece) = gathered.next() {
                sent.extend_from_slice(piece);
            }
            assert!(sent == body);
            gathered.rewind();
        }
    }

    #[test]
    fn all_bodies_share_an_eighth_of_the_memory_and_give_it_back() {
        let budget = GatheringBudget::default();
        let memory = 3 * PIECE * SHARE;
        let gather = |bytes: usize| {
            let mut gathered = Gathered::new(budget.clone());
            gathered.append(&vec![0; bytes], memory).map(|()| gathered)
        };
        let first = gather(2 * PIECE).unwrap();
        let second = gather(1).unwrap();
        assert_eq!(gather(1).err(), Some(Fault::GatheringFull));
        drop(second);
        assert_eq!(gather(PIECE + 1).err(), Some(Fault::GatheringFull), "and what it took was given back:");
        gather(PIECE).unwrap();
        drop(first);
        gather(3 * PIECE).unwrap();
    }
}
