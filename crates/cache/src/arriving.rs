//! Bodies that are arriving: one writer, any number of readers.
//!
//! A body is kept whole while it is stored. Once it is not (it outgrew a limit, or was evicted), it streams:
//! bytes that all readers have read are freed, and the writer waits while the slowest reader is a window
//! behind.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use sandarac_message::Piece;
use sandarac_message::{FieldsBuf, Timestamp};

use crate::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::budget::{Budget, Charge, held};
use crate::buffer::Buffer;
use crate::growth::{FullTail, Growth};
use crate::loan::{Lender, Loan, NextMemory};
use crate::tail::{Tail, TailMemory};
use crate::wait_list::{Entries, Wake, keep};
use crate::whole_body::{Segment, Whole};

/// Why a body ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The fill was given up: the origin broke off, or its response is malformed.
    Aborted,
    /// This reader was too slow for an object that is not stored, and held up others.
    TooSlow,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Broken::Aborted => "the origin's response broke off",
            Broken::TooSlow => "read too slowly from a response that is not stored",
        })
    }
}

impl std::error::Error for Broken {}

/// The state that the writer and the readers of an arriving body share.
pub(crate) struct Arriving {
    text: Box<[u8]>,
    expected: Option<u64>,
    ended: OnceLock<Ended>,
    /// Its weight in its queue. Changed under the shard's lock only.
    weight: AtomicUsize,
    state: Mutex<State>,
    /// The charge for this struct.
    _charge: Charge,
}

/// A body that is complete and stored.
struct Ended {
    whole: Whole,
    trailers: Option<FieldsBuf>,
}

struct State {
    mode: Mode,
    /// Full segments, without gaps. While the body streams, those that some reader has yet to read.
    segments: VecDeque<Segment>,
    tail: Tail,
    /// A copy of part of the tail, shared by the readers at the live edge.
    edge: Option<Segment>,
    len: u64,
    readers: Entries<Reading>,
    /// The waker of a writer that waits for room.
    writer: Option<Waker>,
    /// Since when the window has been full.
    full_since: Option<Timestamp>,
    /// The charge for the tail.
    charge: Charge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The whole body is kept.
    Storing,
    /// Bytes that all readers have read are freed.
    Streaming,
    /// The whole body has arrived, or was streamed to its end.
    Complete,
    /// The writer gave up.
    Broken,
}

/// One reader.
struct Reading {
    at: u64,
    waker: Option<Waker>,
    /// Woken when the body begins to stream, and with that to depend on it.
    streams: Option<Waker>,
    /// Whether it was cut off because it held up the others for too long.
    cut: bool,
}

impl Arriving {
    /// An empty body. `charge` is for [`Arriving::base_bytes`].
    pub(crate) fn new(text: Box<[u8]>, expected: Option<u64>, mode: Mode, mut charge: Charge) -> Arriving {
        let base = charge.take();
        Arriving {
            text,
            expected,
            ended: OnceLock::new(),
            weight: AtomicUsize::new(base.bytes()),
            state: Mutex::new(State {
                mode,
                segments: VecDeque::new(),
                tail: Tail::default(),
                edge: None,
                len: 0,
                readers: Entries::new(),
                writer: None,
                full_since: None,
                charge,
            }),
            _charge: base,
        }
    }

