//! The chunked transfer coding (RFC 9112 §7.1), decoded in place.

use super::fields::{self, Controls, Side};
use super::repair::{Repair, Repairs};
use super::{Limits, Parsed, Refusal};
use sandarac_message::{Fields, FieldsBuf, hop};
use std::ops::Range;

/// The most bytes in a trailer section.
pub const MAX_TRAILERS: usize = 8 * 1024;

/// The most field lines in a trailer section.
const MAX_TRAILER_FIELDS: usize = 64;

/// The most framing bytes of a body beyond the allowance, which is 16 bytes for each chunk and twice the
/// content. Endless extensions, or a body of tiny chunks with large extensions, are an attack
/// (CVE-2023-39326). Go uses the same measure against it.
pub const MAX_OVERHEAD: u64 = 16 * 1024;

/// Decodes one chunked body.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Framing bytes beyond the allowance; see [`MAX_OVERHEAD`].
    overhead: u64,
    /// Whether chunk sizes that break the grammar but have only one reading are accepted.
    repairs_sizes: bool,
    repairs: Repairs,
}

#[derive(Clone, Debug)]
enum State {
    /// In a chunk size, after this many digits.
    Size {
        size: u64,
        digits: u8,
    },
    /// In white space after a chunk size.
    SizeEnd {
        size: u64,
    },
    Extension {
        size: u64,
        part: Extension,
    },
    /// At the LF that ends the size line.
    SizeLf {
        size: u64,
    },
    /// In chunk data, with this many bytes to come.
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// In the trailer section, with the bytes that have arrived.
    Trailers {
        section: Vec<u8>,
    },
    End,
    /// The input is not in this coding.
    Refused(Refusal),
}

/// The position in a chunk extension (RFC 9112 §7.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// After the semicolon.
    NameStart,
    Name,
    /// After white space that follows a name.
    NameEnd,
    /// After the equals sign.
    ValueStart,
    Token,
    Quoted,
    /// After a backslash in a quoted string.
    Escaped,
    /// After the closing quote, or white space that follows a value.
    ValueEnd,
}

/// One step of decoding.
#[derive(Debug)]
pub struct Decoded {
    /// Bytes of the input that are processed, including data. The next input begins after them.
    pub consumed: usize,
    /// Their content.
    pub event: Event,
}

/// The result of a step of decoding.
#[derive(Debug)]
pub enum Event {
    /// Content: this range of the input, not empty, ending at [`Decoded::consumed`].
    Data(Range<usize>),
    /// All input is consumed and the body continues.
    NeedMore,
    /// The body has ended, with these trailers; those forbidden by [`hop::is_trailer`] are omitted. The rest
    /// of the input belongs to the next message.
    End(FieldsBuf),
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder at the start of a body.
    pub const fn new() -> Decoder {
        Decoder {
            state: State::Size { size: 0, digits: 0 },
            overhead: 0,
            repairs_sizes: false,
            repairs: Repairs::NONE,
        }
    }

    /// A decoder at the start of a response body. Chunk sizes that break the grammar are accepted if they
    /// have only one reading.
    pub fn of_response() -> Decoder {
        Decoder { repairs_sizes: true, ..Decoder::new() }
    }

    /// The repairs so far. If there are any, the connection must not be used again.
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// Whether the last chunk and the trailers have been read.
    pub fn is_end(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Continues decoding: consumes framing up to the next content, the end of the body, or the end of
    /// `input`. A refused body stays refused: every later call returns the same reason. After [`Event::End`]
    /// nothing more is consumed.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, Refusal> {
        let decoded = self.read_on(input);
        if let Err(refusal) = decoded {
            self.state = State::Refused(refusal);
        }
        decoded
    }

    /// Counts a byte of framing.
    fn charge(&mut self) -> Result<(), Refusal> {
        self.overhead += 1;
        if self.overhead > MAX_OVERHEAD { Err(Refusal::ChunkOverhead) } else { Ok(()) }
    }

