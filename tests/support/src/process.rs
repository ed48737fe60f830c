//! The binary, running.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::{Address, Conn, Listener, Origin, PATIENCE, Req, Response, TempDir, Terminal, get, within};

/// What it says once it answers.
const READY: &str = "sandarac: ready";

/// How the binary is to be started.
pub struct Setup {
    binary: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    config: Option<String>,
    descriptors: Option<u64>,
    inherited: Option<OwnedFd>,
    admin: bool,
    admin_path: Option<PathBuf>,
    unheard: bool,
    dir: TempDir,
}

/// What a finished command printed.
#[derive(Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A signal for a running binary.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// Reload the configuration and open the logs anew.
    Hangup,
    /// Drain, then exit.
    Terminate,
    /// Stop where it is, until [`Signal::Continue`].
    Stop,
    /// Go on.
    Continue,
    /// Open the logs anew.
    User1,
    /// Start the program again and hand over to it.
    User2,
}

impl Setup {
    /// The binary at `binary`, or the one that the environment variable `SANDARAC_BIN` names.
    pub fn new(binary: &str) -> Setup {
        let binary = std::env::var_os("SANDARAC_BIN").map_or_else(|| binary.into(), PathBuf::from);
        Setup {
            binary,
            arguments: Vec::new(),
            variables: Vec::new(),
            config: None,
            descriptors: None,
            inherited: None,
            admin: true,
            admin_path: None,
            unheard: false,
            dir: TempDir::new(),
        }
    }

    /// Runs a copy of the binary at `path`, which the test may replace.
    pub fn copied_to(mut self, path: PathBuf) -> Setup {
        fs::copy(&self.binary, &path).expect("the binary can be copied");
        self.binary = path;
        self
    }

    /// Adds an argument of the command line.
    pub fn arg(mut self, argument: impl Into<String>) -> Setup {
        self.arguments.push(argument.into());
        self
    }

    /// Adds an option with its value.
    pub fn option(self, name: &str, value: impl Into<String>) -> Setup {
        self.arg(name).arg(value)
    }

