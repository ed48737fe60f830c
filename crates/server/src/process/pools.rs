//! Reports on pools and commands to them, for the admin interface.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sandarac_balance::{
    Address, BackendId, BackendReport, BackendState, ClassReport, Classes, Pool, QueueReport, SkillSource,
    SkillWord,
};
use sandarac_config::closest;
use sandarac_discover::LiveSettings;
use sandarac_proxy::{Live, Member, Orders, PoolRefusal, Shared, Site, SitePool};

use crate::admin::{
    AddBackend, AskPools, BackendDetail, BackendStatus, ChoiceDetail, ClassDetail, ClassifierDetail,
    DrainBackend, Metric, Ordered, PoolDetail, PoolStatus, Pools, QueueDetail, Refusal, RemoveBackend,
    ResumeDetail, SkillDetail, SkillsDetail, SourceDetail, TableDetail,
};
use crate::takeover::PoolOrders;

/// The state of each pool, in short.
pub(super) fn status(shared: &Shared) -> Vec<PoolStatus> {
    let now = shared.now();
    let status = |pool: &SitePool| {
        let live = pool.live();
        let summary = live.summary(now);
        let backend = |backend: BackendReport| BackendStatus {
            state: backend.state().name().to_owned(),
            in_flight: u64::from(backend.in_flight),
            address: backend.address,
        };
        PoolStatus {
            name: live.name().to_owned(),
            mean_backlog: rounded(summary.mean_backlog),
            oldest_seconds: summary.oldest.map(seconds),
            waiting: live.queue_report().waiting as u64,
            backends: live.report(now).into_iter().map(backend).collect(),
        }
    };
    shared.site().pools().iter().map(status).collect()
}

/// The full state of the selected pools.
pub(super) fn pools(shared: &Shared, ask: &AskPools) -> Result<Pools, Refusal> {
    let site = shared.site();
    for name in &ask.names {
        find(&site, name)?;
    }
    let meant = |pool: &&SitePool| ask.names.is_empty() || ask.names.contains(&pool.name());
    let details = site.pools().iter().filter(meant).map(|pool| detail(pool, shared.now(), ask));
    Ok(Pools { pools: details.collect() })
}

/// Adds a backend to a pool.
pub(super) fn add(shared: &Shared, order: &AddBackend) -> Result<Ordered, Refusal> {
    let site = shared.site();
    let pool = find(&site, &order.pool)?;
    let address = address(&order.backend)?;
    let most = sandarac_balance::Backend::MAX_WEIGHT;
    if !(1..=most).contains(&order.weight) {
        let what = format!("{} is not a weight of a backend", order.weight);
        return Err(Refusal::invalid(what).at("weight").instead(format!("a weight is from 1 to {most}")));
    }
    let member = Member { address: address.clone(), weight: order.weight };
    pool.add(member).map_err(|why| refusal(pool, &address, why))?;
    Ok(ordered(shared, pool, &address, 0))
}

/// Removes a backend from a pool.
pub(super) fn remove(shared: &Shared, order: &RemoveBackend) -> Result<Ordered, Refusal> {
    let site = shared.site();
    let pool = find(&site, &order.pool)?;
    let address = address(&order.backend)?;
    let in_flight = in_flight(&pool.live(), &address);
    pool.remove(&address).map_err(|why| refusal(pool, &address, why))?;
    Ok(ordered(shared, pool, &address, in_flight))
}

/// Stops or resumes new requests to a backend.
pub(super) fn drain(shared: &Shared, order: &DrainBackend) -> Result<Ordered, Refusal> {
    let site = shared.site();
    let pool = find(&site, &order.pool)?;
    let address = address(&order.backend)?;
    pool.drain(&address, !order.undo).map_err(|why| refusal(pool, &address, why))?;
    Ok(ordered(shared, pool, &address, in_flight(&pool.live(), &address)))
}

/// The orders in force, for a process that takes over.
pub(super) fn orders(shared: &Shared) -> Vec<PoolOrders> {
    let texts = |addresses: Vec<Address>| addresses.iter().map(ToString::to_string).collect();
    let of = |pool: &SitePool| {
        let Orders { added, removed, drained } = pool.orders();
        let added = added.iter().map(|member| (member.address.to_string(), member.weight)).collect();
        PoolOrders { pool: pool.name(), added, removed: texts(removed), drained: texts(drained) }
    };
    shared.site().pools().iter().map(of).collect()
}

