//! `check-pool`: the state of pools, in the format and with the exit statuses of monitoring plugins
//! (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use sandarac_config::closest;

use crate::admin::{PoolStatus, Status, client};
use crate::cli::CheckPoolArgs;
use crate::failure::Failure;

/// The states of monitoring systems, the worst last, except for unknown, which is less severe than a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Ok => "OK",
            Verdict::Warning => "WARNING",
            Verdict::Critical => "CRITICAL",
            Verdict::Unknown => "UNKNOWN",
        })
    }
}

/// A limit beyond which a value is bad; `None` for never.
#[derive(Clone, Debug, PartialEq)]
struct Levels {
    /// Fewer healthy backends.
    workers: Option<u64>,
    /// A greater mean backlog.
    mean_backlog: Option<f64>,
    /// More requests in flight to one backend.
    max_backlog: Option<u64>,
    /// An older request.
    oldest: Option<Duration>,
}

impl Levels {
    /// A mean of ten requests per backend is more than one-process workers that need monitoring should have; a visitor
    /// waits for half a minute at most.
    const WARN: Levels = Levels {
        workers: None,
        mean_backlog: Some(10.0),
        max_backlog: Some(40),
        oldest: Some(Duration::from_secs(30)),
    };

    /// No request is served, or responses come too late for a visitor to see them.
    const ERROR: Levels = Levels {
        workers: Some(1),
        mean_backlog: Some(50.0),
        max_backlog: Some(200),
        oldest: Some(Duration::from_secs(300)),
    };

    const NAMES: [&str; 4] = ["workers", "mean-backlog", "max-backlog", "oldest"];

    /// These levels, except those that `text` names: `workers=4,oldest=30s,max-backlog=off`.
    fn but(mut self, text: &str) -> Result<Levels, String> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not NAME=VALUE"))?;
            let off = value == "off";
            let wrong = |expected: &str| format!("{name}={value}: expected {expected}, or `off`");
            let whole = || value.parse::<u64>().map_err(|_| wrong("a whole number"));
            match name {
                "workers" => self.workers = if off { None } else { Some(whole()?) },
                "max-backlog" => self.max_backlog = if off { None } else { Some(whole()?) },
                "mean-backlog" if off => self.mean_backlog = None,
                "mean-backlog" => {
                    let number =
                        value.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
                    self.mean_backlog = Some(number.ok_or_else(|| wrong("a number"))?);
                }
                "oldest" if off => self.oldest = None,
                "oldest" => self.oldest = Some(duration(value).ok_or_else(|| wrong("a time such as 30s"))?),
                other => {
                    let meant = closest(
                        &other.replace('-', "_"),
                        &["workers", "mean_backlog", "max_backlog", "oldest"],
                    );
                    let help = match meant {
                        Some(meant) => format!("did you mean {}?", meant.replace('_', "-")),
                        None => format!("there are {}", Levels::NAMES.join(", ")),
                    };
                    return Err(format!("there is no level {other:?}: {help}"));
                }
            }
        }
        Ok(self)
    }
}

/// `500ms`, `30s`, `5m`, `1h`, `2d`; a bare number is seconds.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

/// The findings.
struct Finding {
    verdict: Verdict,
    text: String,
    /// `label=value;warn;error;least;most` for each value.
    numbers: Vec<String>,
}

impl Finding {
    fn unknown(text: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Unknown, text: text.into(), numbers: Vec::new() }
    }
}

/// `check-pool`. Prints its findings, and returns the exit status.
pub fn check_pool(args: &CheckPoolArgs) -> ExitCode {
    let Finding { verdict, text, numbers } = find(args);
    // One line: monitoring systems show only one.
    let text = text.replace(['\n', '|'], " ");
    let numbers = if numbers.is_empty() { String::new() } else { format!(" | {}", numbers.join(" ")) };
    // If writing fails, there is no other way to report it.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stdout().lock(),
        format_args!("POOL {verdict} - {text}{numbers}\n"),
    );
    ExitCode::from(verdict as u8)
}

