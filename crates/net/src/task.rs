//! Tasks of a core besides its sessions.

use std::pin::Pin;
use std::time::Duration;

use crate::panics::{OfPart, PanicPart};

/// Starts a task on this core, which ends with the core at the latest. A panic in it counts for `part`. It is [boxed], because a
/// runtime that is given the future itself copies it three times: a fill has 7 KB. MUST be called within the core's runtime.
pub fn spawn<F: Future<Output = ()> + 'static>(part: PanicPart, make: impl FnOnce() -> F) {
    tokio::task::spawn_local(OfPart::new(part, boxed(make)));
}

/// A future in memory of its own. Unlike [`Box::pin`], this allocates before it makes the future, which is
/// then built in its place. The future of an exchange has 3 KB, which would be copied otherwise.
pub fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}

/// Waits for `duration`.
pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Drops `value` on another thread, because that may wait for a disk.
pub fn drop_off_core<T: Send + 'static>(value: T) {
    if let Ok(core) = tokio::runtime::Handle::try_current() {
        core.spawn_blocking(move || drop(value));
    }
}

/// Lets another thread do `work` that may wait for a disk. `None` if it panicked, or if the core ends. MUST be called within
/// the core's runtime.
pub async fn off_core<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
