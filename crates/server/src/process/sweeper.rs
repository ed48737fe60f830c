//! The thread that sweeps the store.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::thread;
use std::time::Duration;

use sandarac_cache::Store;
use sandarac_net::wall;
use tikv_jemalloc_ctl::{epoch, stats};

use super::state::ProcessState;
use crate::failure::with_context;

/// The interval of sweeps, and the places of each: a million objects in about a minute.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
const SWEEP_PLACES: usize = 2048;

/// So many sweeps apart the gaps of the allocator are looked at.
const LOOK_EVERY: u32 = 10;

/// Bytes of gaps that are no reason to move objects.
const FEW_GAPS: usize = 16 << 20;

/// The most looks until objects are moved again where that frees little.
const MAX_PAUSE: u32 = 600;

/// Memory that the allocator keeps in pages which are in use only in part.
#[derive(Default)]
struct Gaps {
    sweeps: u32,
    /// The bytes that began the compaction in progress.
    began: Option<usize>,
    /// Looks until the next one may begin, and how many that are after one that frees little.
    left: u32,
    pause: u32,
}

impl Gaps {
    /// Has the store compact its objects if the gaps take more than a quarter of what is allocated. Objects
    /// of one size that survive here and there among others keep whole pages: 60 MiB of them kept 165
    /// resident.
    fn look(&mut self, store: &Store) {
        self.sweeps = self.sweeps.wrapping_add(1);
        if !self.sweeps.is_multiple_of(LOOK_EVERY) || store.is_compacting() {
            return;
        }
        let statistics = (epoch::advance(), stats::active::read(), stats::allocated::read());
        let (Ok(_), Ok(active), Ok(allocated)) = statistics else { return };
        let gaps = active.saturating_sub(allocated);
        if let Some(began) = self.began.take() {
            let has_freed_little = gaps > began - began / 8;
            self.pause = if has_freed_little { (2 * self.pause).clamp(1, MAX_PAUSE) } else { 0 };
            self.left = self.pause;
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 && gaps > FEW_GAPS.max(allocated / 4) {
            self.began = Some(gaps);
            store.compact_all();
        }
    }
}

/// Starts the thread that sweeps the store until the process ends.
pub(super) fn start_sweeper(state: Weak<ProcessState>) -> io::Result<()> {
    let thread = thread::Builder::new().name("sweeper".to_owned()).spawn(move || {
        let mut gaps = Gaps::default();
        while let Some(state) = state.upgrade() {
            // The panic hook reports a panic. The next round is another part of the store, and it must come: memory pressure is
            // found here.
            _ = catch_unwind(AssertUnwindSafe(|| {
                state.shared.store.sweep(SWEEP_PLACES, wall());
                state.shared.look_at_clients();
                state.look_at_older();
                gaps.look(&state.shared.store);
            }));
            drop(state);
            thread::sleep(SWEEP_INTERVAL);
        }
    });
    thread.map_err(|error| with_context("cannot start the sweeper", &error))?;
    Ok(())
}
