//! Conversion of a pool's settings to a [`PoolConfig`].

use std::collections::HashMap;

use sandarac_balance::{
    Address, Algorithm, Checks, Ejection, Endpoint, ResumeSettings, Settings, SkillSource,
};
use sandarac_policy::Classifier;

use crate::pool::fastcgi::FastCgiSettings;
use crate::pool::settings::{
    BackendTable, CheckSettings, EjectionSettings, PoolName, PoolSettings, ResumeTable,
};
use crate::pool::sticky::StickySettings;
use crate::pool::{BackendConfig, CheckConfig, PoolConfig, RetryBudgetConfig};
use crate::report::{At, Place, Report};
use crate::tls::{PoolTls, pool_tls};

/// The pool that `settings` describe.
pub(crate) fn pool_config(
    (name, settings): &(At<PoolName>, PoolSettings),
    report: &mut Report,
) -> PoolConfig {
    let algorithm = settings.balance.value;
    warn_of_idle_settings(settings, report);
    warn_of_idle_amounts(name, settings, report);
    let classifier = settings.class.value.make(report).filter(|_| tells_classes_apart(algorithm));
    let balance = Settings {
        algorithm,
        load_factor: settings.load_factor.value.get(),
        resume: resume(&settings.resume.value, classifier.as_ref(), report),
        ejection: ejection(&settings.ejection, report),
        checks: settings
            .check
            .as_ref()
            .map_or_else(Checks::default, |check| Checks { rise: check.rise.get(), fall: check.fall.get() }),
        slow_start: settings.slow_start,
        answer_within: *settings.first_byte_timeout,
        queue_limit: settings.queue.get(),
        patience: *settings.queue_timeout / 2,
        single_version: settings.single_version.value,
        seed: 0,
    };
    PoolConfig {
        name: name.value.0.clone(),
        backends: backends(name, settings, report),
        discover: settings.discover.make(report),
        max_in_flight: settings.max_in_flight.map(|limit| limit.get()),
        settings: balance,
        classifier,
        skills_file: settings.resume.value.skills_file.as_ref().map(|path| path.value.to_path()),
        check: settings.check.as_ref().map(|settings| check(name, settings, report)),
        sticky: settings.sticky.as_ref().map(|sticky| StickySettings::make(sticky, report)),
        queue_timeout: *settings.queue_timeout,
        connect_timeout: *settings.connect_timeout,
        first_byte_timeout: *settings.first_byte_timeout,
        between_bytes_timeout: *settings.between_bytes_timeout,
        idle_timeout: *settings.idle_timeout,
        connection_age: *settings.connection_age,
        retries: settings.retries.get(),
        retry_budget: RetryBudgetConfig {
            percent: settings.retry_budget.percent.get(),
            per_second: settings.retry_budget.per_second.get(),
        },
        hedge_after: settings.hedge_after.map(|after| *after),
        retry_timeouts: settings.retry_timeouts,
        abort_on_close: settings.abort_on_close,
        forward_trailers: settings.forward_trailers,
        read_ahead: settings.read_ahead.size().0,
        gather_limit: settings.gather_limit.size().0,
        tls: tls(settings, report),
        fastcgi: settings.fastcgi.as_ref().map(|fastcgi| FastCgiSettings::make(fastcgi, report)),
        x_sendfile: settings.x_sendfile.as_ref().map(|root| root.value.to_path()),
        x_accel_redirect: settings.x_accel_redirect.value,
    }
}

/// TLS to the backends. Without the table, the defaults apply to those that speak it.
fn tls(settings: &PoolSettings, report: &mut Report) -> PoolTls {
    let Some(table) = &settings.tls else { return PoolTls::default() };
    let mut addresses = settings.backends.iter().filter_map(|backend| backend.value.0.address.as_ref());
    if settings.discover.is_empty() && !addresses.any(|address| address.value.is_tls()) {
        let message = "`tls` has no effect: no backend's address begins with https://";
        report.warning(table.place.clone(), message);
    }
    pool_tls(table, report)
}

/// Whether the algorithm uses the class of a request.
fn tells_classes_apart(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Resume | Algorithm::ConsistentHash | Algorithm::Maglev)
}

fn backends(name: &At<PoolName>, settings: &PoolSettings, report: &mut Report) -> Vec<BackendConfig> {
    if settings.backends.is_empty() && settings.discover.is_empty() {
        let message = format!("the pool `{}` has no backends", name.value.0);
        report.missing(name.place.clone(), message, "backends = [\"http://127.0.0.1:8000\"]");
    }
    let mut seen: HashMap<&Address, Option<Place>> = HashMap::new();
    let mut backends = Vec::new();
    for At { value, place } in &settings.backends {
        let BackendTable { address, weight, max_in_flight } = &value.0;
        let Some(address) = address else {
            report.missing(
                place.clone(),
                "a backend needs an `address`",
                "address = \"http://127.0.0.1:8000\"",
            );
            continue;
        };
        if let Some(first) = seen.insert(&address.value, address.place.clone()) {
            let message = format!("the backend {} is listed twice", address.value);
            let error = report.error(address.place.clone(), message);
            error.also = first.map(|place| (place, "here already".to_owned()));
            if weight.place.is_none() {
                error.help =
                    Some("to give it more of the load, write { address = …, weight = 2 }".to_owned());
            }
        }
        if weight.place.is_some() && settings.balance.value == Algorithm::Fallback {
            let message = "`weight` has no effect with balance = \"fallback\": the order decides";
            report.warning(weight.place.clone(), message);
        }
        if address.value.is_fastcgi() != settings.fastcgi.is_some() {
            speaks_otherwise(address, report);
        }
        backends.push(BackendConfig {
            address: address.value.clone(),
            weight: weight.value.get(),
            max_in_flight: max_in_flight.or(settings.max_in_flight).map(|limit| limit.get()),
        });
    }
    backends
}

