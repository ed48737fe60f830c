//! Recodings of stored objects: each is made once, by the first exchange that needs it, and the others wait
//! for it.

use super::in_progress::Made;
use super::transform::{DECODED, undecodable};
use crate::core::Core;
use crate::report::tally::{CodedFrom, CodedTo};
use bytes::Bytes;
use sandarac_cache::{Object, Recoding, Removal};
use sandarac_coding::{DecodeError, Decoder, Encoder, Level};
use sandarac_message::Name;
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use std::sync::Arc;

/// The longest body, before or after, of which a recoding is made and kept. Longer ones are recoded as they
/// are sent.
pub(super) const LARGEST: u64 = 16 << 20;

/// Bytes that are encoded before other work of the core gets its turn: a millisecond or two.
const STEP: usize = 64 << 10;

/// A recoding MUST save at least this part of the body.
const SAVING: usize = 20;

/// The body of a whole object in `coding`, or in none.
pub(super) async fn recoded(core: &Core, object: &Arc<Object>, coding: Option<Coding>, level: Level) -> Made {
    let of = |recoding: &Recoding| match recoding {
        Recoding::Made(recoded) => Ok(Some(recoded.clone())),
        Recoding::TooLong => Ok(None),
        Recoding::Useless(reason) => Err(*reason),
    };
    if let Some(recoding) = object.recoding(coding) {
        return of(recoding);
    }
    let awaited = core.shared.recoding.of(object, coding);
    let make = || async {
        // It may have been made since.
        match object.recoding(coding) {
            Some(recoding) => of(recoding),
            None => make(core, object, coding, level).await,
        }
    };
    awaited.cell.get_or_init(make).await.clone()
}

async fn make(core: &Core, object: &Arc<Object>, coding: Option<Coding>, level: Level) -> Made {
    let store = &core.shared.store;
    let len = object.body().len().unwrap_or_default();
    let limit = store.settings().limit;
    // The tables of a decoder are no larger than what it yields, which is taken as it comes.
    let coder = coding.map_or(0, Encoder::memory);
    let bytes = coder.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
    let memory = if coding.is_some() { &core.shared.encoding_memory } else { &core.shared.decoding_memory };
    let mut memory = memory.take(bytes, limit).ok_or(Uncompressed::Busy)?;
    let body = match coding {
        Some(coding) => encoded(object, coding, level, len).await,
        None => decoded(object, |bytes| memory.bytes() >= bytes || memory.add(bytes, limit)).await,
    };
    let made = body.and_then(|body| {
        let Some(body) = body else { return Ok(None) };
        let head = object.head().recoded(coding).map_err(|_| Uncompressed::HeadTooLarge)?;
        Ok(Some((head, body)))
    });
    match made {
        Ok(None) => {
            store.keep_too_long(object, coding);
            Ok(None)
        }
        Ok(Some((head, body))) => {
            core.counters.coded_from.add(&CodedFrom(coding), len);
            core.counters.coded_to.add(&CodedTo(coding), body.len() as u64);
            let body = Bytes::from(body.into_boxed_slice());
            Ok(Some(store.keep_recoding(object, coding, head, body)))
        }
        Err(reason) => {
            match reason {
                Uncompressed::Busy => {}
                // What is damaged serves nobody: the next request fetches it again.
                Uncompressed::CodingTruncated
                | Uncompressed::CodingCorrupt
                | Uncompressed::CodingTrailingBytes => _ = store.discard(object, Removal::Broken),
                reason => store.keep_useless(object, coding, reason),
            }
            Err(reason)
        }
    }
}

/// A body in another coding; nothing if that would be too long.
type Recoded = Result<Option<Vec<u8>>, Uncompressed>;

async fn encoded(object: &Object, coding: Coding, level: Level, len: u64) -> Recoded {
    let mut encoder = Encoder::new(coding, level, Some(len)).map_err(|_| Uncompressed::Busy)?;
    let len = len as usize;
    let most = len - len / SAVING;
    let mut out = Vec::new();
    for piece in object.body().segments().filter_map(|piece| piece.to_bytes()) {
        for chunk in piece.chunks(STEP) {
            encoder.push(chunk, &mut out).map_err(|_| Uncompressed::Busy)?;
            if out.len() > most {
                return Err(Uncompressed::NotSmaller);
            }
            if len > STEP {
                tokio::task::yield_now().await;
            }
        }
    }
    encoder.finish(&mut out).map_err(|_| Uncompressed::Busy)?;
    if out.len() > most { Err(Uncompressed::NotSmaller) } else { Ok(Some(out)) }
}

/// `has_room` takes memory for so many bytes.
async fn decoded(object: &Object, mut has_room: impl FnMut(usize) -> bool) -> Recoded {
    let coding = object.head().shown().get(Name::ContentEncoding).and_then(Coding::of);
    let mut decoder = Decoder::new(coding.ok_or(Uncompressed::CodingUnknown)?);
    let mut out = Vec::new();
    for piece in object.body().segments().filter_map(|piece| piece.to_bytes()) {
        for chunk in piece.chunks(DECODED) {
            match decoder.push_within(chunk, &mut out, LARGEST as usize) {
                Err(DecodeError::TooLong) => return Ok(None),
                pushed => pushed.map_err(undecodable)?,
            }
            if !has_room(out.len()) {
                return Err(Uncompressed::Busy);
            }
            if out.len() > STEP {
                tokio::task::yield_now().await;
            }
        }
    }
    decoder.finish().map_err(undecodable)?;
    Ok(Some(out))
}
