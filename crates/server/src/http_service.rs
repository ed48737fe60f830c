//! A small HTTP service on a thread of its own, with a runtime of its own: what it does cannot hold up a core.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::stderr::print_line;
use tokio::sync::oneshot;

/// A call that hangs must not hold up the end of the process for longer.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// How many calls may block at a time.
const MAX_BLOCKING_CALLS: usize = 8;

/// A running service. It stops when dropped.
pub(crate) struct HttpService {
    /// What messages call it.
    name: &'static str,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpService {
    /// Runs what `serve` makes, in the runtime of the new thread, until the service is dropped or it ends by itself, of
    /// which standard error is told. `thread` names the thread.
    pub(crate) fn start<F>(
        name: &'static str,
        thread: &str,
        serve: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<HttpService>
    where
        F: Future<Output = io::Result<()>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_BLOCKING_CALLS)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(thread.to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    served = serve() => if let Err(error) = served {
                        print_line(format_args!("sandarac: {name} stopped: {error}"));
                    },
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        })?;
        Ok(HttpService { name, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HttpService {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            print_line(format_args!("sandarac: the thread of {} panicked", self.name));
        }
    }
}
