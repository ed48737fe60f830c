//! The hand-over to a new process: its start, what it is given, and what becomes of this one.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use sandarac_cache::{Begun, Settings, Store};

use super::objects::{self, Amount};
use super::pages;
use super::pools;
use super::relatives::spawn;
use super::state::ProcessState;
use crate::admin::{Refusal, Upgrade, Upgraded};
use crate::human::lasting;
use crate::intermediary::{self, Started};
use crate::service_manager;
use crate::stderr::print_line;
use crate::takeover::{Line, Message, Offer, OfferedListener, Older, PROMPT, Secret};

/// How long a new process may take until it serves.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an upgrade waits for objects that are on their way to this process.
const CACHE_PATIENCE: Duration = Duration::from_secs(15);

/// How long one that does not may take to end by itself, and how often that is looked at.
const GRACE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// The most old processes that are left their connections; of more, the oldest ends.
const MAX_OLDER: usize = 3;

impl ProcessState {
    /// Starts the program that this process was started from, unless another process asks for it, and hands
    /// over when it can serve. Otherwise nothing changes. The result is always reported on standard error,
    /// too.
    pub(super) fn upgrade(&self, order: &Upgrade) -> Result<Upgraded, Refusal> {
        let refused = |what: &str| Err(Refusal::failed(what));
        let outcome = match self.upgrading.try_lock() {
            None => refused("an upgrade is in progress"),
            Some(_) if self.draining_since.get().is_some() => {
                refused("this process is draining and has nothing to hand over")
            }
            Some(_one_at_a_time) => {
                self.wait_for_cache();
                let _no_reload = self.reloading.lock();
                let successor = match &order.to {
                    None => Successor::start(),
                    Some(name) => Successor::at(name),
                };
                successor.and_then(|successor| self.hand_over(successor, PATIENCE))
            }
        };
        match &outcome {
            Ok(Upgraded { pid }) => print_line(format_args!(
                "sandarac: process {pid} has taken over; this one ends with its last connection"
            )),
            Err(refusal) => print_line(format_args!("sandarac: no upgrade, this process goes on: {refusal}")),
        }
        outcome
    }

    /// Waits until the objects of the last process, or those of a snapshot, are here: what is on its way
    /// would be lost.
    fn wait_for_cache(&self) {
        let deadline = Instant::now() + CACHE_PATIENCE;
        while self.arriving.is_held() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }

