//! Work that may wait for a file system that hangs, such as a network one whose server is gone, is done aside: the upkeep of
//! other pools goes on meanwhile, and so does the end of the process.

use std::io;
use std::path::Path;
use tokio::sync::oneshot;

/// Does `what` with `path` on a thread of its own, which nobody waits for any more when this is dropped.
///
/// # Errors
/// If there can be no thread, or it came to no end.
pub(super) async fn aside<T: Send + 'static>(
    path: &Path,
    what: impl FnOnce(&Path) -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    let path = path.to_owned();
    let thread = std::thread::Builder::new().name("file-reader".to_owned());
    thread.spawn(move || drop(done.send(what(&path))))?;
    result.await.map_err(|_| io::Error::other("reading it came to no end"))
}