/// Follows the orders of the process that this one takes over from, in the pools that are left.
pub(super) fn follow(shared: &Shared, orders: Vec<PoolOrders>) {
    let site = shared.site();
    for PoolOrders { pool, added, removed, drained } in orders {
        let Some(pool) = site.pool(&pool) else { continue };
        let addresses = |texts: Vec<String>| texts.iter().filter_map(|text| text.parse().ok()).collect();
        let added = added
            .into_iter()
            .filter_map(|(text, weight)| Some(Member { address: text.parse().ok()?, weight }));
        pool.follow(Orders {
            added: added.collect(),
            removed: addresses(removed),
            drained: addresses(drained),
        });
    }
}

fn ordered(shared: &Shared, pool: &SitePool, address: &Address, in_flight: u64) -> Ordered {
    let live = pool.live();
    let states = live.report(shared.now()).into_iter().map(|backend| backend.state());
    let healthy =
        states.filter(|state| matches!(state, BackendState::Healthy | BackendState::Untried)).count();
    Ordered {
        pool: live.name().to_owned(),
        backend: address.to_string(),
        in_flight,
        backends: live.backends().len() as u64,
        healthy: Some(healthy as u64),
    }
}

fn in_flight(pool: &Pool, address: &Address) -> u64 {
    let backend = pool.backends().iter().find(|backend| backend.address() == address);
    backend.map_or(0, |backend| u64::from(backend.in_flight()))
}

/// The pool of a name, or an error with a suggestion.
fn find<'a>(site: &'a Site, name: &str) -> Result<&'a SitePool, Refusal> {
    site.pool(name).ok_or_else(|| {
        let names: Vec<String> = site.pools().iter().map(SitePool::name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let refusal = Refusal::invalid(format!("there is no pool {name:?}"));
        match closest(name, &names) {
            Some(meant) => refusal.instead(format!("did you mean {meant:?}?")),
            None => refusal.instead(format!("there is {}", listed(names.iter().map(ToString::to_string)))),
        }
    })
}

fn address(text: &str) -> Result<Address, Refusal> {
    text.parse().map_err(|error: sandarac_balance::AddressError| {
        let refusal = Refusal::invalid(format!("{text:?} is not an address of a backend: {error}"));
        refusal.instead("write it as in a configuration: http://host:port, unix:/path".to_owned())
    })
}

fn refusal(pool: &SitePool, address: &Address, why: PoolRefusal) -> Refusal {
    let live = pool.live();
    let refusal = Refusal::invalid(format!("{address} in pool {}: {why}", live.name()));
    let addresses = live.backends().iter().map(|backend| backend.address().to_string());
    match why {
        PoolRefusal::There => refusal,
        PoolRefusal::NotThere => refusal.instead(format!("it has {}", listed(addresses))),
        PoolRefusal::Last => refusal.instead("add another backend first, or give one its requests back"),
        PoolRefusal::LastServing => refusal.instead("give another backend its requests back first"),
    }
}

/// A list for a sentence; items that do not fit are given as a number.
fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 20;
    let more = items.len().saturating_sub(MOST);
    let mut text = items.take(MOST).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

fn detail(pool: &SitePool, now: Duration, ask: &AskPools) -> PoolDetail {
    let live = pool.live();
    let summary = live.summary(now);
    let by_resume = live.resumes();
    let known = live.classes(if ask.class.is_empty() { ask.classes } else { 0 });
    let names = addresses(&live);
    let class = |class: ClassReport| class_detail(class, &names);
    let classes = match ask.class.is_empty() {
        true => known.top.iter().cloned().map(class).collect(),
        false => ask.class.iter().filter_map(|name| live.class(name.as_bytes())).map(class).collect(),
    };
    PoolDetail {
        name: live.name().to_owned(),
        algorithm: live.algorithm().name().to_owned(),
        classifier: live.classifier().map(|classifier| ClassifierDetail {
            text: classifier.to_string(),
            fingerprint: format!("{:016x}", classifier.fingerprint()),
            table: classifier
                .table_len()
                .map(|lines| TableDetail { lines: lines as u64, lost: pool.table_lost() }),
        }),
        single_version: live.settings().single_version,
        settings: by_resume.as_ref().map(|_| settings(&live)).unwrap_or_default(),
        sources: sources(pool),
        removed: pool.removed().iter().map(ToString::to_string).collect(),
        in_flight: u64::from(summary.in_flight),
        mean_backlog: rounded(summary.mean_backlog),
        oldest_seconds: summary.oldest.map(seconds),
        queue: queue(live.queue_report()),
        skills: by_resume.map(|resumes| {
            let counts = resumes.counts();
            let told = |word: SkillWord| known.words[word as usize] as u64;
            let by = match live.settings().resume.skills {
                SkillSource::Reported => "reported",
                SkillSource::Inferred => "inferred",
            };
            SkillsDetail {
                by: by.to_owned(),
                classes: counts.classes as u64,
                skills: counts.skills as u64,
                reported: told(SkillWord::Reported),
                inferred: told(SkillWord::Inferred),
                assumed: told(SkillWord::Assumed),
                forgotten: counts.forgotten,
                refused: counts.refused,
            }
        }),
        backends: backends(&live, now, &known),
        classes,
        choices: choices(&live, now, &names),
    }
}

