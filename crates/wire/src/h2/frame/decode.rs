//! Reading frames.

use super::super::code::ErrorCode;
use super::super::fault::{Fault, FrameError};
use super::kind::*;
use crate::h1::Parsed;

/// A frame, borrowed from the bytes it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of RFC 9113 §6")]
pub enum Frame<'a> {
    /// `flow` is what the frame takes from the windows: data and padding.
    Data {
        stream: u32,
        data: &'a [u8],
        flow: u32,
        end_stream: bool,
    },
    /// `block` is the first part of a header block; the rest follows unless `end_headers`.
    Headers {
        stream: u32,
        block: &'a [u8],
        dependency: Option<Dependency>,
        end_stream: bool,
        end_headers: bool,
    },
    Priority {
        stream: u32,
        dependency: Dependency,
    },
    Reset {
        stream: u32,
        code: ErrorCode,
    },
    Settings(Parameters<'a>),
    SettingsAck,
    PushPromise {
        stream: u32,
        promised: u32,
        block: &'a [u8],
        end_headers: bool,
    },
    Ping {
        ack: bool,
        data: [u8; 8],
    },
    GoAway {
        last_stream: u32,
        code: ErrorCode,
        debug: &'a [u8],
    },
    /// The increment may be zero, which is a fault of the stream or, on stream 0, of the connection.
    WindowUpdate {
        stream: u32,
        increment: u32,
    },
    Continuation {
        stream: u32,
        block: &'a [u8],
        end_headers: bool,
    },
    /// `stream` is the one whose priority changes; `value` is a Priority field value.
    PriorityUpdate {
        stream: u32,
        value: &'a [u8],
    },
    /// To be ignored (RFC 9113 §5.5), but not inside a header block.
    Unknown {
        kind: u8,
        stream: u32,
    },
}

/// The priority of RFC 7540 §5.3, which is only checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The stream that this one depends on.
    pub on: u32,
    /// Whether it depends exclusively.
    pub exclusive: bool,
    /// The weight, less one.
    pub weight: u8,
}

/// The parameters of a SETTINGS frame, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters<'a>(&'a [u8]);

impl Iterator for Parameters<'_> {
    type Item = (u16, u32);

    fn next(&mut self) -> Option<(u16, u32)> {
        let (parameter, rest) = self.0.split_first_chunk::<6>()?;
        self.0 = rest;
        let [a, b, value @ ..] = *parameter;
        Some((u16::from_be_bytes([a, b]), u32::from_be_bytes(value)))
    }
}

/// Reads one frame at the start of `buf`, and returns it with its bytes. A payload of more than
/// `max_frame_size` bytes is refused before it has arrived.
#[inline]
pub fn decode(buf: &[u8], max_frame_size: u32) -> Result<Parsed<(Frame<'_>, usize)>, FrameError> {
    let Some((header, rest)) = buf.split_first_chunk::<HEADER_LEN>() else { return Ok(Parsed::Partial) };
    let [l2, l1, l0, kind, flags, id @ ..] = *header;
    let len = u32::from_be_bytes([0, l2, l1, l0]);
    let stream = u32::from_be_bytes(id) & !RESERVED;
    if len > max_frame_size {
        return Err(FrameError::connection(Fault::FrameTooLarge));
    }
    let Some(payload) = rest.get(..len as usize) else { return Ok(Parsed::Partial) };
    let whole = HEADER_LEN + payload.len();
    match read(kind, flags, stream, payload) {
        Ok(frame) => Ok(Parsed::Complete((frame, whole))),
        // The only fault of a frame that concerns one stream alone (RFC 9113 §6.3).
        Err(Fault::InvalidFrameLength) if kind == PRIORITY => {
            Err(FrameError { fault: Fault::InvalidFrameLength, stream: Some((stream, whole)) })
        }
        Err(fault) => Err(FrameError::connection(fault)),
    }
}