/// Refuses a backend whose protocol is not that of its pool.
fn speaks_otherwise(address: &At<Address>, report: &mut Report) {
    let is_fastcgi = address.value.is_fastcgi();
    let message = match is_fastcgi {
        true => format!("the pool has no `fastcgi`, which the backend {} needs", address.value),
        false => format!("the pool has `fastcgi`, which the backend {} does not speak", address.value),
    };
    let socket = || address.value.to_string().replacen("unix:", "fcgi+unix:", 1);
    report.error(address.place.clone(), message).help = Some(match (is_fastcgi, address.value.endpoint()) {
        (true, _) => "fastcgi = { root = \"/srv/wiki\" }".to_owned(),
        (false, Endpoint::Unix(_)) => format!("did you mean \"{}\"?", socket()),
        (false, Endpoint::Tcp(..)) => "its address begins with fcgi://".to_owned(),
    });
}

/// Warns of non-default settings that have no effect with the algorithm.
fn warn_of_idle_settings(settings: &PoolSettings, report: &mut Report) {
    let algorithm = settings.balance.value;
    let usual = PoolSettings::default();
    let resume = &settings.resume;
    let idle = [
        ("class", &settings.class.place, settings.class != usual.class && !tells_classes_apart(algorithm)),
        (
            "load_factor",
            &settings.load_factor.place,
            settings.load_factor != usual.load_factor && algorithm != Algorithm::ConsistentHash,
        ),
        ("resume", &resume.place, *resume != usual.resume && algorithm != Algorithm::Resume),
    ];
    for (name, place, _) in idle.into_iter().filter(|(.., idle)| *idle) {
        report.warning(place.clone(), format!("`{name}` has no effect with balance = \"{algorithm}\""));
    }
    if settings.fastcgi.is_some()
        && algorithm == Algorithm::Resume
        && resume.value.skills == SkillSource::Reported
    {
        let message = "workers do not report résumés over FastCGI";
        report.error(settings.balance.place.clone(), message).help =
            Some("resume.skills = \"inferred\"".to_owned());
    }
    if settings.single_version.value && algorithm != Algorithm::Resume {
        let message =
            format!("`single_version` needs the résumés of workers, and balance = \"{algorithm}\" uses none");
        report.error(settings.single_version.place.clone(), message).help =
            Some("balance = \"resume\"".to_owned());
    }
}

/// Warns of times and limits that have no effect in this pool.
fn warn_of_idle_amounts(name: &At<PoolName>, settings: &PoolSettings, report: &mut Report) {
    let usual = PoolSettings::default();
    let algorithm = settings.balance.value;
    let limited = settings.max_in_flight.is_some()
        || settings.backends.iter().any(|backend| backend.value.0.max_in_flight.is_some());
    let by_order = matches!(algorithm, Algorithm::Maglev | Algorithm::Fallback);
    let mut warn = |idle: bool, setting: &str, why: &str| {
        if idle {
            let message = format!("`{setting}` of the pool `{}` has no effect {why}", name.value.0);
            report.warning(name.place.clone(), message);
        }
    };
    let slow_start = settings.slow_start != usual.slow_start;
    warn(slow_start && by_order, "slow_start", &format!("with balance = \"{algorithm}\""));
    warn(settings.queue != usual.queue && !limited, "queue", "without `max_in_flight`");
    warn(
        settings.queue_timeout != usual.queue_timeout && !limited,
        "queue_timeout",
        "without `max_in_flight`",
    );
    let budget = settings.retry_budget != usual.retry_budget;
    warn(budget && settings.retries.get() == 0, "retry_budget", "with `retries = 0`");
}

fn resume(table: &ResumeTable, classifier: Option<&Classifier>, report: &mut Report) -> ResumeSettings {
    if let Some(file) = &table.skills_file
        && table.skills != SkillSource::Inferred
    {
        let message = "`skills_file` is for inferred skills; workers keep reported ones";
        report.error(file.place.clone(), message).help = Some("skills = \"inferred\"".to_owned());
    }
    ResumeSettings {
        variance: table.variance.get(),
        backlog_history: table.backlog_history.get(),
        exploration: table.exploration.get(),
        concurrency: table.concurrency.get(),
        skills: table.skills,
        classifier: classifier.map_or(0, Classifier::fingerprint),
        max_classes: table.max_classes.get() as usize,
    }
}

fn ejection(settings: &At<EjectionSettings>, report: &mut Report) -> Ejection {
    let At { value: EjectionSettings { failures, fault_percent, first, longest, max_percent }, place } =
        settings;
    if **first > **longest {
        report.error(place.clone(), "`first` is more than `longest`");
    }
    Ejection {
        failures: failures.get(),
        fault_percent: fault_percent.get(),
        first: **first,
        longest: **longest,
        max_percent: max_percent.get(),
    }
}

fn check(name: &At<PoolName>, settings: &CheckSettings, report: &mut Report) -> CheckConfig {
    if settings.status.is_empty() {
        let message = format!("no backend of the pool `{}` passes a check with `status = []`", name.value.0);
        report.error(name.place.clone(), message).help = Some("status = [200]".to_owned());
    }
    CheckConfig {
        path: settings.path.0.clone(),
        host: settings.host.as_ref().map(|host| host.0.clone()),
        status: settings.status.clone(),
        interval: *settings.interval,
        timeout: *settings.timeout,
    }
}
