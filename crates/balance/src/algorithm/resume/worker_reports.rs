//! Reports of workers about themselves, and the parts of them that are accepted.

use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::class::{ClassKey, MAX_CLASS_BYTES, Skill};
use super::{Known, Resume, SkillCounts, SkillSource, WorkerState};
use crate::announcements::Contact;
use crate::durations::millis;
use crate::ids::NumberHasher;
use crate::pool::Inner;
use crate::{Backend, BackendId, Pool};

/// The highest accepted score, in requests per second: a class whose requests take a nanosecond.
const MAX_SCORE: f64 = 1e9;

/// Lower scores are raised to this: a class whose requests take eleven days. 0 has another meaning, and a
/// number so small would be mistaken for it.
const MIN_SCORE: f64 = 1e-6;

/// The most accepted skills of one worker.
const MAX_SKILLS: usize = 100_000;

/// What a worker's report requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heard {
    /// Nothing: its résumé is known in this revision.
    Current,
    /// Its résumé has changed. Pass the changes to [`Resumes::changed`] if they are included, else fetch the
    /// whole.
    Behind,
    /// It is unknown, or was restarted. Fetch the whole résumé.
    Unknown,
    /// Nothing: it is not a backend of this pool, or the pool does not use reports of workers.
    NotAsked,
}

/// Why something in a résumé is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disbelief {
    /// A score that is not a number, or infinite.
    NotANumber,
    /// A score below 0.
    Negative,
    /// A score above 10⁹ requests per second.
    Absurd,
    /// A class name longer than [`MAX_CLASS_BYTES`].
    LongClass,
    /// More skills than are accepted of one worker.
    TooManySkills,
    /// There is no room for another class.
    TooManyClasses,
    /// Earned under another classifier.
    OtherClassifier,
    /// Of another instance of the worker than the known one.
    OtherInstance,
    /// The same instance was seen at another address: one of the two is replayed.
    Elsewhere,
    /// Not newer than the known one.
    Outdated,
    /// The worker is not a backend of this pool.
    Stranger,
    /// The pool does not use reports of workers.
    NotAsked,
}

impl Disbelief {
    /// Every reason, at the index `reason as usize`.
    pub const ALL: [Disbelief; 12] = [
        Disbelief::NotANumber,
        Disbelief::Negative,
        Disbelief::Absurd,
        Disbelief::LongClass,
        Disbelief::TooManySkills,
        Disbelief::TooManyClasses,
        Disbelief::OtherClassifier,
        Disbelief::OtherInstance,
        Disbelief::Elsewhere,
        Disbelief::Outdated,
        Disbelief::Stranger,
        Disbelief::NotAsked,
    ];

    /// The name of the reason in logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Disbelief::NotANumber => "not-a-number",
            Disbelief::Negative => "negative",
            Disbelief::Absurd => "absurd",
            Disbelief::LongClass => "long-class",
            Disbelief::TooManySkills => "too-many-skills",
            Disbelief::TooManyClasses => "no-room-for-classes",
            Disbelief::OtherClassifier => "other-classifier",
            Disbelief::OtherInstance => "other-instance",
            Disbelief::Elsewhere => "elsewhere",
            Disbelief::Outdated => "outdated",
            Disbelief::Stranger => "stranger",
            Disbelief::NotAsked => "not-asked",
        }
    }
}

impl std::fmt::Display for Disbelief {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Disbelief::NotANumber => "a score is not a number",
            Disbelief::Negative => "a score is negative",
            Disbelief::Absurd => "a score is absurdly high",
            Disbelief::LongClass => "a class name is too long",
            Disbelief::TooManySkills => "the résumé has too many classes",
            Disbelief::TooManyClasses => "there is no room for more classes",
            Disbelief::OtherClassifier => "it was earned under another classifier",
            Disbelief::OtherInstance => "it is of another instance of the worker",
            Disbelief::Elsewhere => "it is of a worker at another address",
            Disbelief::Outdated => "it is not newer than the known one",
            Disbelief::Stranger => "the worker is not in this pool",
            Disbelief::NotAsked => "the pool does not use reports of workers",
        })
    }
}

impl std::error::Error for Disbelief {}

/// The accepted part of a résumé.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believed {
    /// Skills accepted, including dropped ones.
    pub taken: usize,
    /// The ignored entries, counted by reason.
    pub ignored: BTreeMap<Disbelief, usize>,
}

/// `score` if it is possible. 0 means that the worker has dropped the class.
pub(super) fn score(score: f64) -> Result<f64, Disbelief> {
    match score {
        score if !score.is_finite() => Err(Disbelief::NotANumber),
        score if score < 0.0 => Err(Disbelief::Negative),
        score if score > MAX_SCORE => Err(Disbelief::Absurd),
        0.0 => Ok(0.0),
        score => Ok(score.max(MIN_SCORE)),
    }
}

