//! Logs changes of pools that nobody ordered: ejections and their ends, another version that serves, classes
//! for which there is no room. A lasting state is logged once, a recurring one at most every few seconds.

use crate::pool::Live;
use crate::shared::Shared;
use crate::site::Site;
use sandarac_balance::{BackendId, BackendReport, Pool, Resumes};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often pools are examined. An ejection lasts at least a second unless it is configured otherwise.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long nothing more is logged about a backend that was reported as ejected, except that it is back, and
/// nothing about versions.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(10);

/// With fewer requests than this, nothing can be said about classes.
const MIN_REQUESTS: u64 = 1000;

/// Watches the pools of `site` for as long as it is polled. Earlier changes are not logged, unless this is
/// the `first` site of the process, which may have served for a while before the first poll.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, first: bool) {
    let pools = || site.pools().iter().map(|pool| pool.live());
    let watch = |pool: Arc<Live>| if first { Watch::default() } else { Watch::new(&pool, shared.now()) };
    let mut watches: Vec<Watch> = pools().map(watch).collect();
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        for pool in site.pools().iter().filter(|pool| pool.has_lifted_orders()) {
            shared.log(&format!(
                "pool {}: orders to remove or drain backends are given up: they left none",
                pool.name()
            ));
        }
        for (watch, pool) in watches.iter_mut().zip(pools()) {
            for line in watch.look(&pool, shared.now()) {
                shared.log(&format!("pool {}: {line}", pool.name()));
            }
        }
    }
}

/// The last seen state of a pool.
#[derive(Default)]
struct Watch {
    backends: HashMap<BackendId, Seen>,
    version: Option<Box<str>>,
    /// When the version may be logged again.
    version_not_before: Duration,
    classes: SeenClasses,
}

/// The last seen state of a backend.
#[derive(Clone, Copy, Default)]
struct Seen {
    ejections: u64,
    /// When it was logged as ejected, if that was the last message.
    ejected: Option<Duration>,
    not_before: Duration,
}

/// The last seen state of classes.
#[derive(Clone, Copy, Default)]
struct SeenClasses {
    requests: u64,
    forgotten: u64,
    too_many: bool,
    too_many_reported: bool,
}

impl Watch {
    /// A watch from the current state on.
    fn new(pool: &Pool, now: Duration) -> Watch {
        let seen = |backend: BackendReport| {
            let ejected = backend.ejected.then_some(now);
            (backend.id, Seen { ejections: backend.ejections, ejected, ..Seen::default() })
        };
        Watch {
            backends: pool.report(now).into_iter().map(seen).collect(),
            version: pool.version_in_service(),
            version_not_before: Duration::ZERO,
            classes: SeenClasses::of(pool, now),
        }
    }

    /// The messages to log.
    fn look(&mut self, pool: &Pool, now: Duration) -> Vec<String> {
        let report = pool.report(now);
        let mut lines = Vec::new();
        self.backends.retain(|id, _| pool.backend(*id).is_some());
        for backend in &report {
            lines.extend(self.backends.entry(backend.id).or_default().look(backend, now));
        }
        lines.extend(self.look_at_version(pool, &report, now));
        if let Some(resumes) = pool.resumes() {
            lines.extend(self.classes.look(pool, &resumes, now));
        }
        lines
    }

    fn look_at_version(&mut self, pool: &Pool, report: &[BackendReport], now: Duration) -> Option<String> {
        let version = pool.version_in_service();
        if version == self.version || now < self.version_not_before {
            return None;
        }
        let before = std::mem::replace(&mut self.version, version.clone());
        if before.is_some() {
            self.version_not_before = now + MESSAGE_INTERVAL;
        }
        let count = report.iter().filter(|backend| backend.version == version).count();
        let serves = match &version {
            Some(version) => format!("version {version:?} serves"),
            None => "backends without a version serve".to_owned(),
        };
        let instead = before.map(|before| format!(" now instead of {before:?}")).unwrap_or_default();
        Some(format!("{serves}{instead}: {count} of {} backends", report.len()))
    }
}

