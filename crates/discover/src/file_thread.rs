//! Threads for file access that may block, as on a network file system whose server is gone. The upkeep of
//! other pools continues meanwhile, and the process can end.

use std::io;
use std::path::Path;
use tokio::sync::oneshot;

/// Runs `access` with `path` on a thread of its own. Dropping the future abandons the thread.
///
/// # Errors
/// If no thread can be started, or `access` panics.
pub async fn on_file_thread<T: Send + 'static>(
    path: &Path,
    access: impl FnOnce(&Path) -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    let path = path.to_owned();
    let thread = std::thread::Builder::new().name("file-reader".to_owned());
    thread.spawn(move || drop(done.send(access(&path))))?;
    result.await.map_err(|_| io::Error::other("reading it did not complete"))
}
