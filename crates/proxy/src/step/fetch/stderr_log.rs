//! The error messages of a FastCGI application, logged for each request.

use crate::Counter;
use crate::core::Core;
use crate::fastcgi::Application;
use std::rc::Rc;
use std::sync::Arc;

/// The most bytes of a request's messages that are logged.
const MAX_LOGGED: usize = 2048;

/// Collects the error messages of one request, and logs them when it is dropped.
pub(super) struct StderrLog {
    core: Rc<Core>,
    application: Arc<Application>,
    transaction: u64,
    text: Vec<u8>,
    bytes: u64,
}

impl StderrLog {
    pub(super) fn new(core: Rc<Core>, application: Arc<Application>, transaction: u64) -> StderrLog {
        StderrLog { core, application, transaction, text: Vec::new(), bytes: 0 }
    }

    /// Takes a piece of the messages.
    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let room = MAX_LOGGED - self.text.len();
        self.text.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

impl Drop for StderrLog {
    fn drop(&mut self) {
        let StderrLog { core, application, transaction, text, bytes } = self;
        core.counters.add(Counter::FastCgiStderrBytes, *bytes);
        if !application.stderr_rate.admits(core.shared.epoch.elapsed().as_secs()) {
            return;
        }
        let unlogged = *bytes - text.len() as u64;
        let more = if unlogged > 0 { format!(" … and {unlogged} bytes more") } else { String::new() };
        let text = String::from_utf8_lossy(text.trim_ascii());
        core.shared.log(&format!("pool {}: request {transaction}: {text}{more}", application.pool));
    }
}