/// The addresses of the backends, by their numbers.
fn addresses(pool: &Pool) -> HashMap<BackendId, String> {
    let address = |backend: &sandarac_balance::Backend| backend.address().to_string();
    pool.ids().iter().copied().zip(pool.backends().iter().map(address)).collect()
}

/// The values of the settings that sources may change.
fn settings(live: &Live) -> BTreeMap<String, f64> {
    by_name(LiveSettings::in_force(&live.settings().resume))
}

fn by_name(settings: LiveSettings) -> BTreeMap<String, f64> {
    settings.given().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn sources(pool: &SitePool) -> Vec<SourceDetail> {
    let detail = |(source, state): (String, sandarac_proxy::SourceState)| SourceDetail {
        source,
        told: state.told,
        backends: state.members as u64,
        ignored: u64::from(state.ignored),
        settings: by_name(state.settings),
        lost: state.lost,
    };
    pool.sources().into_iter().map(detail).collect()
}

fn queue(report: QueueReport) -> QueueDetail {
    QueueDetail {
        waiting: report.waiting as u64,
        limit: u64::from(report.limit),
        queued: report.queued,
        refused: report.refused,
    }
}

fn backends(live: &Live, now: Duration, known: &Classes) -> Vec<BackendDetail> {
    let detail = |(at, backend): (usize, BackendReport)| BackendDetail {
        weight: u64::from(backend.weight),
        state: backend.state().name().to_owned(),
        spared: backend.spared,
        ejected_seconds: backend.ejected_for.map(seconds),
        in_flight: u64::from(backend.in_flight),
        oldest_seconds: backend.oldest.map(seconds),
        mean_backlog: rounded(backend.mean_backlog),
        faults: rounded(backend.faults),
        version: backend.version.map(String::from),
        resume: backend
            .resume
            .map(|known| ResumeDetail { instance: known.instance.into(), revision: known.revision }),
        skills: known.skills.get(at).map(|&count| count as u64),
        picks: backend.picks,
        connect_failures: backend.connect_failures,
        address: backend.address,
    };
    live.report(now).into_iter().enumerate().map(detail).collect()
}

fn class_detail(class: ClassReport, names: &HashMap<BackendId, String>) -> ClassDetail {
    let skilled = class.skilled.iter().map(|skill| SkillDetail {
        backend: names.get(&skill.worker).cloned(),
        score: skill.score.map(rounded),
        by: skill.word.name().to_owned(),
    });
    ClassDetail {
        name: String::from_utf8_lossy(&class.name).into_owned(),
        share: f64::from(class.share),
        skilled: skilled.collect(),
    }
}

fn choices(live: &Live, now: Duration, names: &HashMap<BackendId, String>) -> Vec<ChoiceDetail> {
    let detail = |choice: sandarac_balance::Choice| ChoiceDetail {
        ago_seconds: seconds(now.saturating_sub(choice.at)),
        class: choice.class.as_deref().map(|class| String::from_utf8_lossy(class).into_owned()),
        backend: names.get(&choice.backend).cloned(),
        reason: choice.reason.name().to_owned(),
        tried: u64::from(choice.tried),
    };
    live.choices().into_iter().map(detail).collect()
}

/// Three decimals are enough.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1000.0).round() / 1000.0
}

fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// The metrics of every pool and its backends.
pub(super) fn metrics(shared: &Shared, metrics: &mut Vec<Metric>) {
    let now = shared.now();
    for pool in shared.site().pools() {
        let live = pool.live();
        let name = live.name().to_owned();
        pool_metrics(pool, &live, now, &mut |mut metric| {
            metric.labels.insert(0, ("pool".into(), name.clone()));
            metrics.push(metric);
        });
        for backend in live.report(now) {
            let labelled =
                |metric: Metric| metric.with("pool", name.clone()).with("backend", backend.address.clone());
            metrics.extend(backend_metrics(&backend).map(labelled));
        }
    }
}

