//! Message bodies as they arrive on a connection, with any framing.

use crate::Conn;
use crate::http2::origin::StreamFault;
use sandarac_message::FieldsBuf;
use sandarac_wire::fastcgi;
use sandarac_wire::h1::BodyFraming;
use sandarac_wire::h1::Refusal;
use sandarac_wire::h1::chunked::{Decoded, Decoder, Event};
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// The framing of a body that is being received (RFC 9112 §6.3).
#[derive(Debug)]
pub enum Framer {
    /// This many bytes are left.
    Length(u64),
    /// The chunked transfer coding.
    Chunked(Box<Decoder>),
    /// Everything until the peer closes: responses only.
    UntilClose,
    /// The body has ended.
    Ended,
}

/// A step in receiving a body.
#[derive(Debug)]
pub enum BodyStep {
    /// These bytes of [`Conn::data`] are body. After use, the caller consumes up to the end of the range.
    Data(Range<usize>),
    /// The body has ended, with these trailer fields.
    End(FieldsBuf),
}

/// Why a body could not be received.
#[derive(Debug)]
pub enum BodyError {
    /// The peer closed before the end.
    Truncated,
    /// The framing is wrong.
    Refused(Refusal),
    /// The records of FastCGI that carry it are wrong.
    Records(fastcgi::Refusal),
    /// Its sender is too slow.
    Late,
    /// The connection failed.
    Io(io::Error),
    /// The stream of HTTP/2 that carries it has ended early.
    Stream(StreamFault),
}

impl From<BodyFraming> for Framer {
    fn from(framing: BodyFraming) -> Framer {
        match framing {
            BodyFraming::None | BodyFraming::Length(0) => Framer::Ended,
            BodyFraming::Length(length) => Framer::Length(length),
            BodyFraming::Chunked => Framer::Chunked(Box::new(Decoder::new())),
            BodyFraming::UntilClose => Framer::UntilClose,
        }
    }
}

impl Framer {
    /// A framer for the body of a response, which is more lenient than that of a request: see
    /// [`Decoder::of_response`].
    pub fn of_response(framing: BodyFraming) -> Framer {
        match framing {
            BodyFraming::Chunked => Framer::Chunked(Box::new(Decoder::of_response())),
            other => other.into(),
        }
    }

    /// Whether the body has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self, Framer::Ended)
    }

    /// Bytes still to come, if known.
    pub fn remaining(&self) -> Option<u64> {
        match self {
            Framer::Length(left) => Some(*left),
            Framer::Ended => Some(0),
            Framer::Chunked(_) | Framer::UntilClose => None,
        }
    }

    /// Records that `n` bytes of a body with a known length were taken from the connection by other means.
    pub fn taken(&mut self, n: u64) {
        if let Framer::Length(left) = self {
            *left -= n;
            if *left == 0 {
                *self = Framer::Ended;
            }
        }
    }

    /// Bytes of content in `data`, which has arrived and is not used by a step yet. Consumes nothing. Fails
    /// if the framing in it is wrong.
    pub fn survey(&self, mut data: &[u8]) -> Result<u64, Refusal> {
        let Framer::Chunked(decoder) = self else { return Ok(data.len() as u64) };
        let mut decoder = decoder.clone();
        let mut content = 0;
        loop {
            let Decoded { consumed, event } = decoder.decode(data)?;
            data = &data[consumed..];
            match event {
                Event::Data(range) => content += range.len() as u64,
                Event::NeedMore | Event::End(_) => return Ok(content),
            }
        }
    }

    /// The next step that can be taken with the bytes that have arrived; `None` if more must be read first.
    pub fn step(&mut self, conn: &mut Conn) -> Result<Option<BodyStep>, BodyError> {
        let data = conn.data();
        match self {
            Framer::Ended | Framer::Length(0) => {
                *self = Framer::Ended;
                Ok(Some(BodyStep::End(FieldsBuf::new())))
            }
            _ if data.is_empty() => Ok(None),
            Framer::Length(left) => {
                let n = data.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= n as u64;
                Ok(Some(BodyStep::Data(0..n)))
            }
            Framer::UntilClose => Ok(Some(BodyStep::Data(0..data.len()))),
            Framer::Chunked(decoder) => {
                let Decoded { consumed, event } = decoder.decode(data).map_err(BodyError::Refused)?;
                let repairs = decoder.repairs();
                if !repairs.is_empty() {
                    conn.repaired(repairs);
                }
                match event {
                    Event::Data(range) => {
                        debug_assert_eq!(consumed, range.end);
                        Ok(Some(BodyStep::Data(range)))
                    }
                    Event::NeedMore => {
                        conn.consume(consumed);
                        Ok(None)
                    }
                    Event::End(trailers) => {
                        conn.consume(consumed);
                        *self = Framer::Ended;
                        Ok(Some(BodyStep::End(trailers)))
                    }
                }
            }
        }
    }

    /// The next step, reading from the connection if needed.
    pub fn poll_step(&mut self, conn: &mut Conn, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        loop {
            if let Some(step) = self.step(conn)? {
                return Poll::Ready(Ok(step));
            }
            if ready!(conn.poll_fill(cx)).map_err(BodyError::Io)? == 0 {
                return Poll::Ready(match self {
                    Framer::UntilClose => {
                        *self = Framer::Ended;
                        Ok(BodyStep::End(FieldsBuf::new()))
                    }
                    _ => Err(BodyError::Truncated),
                });
            }
        }
    }
}
