//! The memory and the disk that all spooled bodies share.

use parking_lot::Mutex;
use sandarac_cache::Store;
use sandarac_net::{Held, Holder, Lease, Place, Places};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The part of the store's memory that spooled bodies may occupy together.
const SHARE: usize = 8;

/// The part of the disk that the responses of one connection may occupy together: many streams of one are no
/// better than one client.
const SHARE_OF_CONNECTION: u64 = 8;

/// The memory and the disk that all spooled bodies share.
pub(crate) struct SpoolSpace {
    store: Arc<Store>,
    memory: AtomicUsize,
    disk: AtomicU64,
    failures: AtomicU64,
    /// The descriptors of files.
    pub(crate) places: Arc<Places>,
    /// Why a file could not be made or written, until it is logged.
    trouble: Mutex<Option<String>>,
}

/// Memory of the share. Charged to the store while this lives.
pub(crate) struct SpoolMemory {
    space: Arc<SpoolSpace>,
    lease: Lease,
}

/// Bytes on the disk.
pub(super) struct SpoolDisk {
    space: Arc<SpoolSpace>,
    holder: Holder,
    bytes: u64,
    /// That of the file's descriptor.
    _place: Place,
}

impl SpoolSpace {
    pub(crate) fn new(store: Arc<Store>) -> Arc<SpoolSpace> {
        Arc::new(SpoolSpace {
            store,
            memory: AtomicUsize::new(0),
            disk: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            places: Places::new(usize::MAX),
            trouble: Mutex::new(None),
        })
    }

    /// Bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.memory.load(Relaxed)
    }

    /// Bytes of files in use.
    pub(crate) fn disk(&self) -> u64 {
        self.disk.load(Relaxed)
    }

    /// How often a file could not be made or written.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    pub(super) fn failed(&self, why: String) {
        self.failures.fetch_add(1, Relaxed);
        *self.trouble.lock() = Some(why);
    }

    /// Why a file could not be made or written since the last call.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        self.trouble.lock().take()
    }

    fn share(&self) -> usize {
        self.store.settings().limit / SHARE
    }

    /// Bytes that one connection may hold before its responses are read no further ahead: a quarter of the
    /// share, but `least` in any case.
    pub(super) fn share_of_connection(&self, least: usize) -> usize {
        (self.share() / 4).max(least)
    }

    /// Whether `bytes` that are in memory may stay there. Half of the share is for bytes on their way to a file, so that bodies
    /// which wait do not keep others from a file.
    pub(super) fn may_keep(&self) -> bool {
        self.memory() <= self.share() / 2
    }

    /// Takes memory; `None` if the share is used up.
    pub(super) fn take(self: &Arc<SpoolSpace>, holder: &Holder, bytes: usize) -> Option<SpoolMemory> {
        let most = self.share();
        let more = |used: usize| Some(used + bytes).filter(|used| *used <= most);
        self.memory.fetch_update(Relaxed, Relaxed, more).ok()?;
        match holder.lease(Held::Spooled, bytes) {
            Some(lease) => Some(SpoolMemory { space: self.clone(), lease }),
            None => {
                self.memory.fetch_sub(bytes, Relaxed);
                None
            }
        }
    }

    /// Takes nothing of the disk yet. `None` if no more files may be open.
    pub(super) fn disk_of_none(self: &Arc<SpoolSpace>, holder: &Holder) -> Option<SpoolDisk> {
        let place = self.places.take()?;
        Some(SpoolDisk { space: self.clone(), holder: holder.clone(), bytes: 0, _place: place })
    }
}

impl SpoolMemory {
    /// Parts `bytes` from it. MUST have as many.
    pub(super) fn split(&mut self, bytes: usize) -> SpoolMemory {
        debug_assert!(bytes <= self.lease.bytes(), "one append takes no more than is reserved for it");
        let bytes = bytes.min(self.lease.bytes());
        SpoolMemory { space: self.space.clone(), lease: self.lease.split(bytes) }
    }

    /// Adds another to it.
    pub(super) fn join(&mut self, mut other: SpoolMemory) {
        let bytes = other.lease.bytes();
        self.lease.join(other.lease.split(bytes));
    }
}

impl Drop for SpoolMemory {
    fn drop(&mut self) {
        self.space.memory.fetch_sub(self.lease.bytes(), Relaxed);
    }
}

impl SpoolDisk {
    /// Bytes taken.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `bytes` more, if all files together have `most` at most then, and those of one connection their
    /// share of it. Fails with the reason if not.
    pub(super) fn grow(&mut self, bytes: u64, most: u64) -> Result<(), &'static str> {
        if !self.holder.take_disk(bytes, most / SHARE_OF_CONNECTION) {
            return Err("the bodies of one connection have an eighth of the bytes that `disk` permits");
        }
        let more = |used: u64| Some(used + bytes).filter(|used| *used <= most);
        if self.space.disk.fetch_update(Relaxed, Relaxed, more).is_err() {
            self.holder.return_disk(bytes);
            return Err("its files have as many bytes as `disk` permits");
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for SpoolDisk {
    fn drop(&mut self) {
        self.space.disk.fetch_sub(self.bytes, Relaxed);
        self.holder.return_disk(self.bytes);
    }
}
