//! The thread that writes the access log, and the batches that cores send to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use sandarac_message::Timestamp;
use sandarac_proxy::Record;

use super::Format;
use crate::stderr::print_line;

/// A batch is sent when it holds this many bytes.
const BATCH_BYTES: usize = 32 * 1024;

/// The most batches that wait for the writer: 8 MiB of lines, some 40 000 of them.
const MAX_WAITING_BATCHES: usize = 256;

/// The most batches that are merged.
const MAX_MERGED_BATCHES: usize = 16;

/// How often the writer checks whether the file was moved away, and whether a failed one can be opened again.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The destination of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, appended to; reopened when it has been moved away, or by
    /// [`AccessLog::reopen`](super::AccessLog::reopen).
    File(PathBuf),
}

impl Destination {
    /// Opens it for a moment, in the same way as the writer.
    ///
    /// # Errors
    /// The name of a file that cannot be opened.
    pub(super) fn check(self) -> io::Result<()> {
        Sink::open(self).map(drop)
    }
}

enum Message {
    Lines(Lines),
    Reopen,
    Flush(SyncSender<()>),
}

/// Lines, one after another.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// For each line, the time of its record, and its end.
    ends: Vec<(Timestamp, usize)>,
}

impl Lines {
    fn push(&mut self, record: &Record<'_>, format: Format) {
        format.write(record, &mut self.bytes);
        self.ends.push((record.time, self.bytes.len()));
    }

    fn each(&self) -> impl Iterator<Item = (Timestamp, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end));
        starts.zip(&self.ends).map(|(start, &(time, end))| (time, &self.bytes[start..end]))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The lines of several batches, sorted by the time of their records.
fn merge(batches: &[Lines]) -> Vec<u8> {
    let mut lines: Vec<(Timestamp, &[u8])> = batches.iter().flat_map(Lines::each).collect();
    lines.sort_by_key(|&(time, _)| time);
    let mut merged = Vec::with_capacity(batches.iter().map(|batch| batch.bytes.len()).sum());
    lines.into_iter().for_each(|(_, line)| merged.extend_from_slice(line));
    merged
}

/// Counts of lines, of all logs of a process.
#[derive(Default)]
pub(super) struct Counts {
    dropped: AtomicU64,
    written: AtomicU64,
    /// A batch could not be sent and none has been sent since: reported once, not for each line.
    overflowing: AtomicBool,
}

impl Counts {
    /// Lines lost because they arrived faster than they could be written, or could not be written at all.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

/// How long shutdown waits for sent batches.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// One log. Dropping it waits for sent batches; the thread ends when the last handle is gone, too.
pub(super) struct Log {
    handle: LogHandle,
    /// Shutdown was waited for; not repeated if it timed out.
    finished: AtomicBool,
}

/// A core's handle for writing lines.
#[derive(Clone)]
pub(super) struct LogHandle {
    sender: SyncSender<Message>,
    counts: Arc<Counts>,
    format: Format,
}

impl Log {
    /// Opens `destination` and starts the thread that writes to it. A file that cannot be opened is an error now, which
    /// names it; later failures are reported on standard error and lose lines, never requests.
    pub(super) fn open(destination: Destination, format: Format, counts: Arc<Counts>) -> io::Result<Log> {
        let mut sink = Sink::open(destination)?;
        let (sender, receiver) = sync_channel(MAX_WAITING_BATCHES);
        let handle = LogHandle { sender, counts: Arc::clone(&counts), format };
        let writer =
            thread::Builder::new().name("log".to_owned()).spawn(move || sink.run(&receiver, &counts));
        writer.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start the thread of the access log: {error}"))
        })?;
        Ok(Log { handle, finished: AtomicBool::new(false) })
    }

    /// A core's handle for writing lines.
    pub(super) fn handle(&self) -> LogHandle {
        self.handle.clone()
    }

    /// Makes the writer reopen its file, after a rotation.
    pub(super) fn reopen(&self) {
        // A full channel only delays it: the writer checks every second anyway.
        let _ = self.handle.sender.try_send(Message::Reopen);
    }

    /// Waits until everything sent so far has been written, at most `limit`. `false` on a timeout.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let (done, flushed) = sync_channel(1);
        let until = Instant::now() + limit;
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.handle.sender.try_send(message) {
            if Instant::now() >= until {
                return false;
            }
            message = back;
            thread::sleep(Duration::from_millis(5));
        }
        flushed.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok()
    }

    /// Waits for sent batches, as dropping does, even if others hold the log; with the timeout of shutdown.
    pub(super) fn finish(&self) {
        if !self.finished.swap(true, Relaxed) && !self.flush(FLUSH_TIMEOUT) {
            print_line("sandarac: the last lines of the access log could not be written in time");
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.finish();
    }
}

impl LogHandle {
    /// An empty batch. Each core keeps one.
    pub(super) fn batch(&self) -> Batch {
        Batch { handle: self.clone(), lines: Lines::default() }
    }
}

/// Lines of one core that were not sent yet. Dropping it sends them.
pub(super) struct Batch {
    handle: LogHandle,
    lines: Lines,
}