    /// Sets an environment variable.
    pub fn variable(mut self, name: &str, value: &str) -> Setup {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts the binary before `origin`, in addition to others.
    pub fn before(self, origin: &Origin) -> Setup {
        self.option("--backend", origin.url())
    }

    /// Puts the binary before the origin that the test plays with `listener`.
    pub fn before_listener(self, listener: &Listener) -> Setup {
        self.option("--backend", listener.url())
    }

    /// Chooses the cache profile in which RFC 9111 alone decides.
    pub fn rfc(self) -> Setup {
        self.option("--cache-profile", "rfc")
    }

    /// Writes `text` to a file and has the binary read it. Without this, it listens on a free port of
    /// 127.0.0.1.
    pub fn config(mut self, text: impl Into<String>) -> Setup {
        self.config = Some(text.into());
        self
    }

    /// Gives no `--admin`: the configuration says where that is.
    pub fn without_admin(mut self) -> Setup {
        self.admin = false;
        self
    }

    /// Has its admin interface at `path`, which may be that of another.
    pub fn admin_at(mut self, path: PathBuf) -> Setup {
        self.admin_path = Some(path);
        self
    }

    /// Passes a listening socket to the binary as a service manager does (sd_listen_fds(3)).
    pub fn inherits(mut self, socket: impl Into<OwnedFd>) -> Setup {
        self.inherited = Some(socket.into());
        self
    }

    /// Closes the other end of its standard error as soon as it is ready.
    pub fn unheard(mut self) -> Setup {
        self.unheard = true;
        self
    }

    /// Lowers the limit on open descriptors.
    pub fn descriptors(mut self, limit: u64) -> Setup {
        self.descriptors = Some(limit);
        self
    }

    /// The binary's own directory, removed when it ends.
    pub fn dir(&self) -> &TempDir {
        &self.dir
    }

    fn config_path(&self) -> PathBuf {
        self.dir.join("sandarac.toml")
    }

    fn admin_path(&self) -> PathBuf {
        self.admin_path.clone().unwrap_or_else(|| self.dir.join("admin"))
    }

    fn command(&self) -> Command {
        let before = match (self.descriptors, &self.inherited) {
            (None, None) => None,
            (Some(limit), None) => Some(format!("ulimit -n {limit}")),
            // The first that is passed is number 3. The process keeps its id when the shell becomes the
            // binary.
            (None, Some(_)) => Some("exec 3<&0 </dev/null && export LISTEN_FDS=1 LISTEN_PID=$$".to_owned()),
            (Some(_), Some(_)) => panic!("a limit beside a socket is not supported"),
        };
        let mut command = match before {
            None => Command::new(&self.binary),
            Some(before) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{before} && exec \"$0\" \"$@\"")]).arg(&self.binary);
                shell
            }
        };
        command.current_dir(self.dir.path());
        match &self.inherited {
            None => command.stdin(Stdio::null()),
            Some(socket) => command.stdin(socket.try_clone().expect("a socket can be shared")),
        };
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the binary and waits until it says that it is ready.
    ///
    /// # Panics
    /// If it ends before, with what it said.
    #[track_caller]
    pub fn start(self) -> Sandarac {
        let mut begun = self.begin();
        begun.gets_ready();
        begun
    }

    /// Starts the binary. It is ready after [`Sandarac::gets_ready`].
    pub fn begin(self) -> Sandarac {
        let mut command = self.command();
        match &self.config {
            Some(text) => {
                fs::write(self.config_path(), text).expect("the configuration can be written");
                command.arg("-c").arg(self.config_path());
            }
            None => {
                command.args(["--listen", "127.0.0.1:0"]);
            }
        }
        if self.admin {
            command.arg("--admin").arg(self.admin_path());
        }
        command.args(&self.arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // A copy of the binary is busy while a child that another test starts has it open for writing, until
        // it runs its program.
        let spawn = || match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => None,
            spawned => Some(spawned),
        };
        let mut child =
            within("the binary to start", spawn).unwrap_or_else(|error| panic!("cannot start: {error}"));
        let stdout = Lines::of(child.stdout.take().expect("stdout is a pipe"));
        let last = self.unheard.then_some(READY);
        let stderr = Lines::up_to(last, child.stderr.take().expect("stderr is a pipe"));
        Sandarac { child: Some(child), listening: Vec::new(), stdout, stderr, setup: self }
    }

    /// Runs the binary with the arguments given, and the configuration if there is one, to its end.
    #[track_caller]
    pub fn run(self) -> Output {
        let mut command = self.command();
        command.args(&self.arguments);
        if let Some(text) = &self.config {
            fs::write(self.config_path(), text).expect("the configuration can be written");
            command.arg("-c").arg(self.config_path());
        }
        finish(command)
    }
}

/// A running binary. It is killed when dropped, and nothing else is.
pub struct Sandarac {
    child: Option<Child>,
    listening: Vec<Address>,
    stdout: Lines,
    stderr: Lines,
    setup: Setup,
}

impl Sandarac {
    /// Waits until it says that it is ready.
    ///
    /// # Panics
    /// If it ends before, with what it said.
    #[track_caller]
    pub fn gets_ready(&mut self) {
        if !self.stderr.wait_for(READY) {
            assert!(self.stderr.has_ended(), "the binary was not ready after {PATIENCE:?}");
            panic!("the binary ended with {} before it was ready", self.wait());
        }
        if self.setup.unheard {
            self.stderr.wait_for_end();
        }
        self.listening = self.addresses_told();
        assert!(!self.listening.is_empty(), "the binary is ready but listens nowhere");
    }

    /// The first address it listens on.
    pub fn address(&self) -> &Address {
        &self.listening[0]
    }

    /// All addresses it listens on, in the order in which it named them.
    pub fn addresses(&self) -> &[Address] {
        &self.listening
    }

    /// Connects to the first address.
    #[track_caller]
    pub fn connect(&self) -> Conn {
        Conn::to(self.address())
    }

