//! The state of one certificate, for metrics and reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sandarac_message::Timestamp;

/// The state of a certificate, kept up to date by [`Acme::run`](crate::Acme::run). Clones share it.
#[derive(Clone, Debug)]
pub struct Progress(Arc<Mutex<Report>>);

/// The state of a certificate at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The names, sorted.
    pub names: Vec<String>,
    /// The URL of the CA's directory.
    pub directory: String,
    /// The orders that this process has placed.
    pub orders: u64,
    /// The attempts of this process that failed, with or without an order, by the [name](crate::Fault::name) of the fault.
    pub failures: BTreeMap<&'static str, u64>,
    /// The attempts that failed since the last success, of all processes that share the state directory.
    pub failed_attempts: u32,
    /// The fault of the last one, its name first.
    pub last_fault: Option<String>,
    /// The time of the next order: a renewal, or the next attempt after a failure. In the past while an order is pending.
    pub next_order: Timestamp,
    /// The end of the certificate; `None` while a self-signed one stands in.
    pub not_after: Option<Timestamp>,
}

impl Progress {
    pub(crate) fn new(names: Vec<String>, directory: String) -> Progress {
        Progress(Arc::new(Mutex::new(Report { names, directory, ..Report::default() })))
    }

    /// The state now.
    pub fn report(&self) -> Report {
        self.0.lock().clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.0.lock());
    }
}
