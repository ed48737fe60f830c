//! A log played against live backends, through a complete Sandarac in this process.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use sandarac_config::{Config, ListenAddress, Listener, LogTarget, Warning};
use sandarac_lab::{Row, fairness, rows};
use sandarac_message::printable::printable;
use sandarac_message::target::Scheme;
use sandarac_policy::{Action, DigestOnce, Forward, PathReading, PoolId, Route, Routes};
use sandarac_proxy::{Shared, SitePool};

use super::player::{Plan, Played, play as drive};
use super::{left_out, open, unplayable};
use crate::check;
use crate::cli::ReplayArgs;
use crate::failure::Failure;
use crate::human::{count, grouped, percent};
use crate::process::Process;
use crate::stderr::print_line;

/// How long to wait for discovered backends.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(5);

/// Plays the log with each requested algorithm.
pub(super) fn play(args: &ReplayArgs) -> Result<(), Failure> {
    if args.is_stdin() && args.balance.len() > 1 {
        let what = "standard input can be played once: for several algorithms, name a file";
        return Err(Failure::Usage(what.to_owned()));
    }
    let algorithms: Vec<Option<&str>> = match &args.balance[..] {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    // Errors in any of them are reported before the first is played.
    let configs: Result<Vec<_>, Failure> = algorithms.iter().map(|name| configured(args, *name)).collect();
    let configs = configs?;
    if let Some((_, warnings)) = configs.first() {
        warnings.iter().for_each(print_line);
    }
    let (mut table, mut details, mut tally) = (Vec::new(), String::new(), String::new());
    let mut failure = None;
    for (config, _) in configs {
        let (row, run) = measure(args, config)?;
        if run.played.answers == 0 && failure.is_none() {
            let what = "no request of the log was answered without an error";
            failure = Some(Failure::Failed(format!("{what} ({}): {}", row.label, run.why_none())));
        }
        tally = left_out(&run.played.log, args.head);
        details += &format!("\n{}\n{run}", row.label);
        table.push(row);
        if let Some(error) = run.played.error {
            failure = Some(unplayable(args, &error));
            break;
        }
        if run.played.interrupted {
            break;
        }
    }
    let mut out = io::stdout().lock();
    write!(out, "{}, {}\n{tally}\n{}{details}", args.log_name(), args.speed(), rows(&table))?;
    failure.map_or(Ok(()), Err)
}

/// The results of one run.
struct Run {
    played: Played,
    pools: Vec<Share>,
}

/// The distribution of a pool's requests.
struct Share {
    pool: String,
    /// Each backend, its requests and its weight.
    backends: Vec<(String, u64, u32)>,
}

impl Share {
    fn total(&self) -> u64 {
        self.backends.iter().map(|(_, picks, _)| picks).sum()
    }

    /// Jain's fairness index of requests relative to weights.
    fn fairness(&self) -> f64 {
        fairness(self.backends.iter().map(|(_, picks, weight)| *picks as f64 / f64::from(*weight)))
    }
}

fn measure(args: &ReplayArgs, config: Config) -> Result<(Row, Run), Failure> {
    let log = open(args)?;
    let plan = Plan {
        pace: (!args.flat_out).then_some(args.pace),
        connections: args.connections,
        requests: args.requests.unwrap_or(u64::MAX),
        span: args.span,
    };
    let failed = |error: io::Error| Failure::Failed(error.to_string());
    let process = Process::start(config, None).map_err(failed)?;
    let [sandarac_net::ListenAddress::Tcp(address)] = process.listeners()[..] else {
        return Err(Failure::Failed("the balancer does not listen at its address".to_owned()));
    };
    process.shared().site().wait_for_backends(DISCOVERY_PATIENCE);
    let before = picks(process.shared());
    let played = drive(address, log, plan, || spread(process.shared())).map_err(failed)?;
    let pools = shares(process.shared(), &before);
    if played.answers == 0
        && let Some(error) = &played.error
    {
        return Err(unplayable(args, error));
    }
    let milliseconds = |share| Some(played.latencies.quantile(share)?.end().as_secs_f64() * 1000.0);
    let row = Row {
        label: algorithms(process.shared(), &pools),
        throughput: played.answers as f64 / played.elapsed.as_secs_f64().max(f64::EPSILON),
        p50_ms: milliseconds(0.5),
        p99_ms: milliseconds(0.99),
        fairness: match &pools[..] {
            [pool] => Some(pool.fairness()),
            _ => None,
        },
        backlog_spread: (pools.len() == 1).then_some(played.spread),
        ..Row::default()
    };
    Ok((row, Run { played, pools }))
}

impl Run {
    /// The reason why all responses are errors, from the first example.
    fn why_none(&self) -> String {
        let Played { error_examples, examples, .. } = &self.played;
        let first = error_examples.first().or(examples.first());
        first.map_or_else(|| "no request was sent".to_owned(), |example| printable(example))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { played, pools } = self;
        let by_status = |statuses: &BTreeMap<u16, u64>| {
            let each = statuses.iter().map(|(status, number)| format!("{status}: {}", grouped(*number)));
            each.collect::<Vec<_>>().join("; ")
        };
        let in_words = |examples: &[String]| {
            examples.iter().map(|example| printable(example)).collect::<Vec<_>>().join("; ")
        };
        match played.answers {
            0 => writeln!(f, "  answered     none")?,
            _ => writeln!(f, "  answered     {}", by_status(&played.statuses))?,
        }
        if !played.errors.is_empty() {
            let (errors, examples) = (by_status(&played.errors), in_words(&played.error_examples));
            writeln!(f, "  errors       {errors} ({examples})")?;
        }
        if played.failures > 0 {
            let (failures, examples) = (grouped(played.failures), in_words(&played.examples));
            writeln!(f, "  not answered {failures} ({examples})")?;
        }
        if played.answers > 0 {
            writeln!(f, "  from memory  {}", percent(played.hits as f64 / played.answers as f64))?;
        }
        if played.late > 0 {
            let requests = count(played.late, "request");
            writeln!(f, "  late         {requests}: all connections were in use (--connections)")?;
        }
        if played.interrupted {
            writeln!(f, "  ended        by a signal")?;
        }
        for share in pools {
            let total = share.total().max(1) as f64;
            let backends = share.backends.iter();
            let backends =
                backends.map(|(name, picks, _)| format!("{name} {}", percent(*picks as f64 / total)));
            let (backends, fairness) = (backends.collect::<Vec<_>>().join("; "), share.fairness());
            writeln!(f, "  pool {:<8}{backends}; fairness {fairness:.3}", share.pool)?;
        }
        Ok(())
    }
}

/// The configuration under which the log is played: the given one, but with a private listener, and without any output.
fn configured(args: &ReplayArgs, balance: Option<&str>) -> Result<(Config, Vec<Warning>), Failure> {
    let flags = args.flags(balance)?;
    let (mut config, warnings) = match &args.config {
        Some(path) => check::load_with(path, &flags)?,
        None => Config::from_flags(&flags).map_err(Failure::Configuration)?,
    };
    config.listeners = vec![Listener {
        address: ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        mode: None,
        proxy_protocol: false,
        // Applications respond differently to another scheme.
        scheme: config.listeners.first().map_or(Scheme::Http, |listener| listener.scheme),
        trusted_proxies: Vec::new(),
        http2: false,
        tls: None,
        redirect_to_https: false,
        is_optional: false,
    }];
    config.log.access = LogTarget::Off;
    config.cache.cache_status = true;
    // Responses to this load are for no other node.
    config.cache.shared = None;
    for pool in &mut config.pools {
        // Skills inferred under this load differ from those of real traffic.
        pool.skills_file = None;
        if let (Some(class), Some(_)) = (&args.class, &pool.classifier) {
            *pool = pool.clone().with_classifier(class.clone());
        }
    }
    let mut routes = match &args.pool {
        Some(name) => vec![only(pool_called(name, &config)?, &config.routes)],
        None => config.routes.all().to_vec(),
    };
    if args.no_cache {
        for route in &mut routes {
            if let Some(forward) = route.forward_mut() {
                forward.cache = None;
            }
        }
    }
    config.routes = Routes::new(routes);
    Ok((config, warnings))
}

/// The index of the pool with that name.
pub(super) fn pool_called(name: &str, config: &Config) -> Result<usize, Failure> {
    config.pools.iter().position(|pool| pool.name == name).ok_or_else(|| {
        let names: Vec<&str> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
        Failure::Usage(format!("there is no pool called {name:?}\n  help: pools: {}", names.join(", ")))
    })
}

/// A route for all requests to one pool: the first that leads there, but matching everything.
fn only(place: usize, routes: &Routes) -> Route {
    let id = PoolId::at(place);
    let leads_there = |route: &&Route| route.forward().is_some_and(|forward| forward.pool == id);
    let cache = |route: &Route| route.forward()?.cache.clone();
    let first = routes.all().iter().find(leads_there);
    Route {
        matches: Vec::new(),
        action: Action::Forward(Forward { pool: id, unsafe_pool: None, cache: first.and_then(cache) }),
        request: first.map(|route| route.request.clone()).unwrap_or_default(),
        response: first.map(|route| route.response.clone()).unwrap_or_default(),
        compress: None,
        fragments: first.and_then(|route| route.fragments),
        hsts: None,
        upgrade: Vec::new(),
        connect: false,
        paths: PathReading::default(),
        gather: None,
        digest: DigestOnce::default(),
    }
}

/// The number of requests given to each backend of each pool so far.
fn picks(shared: &Shared) -> HashMap<(String, String), u64> {
    let (site, now) = (shared.site(), shared.now());
    let of = |pool: &SitePool| {
        let name = pool.name();
        let backends = pool.report(now).into_iter();
        backends.map(move |backend| ((name.clone(), backend.address), backend.picks))
    };
    site.pools().iter().flat_map(of).collect()
}

/// The distribution of requests since `before`, in pools that had any.
fn shares(shared: &Shared, before: &HashMap<(String, String), u64>) -> Vec<Share> {
    let now = picks(shared);
    let share = |pool: &SitePool| {
        let name = pool.name();
        let live = pool.live();
        let backends = live.backends().iter().map(|backend| {
            let key = (name.clone(), backend.address().to_string());
            let earlier = before.get(&key).copied().unwrap_or_default();
            let picks = now.get(&key).copied().unwrap_or_default().saturating_sub(earlier);
            (key.1, picks, backend.weight())
        });
        Share { backends: backends.collect(), pool: name }
    };
    shared.site().pools().iter().map(share).filter(|share| share.total() > 0).collect()
}

/// The algorithms of the pools that had requests; of all, if none had.
fn algorithms(shared: &Shared, used: &[Share]) -> String {
    let site = shared.site();
    let used = |pool: &&SitePool| used.is_empty() || used.iter().any(|share| share.pool == pool.name());
    let mut names: Vec<&str> =
        site.pools().iter().filter(used).map(|pool| pool.live().algorithm().name()).collect();
    names.dedup();
    names.join(", ")
}

/// The spread of requests in flight to the backends of a pool: their standard deviation, the largest of all pools.
fn spread(shared: &Shared) -> Option<f64> {
    let of_pool = |pool: &SitePool| {
        let live = pool.live();
        let count = live.backends().len() as f64;
        let in_flight = || live.backends().iter().map(|backend| f64::from(backend.in_flight()));
        let mean = in_flight().sum::<f64>() / count;
        let squares = in_flight().map(|backlog| (backlog - mean).powi(2)).sum::<f64>();
        (count > 0.0).then(|| (squares / count).sqrt())
    };
    shared.site().pools().iter().filter_map(of_pool).max_by(f64::total_cmp)
}
