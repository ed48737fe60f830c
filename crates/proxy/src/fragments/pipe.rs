//! The way of a fragment from its exchange to the page.

use crate::report::fragment_failure::FragmentFailure;
use sandarac_message::Piece;
use sandarac_net::Holder;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes of a fragment that may wait for their turn in the page.
pub(super) const WINDOW: usize = 64 << 10;

/// What is shared by both ends.
struct State {
    /// The judgment of the head, once there is one.
    head: Option<Result<(), FragmentFailure>>,
    pieces: VecDeque<Piece>,
    /// Bytes in them. Those of memory that belongs to nothing else are leased.
    bytes: usize,
    holder: Holder,
    /// Whether the fragment has ended, and if so, whether it is whole.
    ended: Option<bool>,
    /// Whether the reader is gone.
    is_abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The end of the exchange. A fragment that it does not end has broken off.
pub(super) struct PipeWriter(Rc<RefCell<State>>);

/// The end of the page. When it is dropped, the exchange learns that its client has left.
pub(super) struct PipeReader(Rc<RefCell<State>>);

/// A pipe for one fragment of a page for `holder`.
pub(super) fn pipe(holder: &Holder) -> (PipeWriter, PipeReader) {
    let state = Rc::new(RefCell::new(State {
        head: None,
        pieces: VecDeque::new(),
        bytes: 0,
        holder: holder.clone(),
        ended: None,
        is_abandoned: false,
        reader: None,
        writer: None,
    }));
    (PipeWriter(state.clone()), PipeReader(state))
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Has `waker` woken later.
fn await_change(waker: &mut Option<Waker>, cx: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *waker = Some(cx.waker().clone()),
    }
}

impl PipeWriter {
    /// Passes on the judgment of the head.
    pub(super) fn begin(&self, judged: Result<(), FragmentFailure>) {
        let mut state = self.0.borrow_mut();
        state.head = Some(judged);
        wake(&mut state.reader);
    }

    /// Passes on a piece. False if the reader is gone.
    pub(super) fn push(&self, piece: Piece) -> bool {
        let mut state = self.0.borrow_mut();
        if state.is_abandoned {
            return false;
        }
        state.bytes += piece.len();
        state.pieces.push_back(piece);
        wake(&mut state.reader);
        true
    }

    /// Ends the fragment.
    pub(super) fn end(&self) {
        let mut state = self.0.borrow_mut();
        state.ended = Some(true);
        wake(&mut state.reader);
    }

    /// Whether the reader is gone.
    pub(super) fn is_abandoned(&self) -> bool {
        self.0.borrow().is_abandoned
    }

    /// Ready if no more than `window` bytes wait, or the reader is gone. Where nothing may be held ahead of
    /// its turn, the reader has to wait for it.
    pub(super) fn poll_room(&self, cx: &Context<'_>, window: usize) -> Poll<()> {
        let mut state = self.0.borrow_mut();
        let may_wait = || state.bytes <= window && state.holder.may_look_ahead();
        if state.is_abandoned || state.reader.is_some() || may_wait() {
            return Poll::Ready(());
        }
        await_change(&mut state.writer, cx);
        Poll::Pending
    }

    /// Ready if the reader is gone.
    pub(super) fn poll_abandoned(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.0.borrow_mut();
        if state.is_abandoned {
            return Poll::Ready(());
        }
        await_change(&mut state.writer, cx);
        Poll::Pending
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.ended.get_or_insert(false);
        wake(&mut state.reader);
    }
}

impl PipeReader {
    /// Ready once the head is known.
    pub(super) fn poll_begun(&self, cx: &Context<'_>) -> Poll<Result<(), FragmentFailure>> {
        let mut state = self.0.borrow_mut();
        match (state.head, state.ended) {
            (Some(judged), _) => Poll::Ready(judged),
            (None, Some(_)) => Poll::Ready(Err(FragmentFailure::BrokeOff)),
            (None, None) => {
                await_change(&mut state.reader, cx);
                Poll::Pending
            }
        }
    }

    /// The next piece; `None` at the end.
    pub(super) fn poll_piece(&self, cx: &Context<'_>) -> Poll<Option<Result<Piece, FragmentFailure>>> {
        let mut state = self.0.borrow_mut();
        if let Some(piece) = state.pieces.pop_front() {
            state.bytes -= piece.len();
            wake(&mut state.writer);
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.ended {
            Some(true) => Poll::Ready(None),
            Some(false) => Poll::Ready(Some(Err(FragmentFailure::BrokeOff))),
            None => {
                await_change(&mut state.reader, cx);
                wake(&mut state.writer);
                Poll::Pending
            }
        }
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.is_abandoned = true;
        state.pieces.clear();
        wake(&mut state.writer);
    }
}
