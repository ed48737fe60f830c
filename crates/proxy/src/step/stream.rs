//! Deliver, for an object whose body is still arriving: the reader's bytes go to the client as they come.

use crate::downstream::Downstream;
use crate::exchange::WINDOW;
use crate::step::deliver::Rest;
use crate::trailers::{TrailerRule, end_response};
use crate::{Counter, Counters};
use bytes::Bytes;
use sandarac_cache::{Broken, Reader};
use sandarac_net::Output;
use sandarac_wire::h1::encode;
use std::future::poll_fn;

/// What was streamed.
pub(crate) struct Streamed {
    pub(crate) bytes: u64,
    /// Whether all of it is written or queued, so that the connection can go on.
    pub(crate) whole: bool,
    /// Whether it broke off at the origin.
    pub(crate) origin_broke: bool,
}

/// Sends what `rest` selects of the reader's body, and the trailers that `rule` lets through.
pub(crate) async fn stream(
    counters: &Counters,
    downstream: &mut Downstream<'_>,
    mut reader: Reader,
    rest: Rest,
    rule: Option<&TrailerRule>,
) -> Streamed {
    let mut output = Output::new();
    let mut bytes = 0;
    while bytes < rest.take {
        let at = reader.position();
        let chunk = match poll_fn(|cx| reader.poll_chunk(cx)).await {
            Some(Ok(chunk)) => select(chunk, at, rest),
            Some(Err(broken)) => {
                let origin_broke = broken != Broken::TooSlow;
                counters.one(if origin_broke { Counter::BodiesTruncated } else { Counter::ClientsSlow });
                return Streamed { bytes, whole: false, origin_broke };
            }
            None => {
                if rest.chunked {
                    match reader.object().trailers() {
                        Some(trailers) => end_response(output.inline(), trailers, rule),
                        None => output.inline().extend_from_slice(encode::LAST_CHUNK),
                    }
                    let sent = downstream.send(&mut output, WINDOW).await;
                    return Streamed { bytes, whole: sent.is_ok(), origin_broke: false };
                }
                break;
            }
        };
        if chunk.is_empty() {
            continue;
        }
        bytes += chunk.len() as u64;
        if rest.chunked {
            encode::chunk_size(output.inline(), chunk.len());
            output.share(chunk);
            output.inline().extend_from_slice(encode::CRLF);
        } else {
            output.share(chunk);
        }
        if let Err(error) = downstream.send(&mut output, WINDOW).await {
            counters.cut_off(&error);
            return Streamed { bytes, whole: false, origin_broke: false };
        }
    }
    let whole = rest.take == u64::MAX || bytes == rest.take;
    Streamed { bytes, whole, origin_broke: false }
}

/// What of `chunk`, which stands at `at` in the body, lies in the range that is wanted.
fn select(chunk: Bytes, at: u64, rest: Rest) -> Bytes {
    let from = rest.skip.saturating_sub(at).min(chunk.len() as u64);
    let end = rest.skip.saturating_add(rest.take).saturating_sub(at).min(chunk.len() as u64);
    chunk.slice(from as usize..end.max(from) as usize)
}