impl Seen {
    fn look(&mut self, backend: &BackendReport, now: Duration) -> Option<String> {
        let address = &backend.address;
        if backend.down {
            // The log of its checks covers this.
            *self = Seen { ejections: backend.ejections, ejected: None, ..*self };
            return None;
        }
        if let Some(since) = self.ejected {
            if backend.ejected {
                return None;
            }
            *self = Seen { ejections: backend.ejections, ejected: None, ..*self };
            let seconds = now.saturating_sub(since).as_secs().max(1);
            return Some(match backend.failing {
                true => {
                    format!("{address} gets requests again although it fails: no more of the pool may be out")
                }
                false => format!("{address} is back in service after {seconds} s"),
            });
        }
        let times = backend.ejections - self.ejections;
        if times == 0 || now < self.not_before {
            return None;
        }
        let ejected = backend.ejected.then_some(now);
        *self = Seen { ejections: backend.ejections, ejected, not_before: now + MESSAGE_INTERVAL };
        let why = match backend.faulty {
            true => format!("{:.0} % of its recent responses failed", backend.faults * 100.0),
            false => "connections to it fail, or its responses are late".to_owned(),
        };
        Some(match (ejected, times) {
            (Some(_), 1) => format!("{address} is ejected: {why}"),
            (Some(_), times) => format!("{address} is ejected, {times} times recently: {why}"),
            (None, 1) => format!("{address} was ejected and is back in service"),
            (None, times) => format!("{address} was ejected {times} times and is back in service"),
        })
    }
}

impl SeenClasses {
    fn of(pool: &Pool, now: Duration) -> SeenClasses {
        let forgotten = pool.resumes().map_or(0, |resumes| resumes.counts().forgotten_for_requests);
        SeenClasses { requests: requests(pool, now), forgotten, ..SeenClasses::default() }
    }

    fn look(&mut self, pool: &Pool, resumes: &Resumes<'_>, now: Duration) -> Vec<String> {
        let (counts, name) = (resumes.counts(), pool.name());
        let most = pool.settings().resume.max_classes;
        let mut lines = Vec::new();
        // Counted over as many requests as there is room for classes. If more than half of them evict another
        // class, hardly any class is still known at its next request.
        let asked = requests(pool, now).saturating_sub(self.requests);
        if asked >= MIN_REQUESTS.max(most as u64) {
            let forgotten = counts.forgotten_for_requests.saturating_sub(self.forgotten);
            let news = forgotten * 2 > asked && !self.too_many;
            *self = SeenClasses { too_many: self.too_many || news, ..self.after(pool, now) };
            if news {
                lines.push(format!(
                    "skills are forgotten before they are of use: {forgotten} of the last {asked} requests were of a class that was not \
                     among the {most} remembered, and pushed another out; see whether [pool.{name}] class makes a class per request, \
                     and [pool.{name}.resume] max_classes"
                ));
            }
        }
        if !self.too_many_reported && counts.forgotten_reported + counts.refused > 0 {
            self.too_many_reported = true;
            let most_reported = resumes.most_reported();
            let worker =
                most_reported.and_then(|(worker, count)| Some((pool.backend(worker)?.address(), count)));
            let worker = worker.map(|(address, count)| format!("; {address} has most of them, {count}"));
            lines.push(format!(
                "workers report more classes than the {most} that are remembered ([pool.{name}.resume] max_classes): those that \
                 have no requests make room{}",
                worker.unwrap_or_default()
            ));
        }
        lines
    }

    fn after(&self, pool: &Pool, now: Duration) -> SeenClasses {
        SeenClasses { too_many_reported: self.too_many_reported, ..SeenClasses::of(pool, now) }
    }
}

