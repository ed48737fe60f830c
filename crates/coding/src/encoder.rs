//! Encoders.

use std::io::{self, Write};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use sandarac_message::codings::Coding;
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::Level;

/// The window of a body of unknown length is 128 KiB, as a binary logarithm: pages repeat themselves within that, and a
/// stream that stays open for hours keeps it.
const WINDOW: u32 = 17;

/// The window of a body of known length is not larger than this. Decoders accept 8 MiB (RFC 9659 §3).
const MAX_WINDOW: u32 = 22;

/// The buffer between the brotli encoder and its output.
const BUFFER: usize = 4096;

/// Encodes a body piece by piece.
pub struct Encoder(Inner);

enum Inner {
    Zstd(Box<ZstdEncoder<'static, Vec<u8>>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Encoder {
    /// An encoder for a body of `len` bytes, if that is known; then the body MUST have so many.
    ///
    /// # Errors
    /// The coding's library has no memory.
    pub fn new(coding: Coding, level: Level, len: Option<u64>) -> io::Result<Encoder> {
        let window = len.map_or(WINDOW, |len| len.max(1).ilog2() + 1).min(MAX_WINDOW);
        Ok(Encoder(match coding {
            Coding::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), level.zstd())?;
                match len {
                    Some(_) => encoder.set_pledged_src_size(len)?,
                    None => {
                        encoder.set_parameter(CParameter::WindowLog(WINDOW))?;
                        // Larger tables are of no use in this window.
                        encoder.set_parameter(CParameter::HashLog(WINDOW - 2))?;
                        encoder.set_parameter(CParameter::ChainLog(WINDOW - 2))?;
                    }
                }
                Inner::Zstd(Box::new(encoder))
            }
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: level.brotli(),
                    lgwin: window.max(10) as i32,
                    size_hint: len.map_or(0, |len| usize::try_from(len).unwrap_or(usize::MAX)),
                    ..BrotliEncoderParams::default()
                };
                Inner::Brotli(Box::new(CompressorWriter::with_params(Vec::new(), BUFFER, &params)))
            }
            Coding::Gzip => {
                let level = flate2::Compression::new(level.gzip());
                Inner::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
        }))
    }

    /// Bytes of memory that an encoder for a body of unknown length takes, roughly.
    pub const fn memory(coding: Coding) -> usize {
        match coding {
            Coding::Zstd => 1024 << 10,
            Coding::Brotli => 1024 << 10,
            Coding::Gzip => 384 << 10,
        }
    }

    /// Takes a piece, and appends what it yields to `out`.
    ///
    /// # Errors
    /// The body has another length than announced, or the library has no memory.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.with(out, |writer| writer.write_all(piece))
    }

    /// Appends everything to `out` that a decoder needs for what was passed in so far.
    ///
    /// # Errors
    /// As for [`Encoder::push`].
    pub fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.with(out, |writer| writer.flush())
    }

    /// Appends the end of the body to `out`.
    ///
    /// # Errors
    /// As for [`Encoder::push`].
    pub fn finish(self, out: &mut Vec<u8>) -> io::Result<()> {
        let rest = match self.0 {
            Inner::Zstd(encoder) => encoder.finish()?,
            Inner::Brotli(encoder) => encoder.into_inner(),
            Inner::Gzip(encoder) => encoder.finish()?,
        };
        append(rest, out);
        Ok(())
    }

    /// Works with the writer, whose output goes to `out`.
    fn with(
        &mut self,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let (worked, place) = match &mut self.0 {
            Inner::Zstd(encoder) => (work(encoder), encoder.get_mut()),
            Inner::Brotli(encoder) => (work(encoder), encoder.get_mut()),
            Inner::Gzip(encoder) => (work(encoder), encoder.get_mut()),
        };
        append(std::mem::take(place), out);
        worked
    }
}

/// Moves bytes to the end of `out`.
fn append(mut bytes: Vec<u8>, out: &mut Vec<u8>) {
    if out.is_empty() {
        *out = bytes;
    } else {
        out.append(&mut bytes);
    }
}
