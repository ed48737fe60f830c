//! Lines of a file that may be compressed, none longer than a bound.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

/// A longer line is skipped. No server takes a request of which three fields, each byte escaped as four, need more.
const LONGEST: usize = 128 * 1024;

const BUFFER: usize = 64 * 1024;

/// The first bytes of gzip (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Lines of a file.
pub(super) struct Lines {
    source: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// A line that is longer than the bound.
    TooLong,
    /// Nothing.
    End,
}

impl Lines {
    pub(super) fn new(mut source: impl Read + Send + 'static) -> io::Result<Lines> {
        let mut start = Vec::new();
        source.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
        let gzip = start == GZIP;
        let source = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(source));
        // A log that was appended to, or several put together, is several members.
        let source: Box<dyn BufRead + Send> = match gzip {
            true => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(source))),
            false => Box::new(source),
        };
        Ok(Lines { source, line: Vec::new(), number: 0 })
    }

    /// The number of the line that was read last, or was begun; the first is 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn read(&mut self) -> io::Result<Next<'_>> {
        self.line.clear();
        self.number += 1;
        let (mut begun, mut too_long) = (false, false);
        loop {
            let available = match self.source.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() && !begun {
                return Ok(Next::End);
            }
            begun = true;
            let end = memchr::memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            too_long |= self.line.len() + part.len() > LONGEST;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let ended = end.is_some() || available.is_empty();
            let used = part.len() + usize::from(end.is_some());
            self.source.consume(used);
            if ended {
                return Ok(if too_long { Next::TooLong } else { Next::Line(&self.line) });
            }
        }
    }
}