/// The output and the exit status if the command line cannot be read.
pub fn unreadable(what: &str) -> ExitCode {
    let what = what.lines().next().unwrap_or_default();
    // The status is enough if nothing can be written.
    let _ = writeln!(io::stdout(), "POOL {} - {what}", Verdict::Unknown);
    ExitCode::from(Verdict::Unknown as u8)
}

fn find(args: &CheckPoolArgs) -> Finding {
    let levels = |flag: &str, usual: Levels, text: &str| {
        usual.but(text).map_err(|what| Finding::unknown(format!("{flag} {what}")))
    };
    let warn = match levels("--warn", Levels::WARN, &args.warn) {
        Ok(levels) => levels,
        Err(finding) => return finding,
    };
    let error = match levels("--error", Levels::ERROR, &args.error) {
        Ok(levels) => levels,
        Err(finding) => return finding,
    };
    let client = match args.process.client() {
        Ok(client) => client.patience(Duration::from_secs(args.timeout)),
        Err(failure) => return of_failure(&failure),
    };
    // The timeout covers the whole call. After it, the thread is left behind.
    let (told, status) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = told.send(client.status());
    });
    match status.recv_timeout(Duration::from_secs(args.timeout)) {
        Ok(Ok(status)) => judge(&status, &args.names, &warn, &error),
        Ok(Err(error)) => unanswered(&error),
        Err(_) => late(),
    }
}

fn late() -> Finding {
    Finding { verdict: Verdict::Critical, ..Finding::unknown("the process does not answer in time") }
}

fn of_failure(failure: &Failure) -> Finding {
    Finding::unknown(failure.to_string())
}

/// The guidelines reserve UNKNOWN for wrong usage and for errors of the check itself; a service that does not run, or
/// does not answer in time, is CRITICAL.
fn unanswered(error: &client::Error) -> Finding {
    use std::io::ErrorKind::PermissionDenied;
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let verdict = match error {
        client::Error::NotRunning(..) => Verdict::Critical,
        client::Error::Io(_, error) if error.kind() == PermissionDenied => Verdict::Unknown,
        client::Error::Silent(..) => return late(),
        client::Error::Io(..) => Verdict::Critical,
        client::Error::Foreign(..) | client::Error::Refused(_) => Verdict::Unknown,
    };
    Finding { verdict, ..Finding::unknown(line) }
}

/// Checks the pools of these names, or all.
fn judge(status: &Status, names: &[String], warn: &Levels, error: &Levels) -> Finding {
    let known: Vec<&str> = status.pools.iter().map(|pool| pool.name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let help = match closest(name, &known) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("there is {}", known.join(", ")),
        };
        return Finding::unknown(format!("there is no pool {name:?}: {help}"));
    }
    let meant = status.pools.iter().filter(|pool| names.is_empty() || names.contains(&pool.name));
    let findings: Vec<Finding> = meant.map(|pool| look_at(pool, warn, error)).collect();
    let Some(verdict) = findings.iter().map(|finding| finding.verdict).max() else {
        return Finding::unknown("there is no pool");
    };
    // Problems come first, so that they are not cut off.
    let mut texts: Vec<&Finding> = findings.iter().collect();
    texts.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    Finding {
        verdict,
        text: texts.iter().map(|finding| finding.text.as_str()).collect::<Vec<_>>().join("; "),
        numbers: findings.iter().flat_map(|finding| finding.numbers.iter().cloned()).collect(),
    }
}

/// A value with its levels.
struct Measure<'a> {
    name: &'a str,
    /// Its text.
    text: String,
    value: f64,
    unit: &'a str,
    warn: Option<f64>,
    error: Option<f64>,
    /// Whether values below a level are bad, rather than above.
    least: bool,
    most: Option<f64>,
}