    /// Sends `request` on a connection of its own and reads the response.
    #[track_caller]
    pub fn exchange(&self, request: &Req) -> Response {
        self.connect().exchange(request)
    }

    /// Sends a GET for `target` on a connection of its own and reads the response.
    #[track_caller]
    pub fn get(&self, target: &str) -> Response {
        self.exchange(&get(target))
    }

    /// The address of a client connection to it that is told by name: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.address().url()
    }

    /// The binary's own directory.
    pub fn dir(&self) -> &TempDir {
        &self.setup.dir
    }

    /// The path of the admin socket.
    pub fn admin_path(&self) -> PathBuf {
        self.setup.admin_path()
    }

    /// Runs a subcommand that talks to this process: `arguments`, then `--admin PATH`.
    #[track_caller]
    pub fn admin(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.setup.binary);
        command.current_dir(self.setup.dir.path()).stdin(Stdio::null());
        command.args(arguments).arg("--admin").arg(self.admin_path());
        finish(command)
    }

    /// The processes that have taken over, one from the other. They are killed with this one.
    pub fn successors(&self) -> Vec<u32> {
        let said = self.stderr();
        let told = said.lines().filter_map(|line| {
            line.strip_prefix("sandarac: process ")?
                .strip_suffix(" has taken over; this one ends with its last connection")
        });
        told.map(|pid| pid.parse().expect("a number")).collect()
    }

    /// Starts a subcommand that talks to this process in a terminal.
    pub fn admin_terminal(&self, arguments: &[&str]) -> Terminal {
        let mut command = Command::new(&self.setup.binary);
        command.current_dir(self.setup.dir.path());
        command.args(arguments).arg("--admin").arg(self.admin_path());
        Terminal::run(command)
    }

    /// Runs an admin command that prints JSON, and reads that.
    ///
    /// # Panics
    /// If it fails or prints something else.
    #[track_caller]
    pub fn admin_json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.admin(arguments).success();
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error} in {:?}", output.stdout))
    }

    /// What the metric `name` of the admin interface stands at, its labels summed. A counter tells of things
    /// that leave no trace on the wire, so that a test can wait until they have happened.
    ///
    /// # Panics
    /// If there is no such metric.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        self.metric_where(name, |_| true)
    }

    /// The value of a metric, of those with this value of a label.
    pub fn metric_of(&self, name: &str, of: &str) -> u64 {
        self.metric_where(name, |labels| {
            labels.as_array().into_iter().flatten().any(|label| label[1].as_str() == Some(of))
        })
    }

    fn metric_where(&self, name: &str, is_meant: impl Fn(&serde_json::Value) -> bool) -> u64 {
        let stats = Conn::to(&Address::Unix(self.admin_path())).get("/stats").expect(200);
        let stats: serde_json::Value = serde_json::from_slice(&stats.body).expect("statistics are JSON");
        let metrics = stats["metrics"].as_array().expect("statistics are a list of metrics");
        let values: Vec<u64> = metrics
            .iter()
            .filter(|metric| metric["name"] == name && is_meant(&metric["labels"]))
            .filter_map(|metric| metric["value"].as_u64())
            .collect();
        assert!(!values.is_empty(), "no metric {name}");
        values.iter().sum()
    }

    /// Waits until the metric `name` stands at `value`.
    #[track_caller]
    pub fn counts(&self, name: &str, value: u64) {
        within(&format!("{value} {name}"), || (self.metric(name) == value).then_some(()));
    }

    /// Writes another configuration, without telling the binary.
    pub fn write_config(&self, text: &str) {
        fs::write(self.setup.config_path(), text).expect("the configuration can be written");
    }

    /// Writes another configuration and runs `sandarac reload`.
    #[track_caller]
    pub fn reload(&self, text: &str) -> Output {
        self.write_config(text);
        self.admin(&["reload"])
    }

    /// What it has said on standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// What it has said on standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Waits until standard error has a line that contains `text`.
    #[track_caller]
    pub fn says(&self, text: &str) {
        assert!(
            self.stderr.wait_for(text),
            "expected {text:?} on standard error, which has:\n{}",
            self.stderr()
        );
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the binary runs").id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the binary runs");
        let signal = match signal {
            Signal::Hangup => rustix::process::Signal::HUP,
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Stop => rustix::process::Signal::STOP,
            Signal::Continue => rustix::process::Signal::CONT,
            Signal::User1 => rustix::process::Signal::USR1,
            Signal::User2 => rustix::process::Signal::USR2,
        };
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, signal).expect("the binary runs");
    }

    /// Does `meanwhile` while the process stands still, so that it meets all of that at once when it goes on.
    pub fn paused<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        self.signal(Signal::Stop);
        within("the process to stand still", || (self.state() == 'T').then_some(()));
        let done = meanwhile();
        self.signal(Signal::Continue);
        done
    }

    /// The state of the process, as proc(5) writes it.
    fn state(&self) -> char {
        let status = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("the binary runs");
        let after_name = status.rsplit_once(") ").map_or("", |(_, rest)| rest);
        after_name.chars().next().expect("proc(5) has a state there")
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.as_mut().map(Child::try_wait), Some(Ok(None)))
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it does not end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("the binary runs");
        within("the binary to end", || child.try_wait().expect("a child can be waited for"))
    }

    /// The memory it holds (resident set), in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.proc_status("VmRSS:") * 1024
    }

    /// The most memory it has held (resident set), in bytes.
    pub fn peak_resident_bytes(&self) -> u64 {
        self.proc_status("VmHWM:") * 1024
    }

    fn proc_status(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the binary runs");
        let line = status.lines().find(|line| line.starts_with(key)).expect("a line that Linux writes");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// How many threads it has.
    pub fn threads(&self) -> u64 {
        self.proc_status("Threads:")
    }

    /// Lets it open descriptors below `limit` only, from now on; what it has open stays.
    pub fn limit_descriptors(&self, limit: u64) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let pid = Pid::from_child(self.child.as_ref().expect("the binary runs"));
        let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit { current: Some(limit), maximum: hard };
        prlimit(Some(pid), Resource::Nofile, limit).expect("the limit can be lowered");
    }

    /// Below which number it may open descriptors.
    pub fn descriptor_limit(&self) -> u64 {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid())).expect("the binary runs");
        let line =
            limits.lines().find(|line| line.starts_with("Max open files")).expect("a line that Linux writes");
        line.split_whitespace().nth(3).and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
    }

    /// How many descriptors it has open.
    pub fn open_descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the binary runs").count()
    }

    fn addresses_told(&self) -> Vec<Address> {
        let text = self.stderr();
        text.lines()
            .filter_map(|line| line.strip_prefix("sandarac: listening on "))
            .map(Address::parse)
            .collect()
    }
}

