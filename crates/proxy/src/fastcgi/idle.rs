//! Connections to FastCGI backends that are kept between requests, shared by all cores.
//!
//! A process of php-fpm serves one connection until that ends, and takes no other meanwhile. A kept
//! connection that is idle on one core would therefore keep out the requests of another. So any core takes up
//! an idle connection, however it was used before; and while a request on a new connection has not been
//! answered for [`PATIENCE`], connections are closed instead of kept, and idle ones are closed.

use crate::origin::Provenance;
use crate::origin::timeouts::OriginTimeouts;
use crate::{Counter, Counters};
use parking_lot::Mutex;
use sandarac_balance::Address;
use sandarac_net::{Conn, Moment, ParkedConn, Unread};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a request on a new connection waits for an answer before idle connections give way to it.
// Much more than a connection takes that a process accepts at once, and less than anyone notices.
pub(crate) const PATIENCE: Duration = Duration::from_millis(5);

/// The idle connections to the backends of a pool.
pub(crate) struct IdleConns {
    /// The most to one backend.
    most: usize,
    backends: Mutex<HashMap<Address, Backend>>,
}

#[derive(Default)]
struct Backend {
    /// The last used one last.
    idle: Vec<Idle>,
    /// When the requests on new connections that wait for an answer were sent.
    waiting: Vec<Moment>,
}

struct Idle {
    conn: ParkedConn,
    provenance: Provenance,
    since: Moment,
}

impl Idle {
    /// Whether nothing has arrived since the last response. Bytes that nobody asked for are counted.
    fn is_silent(&self, counters: &Counters) -> bool {
        let unread = self.conn.unread();
        if unread == Unread::Data {
            counters.one(Counter::OriginConnectionsStray);
        }
        unread == Unread::Nothing
    }
}

impl IdleConns {
    pub(super) fn new(most: usize) -> IdleConns {
        IdleConns { most, backends: Mutex::default() }
    }

    /// An idle connection on which nothing has arrived, neither older nor longer idle than `timeouts` allow.
    /// The last used one comes first.
    pub(crate) fn take(
        &self,
        address: &Address,
        timeouts: &OriginTimeouts,
        counters: &Counters,
    ) -> Option<(Box<Conn>, Provenance)> {
        let now = Moment::now();
        loop {
            let found = self.backends.lock().get_mut(address)?.idle.pop()?;
            let young =
                now.since(found.since) < timeouts.idle && now.since(found.provenance.made()) < timeouts.age;
            if found.is_silent(counters)
                && young
                && let Ok(conn) = found.conn.take_up()
            {
                return Some((Box::new(conn), found.provenance));
            }
        }
    }

    /// Keeps a connection, unless there are enough or a request waits for its place. Returns whether it was
    /// kept.
    pub(crate) fn keep(&self, address: &Address, conn: Conn, provenance: Provenance) -> bool {
        let Some(conn) = ParkedConn::park(conn) else { return false };
        let now = Moment::now();
        let mut backends = self.backends.lock();
        let backend = backends.entry(address.clone()).or_default();
        let is_wanted = backend.waiting.iter().any(|&since| now.since(since) >= PATIENCE);
        if is_wanted || backend.idle.len() >= self.most {
            return false;
        }
        backend.idle.push(Idle { conn, provenance, since: now });
        true
    }

    /// Closes connections that were idle for longer than `idle_timeout`, or that the backend closed.
    pub(crate) fn prune(&self, idle_timeout: Duration, counters: &Counters) {
        let now = Moment::now();
        self.backends.lock().retain(|_, backend| {
            backend.idle.retain(|idle| idle.is_silent(counters) && now.since(idle.since) < idle_timeout);
            !backend.idle.is_empty() || !backend.waiting.is_empty()
        });
    }

    /// Closes the connection that has been idle for longest, if there is one.
    pub(crate) fn give_way(&self, address: &Address) -> bool {
        let mut backends = self.backends.lock();
        match backends.get_mut(address) {
            Some(backend) if !backend.idle.is_empty() => {
                backend.idle.remove(0);
                true
            }
            _ => false,
        }
    }

    /// Notes that a request on a new connection waits for an answer, for as long as the result lives.
    pub(crate) fn wait(self: &Arc<IdleConns>, address: &Address) -> WaitsForAnswer {
        let since = Moment::now();
        self.backends.lock().entry(address.clone()).or_default().waiting.push(since);
        WaitsForAnswer { idle: self.clone(), address: address.clone(), since }
    }
}

/// A request on a new connection that waits for an answer.
pub(crate) struct WaitsForAnswer {
    idle: Arc<IdleConns>,
    address: Address,
    since: Moment,
}

impl WaitsForAnswer {
    /// Closes an idle connection, so that its process is free for this request. Returns whether there was
    /// one.
    pub(crate) fn claim(&self) -> bool {
        self.idle.give_way(&self.address)
    }
}

impl Drop for WaitsForAnswer {
    fn drop(&mut self) {
        if let Some(backend) = self.idle.backends.lock().get_mut(&self.address)
            && let Some(at) = backend.waiting.iter().position(|&since| since == self.since)
        {
            backend.waiting.swap_remove(at);
        }
    }
}