    /// Bytes taken before any byte has arrived.
    pub(crate) fn base_bytes(text: usize) -> usize {
        held(size_of::<Arriving>() + 16) + held(text)
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn expected(&self) -> Option<u64> {
        self.expected
    }

    pub(crate) fn whole(&self) -> Option<&Whole> {
        self.ended.get().map(|ended| &ended.whole)
    }

    pub(crate) fn trailers(&self) -> Option<&FieldsBuf> {
        self.ended.get()?.trailers.as_ref()
    }

    pub(crate) fn weight(&self) -> usize {
        self.weight.load(Relaxed)
    }

    /// Adds to the weight in its queue. The shard's lock MUST be held.
    pub(crate) fn add_weight(&self, bytes: usize) {
        self.weight.store(self.weight() + bytes, Relaxed);
    }

    pub(crate) fn len(&self) -> u64 {
        self.state.lock().len
    }

    pub(crate) fn mode(&self) -> Mode {
        self.state.lock().mode
    }

    /// Whether it has readers.
    pub(crate) fn has_readers(&self) -> bool {
        self.state.lock().readers.len() > 0
    }

    /// Ends it if it has no reader: a request that looked it up before it left the store looks up again. Returns whether it had
    /// none. The object MUST have left the store.
    pub(crate) fn close_if_unread(&self) -> bool {
        let mut state = self.state.lock();
        if state.readers.len() > 0 {
            return false;
        }
        state.mode = Mode::Broken;
        true
    }

    /// Makes it stream from now on, because it is no longer stored.
    pub(crate) fn detach(&self) {
        let mut state = self.state.lock();
        if state.mode == Mode::Storing {
            state.mode = Mode::Streaming;
            state.seal();
            state.let_go();
            let mut wake = Wake::default();
            for (_, reading) in state.readers.iter_mut() {
                wake.add(reading.streams.take());
            }
            drop(state);
            wake.wake();
        }
    }

    /// Ready while the body streams, so that its slowest reader holds up the writer. Otherwise the task of `cx` is woken when
    /// that begins.
    pub(crate) fn poll_streams(&self, entry: usize, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        match (state.mode, state.readers.get_mut(entry)) {
            (Mode::Streaming, Some(_)) => return Poll::Ready(()),
            (Mode::Storing, Some(reading)) => keep(&mut reading.streams, cx),
            _ => {}
        }
        Poll::Pending
    }

    /// Grows a full tail, or makes it a segment and begins a new one in `buffer`. The caller has charged the
    /// growth. Returns false, and does nothing, if the body streams.
    pub(crate) fn extend(&self, growth: &Growth, buffer: Buffer) -> bool {
        let mut state = self.state.lock();
        if state.mode != Mode::Storing {
            return false;
        }
        if !growth.in_place {
            state.seal();
            state.tail.at = state.len;
            state.tail.memory = TailMemory::Here(buffer);
        }
        state.tail.grow(growth.capacity);
        state.charge.adopt(growth.cost);
        true
    }

    /// Adds as many of `bytes` as the tail has room for, or all while the body streams. Returns how many. An error if the tail
    /// is full.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<usize, FullTail> {
        let mut state = self.state.lock();
        let added = match state.mode {
            Mode::Storing => match state.tail.append(bytes) {
                0 => return Err(state.full_tail()),
                added => added,
            },
            _ => state.push(bytes),
        };
        state.len += added as u64;
        state.let_go();
        let wake = state.wake_readers();
        drop(state);
        wake.wake();
        Ok(added)
    }

    /// Adds a segment of another body, already weighed.
    pub(crate) fn share(&self, segment: &Segment) {
        let mut state = self.state.lock();
        state.seal();
        let at = state.len;
        if state.mode == Mode::Storing || state.readers.len() > 0 {
            state.segments.push_back(segment.moved(at));
        }
        state.len += segment.piece.len() as u64;
        state.let_go();
        let wake = state.wake_readers();
        drop(state);
        wake.wake();
    }

    /// Lends the unfilled part of the tail to the writer, so that no lock is held while it is read into. Looks for room and takes
    /// it under one lock, because the object may be evicted at any other moment. `None` if the body streams.
    pub(crate) fn lend(&self) -> Option<NextMemory<'_>> {
        let mut state = self.state.lock();
        if state.mode != Mode::Storing {
            return None;
        }
        let (filled, capacity) = (state.tail.filled, state.tail.capacity);
        if filled == capacity {
            return Some(NextMemory::Full(state.full_tail()));
        }
        let buffer = state.tail.take();
        drop(state);
        Some(NextMemory::Loan(Loan::new(self, buffer, filled..capacity)))
    }

    /// Ready when the window has room for more; always, while the body is stored. Cuts off readers that have
    /// kept the window full for `patience` while others have read everything.
    pub(crate) fn poll_room(
        &self,
        cx: &mut Context<'_>,
        window: u64,
        patience: Duration,
        now: Timestamp,
    ) -> Poll<()> {
        let mut state = self.state.lock();
        if state.mode != Mode::Streaming || state.behind() < window {
            state.full_since = None;
            return Poll::Ready(());
        }
        if !state.is_waited_for() {
            // The slow readers hold up no other reader.
            state.full_since = None;
            keep(&mut state.writer, cx);
            return Poll::Pending;
        }
        let since = *state.full_since.get_or_insert(now);
        if now < since.plus(patience) {
            keep(&mut state.writer, cx);
            return Poll::Pending;
        }
        let wake = state.cut(window);
        state.full_since = None;
        drop(state);
        wake.wake();
        Poll::Ready(())
    }

    /// Since when the window has been full.
    pub(crate) fn full_since(&self) -> Option<Timestamp> {
        self.state.lock().full_since
    }

    /// The segments that have arrived and the tail buffer, from which a whole body is made. The state keeps
    /// the segments: readers go on with them until [`Arriving::end`].
    pub(crate) fn take_whole(&self) -> Option<(Vec<Segment>, Buffer)> {
        let mut state = self.state.lock();
        if state.mode != Mode::Storing {
            return None;
        }
        // A reader that finds the tail lent is woken by the end.
        let mut tail = state.tail.take();
        tail.truncate(state.tail.filled);
        Some((state.segments.iter().cloned().collect(), tail))
    }

    /// All segments of a body that is kept whole but will not be completed.
    pub(crate) fn seal(&self) -> Option<Vec<Segment>> {
        let mut state = self.state.lock();
        if state.mode != Mode::Storing {
            return None;
        }
        state.seal();
        Some(state.segments.iter().cloned().collect())
    }

    /// Takes the charge for the tail.
    pub(crate) fn take_charge(&self) -> Charge {
        self.state.lock().charge.take()
    }

    /// Ends the body: all of it has arrived.
    pub(crate) fn end(&self, whole: Option<Whole>, trailers: Option<FieldsBuf>) {
        if let Some(whole) = whole {
            // There is one writer, so this is set once.
            _ = self.ended.set(Ended { whole, trailers });
        }
        self.close(Mode::Complete);
    }

    /// Ends the body early.
    pub(crate) fn abort(&self) {
        self.close(Mode::Broken);
    }

    fn close(&self, mode: Mode) {
        let mut state = self.state.lock();
        if self.ended.get().is_some() {
            state.segments = VecDeque::new();
            state.tail = Tail::default();
        } else {
            state.seal();
        }
        state.edge = None;
        state.mode = mode;
        let wake = state.wake_readers();
        drop(state);
        wake.wake();
    }
}

