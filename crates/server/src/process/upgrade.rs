//! The hand-over to a new process: its start, what it is given, and what becomes of this one.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
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
use crate::service_manager;
use crate::stderr::print_line;
use crate::takeover::{Line, Message, Offer, OfferedListener, Older, PROMPT, Secret, TAKES_OVER};

/// How long a new process may take until it serves.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most old processes that are left their connections; of more, the oldest ends.
const MAX_OLDER: usize = 3;

impl ProcessState {
    /// Starts the program that this process was started from, unless another process asks for it, and hands over
    /// when it can serve. Otherwise nothing changes. The result is always reported on standard error, too.
    pub(super) fn upgrade(&self, order: &Upgrade) -> Result<Upgraded, Refusal> {
        let refused = |what: &str| Err(Refusal::failed(what));
        let outcome = match self.upgrading.try_lock() {
            None => refused("an upgrade is in progress"),
            Some(_) if self.draining_since.get().is_some() => {
                refused("this process is draining and has nothing to hand over")
            }
            Some(_one_at_a_time) => {
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

    /// Hands over to a process, if it serves in time.
    fn hand_over(&self, successor: Successor, patience: Duration) -> Result<Upgraded, Refusal> {
        let Successor { pid, line, child } = successor;
        if let Err(error) = self.offer(&line).and_then(|()| line.expect_ready(patience)) {
            // One that asked ends by itself when the line does.
            let (ended, status) = match child {
                None => ("", String::new()),
                Some(mut child) => {
                    _ = child.kill();
                    let status = child.wait();
                    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    (", and was ended", format!(" ({status})"))
                }
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
        if let Some(admin) = self.admin_server.get() {
            admin.leave();
        }
        service_manager::handed_over(pid);
        self.acme.stop();
        self.leave(pid, line);
        if let Some(mut child) = child {
            // Nobody else waits for it, should it end first.
            std::thread::spawn(move || child.wait());
        }
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
        let has_to_end = self.has_to_end.clone();
        spawn("successor", move || {
            while let Some(message) = line.next(|| false) {
                match message {
                    Message::End => has_to_end.notify_one(),
                    Message::Forgotten => _ = tells.send(()),
                    _ => {}
                }
            }
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
        let admin = self.admin_server.get();
        descriptors.extend(admin.map(|admin| admin.socket().as_fd()));
        descriptors.extend(older.iter().map(|older| older.line.as_fd()));
        let marker = self.relatives.marker()?;
        descriptors.push(marker.as_fd());
        let offer = Offer {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            listeners: offered,
            admin: admin.map(|_| self.admin.lock().clone()),
            older: older.iter().map(|older| older.pid).collect(),
            tickets: Secret(self.tls.secret().map(|secret| secret.bytes().to_vec()).unwrap_or_default()),
            has_marker: true,
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
            let store = self.shared.store.clone();
            spawn("objects", move || take_objects(&store, UnixStream::from(stream), pid, begun));
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
    /// It, if it was started for that.
    child: Option<Child>,
}

impl Successor {
    /// Starts the program at the path by which this process was started, with the same arguments.
    fn start() -> Result<Successor, Refusal> {
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_else(|| OsString::from("sandarac"));
        let failed =
            |error: std::io::Error| Refusal::failed(format!("cannot start {}: {error}", program.display()));
        let (line, theirs) = Line::pair().map_err(failed)?;
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::from(theirs)).env(TAKES_OVER, "1");
        let child = command.spawn().map_err(failed)?;
        Ok(Successor { pid: child.id(), line, child: Some(child) })
    }

    /// The process that waits at a socket of this name.
    fn at(name: &str) -> Result<Successor, Refusal> {
        let failed = |error: std::io::Error| {
            Refusal::failed(format!("cannot reach the process that wants to take over: {error}"))
        };
        let (line, pid) = Line::to(name).map_err(failed)?;
        Ok(Successor { pid, line, child: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use sandarac_config::Config;
    use sandarac_test_support::{Address, Conn, get};

    #[test]
    fn a_program_that_hangs_is_ended_and_changes_nothing() {
        let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nanswer = { status = 200 }\n";
        let (config, _) = Config::from_toml("test.toml", text).unwrap();
        let process = Process::start(config, None).unwrap();
        let (line, theirs) = Line::pair().unwrap();
        let child = Command::new("sleep").arg("60").stdin(Stdio::from(theirs)).spawn().unwrap();
        let pid = child.id();
        let hanging = Successor { pid, line, child: Some(child) };
        let refused = process.state.hand_over(hanging, Duration::from_millis(100)).unwrap_err();
        let expected = format!("process {pid} did not serve within 0.1 s, and was ended");
        assert!(refused.to_string().contains(&expected), "{refused}");
        let address = Address::parse(&process.listeners()[0].to_string());
        Conn::to(&address).exchange(&get("/")).expect(200);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
