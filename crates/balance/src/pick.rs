//! Picks: a backend chosen for one request, with a place taken.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::algorithm::Chooser;
use crate::algorithm::resume::{ClassKey, Expected};
use crate::backend::Availability;
use crate::candidates::RequestContext;
use crate::choices::Chosen;
use crate::claim::Claim;
use crate::durations::{micros, millis};
use crate::pool::{Inner, Pool};
use crate::request_ages::Place;
use crate::{AttemptOutcome, Backend, BackendId, ChoiceReason, NoBackend};

/// A backend chosen for one request, with a place taken at it. Dropping it counts as
/// [`AttemptOutcome::Aborted`].
#[derive(Debug)]
pub struct Pick {
    pool: Pool,
    at: usize,
    /// Whether this request is the trial of an ejected backend.
    trial: bool,
    class: Option<ClassKey>,
    /// When it was chosen, in microseconds.
    begun: u64,
    /// The last sign of its progress, in microseconds.
    ended: u64,
    /// Until when the client has kept it waiting for the body, in microseconds; at first when it was chosen.
    client_until: u64,
    /// The requests of this balancer that the backend had when it was sent.
    ahead: u32,
    /// Whether the client is waited for, and not the backend.
    awaits_client: bool,
    /// Whether the request was sent, and its outcome was not reported.
    awaited: bool,
    /// When the response came, in microseconds.
    responded: Option<u64>,
    /// The place of its start time, in the table of ages.
    place: Option<Place>,
    /// For `resume`.
    expected: Expected,
}

impl Pool {
    /// Chooses a backend and takes a place at it until the [`Pick`] is finished or dropped.
    ///
    /// `class` is the request class, for algorithms that distinguish requests: `resume`, `consistent_hash`,
    /// `maglev`. Backends in `exclude` are not chosen; ejected ones are chosen only if no other is in
    /// service. It does not wait, and does not overtake waiters; [`Pool::queue`] is for requests that wait.
    ///
    /// # Errors
    /// All but [`NoBackend::QueueFull`].
    pub fn pick(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Result<Pick, NoBackend> {
        let queue = self.queue_before();
        let pick = if queue.waiting() == 0 {
            let pick = self.take_any(class, now, exclude);
            // It may have taken a place and given it back while a waiter arrived.
            queue.pass_on(self, None, now);
            pick
        } else if self.has_room(now) {
            queue.after_those_waiting(self, None, now, || self.take_any(class, now, exclude))
        } else {
            None
        };
        pick.ok_or_else(|| self.refusal(exclude))
    }

    /// Chooses a backend as [`Pool::pick`] does, for a request that may wait: if its best backend is full but
    /// worth waiting for, no other is taken.
    ///
    /// # Errors
    /// All but [`NoBackend::QueueFull`]; [`NoBackend::AllFull`] if the request should wait by
    /// [`Pool::queue`].
    pub fn pick_patiently(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Result<Pick, NoBackend> {
        if !self.may_wait_for_one(class) {
            return self.pick(class, now, exclude);
        }
        let queue = self.queue_before();
        if queue.waiting() > 0 {
            return Err(self.refusal(exclude));
        }
        let request = self.request_context(class, now, exclude.len());
        let pick = self.choose(&request, exclude, true, |chosen| {
            // If another core takes its last place meanwhile, it is chosen again and found full.
            if self.inner().backends()[chosen.at].has_room() {
                self.take(chosen, &request).map(Some)
            } else {
                Some(None)
            }
        });
        queue.pass_on(self, None, now);
        pick.flatten().ok_or_else(|| self.refusal(exclude))
    }

    /// Takes a place at the backend that a session sticks to, if that is in service and has a place without a
    /// waiter. It may be draining: sessions end where they began.
    pub fn pick_sticky(&self, backend: BackendId, class: Option<&[u8]>, now: Duration) -> Option<Pick> {
        let at = self.inner().places().of(backend).filter(|&at| self.keeps_sessions(at, now))?;
        let request = self.request_context(class, now, 0);
        let take = || self.take(Chosen::new(at, ChoiceReason::Sticky), &request);
        match self.queue_before().waiting() {
            0 => take(),
            _ => self.queue_before().after_those_waiting(self, Some(backend), now, take),
        }
    }

    /// Takes any place that is free, regardless of waiters.
    pub(crate) fn take_any(
        &self,
        class: Option<&[u8]>,
        now: Duration,
        exclude: &[BackendId],
    ) -> Option<Pick> {
        let request = self.request_context(class, now, exclude.len());
        self.choose(&request, exclude, false, |chosen| self.take(chosen, &request))
    }

    /// Takes a place at a backend, and its trial if one is due.
    fn take(&self, chosen: Chosen, request: &RequestContext<'_>) -> Option<Pick> {
        let trial = self.inner().take(chosen.at, millis(request.now))?;
        let expected = self.assign(chosen.at, request);
        Some(self.taken(chosen, trial, expected, request))
    }

    /// Takes a place at the backend of a claim, if that is in service. Otherwise gives the claim up.
    pub(crate) fn honour(&self, claim: Claim, request: &RequestContext<'_>) -> Option<Pick> {
        let chosen = claim.chosen;
        let serves = match chosen.reason {
            ChoiceReason::Sticky => self.keeps_sessions(chosen.at, request.now),
            _ => self.inner().backends()[chosen.at].is_in_service(millis(request.now)),
        };
        if !serves && chosen.reason != ChoiceReason::ForWantOfOthers {
            return None;
        }
        let trial = self.inner().take(chosen.at, millis(request.now))?;
        Some(self.taken(chosen, trial, claim.honoured(), request))
    }

    /// The pick of a request whose place was taken.
    fn taken(&self, chosen: Chosen, trial: bool, expected: Expected, request: &RequestContext<'_>) -> Pick {
        let inner = self.inner();
        let at = chosen.at;
        let (id, begun) = (inner.ids()[at], micros(request.now));
        let ahead = inner.backends()[at].in_flight().saturating_sub(1);
        if inner.chooser().resume().is_some() && ahead == 0 {
            inner.backends()[at].state.load.wakes(begun);
        }
        inner.choices().record(chosen, request.class, id, request.tried, begun);
        Pick {
            pool: self.clone(),
            at,
            trial,
            class: request.key,
            begun,
            ended: begun,
            client_until: begun,
            ahead,
            awaits_client: false,
            awaited: false,
            responded: None,
            place: inner.ages().begin(id, begun),
            expected,
        }
    }
}

impl Inner {
    /// Takes a place at a backend, and its trial if one is due. Returns whether the request is a trial.
    fn take(&self, at: usize, now: u64) -> Option<bool> {
        let backend = &self.backends()[at];
        if !backend.reserve() {
            return None;
        }
        let trial = match backend.state.availability(now) {
            Availability::OnTrial(until) => {
                let ejections = backend.state.ejections.load(Ordering::Relaxed);
                if !backend.state.claim_trial(until, now, self.settings().ejection.millis(ejections)) {
                    backend.release();
                    return None;
                }
                true
            }
            Availability::InService | Availability::Ejected => false,
        };
        backend.state.picks.fetch_add(1, Ordering::Relaxed);
        backend.state.asked(now);
        Some(trial)
    }
}

impl Pick {
    /// The backend's id. Exclude it from the next pick of this request if it fails.
    pub fn id(&self) -> BackendId {
        self.pool.inner().ids()[self.at]
    }

    /// The backend.
    pub fn backend(&self) -> &Backend {
        &self.pool.inner().backends()[self.at]
    }

    /// Notes that the response has begun. The rest depends on the client, and does not measure the backend.
    pub fn responded(&mut self, now: Duration) {
        self.ended = micros(now);
        if self.responded.is_none() {
            self.response_is_due(now);
            self.responded = Some(self.ended);
            self.backend().state.heard(millis(now));
        }
    }

    /// The time from the choice of the backend to the response; `None` before it.
    pub fn took(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.responded?.saturating_sub(self.begun)))
    }