impl Measure<'_> {
    fn verdict(&self) -> Verdict {
        let beyond = |level: f64| if self.least { self.value < level } else { self.value > level };
        if self.error.is_some_and(beyond) {
            Verdict::Critical
        } else if self.warn.is_some_and(beyond) {
            Verdict::Warning
        } else {
            Verdict::Ok
        }
    }

    /// Its text, with the level it exceeds.
    fn told(&self) -> String {
        let level = match self.verdict() {
            Verdict::Critical => self.error,
            Verdict::Warning => self.warn,
            Verdict::Ok | Verdict::Unknown => None,
        };
        let side = if self.least { "below" } else { "above" };
        match level {
            Some(level) => format!("{} ({side} {level}{})", self.text, self.unit),
            None => self.text.clone(),
        }
    }

    /// The value as performance data: a range `N:` alerts below N, `N` above it.
    fn number(&self, pool: &str) -> String {
        let range = |level: Option<f64>| match level {
            Some(level) if self.least => format!("{level}:"),
            Some(level) => level.to_string(),
            None => String::new(),
        };
        let most = self.most.map(|most| most.to_string()).unwrap_or_default();
        let label = format!("{pool} {}", self.name).replace('=', "_").replace('\'', "''");
        let number = format!(
            "'{label}'={}{};{};{};0;{most}",
            self.value,
            self.unit,
            range(self.warn),
            range(self.error)
        );
        number.trim_end_matches(';').to_owned()
    }
}

