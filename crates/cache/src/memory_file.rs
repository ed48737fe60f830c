//! Memory files: memory that can be read as bytes and sent as a file.
//!
//! A memory file (`memfd_create`) is mapped once, as a whole, and divided into slots of [`SLOT`] bytes. A slot
//! holds a segment of one body. The system provides memory only for the pages in use, so the slots of a
//! file may add up to far more than is held.
//!
//! `sendfile` does not copy pages, it queues references to them, and nothing reports when they were sent. A
//! page that was sent MUST therefore never be written again. So a slot is punched as a whole before it is used
//! again (`FALLOC_FL_PUNCH_HOLE`): its pages leave the file and live on until the last queue has sent them, and
//! the next user of the slot gets new pages, filled with zeros. This holds for small pages only: of a huge page,
//! which other slots share, the punched part would be cleared in place. So huge pages are ruled out for the
//! mapping, and memory is added through it, never by a write to the file.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::process::{Resource, getrlimit};
use sandarac_message::OpenFile;

/// The bytes of a slot, a multiple of every page size. Four system calls send 1 MiB.
pub(crate) const SLOT: usize = 256 << 10;

/// The bytes of a file: address space, of which there is plenty, not memory. So even a large store needs only a few
/// descriptors and mappings.
const FILE: usize = 16 << 30;

/// The memory files of a store, which grow in number as needed.
#[derive(Default)]
pub(crate) struct MemoryFiles {
    slots: Mutex<Slots>,
    used: AtomicUsize,
    failures: AtomicU64,
}

/// The slots that are not in use. They take no memory.
#[derive(Default)]
struct Slots {
    /// Slots that were used before, each by its position in its file.
    free: Vec<(Arc<MemoryFile>, usize)>,
    /// The newest file, and where the slots begin that were never used.
    newest: Option<(Arc<MemoryFile>, usize)>,
}

impl MemoryFiles {
    /// A slot with memory for `len` bytes, at most [`SLOT`], which are zero. `None` if the system refuses the
    /// memory or the file, which is counted.
    pub(crate) fn take(self: &Arc<MemoryFiles>, len: usize) -> Option<Slot> {
        debug_assert!((1..=SLOT).contains(&len));
        let slot = self.reserve().and_then(|(file, at)| {
            let mut slot = Slot { files: self.clone(), file, at, len: 0 };
            slot.populate(len)?;
            Ok(slot)
        });
        if slot.is_err() {
            self.failures.fetch_add(1, Relaxed);
        }
        slot.ok()
    }

    /// Bytes of memory in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// How often the system refused memory or a file.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// The place of a slot that is not in use.
    fn reserve(&self) -> io::Result<(Arc<MemoryFile>, usize)> {
        let mut slots = self.slots.lock();
        if let Some(free) = slots.free.pop() {
            return Ok(free);
        }
        let (file, at) = match slots.newest.take() {
            Some((file, at)) if at < FILE => (file, at),
            _ => (Arc::new(MemoryFile::new()?), 0),
        };
        slots.newest = Some((file.clone(), at + SLOT));
        Ok((file, at))
    }
}

/// A slot in use. It has the only access to its part of the file.
pub(crate) struct Slot {
    files: Arc<MemoryFiles>,
    file: Arc<MemoryFile>,
    at: usize,
    /// Bytes that have memory: the first of the slot.
    len: usize,
}

impl Slot {
    /// The file, and the position of the slot in it.
    pub(crate) fn place(&self) -> (&Arc<OpenFile>, u64) {
        (&self.file.file, self.at as u64)
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies within the mapping, which lives as long as `self.file`, and has memory, because
        // `populate` succeeded for it and the file cannot shrink. No other slot covers it, and this one is
        // written through `bytes_mut` only.
        unsafe { std::slice::from_raw_parts(self.memory().as_ptr(), self.len) }
    }

    /// The bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the slot is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory().as_ptr(), self.len) }
    }

    /// Drops the bytes from `len` on, and frees their pages. These MUST NOT have been sent.
    pub(crate) fn truncate(&mut self, len: usize) {
        let (kept, held) = (held(len), held(self.len));
        if kept < held {
            // Where this fails the pages are freed with the slot.
            let _ = self.file.punch(self.at + kept, held - kept);
            self.files.used.fetch_sub(held - kept, Relaxed);
        }
        self.len = self.len.min(len);
    }

    /// Gets memory for `len` bytes.
    fn populate(&mut self, len: usize) -> rustix::io::Result<()> {
        // SAFETY: the range lies within the mapping, and no other slot covers it. The advice adds pages and
        // changes no bytes.
        unsafe { madvise(self.memory().as_ptr().cast(), held(len), Advice::LinuxPopulateWrite)? };
        self.files.used.fetch_add(held(len), Relaxed);
        self.len = len;
        Ok(())
    }

    fn memory(&self) -> NonNull<u8> {
        // SAFETY: `at` is a position in the mapping.
        unsafe { self.file.memory.add(self.at) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // `populate` may have failed half way, so all of it is punched.
        if self.file.punch(self.at, SLOT).is_ok() {
            self.files.slots.lock().free.push((self.file.clone(), self.at));
        } else {
            // The slot is never used again.
            self.files.failures.fetch_add(1, Relaxed);
        }
        self.files.used.fetch_sub(held(self.len), Relaxed);
    }
}

