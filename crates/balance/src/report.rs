//! Reports on a pool, for people and monitoring.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::algorithm::resume::{ClassView, Known};
use crate::durations::{micros, millis};
use crate::pool::Inner;
use crate::request_ages::Ages;
use crate::{Backend, BackendId, Choice, ChoiceReason, ClassReport, Classes, Pool, SkillWord};

/// The state of a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendReport {
    /// The backend.
    pub id: BackendId,
    /// Its address.
    pub address: String,
    /// Its share of the load, relative to other backends.
    pub weight: u32,
    /// The requests in flight to it.
    pub in_flight: u32,
    /// The age of the oldest of them; `None` if there is none.
    pub oldest: Option<Duration>,
    /// The requests given to it, in total.
    pub picks: u64,
    /// The failures to connect to it, in total.
    pub connect_failures: u64,
    /// The ejections of it, in total; one that continues after a trial counts once.
    pub ejections: u64,
    /// Whether it is ejected, or was and has sent no response since.
    pub ejected: bool,
    /// Whether that is for its responses rather than its connections.
    pub faulty: bool,
    /// The remaining time of its ejection; `None` if it is not ejected.
    pub ejected_for: Option<Duration>,
    /// Whether it has ever sent a response or passed a check.
    pub heard: bool,
    /// Whether the last connection to it failed, or the last request had no response in time.
    pub failed: bool,
    /// Whether it had enough consecutive failures for an ejection, and has sent no response since: it is
    /// ejected, on trial, or the last one left.
    pub failing: bool,
    /// Whether it has requests, and has responded to none for longer than they should take.
    pub silent: bool,
    /// Whether active checks keep it out of service.
    pub down: bool,
    /// Whether its checks fail, but it stays in service because no more of the pool may be out.
    pub spared: bool,
    /// Whether it gets no new requests, by order.
    pub draining: bool,
    /// Whether it is of another version than the one that serves.
    pub sidelined: bool,
    /// The requests in flight to it: a recent mean if the pool chooses by résumé, otherwise the current
    /// number.
    pub mean_backlog: f32,
    /// The share of recent requests to it that failed.
    pub faults: f32,
    /// The version it announced, if the pool chooses by résumé.
    pub version: Option<Box<str>>,
    /// Its known résumé.
    pub resume: Option<Known>,
}

impl BackendReport {
    /// Whether requests go to it, in one word. Of several reasons against it, the one that lasts longest.
    pub fn state(&self) -> BackendState {
        match self {
            BackendReport { draining: true, .. } => BackendState::Draining,
            BackendReport { down: true, .. } => BackendState::Down,
            BackendReport { ejected_for: Some(_), .. } => BackendState::Ejected,
            BackendReport { sidelined: true, .. } => BackendState::Sidelined,
            BackendReport { silent: true, .. } => BackendState::Silent,
            BackendReport { failing: true, .. }
            | BackendReport { spared: true, .. }
            | BackendReport { heard: false, failed: true, .. } => BackendState::Failing,
            BackendReport { heard: false, faults, .. } if *faults > 0.0 => BackendState::Failing,
            BackendReport { heard: false, .. } => BackendState::Untried,
            _ => BackendState::Healthy,
        }
    }
}

/// Whether requests go to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendState {
    /// It gets requests.
    Healthy,
    /// It gets requests, but has not responded to any yet.
    Untried,
    /// It gets requests for lack of others: it has requests, and has responded to none for longer than they
    /// should take.
    Silent,
    /// It gets requests, for lack of others or on trial, although the last ones or its checks failed.
    Failing,
    /// It gets no requests for a while, because they failed.
    Ejected,
    /// It gets no requests until active checks pass.
    Down,
    /// It gets no new requests, by order.
    Draining,
    /// It gets no requests, because it is of another version than the one that serves.
    Sidelined,
}

impl BackendState {
    /// The name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            BackendState::Healthy => "healthy",
            BackendState::Untried => "untried",
            BackendState::Silent => "silent",
            BackendState::Failing => "failing",
            BackendState::Ejected => "ejected",
            BackendState::Down => "down",
            BackendState::Draining => "draining",
            BackendState::Sidelined => "sidelined",
        }
    }
}

impl std::fmt::Display for BackendState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of a pool as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolReport {
    /// The requests in flight to its backends.
    pub in_flight: u32,
    /// The mean number of requests in flight to a backend: recent if the pool chooses by résumé, otherwise
    /// current. 0 if none is in flight.
    pub mean_backlog: f32,
    /// The age of the oldest request in flight; `None` if there is none. With more than some thousand
    /// requests in flight, not all are examined.
    pub oldest: Option<Duration>,
    /// The number of choices for each reason, in total, without reasons that never occurred.
    pub reasons: Vec<(ChoiceReason, u64)>,
}

impl Inner {
    /// The mean backlog of every backend, see [`BackendReport::mean_backlog`].
    fn mean_backlogs(&self) -> impl Iterator<Item = f32> {
        // With nothing in flight, the rest of the recent means is not a backlog.
        let is_busy = self.backends().iter().any(|backend| backend.in_flight() > 0);
        let recent = self.resume().is_some() && is_busy;
        self.backends().iter().map(move |backend| {
            if recent { backend.state.load.backlog.get() } else { backend.in_flight() as f32 }
        })
    }
}