impl Batch {
    /// Appends one record; sends a full batch.
    pub(super) fn push(&mut self, record: &Record<'_>) {
        self.lines.push(record, self.handle.format);
        if self.lines.bytes.len() >= BATCH_BYTES {
            self.send();
        }
    }

    /// Sends the lines, without waiting. If the writer is too far behind, they are dropped and counted.
    pub(super) fn send(&mut self) {
        if self.lines.ends.is_empty() {
            return;
        }
        let message = Message::Lines(std::mem::take(&mut self.lines));
        let counts = &self.handle.counts;
        match self.handle.sender.try_send(message) {
            Ok(()) => counts.overflowing.store(false, Relaxed),
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                if !counts.overflowing.swap(true, Relaxed) {
                    print_line("sandarac: the access log cannot be written fast enough; lines are dropped");
                }
                if let Message::Lines(lines) = message {
                    counts.dropped.fetch_add(lines.ends.len() as u64, Relaxed);
                    self.lines = lines;
                    self.lines.clear();
                }
            }
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.send();
    }
}

/// The destination of lines, and its state.
enum Sink {
    Stdout,
    Stderr,
    File {
        path: PathBuf,
        file: File,
        identity: (u64, u64),
        /// The last write or opening failed: reported once, until one succeeds.
        failing: bool,
    },
}

fn append_to(path: &Path) -> io::Result<(File, (u64, u64))> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, (metadata.dev(), metadata.ino())))
}

impl Sink {
    fn open(destination: Destination) -> io::Result<Sink> {
        match destination {
            Destination::Stdout => Ok(Sink::Stdout),
            Destination::Stderr => Ok(Sink::Stderr),
            Destination::File(path) => {
                let (file, identity) = append_to(&path).map_err(|error| {
                    let what = format!("cannot write the access log {}: {error}", path.display());
                    io::Error::new(error.kind(), what)
                })?;
                Ok(Sink::File { path, file, identity, failing: false })
            }
        }
    }