    /// Hands over to a process, if it serves in time.
    fn hand_over(&self, successor: Successor, patience: Duration) -> Result<Upgraded, Refusal> {
        let Successor { pid, line, intermediary } = successor;
        if let Err(error) = self.offer(&line).and_then(|()| line.expect_ready(patience)) {
            // It sees that nobody waits for it any more.
            drop(line);
            // One that asked ends by itself then.
            let (ended, status) = match intermediary {
                None => ("", String::new()),
                Some(intermediary) => (", and was ended", format!(" ({})", end(pid, intermediary))),
            };
            return Err(Refusal::failed(match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    format!("process {pid} did not serve within {}{ended}", lasting(patience.as_secs_f64()))
                }
                std::io::ErrorKind::InvalidData => {
                    format!("process {pid} is no sandarac that can take over ({error}){ended}")
                }
                _ => format!("process {pid} ended before it served{status}; its standard error says why"),
            }));
        }
        // From here on there is no way back.
        self.draining_since.get_or_init(Instant::now);
        // Without its socket here, nobody waits at it for this process if the other one dies.
        if let Some(admin) = self.admin_server.lock().take() {
            admin.leave();
        }
        if let Some(mut intermediary) = intermediary {
            // From here on the service manager, if there is one, is the parent of the new process.
            _ = intermediary.kill();
            _ = intermediary.wait();
        }
        *self.noted.lock() = service_manager::handed_over(pid);
        self.acme.stop();
        self.leave(pid, line);
        self.handed_over.notify_one();
        Ok(Upgraded { pid })
    }

    /// Leaves the sockets and the cache to process `pid`, at the other end of `line`.
    fn leave(&self, pid: u32, line: Line) {
        let failed =
            |what: &str, error: std::io::Error| print_line(format_args!("sandarac: {what}: {error}"));
        self.listening_to_older.stop();
        let line = Arc::new(line);
        let (tells, heard) = channel();
        if let Err(error) = self.relatives.leave(line.clone(), heard) {
            failed("purges do not reach the new process", error);
        }
        let stream = UnixStream::pair()
            .map_err(|error| failed("the cache does not move", error))
            .ok()
            .filter(|_| self.shared.site().config.cache.shared.is_none())
            .unzip();
        let (own, theirs) = stream;
        let theirs: Vec<BorrowedFd<'_>> = theirs.as_ref().map(AsFd::as_fd).into_iter().collect();
        if let Err(error) = line.send(&Message::Yours { orders: pools::orders(&self.shared) }, &theirs) {
            failed(&format!("process {pid} does not hear that it has taken over"), error);
        }
        let (has_to_end, is_orphan) = (self.has_to_end.clone(), self.is_orphan.clone());
        spawn("successor", move || {
            while let Some(message) = line.next(|| false) {
                match message {
                    Message::End => has_to_end.notify_one(),
                    Message::Forgotten { number } => _ = tells.send(number),
                    _ => {}
                }
            }
            // Nobody is left to tell of purges, or to hear of them from.
            is_orphan.store(true, Relaxed);
            has_to_end.notify_one();
        });
        let (store, moving) = (self.shared.store.clone(), self.is_moving.clone());
        moving.send_replace(true);
        let moves = spawn("objects", move || {
            pages::give_back_at_once();
            if let Some(Err(error)) = own.map(|stream| objects::write(&store, stream))
                && error.kind() != std::io::ErrorKind::BrokenPipe
            {
                failed("the cache has not moved as a whole", error);
            }
            // Both together keep within the limit: what did not move is dropped, and nothing new is stored.
            objects::drop_all(&store);
            store.configure(Settings { max_object: Some(0), ..store.settings() });
            moving.send_replace(false);
        });
        if moves.is_none() {
            self.is_moving.send_replace(false);
        }
    }

    /// Offers all listening sockets.
    fn offer(&self, line: &Line) -> std::io::Result<()> {
        let (listeners, sockets) = (self.listeners.lock(), self.sockets.lock());
        let mut older = self.older.lock();
        older.retain(|older| older.line.is_held());
        let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
        let mut offered = Vec::new();
        let configured = &self.shared.site().config.listeners;
        for (listener, configured) in listeners.iter().zip(configured) {
            let Some(own) = sockets.get(&listener.id) else { continue };
            let is_passed = self.inherited.has(&listener.address);
            let address = configured.address.to_string();
            offered.push(OfferedListener { address, sockets: own.len(), is_passed });
            descriptors.extend(own.iter().map(AsFd::as_fd));
        }
        let admin_server = self.admin_server.lock();
        let admin = admin_server.as_ref();
        descriptors.extend(admin.map(|admin| admin.socket().as_fd()));
        descriptors.extend(older.iter().map(|older| older.line.as_fd()));
        let marks = self.relatives.marks()?;
        descriptors.push(marks.as_fd());
        let offer = Offer {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            listeners: offered,
            admin: admin.map(|_| self.admin.lock().clone()),
            older: older.iter().map(|older| older.pid).collect(),
            tickets: Secret(self.tls.secret().map(|secret| secret.bytes().to_vec()).unwrap_or_default()),
            has_marks: true,
        };
        line.send(&Message::Offer(offer), &descriptors)
    }

    /// Tells the process that this one takes over from that it can serve, and waits until it has to. Purges
    /// and bans since `begun` apply to the objects that come.
    pub(super) fn take_over(&self, Predecessors { from, version, older }: Predecessors, begun: Begun) {
        let pid = from.pid;
        let handed_over = from.line.send(&Message::Ready, &[]).and_then(|()| from.line.receive(PROMPT));
        let stream = match handed_over {
            Ok((message, mut descriptors)) => {
                if let Message::Yours { orders } = message {
                    pools::follow(&self.shared, orders);
                }
                descriptors.pop()
            }
            Err(error) => {
                print_line(format_args!(
                    "sandarac: process {pid} does not say that it has handed over: {error}"
                ));
                None
            }
        };
        let with = match stream {
            Some(_) => "; its cache is coming",
            None if self.shared.site().config.cache.shared.is_some() => {
                ", with an empty cache: the shared tier has what it had"
            }
            None => ", with an empty cache",
        };
        print_line(format_args!("sandarac: took over from process {pid}, version {version}{with}"));
        if let Some(stream) = stream {
            let (store, arriving) = (self.shared.store.clone(), self.arriving.hold());
            spawn("objects", move || {
                take_objects(&store, UnixStream::from(stream), pid, begun);
                drop(arriving);
            });
        }
        for line in older.iter().chain([&from]).map(|older| older.line.copy()) {
            match line {
                Ok(line) => self.listening_to_older.begin(line, self.shared.store.clone()),
                Err(error) => {
                    print_line(format_args!("sandarac: purges at an older process are not heard: {error}"))
                }
            }
        }
        let mut all = self.older.lock();
        *all = older;
        all.push(from);
        all.retain(|older| older.line.is_held());
        let too_many = all.len().saturating_sub(MAX_OLDER);
        for Older { pid, line } in all.drain(..too_many) {
            print_line(format_args!(
                "sandarac: process {pid} has to end: it is the oldest of more than {MAX_OLDER} that have connections left"
            ));
            _ = line.send(&Message::End, &[]);
        }
    }

    /// The processes that this one took over from and that have connections left.
    pub(super) fn predecessors(&self) -> Vec<u32> {
        let older = self.older.lock();
        older.iter().filter(|older| older.line.is_held()).map(|older| older.pid).collect()
    }

    /// Looks whether the processes that this one took over from have ended.
    pub(super) fn look_at_older(&self) {
        let mut older = self.older.lock();
        let were_there = !older.is_empty();
        older.retain(|older| older.line.is_held());
        if were_there && older.is_empty() {
            self.relatives.older_are_gone(&self.shared.store);
        }
    }

    /// Has these processes end within their time for that.
    pub(super) fn end_older(&self) {
        for older in &*self.older.lock() {
            _ = older.line.send(&Message::End, &[]);
        }
    }
}

