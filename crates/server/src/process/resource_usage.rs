//! Resources used by the process, under the names that Prometheus client libraries use.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use sandarac_message::Timestamp;
use tikv_jemalloc_ctl::{epoch, stats};

use crate::admin::{Metric, MetricKind};

/// Adds the metrics. Values that the system does not provide are left out.
pub(super) fn metrics(started_at: Timestamp, metrics: &mut Vec<Metric>) {
    let build = Metric::gauge("build_info", "The running version; always 1.", 1);
    metrics.push(build.with("version", env!("CARGO_PKG_VERSION")));
    metrics.push(Metric::measure(
        "process_start_time_seconds",
        "Start of the process, in seconds since 1970.",
        started_at.as_millis() as f64 / 1e3,
    ));
    if let Some(usage) = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Usage::of(&text)) {
        let cpu = Metric::measure(
            "process_cpu_seconds",
            "CPU time of all threads, in seconds.",
            usage.ticks as f64 / clock_ticks_per_second() as f64,
        );
        metrics.push(Metric { kind: MetricKind::Counter, ..cpu });
        metrics.push(Metric::gauge(
            "process_resident_memory_bytes",
            "Resident memory.",
            usage.resident_pages * page_size() as u64,
        ));
        metrics.push(Metric::gauge(
            "process_virtual_memory_bytes",
            "Address space in use.",
            usage.virtual_bytes,
        ));
    }
    // Its statistics are those of the last epoch.
    if epoch::advance().is_ok()
        && let Ok(bytes) = stats::allocated::read()
    {
        let text = "Memory that the allocator has given out: what is resident beyond it and the files of large bodies is its own.";
        metrics.push(Metric::gauge("process_allocated_memory_bytes", text, bytes as u64));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the open directory itself.
        let open = open.count().saturating_sub(1) as u64;
        metrics.push(Metric::gauge("process_open_fds", "Open descriptors.", open));
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        metrics.push(Metric::gauge("process_max_fds", "Limit on open descriptors.", limit));
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Usage {
    ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Usage {
    /// Reads the line of `/proc/self/stat` (proc_pid_stat(5)).
    fn of(line: &str) -> Option<Usage> {
        // The name of the program, in parentheses, may have spaces.
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // The manual counts from 1, and the name is the second.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Usage { ticks: field(14)? + field(15)?, virtual_bytes: field(23)?, resident_pages: field(24)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_behind_the_name_of_the_program() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194560 150 0 3 0 12 34 0 0 20 0 5 0 100 5000000 321 18446744073709551615";
        let expected = Usage { ticks: 46, virtual_bytes: 5_000_000, resident_pages: 321 };
        assert_eq!(Usage::of(line), Some(expected));
        assert_eq!(Usage::of("7 (a) S 1"), None);
    }
}