    fn run(&mut self, receiver: &Receiver<Message>, counts: &Counts) {
        let mut looked = Instant::now();
        let mut batches = Vec::new();
        loop {
            let mut received = receiver.recv_timeout(FILE_CHECK_INTERVAL);
            while let Ok(Message::Lines(lines)) = received {
                batches.push(lines);
                let next = if batches.len() < MAX_MERGED_BATCHES { receiver.try_recv().ok() } else { None };
                received = next.ok_or(RecvTimeoutError::Timeout);
            }
            if !batches.is_empty() {
                let all = batches.iter().map(|batch| batch.ends.len() as u64).sum();
                let written = self.write(&merge(&batches), all);
                counts.written.fetch_add(written, Relaxed);
                counts.dropped.fetch_add(all - written, Relaxed);
                batches.clear();
            }
            match received {
                Ok(Message::Reopen) => self.reopen(),
                // The receiver of the reply may have timed out; nothing depends on it.
                Ok(Message::Flush(done)) => drop(done.try_send(())),
                Ok(Message::Lines(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if looked.elapsed() >= FILE_CHECK_INTERVAL {
                looked = Instant::now();
                self.look();
            }
        }
    }

    /// Writes `all` lines. Returns the number written; a file never gets part of a line.
    fn write(&mut self, lines: &[u8], all: u64) -> u64 {
        match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                if out.write_all(lines).and_then(|()| out.flush()).is_ok() { all } else { 0 }
            }
            Sink::Stderr => io::stderr().lock().write_all(lines).map_or(0, |()| all),
            Sink::File { path, file, failing, .. } => match write_whole(file, lines) {
                Ok(()) => {
                    *failing = false;
                    all
                }
                Err((written, error)) => {
                    complain(failing, path, &error);
                    lines[..written].iter().filter(|&&byte| byte == b'\n').count() as u64
                }
            },
        }
    }

    /// Reopens the file if another, or none, is at its path now.
    fn look(&mut self) {
        if let Sink::File { path, identity, failing, .. } = self {
            let moved = std::fs::metadata(&*path).map_or(true, |now| (now.dev(), now.ino()) != *identity);
            if moved || *failing {
                self.reopen();
            }
        }
    }

    fn reopen(&mut self) {
        if let Sink::File { path, file, identity, failing } = self {
            match append_to(path) {
                Ok(opened) => (*file, *identity) = opened,
                // The old file stays open: its lines are not lost, but written to the moved file.
                Err(error) => complain(failing, path, &error),
            }
        }
    }
}

/// Writes lines at the end of a file. An error comes with the bytes of complete lines that were written: a partial line
/// is removed, because the next line would be appended to it.
fn write_whole(file: &mut File, lines: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < lines.len() {
        match file.write(&lines[written..]) {
            Ok(0) => return Err(take_back(file, &lines[..written], io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(take_back(file, &lines[..written], error)),
        }
    }
    Ok(())
}

fn take_back(file: &File, written: &[u8], error: io::Error) -> (usize, io::Error) {
    let whole = written.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let part = (written.len() - whole) as u64;
    if part > 0
        && let Ok(metadata) = file.metadata()
    {
        // A file that cannot be truncated, such as a pipe, keeps the part.
        let _ = file.set_len(metadata.len().saturating_sub(part));
    }
    (whole, error)
}

fn complain(failing: &mut bool, path: &Path, error: &io::Error) {
    if !std::mem::replace(failing, true) {
        print_line(format_args!("sandarac: cannot write the access log {}: {error}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use sandarac_test_support::{TempDir, within};

    const LIMIT: Duration = Duration::from_secs(10);

    fn written(log: &Log) -> u64 {
        log.handle.counts.written.load(Relaxed)
    }

    fn lines(path: &Path) -> usize {
        std::fs::read_to_string(path).unwrap().lines().count()
    }

    #[test]
    fn lines_of_all_batches_reach_the_file() {
        let dir = TempDir::new();
        let path = dir.join("access.log");
        let log = Log::open(Destination::File(path.clone()), Format::Combined, Arc::default()).unwrap();
        let handles: Vec<_> = (0..4)
            .map(|_| {
                let handle = log.handle();
                thread::spawn(move || {
                    let mut batch = handle.batch();
                    (0..1000).for_each(|_| batch.push(&example()));
                })
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        assert!(log.flush(LIMIT));
        assert_eq!(written(&log), 4000);
        assert_eq!(log.handle.counts.dropped(), 0);
        assert_eq!(lines(&path), 4000);
    }

    /// Regression: a batch was written in the order in which its exchanges had ended.
    #[test]
    fn lines_that_are_written_together_stand_by_time() {
        let mut batches = [Lines::default(), Lines::default()];
        for (batch, ms) in [(0, 20), (0, 0), (1, 30), (1, 10)] {
            let record = Record { time: example().time.plus(Duration::from_millis(ms)), ..example() };
            batches[batch].push(&record, Format::Json);
        }
        let text = String::from_utf8(merge(&batches)).unwrap();
        let times: Vec<&str> = text.lines().map(|line| &line[..32]).collect();
        assert!(times.len() == 4 && times.is_sorted(), "{text}");
    }

    /// Regression: after a disk had been full, half a line and the next one were written as one.
    #[test]
    fn a_line_that_is_written_in_part_is_taken_back() {
        let dir = TempDir::new();
        let path = dir.join("access.log");
        std::fs::write(&path, "one\n{\"half").unwrap();
        let (file, _) = append_to(&path).unwrap();
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let (whole, _) = take_back(&file, b"one\n{\"half", full);
        assert_eq!(whole, 4);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    }

    #[test]
    fn a_rotated_file_is_opened_anew_by_signal_and_by_itself() {
        let dir = TempDir::new();
        let (path, old, older) = (dir.join("access.log"), dir.join("access.log.1"), dir.join("access.log.2"));
        let log = Log::open(Destination::File(path.clone()), Format::Json, Arc::default()).unwrap();
        let mut batch = log.handle().batch();
        let mut write = || {
            batch.push(&example());
            batch.send();
            assert!(log.flush(LIMIT));
        };
        write();
        std::fs::rename(&path, &old).unwrap();
        log.reopen();
        write();
        assert_eq!(lines(&old), 1);
        assert_eq!(lines(&path), 1);
        std::fs::rename(&path, &older).unwrap();
        within("the writer to open its file anew", || path.exists().then_some(()));
        write();
        assert_eq!(lines(&older), 1);
        assert_eq!(lines(&path), 1);
    }

    #[test]
    fn a_worker_never_waits_for_a_log_that_nobody_reads() {
        let (sender, receiver) = sync_channel(2);
        let handle = LogHandle { sender, counts: Arc::default(), format: Format::Json };
        let mut batch = handle.batch();
        for _ in 0..5 {
            batch.push(&example());
            batch.send();
        }
        assert_eq!(handle.counts.dropped(), 3);
        drop(receiver);
        batch.push(&example());
        batch.send();
        assert_eq!(handle.counts.dropped(), 4);
    }

    #[test]
    fn what_is_left_is_written_when_the_log_is_dropped() {
        let dir = TempDir::new();
        let path = dir.join("access.log");
        let log = Log::open(Destination::File(path.clone()), Format::Json, Arc::default()).unwrap();
        let mut batch = log.handle().batch();
        batch.push(&example());
        drop(batch);
        drop(log);
        assert_eq!(lines(&path), 1);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_at_once() {
        let dir = TempDir::new();
        let path = dir.join("no/such/dir/a.log");
        let error = Log::open(Destination::File(path.clone()), Format::Json, Arc::default()).err().unwrap();
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let log = Log::open(Destination::File("/dev/full".into()), Format::Json, Arc::default()).unwrap();
        let mut batch = log.handle().batch();
        batch.push(&example());
        batch.send();
        assert!(log.flush(LIMIT));
        assert_eq!(written(&log), 0);
        assert_eq!(log.handle.counts.dropped(), 1);
    }
}