    /// Notes that the client keeps the request waiting for its body. Meanwhile no response is due.
    pub fn awaits_client(&mut self) {
        if !self.awaits_client && self.responded.is_none() {
            self.awaits_client = true;
            self.backend().state.unheard(None);
        }
    }

    /// Notes that it did so until now, which does not measure the backend.
    pub fn client_came(&mut self, now: Duration) {
        self.client_until = micros(now);
        self.response_is_due(now);
    }

    fn response_is_due(&mut self, now: Duration) {
        if self.awaits_client {
            self.awaits_client = false;
            self.backend().state.asked(millis(now));
        }
    }

    /// Notes that the whole request was sent and the backend's response is due. If the request is given up
    /// before, it counts as late once its time is over, unless the backend shows a sign of life meanwhile.
    pub fn awaits_answer(&mut self) {
        self.awaited = true;
    }

    /// Gives the place back and reports how the request ended.
    pub fn finish(mut self, outcome: AttemptOutcome, now: Duration) {
        self.ended = micros(now);
        self.awaited &= outcome == AttemptOutcome::Aborted;
        let inner = self.pool.inner();
        let state = &self.backend().state;
        let failed = match outcome {
            AttemptOutcome::Aborted => return,
            AttemptOutcome::Answered => false,
            AttemptOutcome::ServerError
            | AttemptOutcome::ConnectFailed
            | AttemptOutcome::Broken
            | AttemptOutcome::Late => true,
        };
        state.load.failed(failed, self.ended);
        match outcome {
            AttemptOutcome::ConnectFailed => inner.connect_failed(self.at, self.trial, millis(now)),
            AttemptOutcome::Broken => inner.broke_off(self.at, self.trial, millis(now)),
            AttemptOutcome::Late => inner.unanswered(self.at, self.trial, self.begun / 1000, millis(now)),
            _ => inner.answered(self.at, self.trial, failed, millis(now)),
        }
        if failed {
            if let (AttemptOutcome::ServerError, Chooser::Resume(resume), Some(class)) =
                (outcome, inner.chooser(), self.class)
            {
                resume.failed(self.id(), class);
            }
            return;
        }
        let end = self.responded.unwrap_or(self.ended);
        let took = end.saturating_sub(self.client_until) as f32 / 1000.0;
        state.took(took);
        match inner.chooser() {
            Chooser::PeakEwma(_) => state.latency.add(took, millis(now)),
            Chooser::Resume(resume) => {
                let seconds = resume.finished(&state.load, self.client_until, self.ahead, end);
                if let Some(class) = self.class {
                    let latency = took / 1000.0;
                    resume.answered(self.id(), &state.load, class, seconds, latency, self.expected);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Pick {
    fn drop(&mut self) {
        let inner = self.pool.inner();
        if self.responded.is_none() && !self.awaits_client {
            self.backend().state.unheard(self.awaited.then_some(self.begun / 1000));
        }
        self.backend().release();
        if let Some(place) = self.place {
            inner.ages().end(place);
        }
        self.pool.unassign(self.at, self.expected);
        self.pool.queue_before().pass_on(&self.pool, Some(self.id()), Duration::from_micros(self.ended));
    }
}
