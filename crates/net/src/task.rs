//! Tasks of a core beside its sessions.

use std::time::Duration;

/// Starts a task on this core. It ends with the core, if not before. MUST be called within its runtime.
pub fn spawn(task: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(task);
}

/// Waits.
pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
