//! Résumés on the wire: the fields that a request carries to a worker, and those that its response brings. Both ends follow
//! `docs/protocols/resume.md`.

use crate::Counter;
use crate::step::fetch::FetchContext;
use crate::unbelieved::Unbelieved;
use sandarac_balance::{BackendId, Disbelief, Heard, WorkerState};
use sandarac_message::{Fields, FieldsBuf};
use sandarac_wire::resume::{self, Known, RequestClass, Skills};

/// A worker's résumé that is known, as the protocol names it.
pub(crate) fn named(known: &sandarac_balance::Known) -> Known<'_> {
    Known { instance: (*known.instance).into(), revision: known.revision }
}

/// What a worker says of itself, as the balancer takes it.
pub(crate) fn balanced<'a>(state: &'a resume::WorkerState<'_>) -> WorkerState<'a> {
    WorkerState {
        instance: &state.instance,
        revision: state.revision,
        in_flight: Some(u32::try_from(state.in_flight).unwrap_or(u32::MAX)),
        version: state.version.as_deref(),
    }
}

impl FetchContext<'_> {
    /// The field that tells `worker` the class of the request, and which of its résumés is known. None where the pool does
    /// not go by what workers say.
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
                // A class that does not fit goes untold, as one that cannot be written.
                let _ = fields.push(b"Request-Class", &value);
            }
        }
        fields
    }

    /// Takes in what the fields of a response say of the worker that it came from, while the request is in flight to it.
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
                        // Another response was faster.
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

    /// Asks for a worker's whole résumé.
    pub(crate) fn want(&self, worker: BackendId) {
        self.core.shared.upkeep_mailbox.want_resume(self.pool.place(), worker);
    }

    fn unbelieved(&self, worker: BackendId, why: Unbelieved) {
        self.core.shared.unbelieved(self.counters(), self.live, worker, why);
    }
}
