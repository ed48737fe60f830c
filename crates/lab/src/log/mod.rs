//! Access logs, read as a stream of requests, in memory that does not grow with the log.
//!
//! A line is in the NCSA common or combined format, either optionally preceded by the virtual host (Apache's
//! `vhost_combined`), or in the JSON that `[log] format = "json"` writes. The format is detected for each
//! line. gzip is detected by its first bytes.

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

/// After this many lines without one of an access log, the file is rejected.
const PATIENCE: u64 = 1000;

/// The parts of a log to replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Whether HEAD is replayed, beside GET.
    pub head: bool,
    /// The host of requests without one in their line.
    pub host: String,
}

/// A request of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// Its arrival, counted from the first request; never before the previous one.
    pub at: Duration,
    /// Whether its method is HEAD; otherwise it is GET.
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

/// Why a log cannot be replayed, or only in part.
#[derive(Debug)]
pub enum LogError {
    /// It has no lines.
    Empty,
    /// No line is one of an access log.
    NotALog {
        /// The first line, from 1.
        line: u64,
        /// What is wrong with it.
        why: Malformed,
    },
    /// It has lines, but no request to replay.
    NothingToPlay,
    /// Reading it failed.
    Read {
        /// Lines read before the failure.
        after: u64,
        /// The error.
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
    /// Requests of one time that are yet to be returned, and the first of the next time.
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
    /// If reading fails.
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

    /// The summary so far.
    pub fn tally(&self) -> &LogTally {
        &self.tally
    }

    /// The next request to replay; `None` after the last.
    ///
    /// # Errors
    /// If reading fails, if it is not a log, or if it has nothing to replay. It ends there.
    pub fn next_request(&mut self) -> Result<Option<LogRequest>, LogError> {
        if self.group.is_empty() && !self.ended {
            self.ended = true;
            self.read_group()?;
            self.ended = false;
        }
        Ok(self.group.pop_front())
    }

    /// Reads the requests of one time, within the precision of the lines, and assigns their arrival times.
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

    /// The next line with a request to replay.
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
                Ok(Line::Request(_) | Line::Other) => self.tally.others += 1,
                Err(why) => {
                    self.tally.count(self.lines.number(), why);
                    self.give_up(PATIENCE)?;
                }
            }
        }
    }

    /// Rejects the file after this many lines without one of an access log.
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