/// Bytes of memory that the first `len` bytes of a slot take: whole pages.
pub(crate) fn held(len: usize) -> usize {
    len.next_multiple_of(rustix::param::page_size())
}

/// A file of [`FILE`] bytes, and its mapping.
struct MemoryFile {
    file: Arc<OpenFile>,
    memory: NonNull<u8>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and access to its bytes is through slots.
unsafe impl Send for MemoryFile {}
// SAFETY: as above.
unsafe impl Sync for MemoryFile {}

impl MemoryFile {
    fn new() -> io::Result<MemoryFile> {
        // A larger file would end the process by a signal.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < FILE as u64) {
            return Err(Errno::FBIG.into());
        }
        let file = create()?;
        ftruncate(&file, FILE as u64)?;
        // A page beyond the end of the file would end the process by a signal: nothing may change its length.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses an address where nothing is mapped.
        let memory = unsafe { mmap(std::ptr::null_mut(), FILE, access, MapFlags::SHARED, &file, 0)? };
        let memory = NonNull::new(memory.cast()).ok_or(Errno::NOMEM)?;
        let file = MemoryFile { file: Arc::new(std::fs::File::from(file).into()), memory };
        // SAFETY: the range is the mapping. The advice changes no bytes.
        match unsafe { madvise(memory.as_ptr().cast(), FILE, Advice::LinuxNoHugepage) } {
            // The system has no huge pages.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        // Where a filter of system calls forbids this, no slot could be used twice.
        file.punch(0, SLOT)?;
        Ok(file)
    }

    /// Takes the pages of a range out of the file.
    fn punch(&self, at: usize, len: usize) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::io::retry_on_intr(|| fallocate(&*self.file, flags, at as u64, len as u64))?)
    }
}

/// An empty memory file that may be sealed.
fn create() -> rustix::io::Result<std::os::fd::OwnedFd> {
    const NAME: &str = "sandarac-bodies";
    // Some systems require that it cannot be executed; older ones do not know the flag.
    match memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING),
        created => created,
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // SAFETY: the mapping is the one that was made, and every slot in it has been dropped. If this fails,
        // address space is lost.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), FILE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    /// Bytes of memory that the system says the file of a slot takes.
    fn on_system(slot: &Slot) -> usize {
        slot.file.file.metadata().unwrap().blocks() as usize * 512
    }

    #[test]
    fn a_slot_takes_the_memory_it_was_asked_for_and_gives_it_back() {
        let files = Arc::new(MemoryFiles::default());
        let mut one = files.take(100_000).unwrap();
        let other = files.take(1).unwrap();
        one.bytes_mut().fill(7);
        assert_eq!(
            (one.bytes().len(), files.used(), on_system(&one)),
            (100_000, held(100_000) + held(1), files.used())
        );
        let mut read = [0; 3];
        one.file.file.read_exact_at(&mut read, one.at as u64 + 99_997).unwrap();
        assert_eq!(read, [7; 3]);
        one.truncate(5000);
        assert_eq!((one.bytes(), on_system(&other)), (&[7; 5000][..], held(5000) + held(1)));
        drop(one);
        assert_eq!((files.used(), on_system(&other)), (held(1), held(1)));
        drop(other);
        assert_eq!((files.used(), files.failures()), (0, 0));
    }

    #[test]
    fn a_slot_that_is_used_again_is_zero_and_has_the_same_place() {
        let files = Arc::new(MemoryFiles::default());
        let mut slot = files.take(SLOT).unwrap();
        let place = slot.at;
        slot.bytes_mut().fill(255);
        drop(slot);
        let slot = files.take(SLOT).unwrap();
        assert!(slot.at == place && slot.bytes().iter().all(|&byte| byte == 0));
    }

    /// Fails if slots are not punched, and with huge pages.
    #[test]
    fn bytes_that_were_sent_stay_what_they_were_when_the_slot_is_used_again() {
        use std::io::Read;
        let files = Arc::new(MemoryFiles::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let mut slot = files.take(SLOT).unwrap();
        slot.bytes_mut().fill(1);
        let (file, at) = slot.place();
        let mut at = at;
        let sent = rustix::fs::sendfile(&server, &**file, Some(&mut at), SLOT).unwrap();
        assert!(sent > 0);
        drop(slot);
        let mut other = files.take(SLOT).unwrap();
        other.bytes_mut().fill(2);
        drop(server);
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        assert!(received.len() == sent && received.iter().all(|&byte| byte == 1));
    }

    #[test]
    fn files_are_made_as_they_are_needed() {
        let files = Arc::new(MemoryFiles::default());
        let first = files.take(SLOT).unwrap();
        files.slots.lock().newest = Some((first.file.clone(), FILE - SLOT));
        let mut last = files.take(SLOT).unwrap();
        assert!(Arc::ptr_eq(&first.file, &last.file) && last.at == FILE - SLOT);
        last.bytes_mut().fill(1);
        let next = files.take(SLOT).unwrap();
        assert!(!Arc::ptr_eq(&first.file, &next.file) && next.at == 0);
        drop((first, last, next));
        assert_eq!(files.slots.lock().free.len(), 3);
    }
}
