//! Orders of the administrator: to add, remove or drain backends.

use super::SitePool;
use super::membership::{Member, Orders};
use sandarac_balance::{Address, Pool};
use std::sync::atomic::Ordering;

/// Why an order to a pool was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRefusal {
    /// The pool has this backend already.
    There,
    /// The pool has no such backend.
    NotThere,
    /// It is the last one.
    Last,
    /// It is the last one that is not draining.
    LastServing,
}

impl std::fmt::Display for PoolRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PoolRefusal::There => "the pool has this backend already",
            PoolRefusal::NotThere => "the pool has no such backend",
            PoolRefusal::Last => "it is the last backend of the pool",
            PoolRefusal::LastServing => "all the other backends of the pool are draining",
        })
    }
}

impl std::error::Error for PoolRefusal {}

impl SitePool {
    /// Adds a backend.
    ///
    /// # Errors
    /// [`PoolRefusal::There`].
    pub fn add(&self, member: Member) -> Result<(), PoolRefusal> {
        let mut membership = self.membership.lock();
        if self.all(&membership).iter().any(|backend| *backend.address() == member.address) {
            return Err(PoolRefusal::There);
        }
        membership.ask_back(&member.address);
        if !self.all(&membership).iter().any(|backend| *backend.address() == member.address) {
            membership.orders.added.push(member);
        }
        self.put(&mut membership);
        Ok(())
    }

    /// Removes a backend, wherever it came from, until it is added again. Requests in flight to it go on.
    ///
    /// # Errors
    /// [`PoolRefusal::NotThere`], [`PoolRefusal::Last`], [`PoolRefusal::LastServing`].
    pub fn remove(&self, address: &Address) -> Result<(), PoolRefusal> {
        let mut membership = self.membership.lock();
        let all = self.all(&membership);
        if !all.iter().any(|backend| backend.address() == address) {
            return Err(PoolRefusal::NotThere);
        }
        if all.len() == 1 {
            return Err(PoolRefusal::Last);
        }
        if !another_serves(&self.live(), address) {
            return Err(PoolRefusal::LastServing);
        }
        membership.remove(address);
        self.put(&mut membership);
        Ok(())
    }

    /// Stops sending new requests to a backend, or resumes. Also holds for a backend found under its address
    /// later.
    ///
    /// # Errors
    /// [`PoolRefusal::NotThere`], [`PoolRefusal::LastServing`].
    pub fn drain(&self, address: &Address, draining: bool) -> Result<(), PoolRefusal> {
        // The lock excludes other orders: of two orders that each drain one of the last two backends, only
        // one may be carried out. Updates from sources wait, and keep the same backends.
        let mut membership = self.membership.lock();
        let live = self.live();
        let place = live.backends().iter().position(|backend| backend.address() == address);
        let backend = live.ids()[place.ok_or(PoolRefusal::NotThere)?];
        if draining && !another_serves(&live, address) {
            return Err(PoolRefusal::LastServing);
        }
        live.drain(backend, draining);
        membership.drain(address, draining);
        Ok(())
    }

    /// The backends that were removed by order and not added again.
    pub fn removed(&self) -> Vec<Address> {
        self.membership.lock().orders.removed.clone()
    }

    /// All orders in force.
    pub fn orders(&self) -> Orders {
        self.membership.lock().orders.clone()
    }

    /// Takes the orders of another process in place of its own.
    pub fn follow(&self, orders: Orders) {
        let mut membership = self.membership.lock();
        if membership.orders != orders {
            membership.orders = orders;
            self.put(&mut membership);
        }
    }

    /// Whether orders were given up because they would have left no backend for requests. True once.
    pub(crate) fn has_lifted_orders(&self) -> bool {
        self.orders_lifted.swap(false, Ordering::Relaxed)
    }
}

/// Whether orders leave a backend other than this one that gets new requests.
fn another_serves(pool: &Pool, address: &Address) -> bool {
    pool.backends().iter().any(|backend| backend.address() != address && !backend.is_draining())
}
