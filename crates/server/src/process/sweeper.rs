//! The thread that sweeps the store.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::thread;
use std::time::Duration;

use sandarac_net::wall;

use super::state::ProcessState;
use crate::failure::with_context;

/// The interval of sweeps, and the places of each: a million objects in about a minute.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
const SWEEP_PLACES: usize = 2048;

/// Starts the thread that sweeps the store until the process ends.
pub(super) fn start_sweeper(state: Weak<ProcessState>) -> io::Result<()> {
    let thread = thread::Builder::new().name("sweeper".to_owned()).spawn(move || {
        while let Some(state) = state.upgrade() {
            // The panic hook reports a panic. The next round is another part of the store, and it must come: memory pressure is
            // found here.
            _ = catch_unwind(AssertUnwindSafe(|| {
                state.shared.store.sweep(SWEEP_PLACES, wall());
                state.shared.look_at_clients();
            }));
            drop(state);
            thread::sleep(SWEEP_INTERVAL);
        }
    });
    thread.map_err(|error| with_context("cannot start the sweeper", &error))?;
    Ok(())
}