/// The process that one takes over from, and those before it.
pub(super) struct Predecessors {
    pub(super) from: Older,
    pub(super) version: String,
    pub(super) older: Vec<Older>,
}

/// Takes the objects of process `pid` from `stream`, and says so.
fn take_objects(store: &Arc<Store>, stream: UnixStream, pid: u32, begun: Begun) {
    let (started, mut amount) = (Instant::now(), Amount::default());
    let ended = objects::read(store, stream, begun, &mut amount);
    let came = amount.said(started.elapsed());
    print_line(match ended {
        Ok(()) => format!("sandarac: the cache of process {pid} has come over: {came}"),
        Err(error) => {
            format!("sandarac: the cache of process {pid} has come over in part: {came}; then: {error}")
        }
    });
}

/// A process that is to take over.
struct Successor {
    pid: u32,
    line: Line,
    /// The process that ends as it does, if it was started for that.
    intermediary: Option<Child>,
}

impl Successor {
    /// Starts the program at the path by which this process was started, with the same arguments.
    fn start() -> Result<Successor, Refusal> {
        if std::process::id() == 1 {
            return Err(Refusal::failed("this is the first process of its container, which ends with it")
                .instead("start another container, and stop this one"));
        }
        let Started { pid, line, intermediary } =
            intermediary::start().map_err(|error| Refusal::failed(error.to_string()))?;
        Ok(Successor { pid, line, intermediary: Some(intermediary) })
    }

    /// The process that waits at a socket of this name.
    fn at(name: &str) -> Result<Successor, Refusal> {
        let failed = |error: std::io::Error| {
            Refusal::failed(format!("cannot reach the process that wants to take over: {error}"))
        };
        let (line, pid) = Line::to(name).map_err(failed)?;
        Ok(Successor { pid, line, intermediary: None })
    }
}

/// Ends process `pid`, which does not serve, unless it ends by itself. Returns how it ended.
fn end(pid: u32, mut intermediary: Child) -> String {
    // It may be about to say why.
    let began = Instant::now();
    while began.elapsed() < GRACE && matches!(intermediary.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
    }
    if let Ok(None) = intermediary.try_wait()
        && let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed())
    {
        _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    intermediary.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use sandarac_config::Config;
    use sandarac_test_support::{Address, Conn, get};
    use std::process::{Command, Stdio};

    #[test]
    fn a_program_that_hangs_is_ended_and_changes_nothing() {
        let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nanswer = { status = 200 }\n";
        let (config, _) = Config::from_toml("test.toml", text).unwrap();
        let process = Process::start(config, None).unwrap();
        let (line, theirs) = Line::pair().unwrap();
        let child = Command::new("sleep").arg("60").stdin(Stdio::from(theirs)).spawn().unwrap();
        let pid = child.id();
        let hanging = Successor { pid, line, intermediary: Some(child) };
        let refused = process.state.hand_over(hanging, Duration::from_millis(100)).unwrap_err();
        let expected = format!("process {pid} did not serve within 0.1 s, and was ended");
        assert!(refused.to_string().contains(&expected), "{refused}");
        let address = Address::parse(&process.listeners()[0].to_string());
        Conn::to(&address).exchange(&get("/")).expect(200);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
