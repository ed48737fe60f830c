//! Connections over HTTP/2, which requests share: one to a backend, and more when it has no stream left.

use super::provenance::Provenance;
use crate::Fault;
use crate::origin::tls::OriginTls;
use hashbrown::HashMap;
use sandarac_balance::Address;
use sandarac_net::{MAX_STREAMS, OriginConnection, OriginStream, StreamFault};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::OnceCell;

/// One core's connections over HTTP/2.
#[derive(Default)]
pub(super) struct Multiplexed {
    backends: RefCell<HashMap<Address, Vec<Rc<Shared>>>>,
    /// What backends allowed at a time when they were connected to last.
    capacities: RefCell<HashMap<Address, usize>>,
}

/// A connection, or one that is being made.
struct Shared {
    made: OnceCell<(OriginConnection, Provenance)>,
    tls: Option<OriginTls>,
    /// Requests that wait until it is made.
    waiting: Cell<usize>,
}

/// The outcome of [`Multiplexed::stream`].
pub(super) enum NotShared<T> {
    /// The backend could not be reached.
    Fault(Fault),
    /// The backend speaks HTTP/1.1; a connection to it, if this request made one.
    Http1(T),
}

impl Multiplexed {
    /// A stream of an open connection with `tls`. Those that are not `good` any more are given up.
    pub(super) fn kept(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        good: impl Fn(&OriginConnection, &Provenance) -> bool,
    ) -> Option<OriginStream> {
        let mut backends = self.backends.borrow_mut();
        let connections = backends.get_mut(address)?;
        let mut found = None;
        connections.retain(|shared| {
            let Some((connection, provenance)) = shared.made.get() else { return true };
            if shared.tls.as_ref() != tls {
                return true;
            }
            if !connection.is_usable() || !good(connection, provenance) {
                return false;
            }
            if found.is_none() {
                found = connection.reserve();
            }
            connection.is_usable()
        });
        found
    }

    /// A stream of a connection that is being made, by another request or by this one with `make`.
    pub(super) async fn stream<T>(
        &self,
        address: &Address,
        tls: Option<&OriginTls>,
        make: impl AsyncFn() -> Result<(OriginConnection, Provenance), NotShared<T>>,
    ) -> Result<OriginStream, NotShared<T>> {
        loop {
            let shared = self.awaited(address, tls);
            let waits = Waits::begin(&shared);
            let made = shared.made.get_or_try_init(|| make()).await;
            drop(waits);
            let (connection, _) = made.inspect_err(|_| self.forget(address, &shared))?;
            let capacity = connection.capacity();
            self.capacities.borrow_mut().insert(address.clone(), capacity);
            if let Some(stream) = connection.reserve() {
                return Ok(stream);
            }
            if capacity == 0 || !connection.is_usable() {
                self.forget(address, &shared);
                return Err(NotShared::Fault(Fault::Http2(StreamFault::Refused)));
            }
        }
    }

    /// A connection that is being made and has room for another request, or a new one.
    fn awaited(&self, address: &Address, tls: Option<&OriginTls>) -> Rc<Shared> {
        let room = self.capacities.borrow().get(address).copied().unwrap_or(MAX_STREAMS).max(1);
        let mut backends = self.backends.borrow_mut();
        let connections = match backends.get_mut(address) {
            Some(connections) => connections,
            None => backends.entry(address.clone()).or_default(),
        };
        let awaited = connections.iter().find(|shared| {
            !shared.made.initialized() && shared.tls.as_ref() == tls && shared.waiting.get() < room
        });
        if let Some(shared) = awaited {
            return shared.clone();
        }
        let shared = Rc::new(Shared { made: OnceCell::new(), tls: tls.cloned(), waiting: Cell::new(0) });
        connections.push(shared.clone());
        shared
    }

    /// Adds a connection that was made for one request alone.
    pub(super) fn add(&self, address: &Address, connection: OriginConnection, provenance: Provenance) {
        let tls = provenance.tls.clone();
        let made = OnceCell::new_with(Some((connection, provenance)));
        let shared = Rc::new(Shared { made, tls, waiting: Cell::new(0) });
        self.backends.borrow_mut().entry(address.clone()).or_default().push(shared);
    }

    fn forget(&self, address: &Address, shared: &Rc<Shared>) {
        if let Some(connections) = self.backends.borrow_mut().get_mut(address) {
            connections.retain(|other| !Rc::ptr_eq(other, shared));
        }
    }

    /// Gives up connections that are not `good` any more.
    pub(super) fn prune(&self, good: impl Fn(&Address, &OriginConnection, &Provenance) -> bool) {
        self.backends.borrow_mut().retain(|address, connections| {
            connections.retain(|shared| match shared.made.get() {
                Some((connection, provenance)) => {
                    connection.is_usable() && good(address, connection, provenance)
                }
                None => shared.waiting.get() > 0,
            });
            !connections.is_empty()
        });
        let backends = self.backends.borrow();
        self.capacities.borrow_mut().retain(|address, _| backends.contains_key(address));
    }
}

/// Counts a request that waits for a connection.
struct Waits<'a>(&'a Shared);

impl Waits<'_> {
    fn begin(shared: &Shared) -> Waits<'_> {
        shared.waiting.set(shared.waiting.get() + 1);
        Waits(shared)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}