impl Drop for Sandarac {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for pid in self.successors() {
            let pid = rustix::process::Pid::from_raw(pid as i32).expect("a process id");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        if thread::panicking() {
            eprintln!("--- standard error of the binary ---\n{}---", self.stderr());
        }
    }
}

impl Output {
    /// The output of a command that succeeded.
    ///
    /// # Panics
    /// If it failed.
    #[track_caller]
    pub fn success(self) -> Output {
        assert!(self.status.success(), "{self:?}");
        self
    }

    /// The output of a command that failed, as it should: with a status of its own, not by a signal or a
    /// panic.
    ///
    /// # Panics
    /// If it succeeded, or died otherwise.
    #[track_caller]
    pub fn failure(self) -> Output {
        let code = self.status.code();
        assert!(code.is_some_and(|code| code != 0 && code != 101), "{self:?}");
        self
    }
}

/// Runs `command` to its end. It may have more to do than to wait for an answer, and gets twice the time.
fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = Lines::of(child.stdout.take().expect("stdout is a pipe"));
    let stderr = Lines::of(child.stderr.take().expect("stderr is a pipe"));
    let deadline = std::time::Instant::now() + 2 * PATIENCE;
    let status = loop {
        match child.try_wait().expect("a child can be waited for") {
            Some(status) => break status,
            None if std::time::Instant::now() < deadline => {
                thread::sleep(std::time::Duration::from_millis(2))
            }
            None => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("{command:?} did not end; it said: {}{}", stdout.text(), stderr.text());
            }
        }
    };
    stdout.wait_for_end();
    stderr.wait_for_end();
    Output { status, stdout: stdout.text(), stderr: stderr.text() }
}

