//! Registries of workers, the real ones of Debian, each in a directory and on a port of its own.
//!
//! `./check` installs them. A test that wants one that is not there fails and names the package.

mod etcd;
mod zookeeper;

pub use etcd::{Etcd, base64};
pub use zookeeper::{Registrar, ZooKeeper};

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{TempDir, within};

/// What every registry can be made to do: it runs in `server`, and `launch` starts that.
macro_rules! can_fail {
    ($registry:ident) => {
        impl $registry {
            /// Ends it without giving it time for anything.
            pub fn kill(&mut self) {
                self.server.kill();
            }

            /// Starts it again after [`kill`](Self::kill), with all it knew, at the same address.
            pub fn restart(&mut self) {
                self.launch();
            }

            /// Stops it from doing anything. Its connections stay open.
            pub fn freeze(&self) {
                self.server.signal(rustix::process::Signal::STOP);
                self.server.await_stop();
            }

            /// Lets it go on.
            pub fn thaw(&self) {
                self.server.signal(rustix::process::Signal::CONT);
            }
        }
    };
}
pub(crate) use can_fail;

/// A server process that may be killed and started again where it was.
pub(crate) struct Server {
    pub(crate) dir: TempDir,
    package: &'static str,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn new(package: &'static str) -> Server {
        Server { dir: TempDir::new(), package, child: None }
    }

    /// Runs `command` in the server's directory, what it says going to `log` there.
    fn start(&mut self, mut command: Command) {
        let log = File::options().create(true).append(true).open(self.dir.join("log")).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        command.current_dir(self.dir.path());
        let child = command.spawn();
        self.child = Some(child.unwrap_or_else(|error| {
            panic!("{command:?}: {error}; ./check installs the Debian package {}", self.package)
        }));
    }

    /// Waits until it serves, having run `command`. One server starts at a time: several at once on few cores take all of them
    /// too long.
    #[track_caller]
    pub(crate) fn launch(&mut self, command: Command, serves: impl Fn() -> bool) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        self.start(command);
        within(&format!("the server of {} to serve", self.package), || {
            self.assert_runs();
            let serves = serves();
            if !serves {
                // What is asked too often does not get on.
                thread::sleep(Duration::from_millis(20));
            }
            serves.then_some(())
        });
    }

    /// Ends it without giving it time for anything.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let child = self.child.as_ref().expect("the server runs");
        rustix::process::kill_process(rustix::process::Pid::from_child(child), signal)
            .expect("the server runs");
    }

    /// Waits until every thread has stopped: the signal returns before they have.
    pub(crate) fn await_stop(&self) {
        let child = self.child.as_ref().expect("the server runs");
        let tasks = format!("/proc/{}/task", child.id());
        within("all threads of the server to stop", || {
            let mut tasks = std::fs::read_dir(&tasks).expect("the threads of the server").flatten();
            let has_stopped = tasks.all(|task| {
                let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                // The state follows the name, which is in parentheses.
                stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
            });
            has_stopped.then_some(())
        });
    }

    /// Fails if it has ended.
    fn assert_runs(&mut self) {
        let child = self.child.as_mut().expect("the server was started");
        if let Ok(Some(status)) = child.try_wait() {
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            panic!("the server of {} ended with {status}: {log}", self.package);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
