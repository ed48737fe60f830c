//! Files that streams send. They are read before their frames are written ([`Outgoing`](super::Outgoing)), by a thread if that
//! may wait for a disk; other streams are sent meanwhile.

use super::Streams;
use crate::Moment;
use crate::file_reads::READ;
use crate::http2::outgoing::FileTruncated;
use crate::http2::stream::Reading;
use sandarac_wire::h2::ErrorCode;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

impl Streams {
    /// Has the files looked at again that threads read.
    pub(super) fn resume_reads(&mut self) {
        for id in std::mem::take(&mut self.reading) {
            self.schedule(id);
        }
    }

    /// Reads `most` bytes of the file that a stream sends next, which MUST NOT be scheduled. Returns whether its response breaks
    /// off without an exchange that notices it.
    pub(super) fn read_file(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        most: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(stream) = self.open.get_mut(id) else { return false };
        let before = stream.reading.map_or(0, |reading| reading.bytes);
        match stream.outgoing.poll_read(cx, most) {
            Poll::Pending => {
                if stream.reading.is_none() {
                    let bytes = stream.outgoing.queued().min(READ);
                    stream.reading = Some(Reading { since: Moment::now(), bytes });
                    stream.copied += bytes;
                    self.copied += bytes;
                }
                self.reading.push(id);
                false
            }
            Poll::Ready(Ok(read)) => {
                stream.reading = None;
                stream.copied = stream.copied + read - before;
                stream.is_scheduled = true;
                self.schedule.push_front(id, stream.priority.urgency);
                self.copied += read;
                self.free(before, 0);
                false
            }
            Poll::Ready(Err(FileTruncated)) => self.break_off(id, out),
        }
    }

    /// Resets streams whose file a thread has not read in `time`. Returns how many of them have no exchange that notices it, and
    /// whether others wait.
    pub(in crate::http2) fn judge_reads(&mut self, time: Duration) -> (usize, bool) {
        let now = Moment::now();
        let mut unnoticed = 0;
        for id in std::mem::take(&mut self.reading) {
            let Some(reading) = self.open.get(id).and_then(|stream| stream.reading) else { continue };
            if now.since(reading.since) < time {
                self.reading.push(id);
                continue;
            }
            let mut out = std::mem::take(&mut self.out);
            unnoticed += usize::from(self.break_off(id, &mut out));
            self.out = out;
        }
        (unnoticed, !self.reading.is_empty())
    }

    /// Resets a stream in the middle of its body. Returns whether no exchange notices it.
    fn break_off(&mut self, id: u32, out: &mut Vec<u8>) -> bool {
        let is_unnoticed = self.open.get(id).is_some_and(|stream| stream.request.is_none());
        self.wire.reset(id, ErrorCode::INTERNAL_ERROR, out);
        self.lose(id, io::ErrorKind::WriteZero);
        is_unnoticed
    }
}
