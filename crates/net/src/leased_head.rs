//! Heads of requests that are being served, with the memory that they take.

use crate::account::{EXCHANGE, Held, Holder, Lease};
use sandarac_message::{RequestHead, RequestHeadBuf};
use std::ops::{Deref, DerefMut};

/// The head of a request that is being served, with the memory that it and its exchange take.
#[derive(Debug)]
pub struct LeasedHead {
    head: RequestHeadBuf,
    lease: Lease,
}

impl LeasedHead {
    /// A copy of `head` for a request of `holder`. `None` if that has too many in progress, or all hold too
    /// much.
    pub fn copy_of(head: &RequestHead<'_>, holder: &Holder) -> Option<LeasedHead> {
        let head = RequestHeadBuf::copy_of(head);
        let bytes = LeasedHead::cost(&head);
        let lease = holder.has_room_for_head(bytes).then(|| holder.lease(Held::Heads, bytes)).flatten()?;
        Some(LeasedHead { head, lease })
    }

    /// A head that was made here, for `holder`.
    pub fn made(head: RequestHeadBuf, holder: &Holder) -> LeasedHead {
        let lease = holder.holds(Held::Heads, LeasedHead::cost(&head));
        LeasedHead { head, lease }
    }

    /// The holder whose request it is.
    pub fn holder(&self) -> &Holder {
        self.lease.holder()
    }

    /// The head itself, twice: it is written anew for the backend. And what else an exchange takes.
    fn cost(head: &RequestHeadBuf) -> usize {
        EXCHANGE + 2 * (head.target.len() + head.fields.memory())
    }
}

impl Deref for LeasedHead {
    type Target = RequestHeadBuf;

    fn deref(&self) -> &RequestHeadBuf {
        &self.head
    }
}

impl DerefMut for LeasedHead {
    fn deref_mut(&mut self) -> &mut RequestHeadBuf {
        &mut self.head
    }
}