fn look_at(pool: &PoolStatus, warn: &Levels, error: &Levels) -> Finding {
    // The age of the oldest request has another limit.
    let is_healthy = |state: &str| matches!(state, "healthy" | "untried" | "silent");
    let healthy = pool.backends.iter().filter(|backend| is_healthy(&backend.state)).count();
    let failing = pool.backends.iter().filter(|backend| backend.state == "failing").count();
    let all = pool.backends.len();
    let most = pool.backends.iter().map(|backend| backend.in_flight).max().unwrap_or_default();
    let oldest = pool.oldest_seconds.unwrap_or_default();
    let whole = |level: Option<u64>| level.map(|level| level as f64);
    let seconds = |level: Option<Duration>| level.map(|level| level.as_secs_f64());
    let measures = [
        Measure {
            name: "workers",
            text: match failing {
                0 => format!("{healthy} of {all} workers"),
                _ => format!("{healthy} of {all} workers and {failing} failing in use"),
            },
            value: healthy as f64,
            unit: "",
            warn: whole(warn.workers),
            error: whole(error.workers),
            least: true,
            most: Some(all as f64),
        },
        Measure {
            name: "mean_backlog",
            text: format!("mean backlog {}", pool.mean_backlog),
            value: pool.mean_backlog,
            unit: "",
            warn: warn.mean_backlog,
            error: error.mean_backlog,
            least: false,
            most: None,
        },
        Measure {
            name: "max_backlog",
            text: format!("max backlog {most}"),
            value: most as f64,
            unit: "",
            warn: whole(warn.max_backlog),
            error: whole(error.max_backlog),
            least: false,
            most: None,
        },
        Measure {
            name: "oldest",
            text: format!("oldest request {oldest}s"),
            value: oldest,
            unit: "s",
            warn: seconds(warn.oldest),
            error: seconds(error.oldest),
            least: false,
            most: None,
        },
    ];
    let told: Vec<String> = measures.iter().map(Measure::told).collect();
    Finding {
        verdict: measures.iter().map(Measure::verdict).max().unwrap_or(Verdict::Ok),
        text: format!("{}: {}", pool.name, told.join(", ")),
        numbers: measures.iter().map(|measure| measure.number(&pool.name)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::BackendStatus;

    fn pool(name: &str, states: &[&str], mean_backlog: f64, oldest_seconds: Option<f64>) -> PoolStatus {
        let backend = |(at, state): (usize, &&str)| BackendStatus {
            address: format!("http://{at}"),
            state: (*state).to_owned(),
            in_flight: at as u64,
        };
        let backends = states.iter().enumerate().map(backend).collect();
        PoolStatus { name: name.to_owned(), mean_backlog, oldest_seconds, waiting: 0, backends }
    }

    fn levels(warn: &str, error: &str) -> (Levels, Levels) {
        (Levels::WARN.but(warn).unwrap(), Levels::ERROR.but(error).unwrap())
    }

    #[test]
    fn levels_are_the_usual_ones_unless_named() {
        let (warn, error) = levels("workers=4, oldest=2m,max-backlog=off", "");
        let oldest = Some(Duration::from_secs(120));
        assert_eq!(warn, Levels { workers: Some(4), max_backlog: None, oldest, ..Levels::WARN });
        assert_eq!(error, Levels::ERROR);
        for (text, said) in [
            ("workers", "NAME=VALUE"),
            ("workers=x", "a whole number"),
            ("mean-backlog=-1", "a number"),
            ("mean-backlog=inf", "a number"),
            ("oldest=30 parsecs", "a time such as 30s"),
            ("max_backlog=3", "did you mean max-backlog?"),
            ("colour=3", "there are workers"),
        ] {
            let error = Levels::WARN.but(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(
            ["500ms", "30", "1.5m", "2h", "1d"].map(seconds),
            [0.5, 30.0, 90.0, 7200.0, 86_400.0].map(Some)
        );
        assert_eq!(["", "s", "-3s", "3 s", "1e999s"].map(seconds), [None; 5]);
    }

    #[test]
    fn a_pool_is_as_bad_as_the_worst_of_its_values() {
        let (warn, error) = levels("workers=2", "");
        let judged = |pool: &PoolStatus| look_at(pool, &warn, &error);
        let fine = judged(&pool("app", &["healthy", "healthy"], 0.5, Some(1.25)));
        assert_eq!(fine.verdict, Verdict::Ok);
        assert_eq!(fine.text, "app: 2 of 2 workers, mean backlog 0.5, max backlog 1, oldest request 1.25s");
        assert_eq!(
            fine.numbers.join(" "),
            "'app workers'=2;2:;1:;0;2 'app mean_backlog'=0.5;10;50;0 'app max_backlog'=1;40;200;0 \
             'app oldest'=1.25s;30;300;0"
        );
        let fewer = judged(&pool("app", &["healthy", "draining"], 0.5, None));
        assert_eq!(fewer.verdict, Verdict::Warning);
        assert!(fewer.text.starts_with("app: 1 of 2 workers (below 2), "), "{}", fewer.text);
        let none = judged(&pool("app", &["down", "failing"], 0.5, Some(31.0)));
        assert_eq!(none.verdict, Verdict::Critical);
        assert!(
            none.text.starts_with("app: 0 of 2 workers and 1 failing in use (below 1), "),
            "{}",
            none.text
        );
        assert!(none.text.ends_with("oldest request 31s (above 30s)"), "{}", none.text);
    }

    #[test]
    fn of_several_pools_the_worst_counts_and_comes_first() {
        let (warn, error) = levels("", "");
        let mut status = crate::admin::example();
        status.pools = vec![pool("fine", &["healthy"], 0.0, None), pool("busy", &["healthy"], 11.0, None)];
        let judged = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            judge(&status, &names, &warn, &error)
        };
        let all = judged(&[]);
        assert_eq!(all.verdict, Verdict::Warning);
        assert!(all.text.starts_with("busy: ") && all.text.contains("; fine: "), "{}", all.text);
        assert_eq!(all.numbers.len(), 8);
        assert_eq!(judged(&["fine"]).verdict, Verdict::Ok);
        let unknown = judged(&["bsuy"]);
        assert_eq!(unknown.verdict, Verdict::Unknown);
        assert!(unknown.text.contains("did you mean \"busy\"?"), "{}", unknown.text);
    }

    #[test]
    fn a_process_that_is_not_there_is_critical_and_one_that_may_not_be_asked_is_unknown() {
        use std::io::{Error, ErrorKind};
        let endpoint = || "/run/sandarac/admin.sock".parse().unwrap();
        let verdict = |error| unanswered(&error).verdict;
        let io = |kind: ErrorKind| client::Error::Io(endpoint(), Error::from(kind));
        assert_eq!(
            verdict(client::Error::NotRunning(endpoint(), Error::from(ErrorKind::NotFound))),
            Verdict::Critical
        );
        assert_eq!(verdict(io(ErrorKind::WouldBlock)), Verdict::Critical);
        assert_eq!(verdict(io(ErrorKind::PermissionDenied)), Verdict::Unknown);
        let refusal = crate::admin::Refusal::invalid("there is no token");
        assert_eq!(verdict(client::Error::Refused(refusal)), Verdict::Unknown);
    }
}
