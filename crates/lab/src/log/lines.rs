//! Lines of a file that may be compressed, none longer than a bound.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::GzDecoder;

/// A longer line is skipped. No server accepts a request of which three fields, each byte escaped as four,
/// would be longer.
const LONGEST: usize = 128 * 1024;

const BUFFER: usize = 64 * 1024;

/// The first bytes of gzip (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Lines of a file.
pub(super) struct Lines {
    source: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
    /// Whether uncompressed bytes follow the compressed ones.
    trailing: Arc<AtomicBool>,
}

/// Consecutive gzip members: a log that was appended to, or several concatenated. Other bytes after them,
/// such as the padding of a tape, end them.
struct Members<R> {
    current: Option<GzDecoder<R>>,
    trailing: Arc<AtomicBool>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(current) = &mut self.current {
            let read = current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut source) = self.current.take().map(GzDecoder::into_inner) else { break };
            match source.fill_buf()?.first() {
                Some(first) if *first == GZIP[0] => self.current = Some(GzDecoder::new(source)),
                first => self.trailing.store(first.is_some(), Ordering::Relaxed),
            }
        }
        Ok(0)
    }
}

/// The next item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// A line that exceeds the limit.
    TooLong,
    /// The end.
    End,
}

impl Lines {
    pub(super) fn new(mut source: impl Read + Send + 'static) -> io::Result<Lines> {
        let mut start = Vec::new();
        source.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
        let gzip = start == GZIP;
        let source = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(source));
        let trailing = Arc::<AtomicBool>::default();
        let members = |source| Members { current: Some(GzDecoder::new(source)), trailing: trailing.clone() };
        let source: Box<dyn BufRead + Send> = match gzip {
            true => Box::new(BufReader::with_capacity(BUFFER, members(source))),
            false => Box::new(source),
        };
        Ok(Lines { source, line: Vec::new(), number: 0, trailing })
    }

    /// Whether uncompressed bytes followed the compressed ones, and were ignored.
    pub(super) fn is_trailed(&self) -> bool {
        self.trailing.load(Ordering::Relaxed)
    }

    /// The number of the line that was last read, or begun; the first is 1.
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
