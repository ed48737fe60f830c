//! Résumés on the wire: the fields sent to a worker with a request, and those in its response. Both ends
//! follow `docs/protocols/resume.md`.

use crate::Counter;
use crate::report::unbelieved::Unbelieved;
use crate::step::fetch::FetchContext;
use sandarac_balance::{BackendId, Disbelief, Heard, WorkerState};
use sandarac_message::{Fields, FieldsBuf};
use sandarac_wire::resume::{self, Known, RequestClass, Skills};

/// The known résumé of a worker, in the protocol's terms.
pub(crate) fn named(known: &sandarac_balance::Known) -> Known<'_> {
    Known { instance: (*known.instance).into(), revision: known.revision }
}

/// The state that a worker reports, in the balancer's terms.
pub(crate) fn balanced<'a>(state: &'a resume::WorkerState<'_>) -> WorkerState<'a> {
    WorkerState {
        instance: &state.instance,
        revision: state.revision,
        in_flight: Some(u32::try_from(state.in_flight).unwrap_or(u32::MAX)),
        concurrency: state.concurrency.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        version: state.version.as_deref(),
    }
}

impl FetchContext<'_> {
    /// The fields that send `worker` the class of the request and the identity of its known résumé. None if
    /// the pool does not use reported résumés.
    pub(crate) fn fields_for(&self, worker: BackendId) -> FieldsBuf {
        let mut fields = FieldsBuf::new();
        if let (Some(class), Some(resumes)) = (self.class, self.live.reported_resumes()) {
            let known = resumes.known(worker);
            let class = RequestClass {
                class: class.into(),
                by: self.live.settings().resume.classifier,
                known: known.as_ref().map(named),
            };
            let mut value = Vec::new();
            if class.write(&mut value).is_ok() {
                // A class that does not fit is omitted, like one that cannot be encoded.
                let _ = fields.push(b"Request-Class", &value);
            }
        }
        fields
    }

    /// Takes in the worker's report from the fields of its response. The request MUST still be in flight.
    pub(crate) fn hear(&self, worker: BackendId, fields: Fields<'_>) {
        let Some(resumes) = self.live.resumes() else { return };
        let state = match resume::WorkerState::read(fields) {
            None => return,
            Some(Ok(state)) => state,
            Some(Err(why)) => return self.unbelieved(worker, Unbelieved::Malformed(why)),
        };
        let said = balanced(&state);
        match resumes.heard(worker, &said, self.now()) {
            Heard::Current | Heard::NotAsked => {}
            Heard::Unknown => self.want(worker),
            Heard::Behind => match Skills::read(fields) {
                None => self.want(worker),
                Some(Err(why)) => {
                    self.unbelieved(worker, Unbelieved::Malformed(why));
                    self.want(worker);
                }
                Some(Ok(skills)) => {
                    let by = self.live.settings().resume.classifier;
                    self.counters().one(Counter::ResumeChanges);
                    match resumes.changed(worker, by, said.instance, said.revision, skills.iter()) {
                        Ok(believed) => {
                            let shared = &self.core.shared;
                            shared.passed_over(self.counters(), self.live, worker, &believed);
                        }
                        // Another response arrived first.
                        Err(Disbelief::Outdated) => {}
                        Err(why) => {
                            self.unbelieved(worker, Unbelieved::Disbelief(why));
                            self.want(worker);
                        }
                    }
                }
            },
        }
    }

    /// Requests a worker's whole résumé.
    pub(crate) fn want(&self, worker: BackendId) {
        self.core.shared.upkeep_mailbox.want_resume(self.pool.place(), worker);
    }

    fn unbelieved(&self, worker: BackendId, why: Unbelieved) {
        self.core.shared.unbelieved(self.counters(), self.live, worker, why);
    }
}
