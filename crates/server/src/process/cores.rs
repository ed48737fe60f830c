//! The cores: threads that serve connections, each with its own runtime and listening sockets.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use sandarac_net::{Command, Ending, ListenerId, Listeners, run_core};
use sandarac_proxy::{Core, Shared};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::failure::with_context;
use crate::logs::{AccessLog, Feed};
use crate::recorder::CoreRecorder;
use crate::stderr::print_line;

/// The command channels of the cores. Commands to a core that has ended are ignored.
pub(super) struct Cores(Vec<UnboundedSender<Command>>);

impl Cores {
    /// Starts `count` cores. Their threads run until [`Cores::stop`].
    pub(super) fn start(
        count: usize,
        shared: &Arc<Shared>,
        log: &AccessLog,
        feed: &Feed,
    ) -> io::Result<(Cores, Vec<JoinHandle<()>>)> {
        let mut cores = Vec::with_capacity(count);
        let mut threads = Vec::with_capacity(count);
        for index in 0..count {
            let (commands, received) = unbounded_channel();
            let (shared, feed) = (shared.clone(), feed.clone());
            let outlet = log.outlet();
            let thread = thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                let ended = run_core(received, || {
                    Core::new(shared, index, Box::new(CoreRecorder::new(outlet, feed)))
                });
                if let Err(error) = ended {
                    print_line(format_args!("sandarac: core {index} cannot start: {error}"));
                }
            });
            threads
                .push(thread.map_err(|error| with_context(&format!("cannot start core {index}"), &error))?);
            cores.push(commands);
        }
        Ok((Cores(cores), threads))
    }

    /// The number of cores.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Gives each core its sockets of a listener.
    pub(super) fn listen(&self, sockets: Listeners) -> io::Result<()> {
        for (core, sockets) in self.0.iter().zip(sockets.split()?) {
            let _ = core.send(Command::Listen(sockets));
        }
        Ok(())
    }

    /// Closes a listener on every core.
    pub(super) fn unlisten(&self, listener: ListenerId) {
        for core in &self.0 {
            let _ = core.send(Command::Unlisten(listener));
        }
    }

    /// Stops accepting connections, and waits until every exchange has ended.
    pub(super) async fn drain(&self, ending: Ending) {
        let drained = self.0.iter().filter_map(|core| {
            let (done, drained) = oneshot::channel();
            core.send(Command::Drain(ending, done)).ok().map(|()| drained)
        });
        let drained: Vec<_> = drained.collect();
        for core in drained {
            let _ = core.await;
        }
    }

    /// Stops every core at once.
    pub(super) fn stop(&self) {
        for core in &self.0 {
            let _ = core.send(Command::Stop);
        }
    }
}