#[cfg(test)]
impl Arriving {
    /// The bytes that should be charged for it and for each segment, with an address that identifies each. If
    /// the body is no longer stored, the tail's actual charge is used.
    pub(crate) fn recount(&self) -> Vec<(usize, usize)> {
        let base = if self._charge.bytes() == 0 { 0 } else { Arriving::base_bytes(self.text.len()) };
        let state = self.state.lock();
        let tail = match state.mode {
            Mode::Storing if state.tail.capacity == 0 => 0,
            Mode::Storing if matches!(state.tail.memory, TailMemory::Here(Buffer::Slot(_))) => {
                Whole::large_segment_bytes(state.tail.capacity)
            }
            Mode::Storing => Whole::segment_bytes(state.tail.capacity),
            _ => state.charge.bytes(),
        };
        let own = (std::ptr::from_ref(self) as usize, base + tail);
        std::iter::once(own).chain(state.segments.iter().map(Segment::recount)).collect()
    }
}

impl Lender for Arriving {
    fn give_back(&self, buffer: Buffer, read: usize) {
        let mut state = self.state.lock();
        state.tail.put_back(buffer, read);
        state.len += read as u64;
        if state.mode != Mode::Storing {
            state.seal();
            state.let_go();
        }
        let wake = state.wake_readers();
        drop(state);
        wake.wake();
    }
}

impl State {
    /// Makes the tail a segment. While it is lent, it stays, and becomes one when it is given back.
    fn seal(&mut self) {
        if matches!(self.tail.memory, TailMemory::Lent) {
            return;
        }
        let mut tail = std::mem::take(&mut self.tail);
        let charge = self.charge.take();
        self.edge = None;
        if tail.filled > 0 {
            let mut buffer = tail.take();
            buffer.truncate(tail.filled);
            self.segments.push_back(Segment::new(tail.at, buffer, charge));
        }
    }

    fn full_tail(&self) -> FullTail {
        FullTail { capacity: self.tail.capacity, len: self.len }
    }

    /// Adds bytes to a body that streams, and returns how many. They are lent, because the window bounds them
    /// and they are soon freed.
    fn push(&mut self, bytes: &[u8]) -> usize {
        if !bytes.is_empty() && self.readers.len() > 0 {
            let copy: Box<[u8]> = bytes.into();
            self.segments.push_back(Segment::passing(self.len, copy, self.charge.budget()));
        }
        bytes.len()
    }

    /// The position of the slowest reader.
    fn slowest(&mut self) -> Option<u64> {
        self.readers.iter_mut().filter(|(_, reading)| !reading.cut).map(|(_, reading)| reading.at).min()
    }

    /// How far the slowest reader is behind.
    fn behind(&mut self) -> u64 {
        self.slowest().map_or(0, |at| self.len - at)
    }

