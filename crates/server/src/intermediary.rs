//! A process between one that is replaced and the one that takes over, until that serves. It starts the
//! latter and waits for it, so that the former learns how it ended. When that serves, the intermediary ends,
//! and whoever adopts orphans becomes the parent: a service manager, which then notices when its new main
//! process ends. Of a main process that is the child of another one it would not (systemd neither waits for
//! such a process nor restarts it).

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, Stdio};

use crate::takeover::{Line, Message, PROMPT, TAKES_OVER};

/// The environment of an intermediary; its standard input is a line.
const STARTS: &str = "SANDARAC_STARTS_SUCCESSOR";

/// A process that was started by an intermediary.
pub(crate) struct Started {
    /// Its number.
    pub(crate) pid: u32,
    /// The line to it.
    pub(crate) line: Line,
    /// The intermediary, which ends as that process does.
    pub(crate) intermediary: Child,
}

/// Starts the program at the path by which this process was started, with the same arguments, by way of an
/// intermediary.
///
/// # Errors
/// With the name of the program, if it cannot be started.
pub(crate) fn start() -> io::Result<Started> {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_else(|| "sandarac".into());
    let failed = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("cannot start {}: {error}", program.display()))
    };
    let (control, theirs) = Line::pair()?;
    // This program, whatever its path leads to by now.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(&program).args(arguments).env(STARTS, "1").stdin(Stdio::from(theirs));
    let mut intermediary = command.spawn().map_err(|error| failed(&error))?;
    let (line, theirs) = Line::pair()?;
    let answer = control
        .send(&Message::Start, &[theirs.as_fd()])
        .and_then(|()| control.receive(PROMPT))
        .map(|(message, _)| message);
    let error = match answer {
        Ok(Message::Started { pid }) => return Ok(Started { pid, line, intermediary }),
        Ok(Message::CannotStart { why }) => failed(&why),
        Ok(other) => failed(&format!("{other:?} is not due")),
        Err(error) => failed(&error),
    };
    _ = intermediary.kill();
    _ = intermediary.wait();
    Err(error)
}

/// Does the work of an intermediary, if this process is one.
pub fn serve() -> Option<ExitCode> {
    std::env::var_os(STARTS)?;
    // What goes wrong is told, or shows by the end of this process.
    Some(mediate().unwrap_or(ExitCode::FAILURE))
}

fn mediate() -> io::Result<ExitCode> {
    let control = Line::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (_, mut descriptors) = control.receive(PROMPT)?;
    let line: OwnedFd = descriptors.pop().ok_or(ErrorKind::InvalidData)?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(arguments.next().unwrap_or_default());
    command.args(arguments).env_remove(STARTS).env(TAKES_OVER, "1").stdin(Stdio::from(line));
    let started = command.spawn();
    // It has the other end of the line, too.
    drop(command);
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            control.send(&Message::CannotStart { why: error.to_string() }, &[])?;
            return Ok(ExitCode::FAILURE);
        }
    };
    control.send(&Message::Started { pid: child.id() }, &[])?;
    let status = child.wait()?;
    if let Some(signal) = status.signal() {
        end_by(signal);
    }
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Ends this process by a signal, as another one has ended.
fn end_by(signal: i32) {
    _ = rustix::process::setrlimit(
        rustix::process::Resource::Core,
        rustix::process::Rlimit { current: Some(0), maximum: Some(0) },
    );
    let Some(signal) = rustix::process::Signal::from_named_raw(signal) else { return };
    // The standard library handles two signals, for overflows of stacks, but each only once.
    for _ in 0..2 {
        _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
}
