//! The thread that takes over certificates whose files change, and warns of those that expire.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sandarac_net::wall;
use sandarac_proxy::ListenerTls;
use sandarac_tls::{Certificate, ExpiryWarnings, Watch};

use super::state::ProcessState;
use crate::failure::with_context;
use crate::stderr::print_line;

/// How often the files are looked at. A renewed certificate is in use within two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Starts the thread, until the process ends.
pub(super) fn start_certificate_watch(state: Weak<ProcessState>) -> io::Result<()> {
    let thread = thread::Builder::new().name("certificates".to_owned()).spawn(move || {
        let mut watches = Watches::default();
        let mut expiry = ExpiryWarnings::default();
        while let Some(state) = state.upgrade() {
            let messages = look(&state, &mut watches, &mut expiry);
            drop(state);
            messages.iter().for_each(|message| print_line(format_args!("sandarac: {message}")));
            thread::sleep(LOOK_INTERVAL);
        }
    });
    thread.map_err(|error| with_context("cannot start the watch of certificates", &error))?;
    Ok(())
}

/// Loads changed files, and returns what should be reported.
fn look(state: &ProcessState, watches: &mut Watches, expiry: &mut ExpiryWarnings) -> Vec<String> {
    let site = state.shared.site();
    let listeners: Vec<(String, &Arc<ListenerTls>)> =
        site.tls().map(|(address, tls)| (address.to_string(), tls)).collect();
    let mut messages = Vec::new();
    for (address, tls) in &listeners {
        if watches.of(tls).look(tls.settings().stamps()) {
            messages.extend(load_again(address, tls, state));
        }
    }
    watches.forget_others(&listeners);
    let certificates: Vec<Arc<Certificate>> =
        listeners.iter().flat_map(|(_, tls)| tls.current().certificates.all()).collect();
    let now = (wall().as_millis() / 1000) as i64;
    messages.extend(expiry.due(certificates.iter().map(|one| &**one), now));
    messages
}

fn load_again(address: &str, tls: &ListenerTls, state: &ProcessState) -> Vec<String> {
    match tls.load_again(&state.tls.loading()) {
        Ok(warnings) => {
            let mut messages = vec![format!("{address}: new certificates are in use")];
            messages.extend(warnings.iter().map(|warning| format!("{address}: {warning}")));
            messages
        }
        Err(faults) => {
            let mut messages = vec![format!("{address}: the certificates in use stay, because:")];
            messages.extend(faults.iter().map(|fault| format!("  {fault} ({})", fault.reason.name())));
            messages
        }
    }
}

/// A watch for each listener of the configuration in force.
#[derive(Default)]
struct Watches(Vec<(Weak<ListenerTls>, Watch)>);

impl Watches {
    fn of(&mut self, tls: &Arc<ListenerTls>) -> &mut Watch {
        let is_its = |other: &Weak<ListenerTls>| std::ptr::eq(other.as_ptr(), Arc::as_ptr(tls));
        let at = self.0.iter().position(|(other, _)| is_its(other));
        let at = at.unwrap_or_else(|| {
            self.0.push((Arc::downgrade(tls), Watch::new(tls.loaded().clone())));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn forget_others(&mut self, listeners: &[(String, &Arc<ListenerTls>)]) {
        self.0.retain(|(other, _)| {
            listeners.iter().any(|(_, tls)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(tls)))
        });
    }
}
