//! Writing frames: each function appends one frame, or a header, to `out`.

use super::super::code::ErrorCode;
use super::super::settings::{MAX_WINDOW, Settings};
use super::kind::*;

/// The header of a DATA frame; exactly `len` bytes of data MUST follow. So data can be sent from where it
/// lies.
#[inline]
pub fn data_header(out: &mut Vec<u8>, stream: u32, len: u32, end_stream: bool) {
    header(out, len, DATA, if end_stream { END_STREAM } else { 0 }, stream);
}

/// A header block: HEADERS, and CONTINUATION for what exceeds `max_frame_size` bytes. `prefix` comes before
/// the block; it is empty or a table size update.
pub fn headers(
    out: &mut Vec<u8>,
    stream: u32,
    prefix: &[u8],
    block: &[u8],
    end_stream: bool,
    max_frame_size: u32,
) {
    let max = max_frame_size as usize;
    let (mut part, mut rest) = block.split_at(block.len().min(max.saturating_sub(prefix.len())));
    let flags = |last: bool, first| if last { END_HEADERS | first } else { first };
    out.reserve(HEADER_LEN + prefix.len() + part.len());
    let first = if end_stream { END_STREAM } else { 0 };
    header(out, (prefix.len() + part.len()) as u32, HEADERS, flags(rest.is_empty(), first), stream);
    out.extend_from_slice(prefix);
    out.extend_from_slice(part);
    while !rest.is_empty() {
        (part, rest) = rest.split_at(rest.len().min(max));
        header(out, part.len() as u32, CONTINUATION, flags(rest.is_empty(), 0), stream);
        out.extend_from_slice(part);
    }
}

/// RST_STREAM.
pub fn reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    header(out, 4, RST_STREAM, 0, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// SETTINGS, with the values that are not the defaults.
pub fn settings(out: &mut Vec<u8>, settings: &Settings) {
    let mut count = 0;
    settings.changed(|_, _| count += 1);
    header(out, count * 6, SETTINGS, 0, 0);
    settings.changed(|id, value| {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    });
}

/// The acknowledgement of SETTINGS.
pub fn settings_ack(out: &mut Vec<u8>) {
    header(out, 0, SETTINGS, ACK, 0);
}

/// PING, or the reply to one.
pub fn ping(out: &mut Vec<u8>, data: [u8; 8], ack: bool) {
    header(out, 8, PING, if ack { ACK } else { 0 }, 0);
    out.extend_from_slice(&data);
}

/// GOAWAY. `debug` is for people, and MUST be short.
pub fn go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode, debug: &[u8]) {
    header(out, 8 + debug.len() as u32, GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug);
}

/// WINDOW_UPDATE for a stream, or for the connection if `stream` is 0. `increment` MUST be 1 to 2^31-1.
pub fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    debug_assert!((1..=MAX_WINDOW).contains(&increment));
    header(out, 4, WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// PRIORITY_UPDATE (RFC 9218 §7.1).
pub fn priority_update(out: &mut Vec<u8>, stream: u32, value: &[u8]) {
    header(out, 4 + value.len() as u32, PRIORITY_UPDATE, 0, 0);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(value);
}

#[inline]
fn header(out: &mut Vec<u8>, len: u32, kind: u8, flags: u8, stream: u32) {
    debug_assert!(len < 1 << 24 && stream < RESERVED);
    let [_, l2, l1, l0] = len.to_be_bytes();
    let [s3, s2, s1, s0] = stream.to_be_bytes();
    out.extend_from_slice(&[l2, l1, l0, kind, flags, s3, s2, s1, s0]);
}