/// The résumés of a pool's workers, see [`crate::Pool::resumes`].
pub struct Resumes<'a> {
    pool: &'a Inner,
    pub(super) resume: &'a Resume,
}

impl Pool {
    /// The résumés of the workers, if the pool chooses by them.
    pub fn resumes(&self) -> Option<Resumes<'_>> {
        self.inner().resume().map(|resume| Resumes { pool: self.inner(), resume })
    }

    /// The same, if workers keep their résumés themselves.
    pub fn reported_resumes(&self) -> Option<Resumes<'_>> {
        self.resumes().filter(|_| self.settings().resume.skills == SkillSource::Reported)
    }
}

impl Resumes<'_> {
    /// The known résumé of a worker, to be sent to it with each request.
    pub fn known(&self, worker: BackendId) -> Option<Known> {
        self.held(self.backend(worker)?)
    }

    /// Takes the report in a response of a worker, while the request still counts as in flight to it. Its
    /// version counts unless another instance was [`met`](Resumes::met) since the connection was made.
    pub fn heard(&self, worker: BackendId, said: &WorkerState<'_>, now: Duration) -> Heard {
        self.hear(worker, said, now, Contact::Later)
    }

    /// Takes a worker's report from the beginning of a connection that was made at `since` or later: this
    /// instance is the running one, unless another one was met on a connection that began after that.
    pub fn met(&self, worker: BackendId, said: &WorkerState<'_>, since: Duration, now: Duration) -> Heard {
        self.hear(worker, said, now, Contact::Met(since))
    }

    /// Whether a connection to this instance of a worker leads to the running one: the one that was met last,
    /// or any if none was.
    pub fn is_at(&self, worker: BackendId, instance: &str) -> bool {
        self.backend(worker).is_none_or(|backend| backend.state.load.announced().is_at(instance))
    }

    /// Notes that a worker could not be identified. Until it is, the version in its responses counts.
    pub fn doubt(&self, worker: BackendId) {
        if let Some(backend) = self.backend(worker) {
            backend.state.load.announced().doubt();
        }
    }

    fn hear(&self, worker: BackendId, said: &WorkerState<'_>, now: Duration, contact: Contact) -> Heard {
        let Some(backend) = self.backend(worker) else { return Heard::NotAsked };
        if let Some(in_flight) = said.in_flight {
            // The request being answered is counted by the balancer, but not by the worker.
            let own = backend.in_flight().saturating_sub(1);
            backend.state.load.told(in_flight, own, millis(now));
            backend.state.load.works_on(said.concurrency);
        }
        self.pool.version_of(worker, said, contact);
        if self.resume.settings.skills != SkillSource::Reported {
            return Heard::NotAsked;
        }
        match self.ours(&lock(backend)) {
            Some(known) if *known.instance == *said.instance => {
                if known.revision < said.revision {
                    Heard::Behind
                } else {
                    Heard::Current
                }
            }
            _ => Heard::Unknown,
        }
    }

    /// Takes a worker's whole résumé, earned under `classifier`, in place of the known one.
    ///
    /// # Errors
    /// If none of it is accepted.
    pub fn whole<'c>(
        &self,
        worker: BackendId,
        classifier: u64,
        instance: &str,
        revision: u64,
        skills: impl IntoIterator<Item = (&'c [u8], f64)>,
    ) -> Result<Believed, Disbelief> {
        let backend = self.open(worker, classifier)?;
        let elsewhere = |(other, id): (&Backend, &BackendId)| {
            *id != worker && lock(other).as_ref().is_some_and(|(_, known)| *known.instance == *instance)
        };
        if self.pool.backends().iter().zip(self.pool.ids()).any(elsewhere) {
            return Err(Disbelief::Elsewhere);
        }
        // Held to the end, so that two résumés of one worker are applied one after the other. `known` is not
        // locked for so long, because every request to the worker reads it.
        let _alone = backend.state.load.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.held(backend);
        let same = known.as_ref().filter(|known| *known.instance == *instance);
        if same.is_some_and(|known| known.revision > revision) {
            return Err(Disbelief::Outdated);
        }
        // Inferred scores of classes that the worker has begun and not reported yet are kept, unless it was
        // restarted.
        let started_anew = known.is_some() && same.is_none();
        let mut listed: HashSet<u64, BuildHasherDefault<NumberHasher>> = HashSet::default();
        let believed = self.take(worker, skills, |key| {
            listed.insert(key.0);
        });
        self.resume
            .skills
            .retain(worker, |key, skill| listed.contains(&key.0) || (!started_anew && !skill.is_reported()));
        if started_anew {
            backend.state.load.renew();
            // The failures are those of the previous instance.
            backend.state.load.forgive();
        }
        self.hold(backend, Known { instance: instance.into(), revision });
        Ok(believed)
    }

    /// Takes the changes of a worker's résumé since the known revision.
    ///
    /// # Errors
    /// If none of it is accepted; [`Disbelief::OtherInstance`] and [`Disbelief::Outdated`] are usual.
    pub fn changed<'c>(
        &self,
        worker: BackendId,
        classifier: u64,
        instance: &str,
        revision: u64,
        skills: impl IntoIterator<Item = (&'c [u8], f64)>,
    ) -> Result<Believed, Disbelief> {
        let backend = self.open(worker, classifier)?;
        // A core that serves requests does not wait for a whole résumé to be applied. If that one is older,
        // the worker's next response shows it.
        let Ok(_alone) = backend.state.load.taking.try_lock() else { return Err(Disbelief::Outdated) };
        let known = self.held(backend);
        let Some(known) = known.filter(|known| *known.instance == *instance) else {
            return Err(Disbelief::OtherInstance);
        };
        if known.revision >= revision {
            return Err(Disbelief::Outdated);
        }
        let believed = self.take(worker, skills, |_| ());
        self.hold(backend, Known { revision, ..known });
        Ok(believed)
    }

    /// Forgets a worker that is gone or was restarted.
    pub fn forget(&self, worker: BackendId) {
        let Some(backend) = self.backend(worker) else { return };
        let _alone = backend.state.load.taking.lock().unwrap_or_else(PoisonError::into_inner);
        self.resume.skills.retain(worker, |_, _| false);
        *lock(backend) = None;
    }

    /// The number of known skills.
    pub fn counts(&self) -> SkillCounts {
        self.resume.skills.counts()
    }

    /// The worker that has reported the most classes, and their number.
    pub fn most_reported(&self) -> Option<(BackendId, usize)> {
        self.resume.skills.most_reported()
    }

    /// The known résumé of a worker, if it was applied to the skills of this pool. A preceding pool may have
    /// other skills; a whole résumé, or responses to its requests, may still reach it.
    fn held(&self, backend: &Backend) -> Option<Known> {
        self.ours(&lock(backend)).cloned()
    }

    fn ours<'k>(&self, known: &'k Option<(usize, Known)>) -> Option<&'k Known> {
        known.as_ref().filter(|(skills, _)| *skills == self.skills()).map(|(_, known)| known)
    }

    fn hold(&self, backend: &Backend, known: Known) {
        *lock(backend) = Some((self.skills(), known));
    }

    /// Identifies these skills. No others have this address while these exist.
    fn skills(&self) -> usize {
        Arc::as_ptr(&self.resume.skills).addr()
    }

    fn backend(&self, worker: BackendId) -> Option<&Backend> {
        self.pool.places().of(worker).map(|at| &self.pool.backends()[at])
    }

    fn open(&self, worker: BackendId, classifier: u64) -> Result<&Backend, Disbelief> {
        let settings = &self.resume.settings;
        if settings.skills != SkillSource::Reported {
            return Err(Disbelief::NotAsked);
        }
        if settings.classifier != classifier {
            return Err(Disbelief::OtherClassifier);
        }
        self.backend(worker).ok_or(Disbelief::Stranger)
    }

    fn take<'c>(
        &self,
        worker: BackendId,
        skills: impl IntoIterator<Item = (&'c [u8], f64)>,
        mut taken: impl FnMut(ClassKey),
    ) -> Believed {
        let mut believed = Believed::default();
        let tick = self.pool.load().ticks();
        for (count, (class, value)) in skills.into_iter().enumerate() {
            let checked = if count >= MAX_SKILLS {
                Err(Disbelief::TooManySkills)
            } else if class.len() > MAX_CLASS_BYTES {
                Err(Disbelief::LongClass)
            } else {
                score(value)
            };
            let key = self.resume.key(class);
            let done = checked.and_then(|score| {
                if score == 0.0 {
                    self.resume.skills.remove(key, worker);
                } else if !self.resume.skills.set(key, class, Skill::reported(worker, score as f32), tick) {
                    return Err(Disbelief::TooManyClasses);
                }
                Ok(score)
            });
            match done {
                Ok(score) => {
                    believed.taken += 1;
                    if score > 0.0 {
                        taken(key);
                    }
                }
                Err(why) => *believed.ignored.entry(why).or_default() += 1,
            }
        }
        believed
    }
}

fn lock(backend: &Backend) -> std::sync::MutexGuard<'_, Option<(usize, Known)>> {
    backend.state.load.known.lock().unwrap_or_else(PoisonError::into_inner)
}
