//! Decoders.

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::{Decompress, FlushDecompress, Status};
use sandarac_message::codings::Coding;
use std::io;
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};
use zstd::zstd_safe::get_error_name;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;

use crate::DecodeError;

/// Bytes that a piece may grow to, however short it is: a block of any coding, and what a decoder held back.
pub const BURST: usize = 1 << 20;

/// How many times its own length a piece may grow to beyond [`BURST`]. Text hardly reaches a hundredth; zeros grow by a
/// thousand in gzip and without bound in the others.
pub const RATIO: usize = 256;

/// The largest window of zstd that a decoder allocates, as a binary logarithm: 8 MiB (RFC 9659 §3).
const ZSTD_WINDOW: u32 = 23;

/// Bytes that are decoded at a time.
const STEP: usize = 16 << 10;

/// Decodes a body piece by piece.
pub struct Decoder {
    inner: Inner,
    /// Takes the output of a step.
    buffer: Box<[u8; STEP]>,
    /// Whether the bytes so far are a whole body.
    ended: bool,
    /// Whether there was any byte.
    begun: bool,
}

enum Inner {
    Zstd(Box<ZstdDecoder<'static>>),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Gzip(Box<Decompress>),
}

impl Decoder {
    /// A decoder for a body in `coding`.
    pub fn new(coding: Coding) -> Decoder {
        let inner = match coding {
            Coding::Zstd => {
                let mut decoder = ZstdDecoder::new().expect("zstd has memory for a decoder");
                let set = decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW));
                set.expect("a valid window");
                Inner::Zstd(Box::new(decoder))
            }
            Coding::Brotli => Inner::Brotli(Box::new(BrotliState::new_strict(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            ))),
            Coding::Gzip => Inner::Gzip(Box::new(Decompress::new_gzip(15))),
        };
        Decoder { inner, buffer: Box::new([0; STEP]), ended: false, begun: false }
    }

    /// The most bytes of memory that a decoder takes: its window, for the most part.
    pub const fn memory(coding: Coding) -> usize {
        match coding {
            Coding::Zstd => 9 << 20,
            Coding::Brotli => 17 << 20,
            Coding::Gzip => 128 << 10,
        }
    }

    /// Takes a piece, and appends what it yields to `out`.
    ///
    /// # Errors
    /// The body is wrong. What was appended before the fault stays; nothing more may be passed in.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.push_within(piece, out, usize::MAX)
    }

    /// The same, while `out` has no more than `most` bytes.
    ///
    /// # Errors
    /// The same, and [`DecodeError::TooLong`] beyond `most`.
    pub fn push_within(&mut self, piece: &[u8], out: &mut Vec<u8>, most: usize) -> Result<(), DecodeError> {
        self.begun |= !piece.is_empty();
        let bound = BURST.saturating_add(RATIO.saturating_mul(piece.len())).saturating_add(out.len());
        let mut rest = piece;
        loop {
            if self.ended && !rest.is_empty() {
                self.begin_again(rest)?;
            }
            let Step { read, written, ended } = self.step(rest)?;
            out.extend_from_slice(&self.buffer[..written]);
            rest = &rest[read..];
            self.ended = ended;
            if out.len() > bound {
                return Err(DecodeError::Bomb);
            }
            if out.len() > most {
                return Err(DecodeError::TooLong);
            }
            // A full buffer may have more behind it.
            if written < STEP && (rest.is_empty() || (read == 0 && !ended)) {
                return if rest.is_empty() { Ok(()) } else { Err(DecodeError::Corrupt) };
            }
        }
    }

    /// Ends the body. A body without a byte is empty: some origins name a coding in redirects and errors that have
    /// no body.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if it is not whole.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.ended || !self.begun { Ok(()) } else { Err(DecodeError::Truncated) }
    }

    /// Begins with what follows the end of a body: another gzip member (RFC 1952 §2.2) or zstd frame (RFC 8878 §3).
    fn begin_again(&mut self, rest: &[u8]) -> Result<(), DecodeError> {
        let magic: &[u8] = match &self.inner {
            Inner::Zstd(_) => &[0x28, 0xb5, 0x2f, 0xfd],
            Inner::Gzip(_) => &[0x1f, 0x8b],
            Inner::Brotli(_) => return Err(DecodeError::TrailingBytes),
        };
        let seen = rest.len().min(magic.len());
        if rest[..seen] != magic[..seen] {
            return Err(DecodeError::TrailingBytes);
        }
        if let Inner::Gzip(decompress) = &mut self.inner {
            **decompress = Decompress::new_gzip(15);
        }
        self.ended = false;
        Ok(())
    }

    fn step(&mut self, input: &[u8]) -> Result<Step, DecodeError> {
        let out = &mut self.buffer[..];
        match &mut self.inner {
            Inner::Zstd(decoder) => {
                // Zero remains after a frame, and before the first.
                if input.is_empty() && (self.ended || !self.begun) {
                    return Ok(Step { read: 0, written: 0, ended: self.ended });
                }
                let status = decoder.run_on_buffers(input, out).map_err(|error| zstd_fault(&error))?;
                Ok(Step {
                    read: status.bytes_read,
                    written: status.bytes_written,
                    ended: status.remaining == 0,
                })
            }
            Inner::Brotli(state) => {
                if self.ended {
                    return Ok(Step { read: 0, written: 0, ended: true });
                }
                let (mut left, mut read) = (input.len(), 0);
                let (mut room, mut written, mut total) = (out.len(), 0, 0);
                let result = BrotliDecompressStream(
                    &mut left,
                    &mut read,
                    input,
                    &mut room,
                    &mut written,
                    out,
                    &mut total,
                    state,
                );
                match result {
                    BrotliResult::ResultFailure => Err(DecodeError::Corrupt),
                    result => {
                        Ok(Step { read, written, ended: matches!(result, BrotliResult::ResultSuccess) })
                    }
                }
            }
            Inner::Gzip(decompress) => {
                if self.ended {
                    return Ok(Step { read: 0, written: 0, ended: true });
                }
                let (read, written) = (decompress.total_in(), decompress.total_out());
                let status = decompress.decompress(input, out, FlushDecompress::None);
                let step = |ended| Step {
                    read: (decompress.total_in() - read) as usize,
                    written: (decompress.total_out() - written) as usize,
                    ended,
                };
                match status {
                    Ok(Status::StreamEnd) => Ok(step(true)),
                    Ok(Status::Ok | Status::BufError) => Ok(step(false)),
                    Err(_) => Err(DecodeError::Corrupt),
                }
            }
        }
    }
}

/// The fault behind an error of zstd, which has only the name of its code.
fn zstd_fault(error: &io::Error) -> DecodeError {
    let window = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
    match error.to_string() == get_error_name(0_usize.wrapping_sub(window)) {
        true => DecodeError::Window,
        false => DecodeError::Corrupt,
    }
}

/// The result of a step.
struct Step {
    read: usize,
    written: usize,
    /// Whether the body is whole.
    ended: bool,
}