/// The lines that a child has written so far. A thread collects them, and so does whoever asks for them: what
/// was written before the question is in the answer.
struct Lines(Arc<(Mutex<Collected>, Condvar)>);

struct Collected {
    /// `None` at the end.
    pipe: Option<File>,
    /// The last line that is read.
    last: Option<&'static str>,
    lines: Vec<String>,
    /// The beginning of a line.
    part: Vec<u8>,
}

impl Collected {
    /// Takes what was written.
    fn take(&mut self) {
        let mut read = vec![0; 64 << 10];
        while let Some(pipe) = &mut self.pipe
            && is_readable(pipe, Some(&Timespec::default()))
        {
            let count = pipe.read(&mut read).unwrap_or(0);
            self.part.extend_from_slice(&read[..count]);
            while let Some(end) = self.part.iter().position(|byte| *byte == b'\n')
                && self.pipe.is_some()
            {
                let line: Vec<u8> = self.part.drain(..=end).collect();
                self.add(&line);
            }
            if count == 0 {
                let rest = std::mem::take(&mut self.part);
                if !rest.is_empty() {
                    self.add(&rest);
                }
                self.pipe = None;
            }
        }
    }

    fn add(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        if self.last.is_some_and(|last| line.contains(last)) {
            self.pipe = None;
        }
        self.lines.push(line);
    }
}

/// Whether a pipe has bytes, or has ended, within this time.
fn is_readable(pipe: &impl AsFd, time: Option<&Timespec>) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::IN)];
    rustix::event::poll(&mut polled, time).is_ok_and(|count| count > 0)
}

impl Lines {
    fn of(pipe: impl Into<OwnedFd>) -> Lines {
        Lines::up_to(None, pipe)
    }

    /// Reads no further than the line with `last`, if there is one, and closes the pipe then.
    fn up_to(last: Option<&'static str>, pipe: impl Into<OwnedFd>) -> Lines {
        let pipe = File::from(pipe.into());
        let waits = pipe.try_clone().expect("a descriptor");
        let collected = Collected { pipe: Some(pipe), last, lines: Vec::new(), part: Vec::new() };
        let shared = Arc::new((Mutex::new(collected), Condvar::new()));
        let thread = Lines(Arc::clone(&shared));
        thread::spawn(move || {
            while !thread.has_ended() {
                is_readable(&waits, None);
                thread.collected().take();
                thread.0.1.notify_all();
            }
        });
        Lines(shared)
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.0.lock().expect("the lock is not poisoned")
    }

    fn text(&self) -> String {
        let mut collected = self.collected();
        // Only the thread can close the pipe at a last line.
        if collected.last.is_none() {
            collected.take();
            self.0.1.notify_all();
        }
        collected.lines.iter().map(String::as_str).collect()
    }

    /// Whether a line with `text` comes before the end and in time.
    fn wait_for(&self, text: &str) -> bool {
        let has = |state: &Collected| state.lines.iter().any(|line| line.contains(text));
        let waits = |state: &mut Collected| state.pipe.is_some() && !has(state);
        let waited = self.0.1.wait_timeout_while(self.collected(), PATIENCE, waits);
        let (state, _) = waited.expect("the lock is not poisoned");
        has(&state)
    }

    fn has_ended(&self) -> bool {
        self.collected().pipe.is_none()
    }

    fn wait_for_end(&self) {
        let _ = self.0.1.wait_timeout_while(self.collected(), PATIENCE, |state| state.pipe.is_some());
    }
}
