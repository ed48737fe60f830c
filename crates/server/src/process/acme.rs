//! ACME in the answers of the admin interface, and its metrics.

use sandarac_acme::Report;

use crate::acme::AcmeThreads;
use crate::admin::{AcmeStatus, AskTls, Metric};

/// The certificates by ACME, or those for a name.
pub(super) fn status(threads: &AcmeThreads, ask: &AskTls) -> Vec<AcmeStatus> {
    let is_asked_for = |report: &Report| {
        ask.name.as_ref().is_none_or(|name| report.names.iter().any(|own| own.eq_ignore_ascii_case(name)))
    };
    threads.reports().into_iter().filter(is_asked_for).map(certificate).collect()
}

fn certificate(report: Report) -> AcmeStatus {
    AcmeStatus {
        failures: report.failures.values().sum(),
        names: report.names,
        directory: report.directory,
        orders: report.orders,
        failed_attempts: report.failed_attempts,
        last_fault: report.last_fault,
        next_order: report.next_order.as_secs(),
        valid_until: report.not_after.map(|end| end.as_secs()),
    }
}

/// Orders, failures and times of each certificate.
pub(super) fn metrics(threads: &AcmeThreads, metrics: &mut Vec<Metric>) {
    let mut seen: Vec<(String, String)> = Vec::new();
    for report in threads.reports() {
        let of = (report.names.join(","), report.directory);
        // Two with the same names would be the same series, which Prometheus refuses.
        if seen.contains(&of) {
            continue;
        }
        let labelled = |metric: Metric| metric.with("names", of.0.clone()).with("directory", of.1.clone());
        metrics.push(labelled(Metric::counter(
            "acme_orders",
            "Certificates ordered by ACME, failed orders included.",
            report.orders,
        )));
        metrics.push(labelled(Metric::gauge(
            "acme_failed_attempts",
            "Attempts to get a certificate by ACME that failed since the last success, of all nodes that share the state.",
            u64::from(report.failed_attempts),
        )));
        metrics.push(labelled(Metric::gauge(
            "acme_next_order_timestamp_seconds",
            "The time of the next order by ACME, a renewal or another attempt, in seconds since 1970.",
            report.next_order.as_secs(),
        )));
        metrics.push(labelled(Metric::gauge(
            "acme_certificate_expiry_timestamp_seconds",
            "The time until which a certificate by ACME is valid, in seconds since 1970; 0 without one.",
            report.not_after.map_or(0, |end| end.as_secs()),
        )));
        for (reason, count) in &report.failures {
            let text = "Attempts of this process to get a certificate by ACME that failed.";
            metrics.push(labelled(Metric::counter("acme_failures", text, *count)).with("reason", *reason));
        }
        seen.push(of);
    }
}
