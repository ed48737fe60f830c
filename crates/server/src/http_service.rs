//! A small HTTP service with its own thread and runtime, so that it cannot delay a core.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::stderr::print_line;
use tokio::sync::oneshot;

/// How long callers may take for their answers when the service stops.
const GRACE: Duration = Duration::from_millis(500);

/// The longest that a hanging call may delay the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// The most blocking calls at a time.
const MAX_BLOCKING_CALLS: usize = 8;

/// A running service. It stops when dropped.
pub(crate) struct HttpService {
    /// Its name in messages.
    name: &'static str,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpService {
    /// Runs the future of `serve` in the runtime of the new thread, until the service is dropped or the future ends by
    /// itself. The former is told to it, and it has a moment to end; errors are reported on standard error. `thread` names the thread.
    pub(crate) fn start<F>(
        name: &'static str,
        thread: &str,
        serve: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> io::Result<HttpService>
    where
        F: Future<Output = io::Result<()>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_BLOCKING_CALLS)
            .thread_name(thread)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(thread.to_owned()).spawn(move || {
            runtime.block_on(async {
                let (ends, ended) = oneshot::channel();
                let stop = async {
                    _ = stopped.await;
                    _ = ends.send(());
                    tokio::time::sleep(GRACE).await;
                };
                tokio::select! {
                    served = serve(ended) => if let Err(error) = served {
                        print_line(format_args!("sandarac: {name} stopped: {error}"));
                    },
                    () = stop => {}
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