/// The number of requests that a pool has had.
fn requests(pool: &Pool, now: Duration) -> u64 {
    pool.summary(now).reasons.iter().map(|&(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_balance::{
        Algorithm, AttemptOutcome, Backend, Ejection, ResumeSettings, Settings, WorkerState,
    };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1000 + seconds)
    }

    fn pool(backends: usize, settings: impl Into<Settings>) -> Pool {
        let backend = |n: usize| Backend::new(format!("http://10.0.0.{n}:8000").parse().unwrap());
        Pool::new("app", (0..backends).map(backend).collect(), settings)
    }

    /// Makes a request to the backend at `place` that ends with `outcome`.
    fn request(pool: &Pool, place: usize, outcome: AttemptOutcome, now: Duration) {
        let only = pool.ids()[place];
        let others: Vec<BackendId> = pool.ids().iter().copied().filter(|&id| id != only).collect();
        pool.pick(None, now, &others).unwrap().finish(outcome, now);
    }

    fn refuse(pool: &Pool, place: usize, now: Duration) {
        (0..3).for_each(|_| request(pool, place, AttemptOutcome::ConnectFailed, now));
    }

    #[test]
    fn an_ejection_and_its_end_are_a_line_each() {
        let pool = pool(3, Algorithm::RoundRobin);
        let mut watch = Watch::new(&pool, at(0));
        assert_eq!(watch.look(&pool, at(1)), [""; 0]);
        refuse(&pool, 1, at(1));
        assert_eq!(
            watch.look(&pool, at(1)),
            ["http://10.0.0.1:8000 is ejected: connections to it fail, or its responses are late"]
        );
        // Failed trials of an ejected backend are not logged.
        for second in [3, 6] {
            request(&pool, 1, AttemptOutcome::ConnectFailed, at(second));
            assert_eq!(watch.look(&pool, at(second)), [""; 0]);
        }
        request(&pool, 1, AttemptOutcome::Answered, at(20));
        assert_eq!(watch.look(&pool, at(20)), ["http://10.0.0.1:8000 is back in service after 19 s"]);
        assert_eq!(watch.look(&pool, at(21)), [""; 0]);
    }

    #[test]
    fn one_that_comes_and_goes_does_not_flood_the_log() {
        let pool = pool(2, Algorithm::RoundRobin);
        let mut watch = Watch::new(&pool, at(0));
        let mut lines = Vec::new();
        for second in 0..100 {
            refuse(&pool, 1, at(second * 2));
            lines.extend(watch.look(&pool, at(second * 2)));
            request(&pool, 1, AttemptOutcome::Answered, at(second * 2 + 1));
            lines.extend(watch.look(&pool, at(second * 2 + 1)));
        }
        assert!((30..=42).contains(&lines.len()), "{} lines in 200 s: {lines:?}", lines.len());
        assert_eq!(pool.report(at(200))[1].ejections, 100);
        assert!(lines[2].contains("is ejected, ") && lines[2].contains(" times recently: "), "{}", lines[2]);
    }

    #[test]
    fn what_was_before_is_no_news_but_its_end_is() {
        let pool = pool(2, Algorithm::RoundRobin);
        refuse(&pool, 0, at(0));
        let mut watch = Watch::new(&pool, at(1));
        assert_eq!(watch.look(&pool, at(1)), [""; 0]);
        request(&pool, 0, AttemptOutcome::Answered, at(4));
        assert_eq!(watch.look(&pool, at(4)), ["http://10.0.0.0:8000 is back in service after 3 s"]);
    }

    #[test]
    fn what_was_before_the_first_look_of_all_is_news() {
        let pool = pool(2, Algorithm::RoundRobin);
        refuse(&pool, 0, at(0));
        let lines = Watch::default().look(&pool, at(1));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("http://10.0.0.0:8000 is ejected: "), "{lines:?}");
    }

    #[test]
    fn an_ejection_for_answers_says_so() {
        let ejection = Ejection { fault_percent: 50, ..Ejection::default() };
        let pool = pool(3, Settings { ejection, ..Algorithm::RoundRobin.into() });
        let mut watch = Watch::new(&pool, at(0));
        (0..40).for_each(|_| request(&pool, 2, AttemptOutcome::ServerError, at(0)));
        let lines = watch.look(&pool, at(1));
        assert!(
            lines[0].starts_with("http://10.0.0.2:8000 is ejected: ")
                && lines[0].contains("% of its recent responses")
        );
    }

    #[test]
    fn another_version_that_serves_is_said() {
        let settings = Settings { single_version: true, ..Algorithm::Resume.into() };
        let pool = pool(3, settings);
        let mut watch = Watch::new(&pool, at(0));
        let runs = |place: usize, version| {
            let said =
                WorkerState { instance: "x", revision: 1, version: Some(version), ..WorkerState::default() };
            pool.resumes().unwrap().heard(pool.ids()[place], &said, at(0));
        };
        (0..3).for_each(|place| runs(place, "1"));
        assert_eq!(watch.look(&pool, at(1)), ["version \"1\" serves: 3 of 3 backends"]);
        runs(0, "2");
        assert_eq!(watch.look(&pool, at(20)), [""; 0]);
        runs(1, "2");
        assert_eq!(watch.look(&pool, at(21)), ["version \"2\" serves now instead of \"1\": 2 of 3 backends"]);
        runs(1, "1");
        assert_eq!(watch.look(&pool, at(22)), [""; 0], "not at once again");
        assert_eq!(watch.look(&pool, at(31)), ["version \"1\" serves now instead of \"2\": 2 of 3 backends"]);
    }

    fn with_room_for(classes: usize) -> Pool {
        let resume = ResumeSettings { max_classes: classes, ..ResumeSettings::default() };
        pool(2, Settings { resume, ..Algorithm::Resume.into() })
    }

    #[test]
    fn a_class_per_request_is_said_once() {
        let pool = with_room_for(100);
        let mut watch = Watch::new(&pool, at(0));
        let ask = |from: u32, to: u32| {
            (from..to).for_each(|n| drop(pool.pick(Some(n.to_string().as_bytes()), at(0), &[]).unwrap()));
        };
        ask(0, 900);
        assert_eq!(watch.look(&pool, at(1)), [""; 0], "these may be the first of a few");
        ask(900, 1100);
        let lines = watch.look(&pool, at(2));
        assert!(
            lines[0]
                .starts_with("skills are forgotten before they are of use: 1000 of the last 1100 requests"),
            "{lines:?}"
        );
        assert!(lines[0].contains("[pool.app] class") && lines[0].contains("[pool.app.resume] max_classes"));
        ask(2000, 4000);
        assert_eq!(watch.look(&pool, at(3)), [""; 0]);
    }

    #[test]
    fn many_classes_of_which_most_requests_are_known_are_usual() {
        let pool = with_room_for(100);
        let mut watch = Watch::new(&pool, at(0));
        for n in 0..3000_u32 {
            let class = if n % 3 == 0 { n } else { n % 50 };
            drop(pool.pick(Some(class.to_string().as_bytes()), at(0), &[]).unwrap());
        }
        assert_eq!(watch.look(&pool, at(1)), [""; 0]);
    }

    #[test]
    fn workers_that_report_more_than_is_remembered_are_said_once() {
        let pool = with_room_for(100);
        let mut watch = Watch::new(&pool, at(0));
        let names: Vec<String> = (0..150).map(|n| n.to_string()).collect();
        let skills = names.iter().map(|name| (name.as_bytes(), 1.0));
        pool.resumes().unwrap().whole(pool.ids()[1], 0, "x", 1, skills).unwrap();
        let lines = watch.look(&pool, at(1));
        assert!(
            lines[0].starts_with("workers report more classes than the 100 that are remembered"),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("; http://10.0.0.1:8000 has most of them, 100"), "{lines:?}");
        assert_eq!(watch.look(&pool, at(2)), [""; 0]);
    }
}
