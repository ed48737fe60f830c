//! A log played against simulated workers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sandarac_config::{PoolConfig, read_class_table};
use sandarac_lab::{Load, LogSettings, MOST_REQUESTS, Scenario, Trace, replay as play};
use sandarac_policy::Classifier;

use super::{left_out, open, unplayable};
use crate::check;
use crate::cli::ReplayArgs;
use crate::failure::Failure;
use crate::human::{count, span};
use crate::simulate::{prepare, show};

/// Plays the log with every algorithm, by the scenario at `path` if there is one.
pub(super) fn simulate(args: &ReplayArgs, path: Option<&Path>) -> Result<(), Failure> {
    if args.flat_out && args.span.is_some() {
        let what = "a simulation with --flat-out has no pace: bound the run with --requests, not --for";
        return Err(Failure::Usage(what.to_owned()));
    }
    let pool = args.config.as_deref().map(|path| pool(path, args)).transpose()?;
    let classifier = classifier(args, pool.as_ref())?;
    let text = match path {
        Some(path) => fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?,
        None => String::new(),
    };
    prepare(args.svg.as_deref())?;
    let mut log = open(args)?;
    let (most, time) = (args.requests.unwrap_or(u64::MAX), logged_time(args));
    let trace = Trace::read(&mut log, &classifier, most, time).map_err(|error| unplayable(args, &error))?;
    let settings = LogSettings {
        text,
        title: format!("{}, {}", args.log_name(), args.speed()),
        load: match args.flat_out {
            true => Load::Clients { count: args.connections, think_ms: 0.0 },
            false => Load::Log { pace: args.pace },
        },
        workers: args.workers,
        cache: args.cache,
        fixed_ms: args.fixed_ms,
        load_ms: args.load_ms,
        warm_up: args.warm_up,
        seed: args.seed,
        resume: pool.map(|pool| pool.settings.resume),
    };
    let scenario = Scenario::for_log(&settings, &trace).map_err(|error| {
        let whose = path.map_or_else(|| args.log_name(), |path| path.display().to_string());
        Failure::Usage(format!("{whose}: {error}"))
    })?;
    let reports: Vec<_> =
        scenario.algorithms.iter().map(|algorithm| play(&scenario, &trace, algorithm)).collect();
    let facts = [facts(&trace, &scenario), remarks(&trace, &classifier), left_out(log.tally(), args.head)];
    show(&scenario.title, &facts.concat(), &reports, args.svg.as_deref())
}

/// The time span of the log that is played.
fn logged_time(args: &ReplayArgs) -> Duration {
    let seconds = args.span.map(|span| span.as_secs_f64() * args.pace);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(Duration::MAX)
}

/// The selected pool of the configuration at `path`.
fn pool(path: &Path, args: &ReplayArgs) -> Result<PoolConfig, Failure> {
    let (mut config, _) = check::load_with(path, &args.flags(None)?)?;
    let place = match (&args.pool, config.pools.len()) {
        (Some(name), _) => super::live::pool_called(name, &config)?,
        (None, 1) => 0,
        (None, 0) => return Err(Failure::Usage(format!("{} has no pool", path.display()))),
        (None, _) => {
            let names: Vec<&str> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
            let what = format!("--pool is needed: {} has {}", path.display(), names.join(", "));
            return Err(Failure::Usage(what));
        }
    };
    Ok(config.pools.swap_remove(place))
}

/// The classifier: from the flag, or the pool, or hosts.
fn classifier(args: &ReplayArgs, pool: Option<&PoolConfig>) -> Result<Classifier, Failure> {
    let configured = || pool.and_then(|pool| pool.classifier.clone());
    let usual = || sandarac_config::classifier("host").map_err(Failure::Failed);
    let classifier = args.class.clone().or_else(configured).map_or_else(usual, Ok)?;
    let Some(path) = classifier.table_path() else { return Ok(classifier) };
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
    let table = fs::read(path).map_err(|error| wrong(&error))?;
    read_class_table(&classifier, &table).map_err(|error| Failure::Usage(error.to_string()))
}

/// A description of the log and the workers.
fn facts(trace: &Trace, scenario: &Scenario) -> String {
    let classes = match trace.classes() {
        1 => "1 class".to_owned(),
        classes => format!("{} classes", crate::human::grouped(classes.into())),
    };
    format!(
        "{} for {} in {classes}, over {}; {}, whose caches hold {} each; {} to warm up\n",
        count(trace.requests(), "request"),
        count(trace.objects().into(), "object"),
        span(trace.span().as_secs()),
        count(scenario.workers.count.into(), "worker"),
        count(scenario.workers.cache.into(), "object"),
        count(scenario.warm_up, "request"),
    )
}

/// Warnings about a comparison that is less meaningful than it seems.
fn remarks(trace: &Trace, classifier: &Classifier) -> String {
    let mut remarks = String::new();
    if trace.unclassified() > 0 {
        let requests = count(trace.unclassified(), "request");
        remarks += &format!("{requests} without a class by {classifier}\n");
    } else if trace.classes() == 1 && trace.requests() > 1 {
        remarks += &format!(
            "All requests are of one class by {classifier}: who goes by classes cannot tell them apart. Does the log name \
             hosts? `--class path_segment(1)` goes by paths\n"
        );
    }
    if trace.requests() == MOST_REQUESTS {
        remarks += &format!("No more than {} are simulated\n", count(MOST_REQUESTS, "request"));
    }
    remarks
}
