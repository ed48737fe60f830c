//! A connection to one memcached server, for one core: multiplexed, pipelined, made when it is first needed.
//!
//! Operations are queued in order of their calls and answered in that order. Each has a deadline; a caller
//! that has gone, or was too late, never receives or causes the answer of another. The connection decides
//! nothing about the server: the owner reads [`Connection::state`], [`Connection::silence`] and
//! [`Connection::counts`], and closes it or stops using it.
//!
//! A connection holds no buffer while it waits. A value that was read has memory of its own size.

mod address;
mod driver;
mod handshake;
mod operation;
mod pipeline;
mod slot;
#[cfg(test)]
mod tests;
mod unavailable;

pub use address::{QueueLimits, ServerAddress, Settings};
pub use driver::ConnectionState;
pub use operation::{Abilities, Deadline, DeleteOutcome, Item, SetOutcome};
pub use pipeline::Counts;
pub use slot::Pending;
pub use unavailable::{Ability, Unavailable, Unexpected};

use crate::Moment;
use bytes::Bytes;
use driver::Shared;
use operation::Request;
use sandarac_wire::memcached::{Delete, Get, ServerKey, Set, Ttl};
use slot::{Answer, Slot};
use std::rc::Rc;
use std::time::Duration;

/// A connection to a server. The first operation connects, and so does the first after the connection was
/// lost, without a pause: the owner decides when a server is tried again. Dropping it fails what is pending.
///
/// An operation is submitted by the call, not when its future is polled. Operations that are submitted
/// without an `await` in between leave in one write, as far as the socket takes it. `quiet` in requests is
/// ignored: an error has no opaque token, so its request is only known if every request is answered. Each
/// operation is admitted to the queue by itself.
///
/// MUST be used within the runtime of a core.
pub struct Connection(Rc<Shared>);

impl Connection {
    /// A connection that is not made yet.
    pub fn new(settings: Settings) -> Connection {
        Connection(Shared::new(settings))
    }

    /// Reads an item; `None` if there is none. A value of more than `max_value` bytes is skipped, and the
    /// result is [`Unavailable::ValueTooLarge`].
    pub fn get(&self, mut get: Get, max_value: usize, deadline: Deadline) -> Pending<Option<Item>> {
        get.quiet = false;
        self.submit(Request::Get(get, max_value), deadline, Answer::item)
    }

    /// Stores an item, whose value has these parts. The mode of the request says on which condition.
    pub fn set(&self, mut set: Set, value: Vec<Bytes>, deadline: Deadline) -> Pending<SetOutcome> {
        set.quiet = false;
        self.submit(Request::Set(set, value), deadline, Answer::stored)
    }

    /// Deletes an item, or marks it stale.
    pub fn delete(&self, mut delete: Delete, deadline: Deadline) -> Pending<DeleteOutcome> {
        delete.quiet = false;
        self.submit(Request::Delete(delete), deadline, Answer::deleted)
    }

    /// Sets the lifetime of an item, and returns whether there is one. Of an item that was invalidated it
    /// takes the right to recache, like any read.
    pub fn touch(&self, key: ServerKey, ttl: Ttl, deadline: Deadline) -> Pending<bool> {
        let get = Get { touch: Some(ttl), ..Get::new(key) };
        self.submit(Request::Get(get, 0), deadline, Answer::touched)
    }

    fn submit<T>(&self, request: Request, deadline: Deadline, read: fn(Answer) -> T) -> Pending<T> {
        let slot = Slot::new();
        let now = Moment::now();
        if self.0.pipeline.borrow_mut().submit(request, slot.clone(), deadline, now) {
            self.0.proceed();
        }
        Pending::new(slot, read)
    }

    /// Closes the connection, and fails what is pending with [`Unavailable::Ended`]. The next operation
    /// connects anew.
    pub fn close(&self) {
        self.0.disconnect();
    }

    /// The state of the connection.
    pub fn state(&self) -> ConnectionState {
        self.0.state.borrow().clone()
    }

    /// The address of the server.
    pub fn address(&self) -> &ServerAddress {
        &self.0.settings.address
    }

    /// When the last answer came, late ones included.
    pub fn last_answer(&self) -> Option<Moment> {
        self.0.pipeline.borrow().last_answer()
    }

    /// How long nothing at all has arrived while answers are awaited, also those whose callers have gone;
    /// `None` while none is awaited. A server whose silence exceeds a deadline hangs, unless it is still
    /// taking a large value ([`Counts::bytes_sent`]).
    pub fn silence(&self) -> Option<Duration> {
        self.0.pipeline.borrow().silence(Moment::now())
    }

    /// Operations that are not answered, including those whose callers have gone.
    pub fn operations(&self) -> usize {
        self.0.pipeline.borrow().operations()
    }

    /// Bytes of requests that the system has not taken yet.
    pub fn held_bytes(&self) -> usize {
        self.0.pipeline.borrow().held_bytes()
    }

    /// Counts since [`Connection::new`].
    pub fn counts(&self) -> Counts {
        self.0.pipeline.borrow().counts
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.end();
    }
}
