//! Work on files that a hung file system may never end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// The longest that one operation on a file of TLS may take.
pub(crate) const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(5) };

/// The files that a thread is stuck at. One that ends after all takes its file out.
static STUCK: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Does `work` on the file at `path` on a thread of its own, and waits for it. Where it takes too long, the caller goes on without
/// it, so that a hung file system holds up neither a reload nor the end of the process. Further files of the same directory
/// then fail at once.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] where it takes longer than `patience`; those of `work`.
pub fn patiently<T: Send + 'static>(
    path: &Path,
    patience: Duration,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if STUCK.lock().iter().any(|other| other.parent() == path.parent()) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let (sender, receiver) = channel();
    let owned = path.to_owned();
    thread::Builder::new().name("certificate file".to_owned()).spawn(move || {
        // Nobody waits any more for one that was stuck.
        let _ = sender.send(work(&owned));
        STUCK.lock().retain(|other| *other != owned);
    })?;
    match receiver.recv_timeout(patience) {
        Ok(result) => result,
        Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::Other.into()),
        Err(RecvTimeoutError::Timeout) => {
            let mut stuck = STUCK.lock();
            // A thread that ends after this look finds its file in the list.
            receiver.try_recv().unwrap_or_else(|_| {
                stuck.push(path.to_owned());
                Err(io::ErrorKind::TimedOut.into())
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;

    /// Work that goes on until the returned sender is used.
    fn hanging() -> (Sender<()>, impl FnOnce(&Path) -> io::Result<&'static str> + Send + 'static) {
        let (sender, receiver) = channel();
        (sender, move |_: &Path| Ok(receiver.recv().map_or("dropped", |()| "released")))
    }

    fn kind(result: io::Result<&'static str>) -> Result<&'static str, io::ErrorKind> {
        result.map_err(|error| error.kind())
    }

    #[test]
    fn a_file_system_that_hangs_is_not_waited_for_and_is_used_again_when_it_answers() {
        let at = Path::new("/hung/a.crt");
        let (release, work) = hanging();
        assert_eq!(kind(patiently(at, PATIENCE, work)), Err(io::ErrorKind::TimedOut));
        // Another thread is not spent on the same directory.
        let untouched = |_: &Path| -> io::Result<&'static str> { panic!("it is tried") };
        assert_eq!(
            kind(patiently(Path::new("/hung/b.crt"), PATIENCE, untouched)),
            Err(io::ErrorKind::TimedOut)
        );
        assert_eq!(kind(patiently(Path::new("/other/b.crt"), PATIENCE, |_| Ok("read"))), Ok("read"));
        release.send(()).expect("the thread waits");
        while STUCK.lock().iter().any(|other| other == at) {
            thread::yield_now();
        }
        assert_eq!(kind(patiently(at, PATIENCE, |_| Ok("read"))), Ok("read"));
    }

    #[test]
    fn the_errors_of_the_work_are_returned() {
        let work = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(
            kind(patiently(Path::new("/fine/a.crt"), PATIENCE, work)),
            Err(io::ErrorKind::PermissionDenied)
        );
    }
}
