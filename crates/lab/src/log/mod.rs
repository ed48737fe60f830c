//! Access logs, read as a stream of requests: in memory that does not grow with the log.
//!
//! A line is in the NCSA common or combined format, either with the name of the virtual host before it
//! (Apache's `vhost_combined`), or in the JSON that `[log] format = "json"` writes. Which it is, each line
//! shows. gzip is known by its first bytes.

mod escape;
mod fields;
mod json;
mod line;
mod lines;
mod malformed;
mod ncsa;
mod tally;
mod time;
mod timeline;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use line::{Entry, Line};
use lines::{Lines, Next};
pub use malformed::Malformed;
pub use tally::LogTally;
use timeline::{GROUP, Timeline};

/// So many lines that are none of an access log, with none before them that is, are enough to see that this
/// is no log.
const PATIENCE: u64 = 1000;

/// What of a log is played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Whether HEAD is played, beside GET.
    pub head: bool,
    /// The host of requests whose line tells none.
    pub host: String,
}

/// A request that a log tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// When it came, counted from the first; never before the one that is told before it.
    pub at: Duration,
    /// Whether its method is HEAD; else it is GET.
    pub head: bool,
    /// The host, valid in a Host field.
    pub host: Vec<u8>,
    /// Path and query, valid in a request line.
    pub target: Vec<u8>,
    /// The value of `Referer`, valid in a field.
    pub referer: Option<Vec<u8>>,
    /// The value of `User-Agent`, valid in a field.
    pub user_agent: Option<Vec<u8>>,
}

/// Why a log cannot be played, or not to its end.
#[derive(Debug)]
pub enum LogError {
    /// There is no line in it.
    Empty,
    /// No line of it is one of an access log.
    NotALog {
        /// The first line, from 1.
        line: u64,
        /// What is wrong with it.
        why: Malformed,
    },
    /// It has lines, but no request that is played.
    NothingToPlay,
    /// It could not be read on.
    Read {
        /// Lines read before.
        after: u64,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Empty => f.write_str("it is empty"),
            LogError::NotALog { line, why } => write!(
                f,
                "it is no access log: line {line} is {why}\n  help: lines in the common or combined format, with or \
                 without the virtual host before them, and those of `[log] format = \"json\"` can be read"
            ),
            LogError::NothingToPlay => f.write_str("no request in it is a GET"),
            LogError::Read { after: 0, error } => write!(f, "cannot read it: {error}"),
            LogError::Read { after, error } => write!(f, "cannot read it beyond line {after}: {error}"),
        }
    }
}

impl std::error::Error for LogError {}

/// An access log.
pub struct Log {
    lines: Lines,
    options: LogOptions,
    tally: LogTally,
    timeline: Timeline,
    /// Requests of one time, which are yet to be given out, and the first of the next time.
    group: VecDeque<LogRequest>,
    ahead: Option<Entry>,
    ended: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("tally", &self.tally).finish_non_exhaustive()
    }
}

impl Log {
    /// Reads `source`, which may be compressed with gzip.
    ///
    /// # Errors
    /// If nothing can be read of it.
    pub fn new(source: impl Read + Send + 'static, options: LogOptions) -> Result<Log, LogError> {
        let lines = Lines::new(source).map_err(|error| LogError::Read { after: 0, error })?;
        Ok(Log {
            lines,
            options,
            tally: LogTally::default(),
            timeline: Timeline::default(),
            group: VecDeque::new(),
            ahead: None,
            ended: false,
        })
    }

    /// What was read so far.
    pub fn tally(&self) -> &LogTally {
        &self.tally
    }

    /// The next request that is to be played; `None` after the last.
    ///
    /// # Errors
    /// If the log cannot be read on, is none, or has nothing to play. It ends there.
    pub fn next_request(&mut self) -> Result<Option<LogRequest>, LogError> {
        if self.group.is_empty() && !self.ended {
            self.ended = true;
            self.read_group()?;
            self.ended = false;
        }
        Ok(self.group.pop_front())
    }

    /// Reads the requests that came at one time, as far as lines tell times, and places them in time.
    fn read_group(&mut self) -> Result<(), LogError> {
        let Some(first) = self.ahead.take().map_or_else(|| self.read_entry(), |entry| Ok(Some(entry)))?
        else {
            return Ok(());
        };
        let (time, whole_second) = (first.time, first.whole_second);
        let mut entries = vec![first];
        while entries.len() < GROUP {
            match self.read_entry()? {
                Some(entry) if entry.time == time => entries.push(entry),
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        let count = entries.len();
        let times = self.timeline.place(time, whole_second, count);
        self.group.extend(times.zip(entries).map(|(at, entry)| LogRequest {
            at,
            head: entry.head,
            host: entry.host.unwrap_or_else(|| self.options.host.clone().into_bytes()),
            target: entry.target,
            referer: entry.referer,
            user_agent: entry.user_agent,
        }));
        Ok(())
    }

    /// The next line that tells of a request to be played.
    fn read_entry(&mut self) -> Result<Option<Entry>, LogError> {
        loop {
            let read = match self.lines.read() {
                Ok(Next::Line(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Next::Line(line)) => Line::read(line),
                Ok(Next::TooLong) => Err(Malformed::TooLong),
                Ok(Next::End) => {
                    self.tally.trailing = self.lines.is_trailed();
                    return self.end();
                }
                Err(error) => return Err(LogError::Read { after: self.lines.number() - 1, error }),
            };
            self.tally.lines += 1;
            match read {
                Ok(Line::Request(entry)) if !entry.head || self.options.head => {
                    self.tally.requests += 1;
                    return Ok(Some(entry));
                }
                Ok(Line::Request(_) | Line::OtherMethod) => self.tally.others += 1,
                Err(why) => {
                    self.tally.count(self.lines.number(), why);
                    self.give_up(PATIENCE)?;
                }
            }
        }
    }

    /// Sees that this is no log, after so many lines.
    fn give_up(&self, after: u64) -> Result<(), LogError> {
        match self.tally.first() {
            Some((line, why)) if !self.tally.is_log() && self.tally.malformed() >= after => {
                Err(LogError::NotALog { line, why })
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<Option<Entry>, LogError> {
        self.give_up(0)?;
        match self.tally {
            LogTally { lines: 0, .. } => Err(LogError::Empty),
            LogTally { requests: 0, .. } => Err(LogError::NothingToPlay),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
