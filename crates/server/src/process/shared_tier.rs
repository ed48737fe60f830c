//! The shared tier in status and metrics.

use sandarac_message::FieldsBuf;
use sandarac_proxy::{Inspected, InspectedResponse, Shared, TierCount, TierServerState};

use crate::admin::{AskShared, Metric, Refusal, SharedContent, SharedEntry, SharedServerStatus, Value};
use crate::human::{bytes, span};

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

/// What the tier has for a URL.
pub(super) fn content(shared: &Shared, ask: &AskShared) -> Result<SharedContent, Refusal> {
    let mut fields = FieldsBuf::new();
    for (name, value) in &ask.fields {
        let is_name = sandarac_message::is_token(name.as_bytes());
        let added = is_name.then(|| fields.push(name.as_bytes(), value.trim().as_bytes()).ok()).flatten();
        added.ok_or_else(|| {
            Refusal::invalid(format!("{name:?} with this value is no field"))
                .instead("as Accept-Language and en")
        })?;
    }
    let found = shared.inspect(&ask.url, &fields, (ask.everywhere, !ask.only_where, ask.remove));
    let found = found.ok_or_else(|| {
        Refusal::invalid(format!("{:?} is not an absolute URL", ask.url))
            .instead("write it whole, as http://example.com/path")
    })?;
    let entries = found.map_err(Refusal::failed)?.into_iter().map(entry).collect();
    Ok(SharedContent { objects: shared.objects_of_url(&ask.url, &fields) as u64, entries })
}

fn entry(found: Inspected) -> SharedEntry {
    let Inspected { scheme, key, server, kind, is_used, why, response } = found;
    SharedEntry {
        scheme: scheme.to_owned(),
        server,
        key,
        kind: kind.map(str::to_owned),
        used: is_used,
        why,
        response: response.map(|response| describe(&response)),
    }
}

fn describe(response: &InspectedResponse) -> String {
    let InspectedResponse { status, age, fresh_for, left, tags, chunks, .. } = response;
    let mut text = format!("status {status}, {}", bytes(response.bytes));
    if response.is_compressed {
        text.push_str(" compressed");
    }
    if *chunks > 0 {
        text.push_str(&format!(" in {chunks} chunks"));
    }
    text.push_str(&format!(", {} old, ", span(age.as_secs())));
    match u64::try_from(*fresh_for) {
        Ok(seconds) => text.push_str(&format!("fresh for {}", span(seconds))),
        Err(_) => text.push_str(&format!("stale for {}", span(fresh_for.unsigned_abs()))),
    }
    if let Some(left) = left {
        text.push_str(&format!(", kept for {}", span(u64::from(*left))));
    }
    text.push_str(&format!(", {tags} tags"));
    text
}
