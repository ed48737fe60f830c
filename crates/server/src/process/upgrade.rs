//! The hand-over to a new process: its start, what it is given, and what becomes of this one.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sandarac_cache::Purge;
use sandarac_net::wall;

use super::state::ProcessState;
use crate::admin::{Refusal, Upgraded};
use crate::service_manager;
use crate::stderr::print_line;
use crate::takeover::{Line, Message, Offer, OfferedListener, Older, PROMPT, Secret, TAKES_OVER};

/// How long a new process may take until it serves.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most old processes that are left their connections; of more, the oldest ends.
const MAX_OLDER: usize = 3;

impl ProcessState {
    /// Starts the program that this process was started from, and hands over to it when it serves. Otherwise
    /// nothing changes. The result is always reported on standard error, too.
    pub(super) fn upgrade(&self) -> Result<Upgraded, Refusal> {
        let refused = |what: &str| Err(Refusal::failed(what));
        let outcome = match self.upgrading.try_lock() {
            None => refused("an upgrade is in progress"),
            Some(_) if self.draining_since.get().is_some() => {
                refused("this process is draining and has nothing to hand over")
            }
            Some(_one_at_a_time) => {
                let _no_reload = self.reloading.lock();
                start_successor().and_then(|(line, child)| self.hand_over(line, child))
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

    /// Hands over to a process at the other end of `line`.
    fn hand_over(&self, line: Line, mut child: Child) -> Result<Upgraded, Refusal> {
        let pid = child.id();
        if let Err(error) = self.offer(&line).and_then(|()| line.expect_ready(PATIENCE)) {
            _ = child.kill();
            let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(Refusal::failed(match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    format!("process {pid} did not serve within {} s, and was ended", PATIENCE.as_secs())
                }
                std::io::ErrorKind::InvalidData => {
                    format!("process {pid} is no sandarac that can take over ({error}), and was ended")
                }
                _ => format!("process {pid} ended before it served ({status}); standard error says why"),
            }));
        }
        // It serves: from here on there is no way back, and nothing left to hand over.
        self.draining_since.get_or_init(Instant::now);
        if let Some(admin) = self.admin_server.get() {
            admin.leave();
        }
        service_manager::handed_over(pid);
        self.leave();
        if let Err(error) = line.send(&Message::Yours, &[]) {
            print_line(format_args!("sandarac: process {pid} does not hear that it has taken over: {error}"));
        }
        // Nobody else waits for it, should it end first.
        std::thread::spawn(move || child.wait());
        *self.successor.lock() = Some(line);
        self.handed_over.notify_one();
        Ok(Upgraded { pid })
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
        let offer = Offer {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            listeners: offered,
            admin: admin.map(|_| self.admin.lock().clone()),
            older: older.iter().map(|older| older.pid).collect(),
            tickets: Secret(self.tls.secret().map(|secret| secret.bytes().to_vec()).unwrap_or_default()),
        };
        line.send(&Message::Offer(offer), &descriptors)
    }

    /// Gives up what the new process has now: the cache, so that both together keep within its limit, and the
    /// orders for certificates.
    fn leave(&self) {
        self.acme.stop();
        self.shared.store.purge_all(Purge::Hard, wall());
    }

    /// Tells the process that this one takes over from that it serves, and waits until that one accepts
    /// nothing more.
    pub(super) fn took_over(&self, from: Older, older: Vec<Older>) {
        if let Err(error) = from.line.send(&Message::Ready, &[]).and_then(|()| from.line.receive(PROMPT)) {
            print_line(format_args!(
                "sandarac: process {} does not say that it has handed over: {error}",
                from.pid
            ));
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

/// Starts the program at the path by which this process was started, with the same arguments.
fn start_successor() -> Result<(Line, Child), Refusal> {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_else(|| OsString::from("sandarac"));
    let failed =
        |error: std::io::Error| Refusal::failed(format!("cannot start {}: {error}", program.display()));
    let (line, theirs) = Line::pair().map_err(failed)?;
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::from(theirs)).env(TAKES_OVER, "1");
    let child = command.spawn().map_err(failed)?;
    Ok((line, child))
}