    fn read_on(&mut self, input: &[u8]) -> Result<Decoded, Refusal> {
        if let State::Refused(refusal) = self.state {
            return Err(refusal);
        }
        let mut at = 0;
        while at < input.len() {
            let byte = input[at];
            match &mut self.state {
                State::Size { size, digits } => {
                    match byte {
                        b'\r' if *digits > 0 => self.state = State::SizeLf { size: *size },
                        b';' if *digits > 0 => {
                            self.state = State::Extension { size: *size, part: Extension::NameStart };
                        }
                        b' ' | b'\t' if *digits > 0 => self.state = State::SizeEnd { size: *size },
                        _ => {
                            let digit = (byte as char).to_digit(16).ok_or(size_fault(byte))?;
                            if *digits < 16 {
                                *digits += 1;
                            } else if self.repairs_sizes && *size >> 60 == 0 {
                                self.repairs.insert(Repair::ChunkSizeZeros);
                            } else {
                                return Err(Refusal::InvalidChunkSize);
                            }
                            *size = *size << 4 | u64::from(digit);
                        }
                    }
                    self.charge()?;
                    at += 1;
                }
                State::SizeEnd { size } => {
                    let size = *size;
                    match byte {
                        b' ' | b'\t' => {}
                        b';' => self.state = State::Extension { size, part: Extension::NameStart },
                        b'\r' if self.repairs_sizes => {
                            self.repairs.insert(Repair::ChunkSizeSpace);
                            self.state = State::SizeLf { size };
                        }
                        _ => return Err(size_fault(byte)),
                    }
                    self.charge()?;
                    at += 1;
                }
                State::Extension { size, part } => {
                    let size = *size;
                    match part.next(byte)? {
                        Some(next) => *part = next,
                        None => self.state = State::SizeLf { size },
                    }
                    self.charge()?;
                    at += 1;
                }
                State::SizeLf { size } => {
                    if byte != b'\n' {
                        return Err(Refusal::BareCr);
                    }
                    let due = size.saturating_mul(2).saturating_add(16);
                    self.overhead = self.overhead.saturating_sub(due);
                    self.state = match *size {
                        0 => State::Trailers { section: Vec::new() },
                        left => State::Data { left },
                    };
                    at += 1;
                }
                State::Data { left } => {
                    let len = (*left).min((input.len() - at) as u64) as usize;
                    *left -= len as u64;
                    if *left == 0 {
                        self.state = State::DataCr;
                    }
                    return Ok(Decoded { consumed: at + len, event: Event::Data(at..at + len) });
                }
                State::DataCr => {
                    if byte != b'\r' {
                        return Err(Refusal::InvalidChunkEnd);
                    }
                    self.state = State::DataLf;
                    at += 1;
                }
                State::DataLf => {
                    if byte != b'\n' {
                        return Err(Refusal::InvalidChunkEnd);
                    }
                    self.state = State::Size { size: 0, digits: 0 };
                    at += 1;
                }
                State::Trailers { section } => {
                    return match trailers(section, &input[at..])? {
                        Parsed::Partial => Ok(Decoded { consumed: input.len(), event: Event::NeedMore }),
                        Parsed::Complete((len, trailers)) => {
                            self.state = State::End;
                            Ok(Decoded { consumed: at + len, event: Event::End(trailers) })
                        }
                    };
                }
                State::Refused(refusal) => return Err(*refusal),
                State::End => return Ok(Decoded { consumed: 0, event: Event::End(FieldsBuf::new()) }),
            }
        }
        Ok(Decoded { consumed: at, event: Event::NeedMore })
    }
}

fn size_fault(byte: u8) -> Refusal {
    if byte == b'\n' { Refusal::BareLf } else { Refusal::InvalidChunkSize }
}

impl Extension {
    /// The position after `byte`; `None` after the CR that ends the line.
    fn next(self, byte: u8) -> Result<Option<Extension>, Refusal> {
        use Extension::*;
        let is_tchar = sandarac_message::is_tchar(byte);
        // White space is allowed around semicolons and equals signs (RFC 9112 §7.1.1) and, as in nginx and
        // HAProxy, at the end.
        Ok(Some(match (self, byte) {
            (_, b'\n') => return Err(Refusal::BareLf),
            (Name | NameEnd | Token | ValueEnd, b'\r') => return Ok(None),
            (Name | NameEnd | Token | ValueEnd, b';') => NameStart,
            (NameStart, b' ' | b'\t') => NameStart,
            (Name | NameEnd, b' ' | b'\t') => NameEnd,
            (ValueStart, b' ' | b'\t') => ValueStart,
            (Token | ValueEnd, b' ' | b'\t') => ValueEnd,
            (NameStart | Name, _) if is_tchar => Name,
            (Name | NameEnd, b'=') => ValueStart,
            (ValueStart, b'"') => Quoted,
            (ValueStart | Token, _) if is_tchar => Token,
            (Quoted, b'"') => ValueEnd,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, b'\t' | b' '..=0x7e | 0x80..) => Quoted,
            _ => return Err(Refusal::InvalidChunkExtension),
        }))
    }
}

/// Adds `input` to the trailer section. Once it is complete, returns the bytes of `input` that belong to it,
/// and the fields.
fn trailers(section: &mut Vec<u8>, input: &[u8]) -> Result<Parsed<(usize, FieldsBuf)>, Refusal> {
    let held = section.len();
    // One byte past the limit shows that it is exceeded.
    section.extend_from_slice(&input[..input.len().min(MAX_TRAILERS + 1 - held)]);
    let limits = Limits { head: MAX_TRAILERS + 1, fields: MAX_TRAILER_FIELDS, target: 0 };
    let mut spans = Vec::new();
    let parsed = fields::parse(section, 0, Side::Trailers, &limits, &mut spans, &mut Controls::default());
    match parsed {
        Ok(Parsed::Partial) => Ok(Parsed::Partial),
        Ok(Parsed::Complete(end)) => {
            let mut fields = FieldsBuf::new();
            for field in Fields::new(section, &spans).iter() {
                if hop::is_trailer(&field) {
                    fields.push(field.name, field.value).map_err(|_| Refusal::TrailersTooLarge)?;
                }
            }
            Ok(Parsed::Complete((end - held, fields)))
        }
        Err(Refusal::HeadTooLarge | Refusal::TooManyFields) => Err(Refusal::TrailersTooLarge),
        Err(refusal) => Err(refusal),
    }
}
