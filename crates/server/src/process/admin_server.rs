//! The admin interface of the process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use sandarac_config::Admin;

use super::control::ProcessControl;
use super::state::ProcessState;
use crate::admin::{Access, Bound, Callers, Endpoint, Server};
use crate::failure::with_context;

/// Binds the address of the admin interface, unless it was `taken` from another process.
pub(super) fn bind_admin(admin: &Admin, taken: Option<(Endpoint, OwnedFd)>) -> io::Result<Bound> {
    let endpoint = Endpoint::of(admin.listen.as_ref());
    let callers = Callers {
        mode: admin.mode.map(|mode| mode.0),
        group: admin.group.as_ref().map(|group| group.as_str().to_owned()),
    };
    let bound = match taken {
        Some((at, socket)) if at == endpoint => Bound::taken(socket, &endpoint, &callers),
        _ => Bound::bind(&endpoint, &callers),
    };
    bound.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; give this process its own with --admin PATH",
            _ => "",
        };
        let what = format!("the admin interface cannot listen on {endpoint}: {error}{hint}");
        io::Error::new(error.kind(), what)
    })
}

/// Serves the admin interface of a process.
pub(super) fn serve_admin(state: &Arc<ProcessState>, bound: Bound) -> io::Result<Server> {
    *state.admin.lock() = bound.endpoint().to_string();
    let (token, read_token) = (state.token.clone(), state.read_token.clone());
    let access = Access { token, read_token, ..Access::default() };
    let server = Server::start(bound, access, Arc::new(ProcessControl(state.clone())))
        .map_err(|error| with_context("cannot start the admin interface", &error))?;
    *state.admin_server.lock() = Some(server.socket());
    Ok(server)
}
