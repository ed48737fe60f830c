//! The place where one operation's answer arrives.

use super::Unavailable;
use bytes::Bytes;
use sandarac_wire::memcached::{Code, ItemFlags};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The answer to any operation.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) flags: ItemFlags,
    /// The value; empty unless the code is that of a value.
    pub(super) value: Bytes,
}

/// The place of an answer, shared by the operation's future and the connection.
#[derive(Debug)]
pub(super) struct Slot(RefCell<State>);

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Done(Result<Answer, Unavailable>),
    /// The operation failed or was cancelled, or its result was taken.
    Over,
}

impl Slot {
    pub(super) fn new() -> Rc<Slot> {
        Rc::new(Slot(RefCell::new(State::Waiting(None))))
    }

    /// Whether the operation still waits for an answer.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(*self.0.borrow(), State::Waiting(_))
    }

    /// Gives the operation its result, if it still waits for one. Returns whether it does.
    pub(super) fn complete(&self, result: Result<Answer, Unavailable>) -> bool {
        if !self.is_wanted() {
            return false;
        }
        let before = self.0.replace(State::Done(result));
        if let State::Waiting(Some(waker)) = before {
            waker.wake();
        }
        true
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Answer, Unavailable>> {
        let state = &mut *self.0.borrow_mut();
        match state {
            State::Waiting(Some(waker)) if waker.will_wake(cx.waker()) => Poll::Pending,
            State::Waiting(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Done(_) => match std::mem::replace(state, State::Over) {
                State::Done(result) => Poll::Ready(result),
                _ => unreachable!("it is done"),
            },
            State::Over => Poll::Ready(Err(Unavailable::Ended)),
        }
    }
}

/// An operation that was submitted, as a future of its result. It proceeds without being polled. Dropping it
/// forgets the answer, which the connection then skips; a request that was sent is executed nevertheless.
#[must_use = "dropping it forgets the answer"]
#[derive(Debug)]
pub struct Pending<T> {
    slot: Rc<Slot>,
    read: fn(Answer) -> T,
}

impl<T> Pending<T> {
    pub(super) fn new(slot: Rc<Slot>, read: fn(Answer) -> T) -> Pending<T> {
        Pending { slot, read }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Unavailable>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Unavailable>> {
        let read = self.read;
        self.slot.poll(cx).map_ok(read)
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // The former state is dropped after the borrow has ended.
        drop(self.slot.0.replace(State::Over));
    }
}