fn backend_metrics(backend: &BackendReport) -> [Metric; 15] {
    let state = backend.state();
    let is = |other: BackendState| u64::from(state == other);
    use BackendState::{Failing, Healthy, Sidelined, Untried};
    [
        Metric::counter("backend_requests", "Requests given to a backend.", backend.picks),
        Metric::counter(
            "backend_connect_failures",
            "New connections to a backend that were refused, or ended without an answer.",
            backend.connect_failures,
        ),
        Metric::gauge(
            "backend_in_flight",
            "Requests in flight to a backend now.",
            u64::from(backend.in_flight),
        ),
        Metric::gauge("backend_healthy", "Whether a backend is healthy.", is(Healthy) | is(Untried)),
        Metric::gauge(
            "backend_failing",
            "Whether a backend gets requests, for lack of others or on trial, although it or its checks failed.",
            is(Failing),
        ),
        Metric::counter("backend_ejections", "Ejections of a backend.", backend.ejections),
        Metric::gauge(
            "backend_ejected",
            "Whether a backend is ejected.",
            u64::from(backend.ejected_for.is_some()),
        ),
        Metric::gauge(
            "backend_silent",
            "Whether a backend has requests and has answered nothing for longer than they should take.",
            u64::from(backend.silent),
        ),
        Metric::gauge(
            "backend_down",
            "Whether active checks have taken a backend out of service.",
            u64::from(backend.down),
        ),
        Metric::gauge(
            "backend_draining",
            "Whether a backend gets no new requests by command.",
            u64::from(backend.draining),
        ),
        Metric::gauge(
            "backend_sidelined",
            "Whether a backend is sidelined because it runs another version than the one that serves.",
            is(Sidelined),
        ),
        Metric::gauge("backend_weight", "The weight of a backend.", u64::from(backend.weight)),
        Metric::measure(
            "backend_mean_backlog",
            "Requests in flight to a backend, and those that wait for it: a recent average of choices if its pool chooses by résumé, the current value otherwise.",
            rounded(backend.mean_backlog),
        ),
        Metric::measure(
            "backend_fault_ratio",
            "The share of recent requests to a backend that failed.",
            rounded(backend.faults),
        ),
        Metric::measure(
            "backend_oldest_request_seconds",
            "Age of the oldest request in flight to a backend.",
            backend.oldest.map_or(0.0, seconds),
        ),
    ]
}

fn pool_metrics(pool: &SitePool, live: &Live, now: Duration, put: &mut dyn FnMut(Metric)) {
    let summary = live.summary(now);
    let queue = live.queue_report();
    put(Metric::gauge("pool_backends", "Backends of a pool.", live.backends().len() as u64));
    put(Metric::measure(
        "pool_mean_backlog",
        "Mean requests per backend of a pool, in flight or waiting for a place: a recent average if it chooses by résumé, the current value otherwise.",
        rounded(summary.mean_backlog),
    ));
    put(Metric::measure(
        "pool_oldest_request_seconds",
        "Age of the oldest request in flight to a backend of a pool.",
        summary.oldest.map_or(0.0, seconds),
    ));
    put(Metric::gauge("pool_queue", "Requests waiting for a place at a backend.", queue.waiting as u64));
    put(Metric::counter("pool_queued", "Requests that had to wait for a place at a backend.", queue.queued));
    put(Metric::counter("pool_queue_refused", "Requests refused because the queue was full.", queue.refused));
    for (reason, count) in summary.reasons {
        let text = "Choices of a backend, by reason.";
        put(Metric::counter("pool_choices", text, count).with("reason", reason.name()));
    }
    for (source, state) in pool.sources() {
        let text = "Backends listed by a source.";
        put(Metric::gauge("pool_source_backends", text, state.members as u64).with("source", source.clone()));
        let text = "Invalid entries of a source.";
        put(Metric::gauge("pool_source_ignored", text, u64::from(state.ignored))
            .with("source", source.clone()));
        let text = "Whether a source of backends cannot be reached or read.";
        put(Metric::gauge("pool_source_lost", text, u64::from(state.lost.is_some())).with("source", source));
    }
    if let Some(lines) = pool.table_lines() {
        let text = "Lines in force of the table of classes.";
        put(Metric::gauge("pool_table_lines", text, lines as u64));
        let text = "Whether the table of classes cannot be read or is invalid.";
        put(Metric::gauge("pool_table_lost", text, u64::from(pool.table_lost().is_some())));
    }
    let Some(resumes) = live.resumes() else { return };
    let counts = resumes.counts();
    put(Metric::gauge("pool_classes", "Classes with a known worker.", counts.classes as u64));
    put(Metric::gauge("pool_skills", "Skills known, over all classes and workers.", counts.skills as u64));
    put(Metric::counter(
        "pool_classes_forgotten",
        "Classes forgotten to make room for others.",
        counts.forgotten,
    ));
    put(Metric::counter(
        "pool_classes_refused",
        "Reported classes for which there was no room.",
        counts.refused,
    ));
}
