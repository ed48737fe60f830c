//! Tasks of a core besides its sessions.

use std::time::Duration;

/// Starts a task on this core. It ends with the core at the latest. MUST be called within the core's runtime.
pub fn spawn(task: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(task);
}

/// Waits for `duration`.
pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
