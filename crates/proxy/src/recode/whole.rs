//! Recodings of stored objects: each is made once, by the first exchange that needs it, and the others wait for it.

use super::in_progress::Made;
use super::transform::{DECODED, undecodable};
use crate::core::Core;
use crate::tally::{CodedFrom, CodedTo};
use bytes::Bytes;
use sandarac_cache::{Object, Recoding};
use sandarac_coding::{Decoder, Encoder, Level};
use sandarac_message::Name;
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use std::sync::Arc;

/// The longest body, before or after, of which a recoding is made and kept. Longer ones are recoded as they are sent.
pub(super) const LARGEST: u64 = 16 << 20;

/// Bytes that are encoded before other work of the core gets its turn: a millisecond or two.
const STEP: usize = 64 << 10;

/// A recoding MUST save at least this part of the body.
const SAVING: usize = 20;

/// The body of a whole object in `coding`, or in none.
pub(super) async fn recoded(core: &Core, object: &Arc<Object>, coding: Option<Coding>, level: Level) -> Made {
    let of = |recoding: &Recoding| match recoding {
        Recoding::Made(recoded) => Ok(recoded.clone()),
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
        let head = object.head().recoded(coding).map_err(|_| Uncompressed::HeadTooLarge)?;
        Ok((head, body))
    });
    match made {
        Ok((head, body)) => {
            core.counters.coded_from.add(&CodedFrom(coding), len);
            core.counters.coded_to.add(&CodedTo(coding), body.len() as u64);
            let body = Bytes::from(body.into_boxed_slice());
            Ok(store.keep_recoding(object, coding, head, body))
        }
        Err(reason) => {
            if reason != Uncompressed::Busy {
                store.keep_useless(object, coding, reason);
            }
            Err(reason)
        }
    }
}

async fn encoded(object: &Object, coding: Coding, level: Level, len: u64) -> Result<Vec<u8>, Uncompressed> {
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
    if out.len() > most { Err(Uncompressed::NotSmaller) } else { Ok(out) }
}

/// `has_room` takes memory for so many bytes.
async fn decoded(object: &Object, mut has_room: impl FnMut(usize) -> bool) -> Result<Vec<u8>, Uncompressed> {
    let coding = object.head().shown().get(Name::ContentEncoding).and_then(Coding::of);
    let mut decoder = Decoder::new(coding.ok_or(Uncompressed::CodingUnknown)?);
    let mut out = Vec::new();
    for piece in object.body().segments().filter_map(|piece| piece.to_bytes()) {
        for chunk in piece.chunks(DECODED) {
            decoder.push_within(chunk, &mut out, LARGEST as usize).map_err(undecodable)?;
            if !has_room(out.len()) {
                return Err(Uncompressed::Busy);
            }
            if out.len() > STEP {
                tokio::task::yield_now().await;
            }
        }
    }
    decoder.finish().map_err(undecodable)?;
    Ok(out)
}