#[inline]
fn read(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame<'_>, Fault> {
    match (kind, stream) {
        (DATA | HEADERS | PRIORITY | RST_STREAM | PUSH_PROMISE | CONTINUATION, 0) => {
            return Err(Fault::InvalidStreamId);
        }
        (SETTINGS | PING | GOAWAY | PRIORITY_UPDATE, 1..) => return Err(Fault::InvalidStreamId),
        _ => {}
    }
    let has = |flag| flags & flag != 0;
    Ok(match kind {
        DATA => Frame::Data {
            stream,
            data: unpadded(payload, flags)?,
            flow: payload.len() as u32,
            end_stream: has(END_STREAM),
        },
        HEADERS => {
            let mut block = unpadded(payload, flags)?;
            let mut dependency = None;
            if has(HAS_DEPENDENCY) {
                let (first, rest) = block.split_first_chunk().ok_or(Fault::InvalidFrameLength)?;
                (dependency, block) = (Some(read_dependency(*first)), rest);
            }
            Frame::Headers {
                stream,
                block,
                dependency,
                end_stream: has(END_STREAM),
                end_headers: has(END_HEADERS),
            }
        }
        PRIORITY => Frame::Priority { stream, dependency: read_dependency(exactly(payload)?) },
        RST_STREAM => Frame::Reset { stream, code: ErrorCode(u32::from_be_bytes(exactly(payload)?)) },
        SETTINGS if has(ACK) && payload.is_empty() => Frame::SettingsAck,
        SETTINGS if has(ACK) || !payload.len().is_multiple_of(6) => return Err(Fault::InvalidFrameLength),
        SETTINGS => Frame::Settings(Parameters(payload)),
        PUSH_PROMISE => {
            let (promised, block) =
                unpadded(payload, flags)?.split_first_chunk().ok_or(Fault::InvalidFrameLength)?;
            let promised = u32::from_be_bytes(*promised) & !RESERVED;
            Frame::PushPromise { stream, promised, block, end_headers: has(END_HEADERS) }
        }
        PING => Frame::Ping { ack: has(ACK), data: exactly(payload)? },
        GOAWAY => {
            let (first, debug) = payload.split_first_chunk::<8>().ok_or(Fault::InvalidFrameLength)?;
            let [a, b, c, d, code @ ..] = *first;
            Frame::GoAway {
                last_stream: u32::from_be_bytes([a, b, c, d]) & !RESERVED,
                code: ErrorCode(u32::from_be_bytes(code)),
                debug,
            }
        }
        WINDOW_UPDATE => {
            Frame::WindowUpdate { stream, increment: u32::from_be_bytes(exactly(payload)?) & !RESERVED }
        }
        CONTINUATION => Frame::Continuation { stream, block: payload, end_headers: has(END_HEADERS) },
        PRIORITY_UPDATE => {
            let (id, value) = payload.split_first_chunk().ok_or(Fault::InvalidFrameLength)?;
            Frame::PriorityUpdate { stream: u32::from_be_bytes(*id) & !RESERVED, value }
        }
        kind => Frame::Unknown { kind, stream },
    })
}

/// The payload without its padding. What the padding contains is ignored.
fn unpadded(payload: &[u8], flags: u8) -> Result<&[u8], Fault> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(Fault::InvalidFrameLength)?;
    let len = rest.len().checked_sub(padding.into()).ok_or(Fault::InvalidPadding)?;
    Ok(&rest[..len])
}

fn read_dependency([a, b, c, d, weight]: [u8; 5]) -> Dependency {
    let word = u32::from_be_bytes([a, b, c, d]);
    Dependency { on: word & !RESERVED, exclusive: word & RESERVED != 0, weight }
}

fn exactly<const N: usize>(payload: &[u8]) -> Result<[u8; N], Fault> {
    payload.try_into().map_err(|_| Fault::InvalidFrameLength)
}
