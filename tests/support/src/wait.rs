//! Waiting for something, never longer than a deadline.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for something that must come. Generous, because it is only used up by a test that fails; and short
/// enough that a request in vain at the end of a wait in vain is given up within half a minute.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Asks `check` until it gives something, and returns that.
///
/// # Panics
/// If nothing has come after [`PATIENCE`]; `what` names what was missing.
#[track_caller]
pub fn within<T>(what: &str, check: impl FnMut() -> Option<T>) -> T {
    wait(PATIENCE, what, check)
}

/// The same, four times as patient: for what a process does that is begun here and then goes at a pace of its own, once a second,
/// which a busy machine holds up again and again.
///
/// # Panics
/// If nothing has come.
#[track_caller]
pub fn eventually<T>(what: &str, check: impl FnMut() -> Option<T>) -> T {
    wait(4 * PATIENCE, what, check)
}

#[track_caller]
fn wait<T>(patience: Duration, what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {patience:?} in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A gate at which an origin waits until the test lets it go on. Clones are the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    open: bool,
    waiting: usize,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Opens the gate, for good.
    pub fn open(&self) {
        self.0.0.lock().expect("no thread panics at a gate").open = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open, or until [`PATIENCE`] has run out: an origin left behind by a failed test must end.
    pub fn wait(&self) {
        let mut state = self.0.0.lock().expect("no thread panics at a gate");
        state.waiting += 1;
        self.0.1.notify_all();
        let _ = self.0.1.wait_timeout_while(state, PATIENCE, |state| !state.open);
    }

    /// Waits until `count` threads in all have come to the gate.
    ///
    /// # Panics
    /// If they have not after [`PATIENCE`].
    #[track_caller]
    pub fn reached(&self, count: usize) {
        let state = self.0.0.lock().expect("no thread panics at a gate");
        let (state, _) = self
            .0
            .1
            .wait_timeout_while(state, PATIENCE, |state| state.waiting < count)
            .expect("no thread panics at a gate");
        assert!(state.waiting >= count, "{} of {count} came to the gate", state.waiting);
    }
}
