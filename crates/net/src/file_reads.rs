//! Reads of files that may wait for a disk. A core does not wait: it sends what the system has in memory, and lets another
//! thread read the rest.

use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use sandarac_message::FileRange;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes that are looked for in memory, and then sent, in one step.
const STEP: usize = 1024 * 1024;

/// The distance of the bytes that are looked for. The system reads at least so much ahead, unless told otherwise.
const PROBED_EVERY: usize = 128 * 1024;

/// Bytes that a thread reads at a time. A client that takes nothing holds so much memory.
pub(crate) const READ: usize = 64 * 1024;

/// What can be sent of a range.
pub(crate) enum Ready {
    /// So many bytes at its beginning, which are in memory of the system.
    InMemory(usize),
    /// These bytes, which are those at its beginning. None if the file ends before, or cannot be read.
    Read(Bytes),
}

/// A read by another thread, one at a time.
#[derive(Default)]
pub struct FileRead(Option<JoinHandle<io::Result<Vec<u8>>>>);

impl FileRead {
    /// Whether one has begun whose bytes were not returned yet.
    pub fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// The bytes at the beginning of `range`, at most `most` of them; none if the file ends before. The range MUST be the same
    /// until this is ready.
    ///
    /// # Errors
    /// The file cannot be read, or the core ends.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        range: &FileRange,
        most: usize,
    ) -> Poll<io::Result<Vec<u8>>> {
        let reading = self.0.get_or_insert_with(|| {
            let FileRange { file, start, len, .. } = range.clone();
            tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; len.min(most)];
                let read = file.read_at(&mut bytes, start)?;
                bytes.truncate(read);
                Ok(bytes)
            })
        });
        let read = ready!(Pin::new(reading).poll(cx));
        self.0 = None;
        Poll::Ready(read.map_err(io::Error::other).and_then(|read| read))
    }
}

/// The read of one range at a time.
#[derive(Default)]
pub(crate) struct FileReads(FileRead);

impl FileReads {
    /// What can be sent of `range` now. If that is nothing, a thread reads. The range MUST be the same until this is ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, range: &FileRange) -> Poll<Ready> {
        if !range.may_wait {
            return Poll::Ready(Ready::InMemory(range.len));
        }
        if !self.0.is_under_way() {
            let len = in_memory(range);
            if len > 0 {
                return Poll::Ready(Ready::InMemory(len));
            }
        }
        let read = ready!(self.0.poll(cx, range, READ));
        Poll::Ready(Ready::Read(read.unwrap_or_default().into()))
    }

    /// The bytes at the beginning of `range`: at most `most` of them if they are in memory, else what a thread reads, and
    /// never more than [`READ`]. None if the file ends before, or cannot be read. The range MUST be the same until this is ready.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>, range: &FileRange, most: usize) -> Poll<Bytes> {
        let read = match self.0.is_under_way() {
            true => None,
            false => read_at_once(range, most.min(READ)),
        };
        let read = match read {
            Some(read) => read,
            None => ready!(self.0.poll(cx, range, READ)),
        };
        Poll::Ready(read.unwrap_or_default().into())
    }

    /// Whether a thread reads, or has read what was not returned yet.
    pub(crate) fn is_under_way(&self) -> bool {
        self.0.is_under_way()
    }
}

/// The bytes at the beginning of `range`, at most `most` of them; none if the file ends before. `None` if reading them may wait
/// for a disk.
pub fn read_at_once(range: &FileRange, most: usize) -> Option<io::Result<Vec<u8>>> {
    let flags = if range.may_wait { ReadWriteFlags::NOWAIT } else { ReadWriteFlags::empty() };
    let mut bytes = vec![0; range.len.min(most)];
    match preadv2(&*range.file, &mut [IoSliceMut::new(&mut bytes)], range.start, flags) {
        Ok(read) => {
            bytes.truncate(read);
            Some(Ok(bytes))
        }
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => None,
        Err(errno) => Some(Err(errno.into())),
    }
}

/// Whether the system has all of `range` in memory. Of more than 1 MiB that is not said, because looking takes too long.
pub fn is_in_memory(range: &FileRange) -> bool {
    range.len <= STEP && in_memory(range) == range.len
}

/// The bytes at the beginning of `range` that can be read without waiting, up to [`STEP`].
fn in_memory(range: &FileRange) -> usize {
    let len = range.len.min(STEP);
    let mut at = 0;
    while at < len {
        if !is_byte_in_memory(range, at) {
            return at;
        }
        at += PROBED_EVERY;
    }
    if is_byte_in_memory(range, len - 1) { len } else { at - PROBED_EVERY }
}

/// Whether reading the byte at this position does not wait.
fn is_byte_in_memory(range: &FileRange, at: usize) -> bool {
    let mut byte = [0];
    loop {
        let into = &mut [IoSliceMut::new(&mut byte)];
        return match preadv2(&*range.file, into, range.start + at as u64, ReadWriteFlags::NOWAIT) {
            // Where the file ends now, sending it will tell.
            Ok(_) => true,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN | Errno::OPNOTSUPP) => false,
            Err(_) => true,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::OpenFile;
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;
    use std::task::Waker;

    fn range(content: usize, may_wait: bool) -> FileRange {
        let path = std::env::temp_dir().join(format!("sandarac-file-reads-{}-{content}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![b'x'; content]).unwrap();
        let file = Arc::new(File::open(&path).unwrap().into());
        std::fs::remove_file(&path).unwrap();
        FileRange { file, start: 0, len: content, may_wait }
    }

    #[test]
    fn what_was_just_written_is_in_memory_up_to_one_step() {
        let mut cx = Context::from_waker(Waker::noop());
        for (content, found) in [(13, 13), (100_000, 100_000), (STEP, STEP), (4 * STEP, STEP)] {
            match FileReads::default().poll(&mut cx, &range(content, true)) {
                Poll::Ready(Ready::InMemory(len)) => assert_eq!(len, found),
                _ => panic!("{content} bytes are in memory"),
            }
            assert_eq!(is_in_memory(&range(content, true)), content <= STEP);
        }
    }

    #[test]
    fn bytes_in_memory_are_read_at_once_and_end_where_the_file_does() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut range = range(1000, true);
        let mut reads = FileReads::default();
        let mut read = |range: &FileRange| match reads.poll_bytes(&mut cx, range, 400) {
            Poll::Ready(bytes) => bytes.len(),
            Poll::Pending => panic!("they are in memory"),
        };
        let mut found = Vec::new();
        // Longer than the file is.
        range.len = 2000;
        for _ in 0..5 {
            let len = read(&range);
            found.push(len);
            range.start += len as u64;
            range.len -= len;
        }
        assert_eq!(found, [400, 400, 200, 0, 0]);
    }

    #[test]
    fn what_is_not_in_memory_is_read_by_a_thread_and_is_empty_past_the_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // The file of a process is never in memory.
            let file: Arc<OpenFile> = Arc::new(File::open("/proc/self/status").unwrap().into());
            for (start, some) in [(0, true), (1 << 20, false)] {
                let range = FileRange { file: file.clone(), start, len: 10, may_wait: true };
                assert!(!is_in_memory(&range));
                let mut reads = FileReads::default();
                let ready = std::future::poll_fn(|cx| reads.poll(cx, &range)).await;
                let Ready::Read(bytes) = ready else { panic!("it was read") };
                assert_eq!(&bytes[..bytes.len().min(5)], if some { &b"Name:"[..] } else { b"" });
            }
        });
    }
}
