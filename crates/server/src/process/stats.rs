//! The statistics of the process.

use sandarac_cache::Removal;
use sandarac_net::{PanicPart, panics, wall};
use sandarac_proxy::Counter;

use super::state::ProcessState;
use super::{acme, pools, resource_usage, shared_tier, tls};
use crate::admin::{Latency, Metric, Stats};

/// The statistics of a process.
pub(super) fn stats(state: &ProcessState) -> Stats {
    let shared = &state.shared;
    let counted = Counter::ALL
        .iter()
        .map(|&counter| Metric::counter(counter.name(), counter.text(), shared.count(counter)));
    let by_reason = shared.counts_by_reason().into_iter();
    let by_reason = by_reason.map(|counted| {
        Metric::counter(counted.name, counted.text, counted.count).with(counted.label, counted.reason)
    });
    let panics = PanicPart::ALL.iter().map(|&part| {
        let text =
            "Tasks and threads that ended because of a fault in this program: each is a bug to report.";
        Metric::counter("panics", text, panics::counted(part)).with("part", part.name())
    });
    let fields = shared.bypassing_fields().into_iter().map(|(name, why, count)| {
        let text =
            "Requests that a field of theirs kept from sharing what is not said to be for all, by its name.";
        let name = if name.is_empty() { "other names" } else { &*name };
        Metric::counter("bypassing_fields", text, count).with("field", name).with("reason", why)
    });
    let mut metrics: Vec<Metric> = counted.chain(by_reason).chain(panics).chain(fields).collect();
    metrics.push(Metric::counter(
        "log_lines_dropped",
        "Access log lines lost because they could not be written, or not fast enough.",
        state.log.dropped(),
    ));
    metrics.push(Metric::gauge("connections_open", "Open client connections.", shared.connections() as u64));
    metrics.push(Metric::gauge(
        "connections_limit",
        "Limit on client connections.",
        shared.connection_limit() as u64,
    ));
    let text = "Bytes that are held for connections and their streams, beside stored objects.";
    let classes = shared
        .held()
        .map(|(class, bytes)| Metric::gauge("held_bytes", text, bytes as u64).with("class", class.name()));
    metrics.extend(classes);
    let most = shared.held_in_all().1;
    for (of, open, limit) in shared.descriptors() {
        let text = "Open descriptors by their use: connections of clients and to backends, files of spools, and files that are sent.";
        metrics.push(Metric::gauge("descriptors", text, open as u64).with("of", of));
        let text = "The most open descriptors of each use.";
        metrics.push(Metric::gauge("descriptors_limit", text, limit as u64).with("of", of));
    }
    metrics.push(Metric::gauge("held_limit_bytes", "The most bytes that may be held so.", most as u64));
    store_metrics(&shared.store.stats(), &mut metrics);
    let (memory, disk, failures) = shared.spooled();
    metrics.extend([
        Metric::gauge("spool_memory_bytes", "Bytes of bodies that wait for slow clients in memory.", memory),
        Metric::gauge("spool_disk_bytes", "Bytes of bodies that wait for slow clients in files.", disk),
        Metric::counter(
            "spool_failures",
            "Bodies for which no file could be made or written, so that they went on at the pace of their client.",
            failures,
        ),
    ]);
    shared_tier::metrics(shared, &mut metrics);
    pools::metrics(shared, &mut metrics);
    tls::metrics(shared, &mut metrics);
    acme::metrics(&state.acme, &mut metrics);
    resource_usage::metrics(state.started_at, &mut metrics);
    let site = shared.site();
    let origin = site.pools().iter().map(|pool| (pool.name(), latency([pool.latency()])));
    Stats {
        at_ms: wall().as_millis(),
        metrics,
        latency: latency(shared.latencies()),
        origin_latency: origin.collect(),
    }
}

/// The sum of several histograms.
fn latency<'a>(histograms: impl IntoIterator<Item = &'a sandarac_proxy::Latency>) -> Latency {
    let mut latency = Latency::default();
    for histogram in histograms {
        latency.sum_us += histogram.sum();
        for (at, (upper, count)) in histogram.buckets().enumerate() {
            match latency.buckets.get_mut(at) {
                Some(bucket) => bucket.1 += count,
                None => latency.buckets.push((upper, count)),
            }
        }
    }
    latency.buckets.retain(|&(_, count)| count > 0);
    latency
}

fn store_metrics(stats: &sandarac_cache::Stats, metrics: &mut Vec<Metric>) {
    metrics.extend([
        Metric::gauge("cache_objects", "Objects in the store.", stats.objects),
        Metric::gauge("cache_used_bytes", "Bytes that the store holds, index included.", stats.stored_bytes()),
        Metric::gauge(
            "cache_lent_bytes",
            "Bytes of the store's limit that are lent to connections and their streams.",
            stats.lent_bytes,
        ),
        Metric::gauge(
            "cache_held_bytes",
            "Of these, bytes of objects that have left the store and are still being read.",
            stats.held_bytes,
        ),
        Metric::gauge(
            "cache_file_bytes",
            "Bytes of large bodies that the store holds in memory files.",
            stats.file_bytes,
        ),
        Metric::counter(
            "cache_file_failures",
            "Parts of large bodies that went to the heap, because the system refused memory or a memory file.",
            stats.file_failures,
        ),
        Metric::gauge("cache_limit_bytes", "The most bytes that the store may hold.", stats.limit),
        Metric::gauge("cache_index_bytes", "Bytes of the store's index.", stats.index_bytes),
        Metric::gauge("cache_flights", "Fetches in progress for the store.", stats.flights),
        Metric::gauge("cache_waiters", "Requests waiting for another request's fetch.", stats.waiters),
        Metric::gauge("cache_bans", "Bans against which some object has not been tested yet.", stats.bans),
        Metric::counter("cache_stored", "Objects stored.", stats.stored),
        Metric::counter("cache_refreshed", "Objects freshened by a 304.", stats.refreshed),
        Metric::counter(
            "cache_parts_kept",
            "Objects whose body broke off at the origin, kept as parts.",
            stats.kept,
        ),
    ]);
    for (removal, count) in Removal::ALL.iter().zip(stats.removed) {
        let metric = Metric::counter("cache_removed", "Objects that left the store.", count);
        metrics.push(metric.with("reason", removal.word()));
    }
}
