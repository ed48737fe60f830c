//! Words for what happens: outcomes, reasons and faults, and their counts. Steps decide; this says what was
//! decided.

pub(crate) mod counters;
pub(crate) mod fault;
pub(crate) mod field_counts;
pub(crate) mod file_refusal;
pub(crate) mod fragment_failure;
pub(crate) mod handling;
pub(crate) mod latency;
pub(crate) mod log_throttle;
pub(crate) mod pass_reason;
pub(crate) mod reason;
pub(crate) mod record;
pub(crate) mod tally;
pub(crate) mod tls_fault;
pub(crate) mod unbelieved;
