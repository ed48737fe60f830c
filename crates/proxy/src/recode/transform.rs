//! A body that is recoded as it is sent.

use super::memory::{CodingMemory, Taken};
use crate::core::Core;
use crate::report::tally::{CodedFrom, CodedTo};
use crate::{Counters, Fault};
use bytes::Bytes;
use sandarac_coding::{DecodeError, Decoder, Encoder, Level};
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use std::sync::Arc;

/// Bytes of a coded body that are decoded at a time, so that what they yield is bounded: 1.5 MiB at the most.
pub(super) const DECODED: usize = 2 << 10;

/// What is decoded at a time ends once it has yielded so much, although there may be more.
const YIELDED: usize = 64 << 10;

/// An encoder or a decoder in use.
pub(crate) struct Transform {
    coder: Option<Coder>,
    /// The coding of what comes out.
    to: Option<Coding>,
    /// Whether the coder may hold back bytes that were passed in.
    unflushed: bool,
    /// What was passed in and not decoded yet.
    rest: Bytes,
    counters: Arc<Counters>,
    _memory: Taken,
}

enum Coder {
    Encoder(Encoder),
    Decoder(Decoder),
}

/// The reason for a body that cannot be decoded.
pub(super) fn undecodable(error: DecodeError) -> Uncompressed {
    match error {
        DecodeError::Truncated => Uncompressed::CodingTruncated,
        DecodeError::Corrupt => Uncompressed::CodingCorrupt,
        DecodeError::TrailingBytes => Uncompressed::CodingTrailingBytes,
        // A bound that nobody has set is not exceeded.
        DecodeError::Bomb | DecodeError::TooLong => Uncompressed::CodingBomb,
        DecodeError::Window => Uncompressed::CodingWindow,
    }
}

/// Decodes the beginning of `piece`, and drops that.
fn decode(decoder: &mut Decoder, piece: &mut Bytes, out: &mut Vec<u8>) -> Result<(), Uncompressed> {
    while !piece.is_empty() && out.len() < YIELDED {
        let chunk = piece.split_to(piece.len().min(DECODED));
        decoder.push(&chunk, out).map_err(undecodable)?;
    }
    Ok(())
}

impl Transform {
    /// Transforms a body `to` a coding, or from the coding it came in (`from`) to none.
    ///
    /// # Errors
    /// There is no memory for that.
    pub(crate) fn new(
        core: &Core,
        to: Option<Coding>,
        from: Option<Coding>,
        level: Level,
    ) -> Result<Transform, Uncompressed> {
        let shared = &core.shared;
        let take = |memory: &CodingMemory, bytes| {
            memory.take(bytes, shared.store.settings().limit).ok_or(Uncompressed::Busy)
        };
        let (memory, coder) = match (to, from) {
            (Some(to), _) => (
                take(&shared.encoding_memory, Encoder::memory(to))?,
                Coder::Encoder(Encoder::new(to, level, None).map_err(|_| Uncompressed::Busy)?),
            ),
            (None, Some(from)) => {
                (take(&shared.decoding_memory, Decoder::memory(from))?, Coder::Decoder(Decoder::new(from)))
            }
            (None, None) => return Err(Uncompressed::CodingUnknown),
        };
        let counters = core.counters.clone();
        let rest = Bytes::new();
        Ok(Transform { coder: Some(coder), to, unflushed: false, rest, counters, _memory: memory })
    }

    /// Whether the body can turn out not to be in its coding.
    pub(crate) fn decodes(&self) -> bool {
        self.to.is_none()
    }

    /// The fault of a body that fails before any of it was sent.
    pub(crate) fn fault(reason: Uncompressed) -> Fault {
        if reason.is_undecodable() { Fault::Undecodable(reason) } else { Fault::ResponseBroken }
    }

    /// Takes a piece, and returns what it yields, or the first part of that: [`Transform::more`] returns the
    /// others. MUST NOT be called before these were taken.
    ///
    /// # Errors
    /// The body is not in its coding. It cannot go on.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, Uncompressed> {
        debug_assert!(!self.has_more());
        let mut out = Vec::new();
        let pushed = match &mut self.coder {
            Some(Coder::Encoder(encoder)) => encoder.push(piece, &mut out).map_err(|_| Uncompressed::Busy),
            Some(Coder::Decoder(decoder)) => {
                self.rest = Bytes::copy_from_slice(piece);
                decode(decoder, &mut self.rest, &mut out)
            }
            None => Ok(()),
        };
        self.unflushed = true;
        self.count(piece.len(), out.len());
        self.judged(pushed).map(|()| out)
    }

    /// Whether what was passed in may yield more.
    pub(crate) fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Returns more of what was passed in yields.
    ///
    /// # Errors
    /// As for [`Transform::push`].
    pub(crate) fn more(&mut self) -> Result<Vec<u8>, Uncompressed> {
        let mut out = Vec::new();
        let decoded = match &mut self.coder {
            Some(Coder::Decoder(decoder)) => decode(decoder, &mut self.rest, &mut out),
            _ => Ok(()),
        };
        self.count(0, out.len());
        self.judged(decoded).map(|()| out)
    }

    /// Returns what was held back, so that the reader has everything that was passed in.
    ///
    /// # Errors
    /// As for [`Transform::push`].
    pub(crate) fn flush(&mut self) -> Result<Vec<u8>, Uncompressed> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.unflushed)
            && let Some(Coder::Encoder(encoder)) = &mut self.coder
        {
            let flushed = encoder.flush(&mut out).map_err(|_| Uncompressed::Busy);
            self.count(0, out.len());
            self.judged(flushed)?;
        }
        Ok(out)
    }

    /// Returns the end of the body; empty if that was returned already.
    ///
    /// # Errors
    /// The body is not whole, or as for [`Transform::push`].
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>, Uncompressed> {
        let mut out = Vec::new();
        let finished = match self.coder.take() {
            Some(Coder::Encoder(encoder)) => encoder.finish(&mut out).map_err(|_| Uncompressed::Busy),
            Some(Coder::Decoder(decoder)) => decoder.finish().map_err(undecodable),
            None => Ok(()),
        };
        self.count(0, out.len());
        self.judged(finished).map(|()| out)
    }

    fn count(&self, before: usize, after: usize) {
        self.counters.coded_from.add(&CodedFrom(self.to), before as u64);
        self.counters.coded_to.add(&CodedTo(self.to), after as u64);
    }

    /// Counts a failure.
    fn judged(&self, result: Result<(), Uncompressed>) -> Result<(), Uncompressed> {
        if let Err(reason) = &result {
            self.counters.uncompressed.one(reason);
        }
        result
    }
}
