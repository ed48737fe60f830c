//! Free pages of the allocator.

use tikv_jemalloc_ctl::{arenas, raw};

/// From now on the process gives back each page when it becomes free, and not within the second that is cheaper for one that goes on.
/// Of a process whose objects move, what it had would otherwise stay resident beside what the next one has already.
#[expect(unsafe_code, reason = "the type of an option of the allocator is not checked")]
pub(super) fn give_back_at_once() {
    let Ok(count) = arenas::narenas::read() else { return };
    for arena in 0..count {
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        // SAFETY: the option is a number of this size (jemalloc(3), `arena.<i>.dirty_decay_ms`), and its name ends with a zero. An arena
        // that does not exist is refused.
        _ = unsafe { raw::write(name.as_bytes(), 0_isize) };
    }
}