impl Pool {
    /// The state of every backend, in their order.
    pub fn report(&self, now: Duration) -> Vec<BackendReport> {
        let inner = self.inner();
        let (now, micros) = (millis(now), micros(now));
        let mut oldest: Vec<(u32, u64)> = Vec::new();
        inner.ages().each(|whose, since| oldest.push((whose, since)));
        oldest.sort_unstable();
        let report = |((backend, &id), mean_backlog): ((&Backend, &BackendId), f32)| {
            let state = &backend.state;
            let left = state.ejected_until.load(Ordering::Relaxed).saturating_sub(now);
            let tag = Ages::tag(id);
            let first = oldest.get(oldest.partition_point(|&(whose, _)| whose < tag));
            let in_flight = backend.in_flight();
            BackendReport {
                id,
                address: backend.address().to_string(),
                weight: backend.weight(),
                in_flight,
                oldest: first.filter(|(whose, _)| *whose == tag).map(|&(_, since)| age(since, micros)),
                picks: state.picks.load(Ordering::Relaxed),
                connect_failures: state.connect_failures.load(Ordering::Relaxed),
                ejections: state.ejected.load(Ordering::Relaxed),
                ejected: state.is_ejected(),
                faulty: state.faulty.load(Ordering::Relaxed),
                ejected_for: (left > 0).then(|| Duration::from_millis(left)),
                heard: state.was_ever_heard(),
                failed: backend.is_failing(),
                failing: inner.is_failing(state),
                silent: state.is_overdue(now),
                down: state.down.load(Ordering::Relaxed),
                spared: state.spared.load(Ordering::Relaxed),
                draining: state.draining.load(Ordering::Relaxed),
                sidelined: state.sidelined.load(Ordering::Relaxed),
                mean_backlog,
                faults: state.load.faults(),
                version: state.load.announced().version.clone(),
                resume: self.resumes().and_then(|resumes| resumes.known(id)),
            }
        };
        inner.backends().iter().zip(inner.ids()).zip(inner.mean_backlogs()).map(report).collect()
    }

    /// The state of the pool as a whole.
    pub fn summary(&self, now: Duration) -> PoolReport {
        let inner = self.inner();
        let in_flight = inner.backends().iter().map(Backend::in_flight).fold(0, u32::saturating_add);
        let reasons = ChoiceReason::ALL.iter().map(|&reason| (reason, inner.choices().count(reason)));
        PoolReport {
            in_flight,
            mean_backlog: inner.mean_backlogs().sum::<f32>() / inner.backends().len().max(1) as f32,
            oldest: self.oldest(now),
            reasons: reasons.filter(|&(_, count)| count > 0).collect(),
        }
    }

    /// The age of the oldest request in flight, see [`PoolReport::oldest`].
    pub fn oldest(&self, now: Duration) -> Option<Duration> {
        let mut oldest = u64::MAX;
        self.inner().ages().each(|_, since| oldest = oldest.min(since));
        (oldest < u64::MAX).then(|| age(oldest, micros(now)))
    }

    /// The last choices, the newest first; also those of preceding pools.
    pub fn choices(&self) -> Vec<Choice> {
        self.inner().choices().last()
    }

    /// The `limit` most requested classes. Empty if the pool does not choose by résumé. It examines every
    /// class, a part of them at a time: not for use with each request.
    pub fn classes(&self, limit: usize) -> Classes {
        let inner = self.inner();
        let Some(resume) = inner.resume() else { return Classes::default() };
        let mut skills = vec![0; inner.backends().len()];
        let mut words = [0; SkillWord::ALL.len()];
        let mut shares = Vec::new();
        let tick = inner.load().ticks();
        resume.each_class(tick, |class| {
            for skill in class.skilled() {
                if let Some(at) = inner.places().of(skill.worker) {
                    skills[at] += 1;
                    words[skill.word as usize] += 1;
                }
            }
            shares.push((class.share, class.key));
        });
        // Makes the order stable among equally requested classes.
        shares.sort_unstable_by(|(a, one), (b, two)| b.total_cmp(a).then(one.0.cmp(&two.0)));
        shares.truncate(limit);
        let top =
            shares.into_iter().filter_map(|(_, key)| resume.class(key, tick, |class| report_of(&class)));
        Classes { top: top.collect(), skills, words }
    }

    /// The state of the class of this name; `None` if it is unknown.
    pub fn class(&self, name: &[u8]) -> Option<ClassReport> {
        let inner = self.inner();
        let resume = inner.resume()?;
        resume.class(resume.key(name), inner.load().ticks(), |class| report_of(&class))
    }
}

fn age(since: u64, now: u64) -> Duration {
    Duration::from_micros(now.saturating_sub(since))
}

fn report_of(class: &ClassView<'_>) -> ClassReport {
    ClassReport { name: class.name().into(), share: class.share, skilled: class.skilled().collect() }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
