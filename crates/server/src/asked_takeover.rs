//! A process that was started by somebody else than the one from which it wants to take over, and asks for it
//! (`--take-over`).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::Duration;

use sandarac_config::Config;

use crate::admin::client::{AdminClient, Error};
use crate::admin::{Endpoint, State, Upgrade};
use crate::failure::Failure;
use crate::predecessor;
use crate::stderr::print_line;
use crate::takeover::{Line, Takeover, random};

/// How often to look whether the other process has come.
const LOOK: Duration = Duration::from_millis(5);

/// Asks the process at the same admin interface to hand over. `None` if there is none, or if it is ending
/// already.
pub(crate) fn ask(config: &Config) -> Result<Option<Takeover>, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("cannot take over: {error}"));
    let endpoint = Endpoint::of(config.admin.listen.as_ref());
    if let Some(user) = predecessor::stranger(&endpoint) {
        return Err(Failure::Failed(format!(
            "cannot take over: user {user} listens at {endpoint}, and is not told the token"
        )));
    }
    let running = AdminClient::new(endpoint, config.admin.token.as_deref().map(str::to_owned));
    match running.standing() {
        Ok(status) if status.state == State::Draining => return Ok(None),
        Err(Error::NotRunning(endpoint, _)) => {
            print_line(format_args!(
                "sandarac: no process at {endpoint} to take over from; this one begins anew"
            ));
            return Ok(None);
        }
        // Whatever is wrong is said again.
        _ => {}
    }
    // Both ends look whose process the other is, so that the name may be known; but nobody is to have it
    // before.
    let name = format!("sandarac-takes-over-{}-{:016x}", std::process::id(), random().map_err(failed)?);
    let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
    let listener = UnixListener::bind_addr(&address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let (tells, told) = channel();
    // It answers when it has handed over, which this process has to take part in.
    thread::spawn(move || tells.send(running.upgrade(&Upgrade { to: Some(name) })));
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false).map_err(failed)?;
                let (line, _) = Line::with_kin(socket).map_err(failed)?;
                return Takeover::over(line).map(Some).map_err(failed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed(error)),
        }
        match told.try_recv() {
            Err(TryRecvError::Empty) => thread::sleep(LOOK),
            Ok(Err(error)) => return Err(Failure::Failed(format!("cannot take over: {error}"))),
            Ok(Ok(_)) | Err(TryRecvError::Disconnected) => {
                return Err(Failure::Failed("cannot take over: the other process did not come".to_owned()));
            }
        }
    }
}
