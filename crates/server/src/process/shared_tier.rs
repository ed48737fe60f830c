//! The shared tier in status and metrics.

use sandarac_proxy::{Shared, TierCount, TierServerState};

use crate::admin::{Metric, SharedServerStatus, Value};

/// The servers, for the status.
pub(super) fn status(shared: &Shared) -> Vec<SharedServerStatus> {
    shared.tier().unwrap_or_default().into_iter().map(server_status).collect()
}

fn server_status(server: TierServerState) -> SharedServerStatus {
    let count = |count: TierCount| server.counts[count as usize];
    let state = match (server.is_ejected, &server.fault, server.is_current) {
        (true, _, _) => "ejected",
        (false, Some(_), _) => "failing",
        (false, None, true) => "used",
        (false, None, false) => "unknown",
    };
    SharedServerStatus {
        state: state.to_owned(),
        mean_us: count(TierCount::Microseconds) / count(TierCount::Packets).max(1),
        hits: count(TierCount::Hits),
        misses: count(TierCount::Misses),
        restored: count(TierCount::Restored),
        fills: count(TierCount::Fills),
        owes_purges: server.owes_purges,
        address: server.name,
        fault: server.fault,
    }
}

/// The metrics, if there is a shared tier.
pub(super) fn metrics(shared: &Shared, metrics: &mut Vec<Metric>) {
    for server in shared.tier().unwrap_or_default() {
        let counts = TierCount::ALL.iter().zip(&server.counts).map(|(count, &value)| match count {
            TierCount::Microseconds => Metric {
                value: Value::Part(value as f64 / 1e6),
                ..Metric::counter("tier_seconds", count.text(), 0)
            },
            count => Metric::counter(count.name(), count.text(), value),
        });
        let ejections = Metric::counter(
            "tier_ejections",
            "Times the server was left alone because it failed.",
            server.ejections,
        );
        let gauges = [
            ("tier_ejected", "Whether the server is left alone because it fails.", server.is_ejected),
            ("tier_current", "Whether its purge log is known and recent.", server.is_current),
            ("tier_owed_purges", "Whether it does not know of all purges yet.", server.owes_purges),
        ];
        let gauges = gauges.map(|(name, text, value)| Metric::gauge(name, text, value.into()));
        let all = counts.chain([ejections]).chain(gauges);
        metrics.extend(all.map(|metric| metric.with("server", server.name.clone())));
    }
}
