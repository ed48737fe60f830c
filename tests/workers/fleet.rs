//! Workers: the runner of `python/` with its processes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use sandarac_test_support::{Address, Conn, TempDir, within};

use crate::load::Page;

/// A runner and its workers, each of which serves `application.py`. They are told to drain when it is dropped.
pub(crate) struct Fleet {
    runner: Option<Child>,
    dir: Arc<TempDir>,
    size: usize,
}

/// How workers are to be started.
pub(crate) struct Plan {
    size: usize,
    arguments: Vec<String>,
    dir: Arc<TempDir>,
    release: String,
    tcp: bool,
}

impl Plan {
    /// So many workers, each with a Unix socket in one directory.
    pub(crate) fn new(size: usize) -> Plan {
        Plan::within(size, Arc::new(TempDir::new()))
    }

    fn within(size: usize, dir: Arc<TempDir>) -> Plan {
        // What a test leaves in flight is not waited for.
        let arguments = ["--drain-timeout", "5"].map(str::to_owned).to_vec();
        Plan { size, arguments, dir, release: "1".to_owned(), tcp: false }
    }

    /// Over TCP: every process has a port of its own, and a file names those that serve.
    pub(crate) fn over_tcp(mut self) -> Plan {
        self.tcp = true;
        self
    }

    /// What the workers say that they run, `1` unless told otherwise.
    pub(crate) fn release(mut self, release: &str) -> Plan {
        release.clone_into(&mut self.release);
        self
    }

    /// The directory of the workers' sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.dir.join("sockets")
    }

    /// Adds an option of the runner with its value.
    pub(crate) fn option(mut self, name: &str, value: impl Into<String>) -> Plan {
        self.arguments.extend([name.to_owned(), value.into()]);
        self
    }

    /// Starts them, and waits until all serve.
    #[track_caller]
    pub(crate) fn start(self) -> Fleet {
        let Plan { size, mut arguments, dir, release, tcp } = self;
        let place = if tcp {
            vec![
                "--bind".to_owned(),
                "127.0.0.1:0".to_owned(),
                "--addresses".to_owned(),
                text(&dir.join("addresses")),
            ]
        } else {
            vec!["--sockets".to_owned(), text(&dir.join("sockets"))]
        };
        arguments.extend(place);
        write_release(&dir, &release);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (package, application) = (root.join("python/src"), root.join("tests/workers"));
        // What `python/run-tests` makes has what registries need; for all else any Python will do.
        let python = Some(root.join("python/.venv/bin/python")).filter(|python| python.exists());
        let log = File::create(dir.join("log")).expect("a log can be made");
        let mut command = Command::new(python.unwrap_or_else(|| "python3".into()));
        command.args(["-B", "-m", "sandarac_worker", "application:app", "--workers", &size.to_string()]);
        command.arg("--chdir").arg(application).args(&arguments);
        command.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("RELEASE_FILE", dir.join("release"));
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log can be shared")).stderr(log);
        let runner = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let mut fleet = Fleet { runner: Some(runner), dir, size };
        // One after another: a busy machine takes long to start several.
        for count in 1..=size {
            within(&format!("{count} workers to serve"), || {
                let ended =
                    fleet.runner.as_mut().and_then(|runner| runner.try_wait().expect("it can be waited for"));
                assert!(ended.is_none(), "the runner ended: {ended:?}");
                (fleet.addresses().len() >= count).then_some(())
            });
        }
        fleet
    }
}

impl Fleet {
    /// The directory of the workers' sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.dir.join("sockets")
    }

    /// The file that names the workers that serve, where they do so over TCP.
    pub(crate) fn addresses_file(&self) -> PathBuf {
        self.dir.join("addresses")
    }

    /// The addresses of those that serve, in the order of their slots.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        if let Ok(text) = fs::read_to_string(self.addresses_file()) {
            return text.lines().map(|line| Address::parse(line.trim_start_matches("http://"))).collect();
        }
        let sockets = (0..self.size).map(|slot| self.sockets().join(format!("worker-{slot}.sock")));
        sockets.filter(|path| path.exists()).map(Address::Unix).collect()
    }

    /// The process that serves at `address`, or none if nobody does.
    pub(crate) fn process_at(&self, address: &Address) -> Option<Page> {
        let mut conn = Conn::try_to(address).ok()?;
        conn.try_send("GET /who HTTP/1.1\r\nHost: who\r\nConnection: close\r\n\r\n").ok()?;
        let response = conn.try_response("GET").ok()?;
        Some(Page::read("who", "/who", &response).expect("a worker's page"))
    }

    /// The processes that serve, in the order of their slots, once there are as many as there should be.
    #[track_caller]
    pub(crate) fn processes(&self) -> Vec<Page> {
        within("every worker to answer", || {
            let pages: Vec<Page> =
                self.addresses().iter().filter_map(|address| self.process_at(address)).collect();
            (pages.len() == self.size).then_some(pages)
        })
    }

    /// Waits until all workers are of `release`, one after another: a busy machine takes long to start several.
    #[track_caller]
    pub(crate) fn runs(&self, release: &str) {
        for count in 1..=self.size {
            within(&format!("{count} workers to be of release {release}"), || {
                let pages = self.processes();
                (pages.iter().filter(|page| page.release == release).count() >= count).then_some(())
            });
        }
    }

    /// Kills a process of its, which gets no time for anything. Its runner starts another.
    pub(crate) fn kill(&self, process: u32) {
        send(process, Signal::KILL);
    }

    /// From now on, workers that start are of `release`.
    pub(crate) fn release(&self, release: &str) {
        write_release(&self.dir, release);
    }

    /// Has the workers replaced one after another.
    pub(crate) fn replace(&self) {
        send(self.runner.as_ref().expect("the runner runs").id(), Signal::HUP);
    }

    /// Stops, and plans workers that take the same sockets.
    #[track_caller]
    pub(crate) fn gives_way(mut self) -> Plan {
        self.stop();
        Plan::within(self.size, Arc::clone(&self.dir))
    }

    /// Has all workers drain, and waits until they have gone.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        let Some(mut runner) = self.runner.take() else { return };
        send(runner.id(), Signal::TERM);
        within("the runner to end", || runner.try_wait().expect("it can be waited for"));
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            eprintln!("--- what the workers said ---\n{log}---");
            // Workers whose runner is gone drain.
            if let Some(mut runner) = self.runner.take() {
                let _ = runner.kill();
                let _ = runner.wait();
            }
        } else {
            self.stop();
        }
    }
}

fn write_release(dir: &TempDir, release: &str) {
    fs::write(dir.join("release"), release).expect("the release can be written");
}

fn text(path: &Path) -> String {
    path.to_str().expect("temporary directories have names in UTF-8").to_owned()
}

fn send(process: u32, signal: Signal) {
    let pid = Pid::from_raw(process.cast_signed()).expect("processes have numbers above 0");
    kill_process(pid, signal).expect("the process runs");
}