    /// Whether some reader has read everything so far.
    fn is_waited_for(&mut self) -> bool {
        let len = self.len;
        self.readers.iter_mut().any(|(_, reading)| !reading.cut && reading.at == len)
    }

    /// Frees what all readers have read, if the body streams.
    fn let_go(&mut self) {
        if self.mode == Mode::Storing {
            return;
        }
        let from = self.slowest().unwrap_or(self.len);
        while self.segments.front().is_some_and(|segment| segment.end() <= from) {
            self.segments.pop_front();
        }
    }

    /// Cuts off all readers that are a window behind.
    fn cut(&mut self, window: u64) -> Wake {
        let mut wake = Wake::default();
        let limit = (self.len + 1).saturating_sub(window);
        for (_, reading) in self.readers.iter_mut() {
            if reading.at < limit {
                reading.cut = true;
                wake.add(reading.waker.take());
            }
        }
        self.let_go();
        wake
    }

    fn wake_readers(&mut self) -> Wake {
        let mut wake = Wake::default();
        for (_, reading) in self.readers.iter_mut() {
            wake.add(reading.waker.take());
        }
        wake
    }

    /// The contiguous bytes from `at` on.
    fn chunk(&mut self, at: u64) -> Option<Piece> {
        if at >= self.tail.at
            && self.tail.filled > 0
            && let TailMemory::Here(buffer) = &self.tail.memory
        {
            let filled = &buffer.bytes()[..self.tail.filled];
            let unread = &filled[(at - self.tail.at) as usize..];
            return Some(edge(&mut self.edge, at, unread, self.charge.budget()));
        }
        let place = self.segments.partition_point(|segment| segment.end() <= at);
        let segment = self.segments.get(place)?;
        Some(segment.piece.slice((at - segment.at) as usize..segment.piece.len()))
    }
}

/// The bytes of the tail from `at` on, which are `bytes`. They are copied, because the tail is still written to, but once for
/// all readers: `copy` keeps them.
fn edge(copy: &mut Option<Segment>, at: u64, bytes: &[u8], budget: &Arc<Budget>) -> Piece {
    if let Some(edge) = copy.as_ref().filter(|edge| edge.at <= at && at < edge.end()) {
        return edge.piece.slice((at - edge.at) as usize..edge.piece.len());
    }
    let bytes: Box<[u8]> = bytes.into();
    copy.insert(Segment::passing(at, bytes, budget)).piece.clone()
}

impl Arriving {
    /// Registers a reader at the start of the body. `Some(None)` if no entry is needed any more; `None` if
    /// the start was already freed.
    pub(crate) fn register(&self) -> Option<Option<usize>> {
        let mut state = self.state.lock();
        if self.whole().is_some() {
            return Some(None);
        }
        let start = state.segments.front().map_or(state.tail.at, |segment| segment.at);
        let held = match state.mode {
            Mode::Storing => true,
            Mode::Streaming => state.len == 0 || (start == 0 && !state.segments.is_empty()),
            Mode::Complete | Mode::Broken => false,
        };
        held.then(|| Some(state.readers.insert(Reading { at: 0, waker: None, streams: None, cut: false })))
    }

    pub(crate) fn unregister(&self, entry: usize) {
        let mut state = self.state.lock();
        state.readers.remove(entry);
        state.let_go();
        let writer = state.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn poll_chunk(
        &self,
        entry: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece, Broken>>> {
        let mut state = self.state.lock();
        let len = state.len;
        let mode = state.mode;
        let Some(reading) = state.readers.get_mut(entry) else {
            return Poll::Ready(None);
        };
        if reading.cut {
            return Poll::Ready(Some(Err(Broken::TooSlow)));
        }
        let at = reading.at;
        if self.whole().is_some() {
            return Poll::Ready(None);
        }
        if at < len
            && let Some(chunk) = state.chunk(at)
        {
            if let Some(reading) = state.readers.get_mut(entry) {
                reading.at += chunk.len() as u64;
            }
            let mut writer = None;
            if mode != Mode::Storing {
                state.let_go();
                writer = state.writer.take();
            }
            drop(state);
            writer.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(Ok(chunk)));
        }
        match mode {
            Mode::Complete => Poll::Ready(None),
            Mode::Broken => Poll::Ready(Some(Err(Broken::Aborted))),
            Mode::Storing | Mode::Streaming => {
                if let Some(reading) = state.readers.get_mut(entry) {
                    keep(&mut reading.waker, cx);
                }
                Poll::Pending
            }
        }
    }
}
