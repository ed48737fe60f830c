//! Reports of workers about themselves, and the part of them that is believed.

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

/// The highest score believed, in requests per second: a class whose requests take a nanosecond.
const MAX_SCORE: f64 = 1e9;

/// A lower score is taken to be this: a class whose requests take eleven days. 0 is another thing, and a
/// number so small would be taken for it.
const MIN_SCORE: f64 = 1e-6;

/// The most skills of one worker that are believed.
const MAX_SKILLS: usize = 100_000;

/// What follows from what a worker said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heard {
    /// Its résumé is known as it stands.
    Current,
    /// Its résumé has changed; the changes, if they came along, are to be given to [`Resumes::changed`], else
    /// the whole is to be fetched.
    Behind,
    /// It was never heard before, or has started anew: the whole résumé is to be fetched.
    Unknown,
    /// It is no backend of this pool, or the pool does not go by what workers report.
    NotAsked,
}

/// Why something in a résumé is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disbelief {
    /// A score that is no number, or infinite.
    NotANumber,
    /// A score below 0.
    Negative,
    /// A score above 10⁹ requests per second.
    Absurd,
    /// A class name longer than [`MAX_CLASS_BYTES`].
    LongClass,
    /// More skills than are believed of one worker.
    TooManySkills,
    /// There are as many classes as may be.
    TooManyClasses,
    /// Earned under another classifier.
    OtherClassifier,
    /// Of another start of the worker than the one known.
    OtherInstance,
    /// The same start of a worker was heard at another address: one of the two is replayed.
    Elsewhere,
    /// No newer than what is known.
    Outdated,
    /// The worker is no backend of this pool.
    Stranger,
    /// The pool does not go by what workers report.
    NotAsked,
}

impl Disbelief {
    /// Every reason; each stands at its own number, `reason as usize`.
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

    /// The name of the reason, as logs and counters write it.
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
            Disbelief::NotANumber => "a score is no number",
            Disbelief::Negative => "a score is negative",
            Disbelief::Absurd => "a score is absurdly high",
            Disbelief::LongClass => "a class name is too long",
            Disbelief::TooManySkills => "the résumé has too many classes",
            Disbelief::TooManyClasses => "there is no room for more classes",
            Disbelief::OtherClassifier => "it was earned under another classifier",
            Disbelief::OtherInstance => "it is of another start of the worker",
            Disbelief::Elsewhere => "it is of a worker at another address",
            Disbelief::Outdated => "it is no newer than what is known",
            Disbelief::Stranger => "the worker is not of this pool",
            Disbelief::NotAsked => "the pool does not go by what workers report",
        })
    }
}

impl std::error::Error for Disbelief {}

/// How much of a résumé was believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believed {
    /// Skills taken, those dropped included.
    pub taken: usize,
    /// What was passed over, and how often.
    pub ignored: BTreeMap<Disbelief, usize>,
}

/// `score` if it can be one. 0 means that the worker has dropped the class.
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
    /// What workers say of themselves, where the pool chooses by that.
    pub fn resumes(&self) -> Option<Resumes<'_>> {
        self.inner().resume().map(|resume| Resumes { pool: self.inner(), resume })
    }

    /// The same, where workers keep their résumés themselves.
    pub fn reported_resumes(&self) -> Option<Resumes<'_>> {
        self.resumes().filter(|_| self.settings().resume.skills == SkillSource::Reported)
    }
}

impl Resumes<'_> {
    /// What is known of a worker's résumé, to be told to it with each request.
    pub fn known(&self, worker: BackendId) -> Option<Known> {
        self.held(self.backend(worker)?)
    }

    /// Takes in what a worker said with a response, while the request is still counted as in flight to it.
    /// Its version counts unless another start of it was [`met`](Resumes::met) since the connection was made.
    pub fn heard(&self, worker: BackendId, said: &WorkerState<'_>, now: Duration) -> Heard {
        self.hear(worker, said, now, Contact::Later)
    }

    /// Takes in what a worker said at the beginning of a connection that was made at `since` or later: this
    /// is the start of it that runs, unless another one was met on a connection that began after that.
    pub fn met(&self, worker: BackendId, said: &WorkerState<'_>, since: Duration, now: Duration) -> Heard {
        self.hear(worker, said, now, Contact::Met(since))
    }

    /// Whether a connection to this start of a worker leads to the one that runs now: that which was met
    /// last, or any where none was.
    pub fn is_at(&self, worker: BackendId, instance: &str) -> bool {
        self.backend(worker).is_none_or(|backend| backend.state.load.announced().is_at(instance))
    }

    /// A worker could not be met. From now on its responses tell the version it runs, until it is.
    pub fn doubt(&self, worker: BackendId) {
        if let Some(backend) = self.backend(worker) {
            backend.state.load.announced().doubt();
        }
    }

    fn hear(&self, worker: BackendId, said: &WorkerState<'_>, now: Duration, contact: Contact) -> Heard {
        let Some(backend) = self.backend(worker) else { return Heard::NotAsked };
        if let Some(in_flight) = said.in_flight {
            // The one that was answered is not counted by the worker, and is by the balancer.
            let own = backend.in_flight().saturating_sub(1);
            backend.state.load.told(in_flight, own, millis(now));
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

    /// Takes a worker's whole résumé, as earned under `classifier`, in place of what was known of it.
    ///
    /// # Errors
    /// If none of it is believed.
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
        // Held to the end: of two résumés of one worker, one is taken after the other. What is known is not
        // locked so long, for every request to the worker asks for it.
        let _alone = backend.state.load.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.held(backend);
        let same = known.as_ref().filter(|known| *known.instance == *instance);
        if same.is_some_and(|known| known.revision > revision) {
            return Err(Disbelief::Outdated);
        }
        // What is guessed of classes that the worker has begun and not reported yet holds on, unless it
        // started anew.
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
            // What failed, failed at the one before it.
            backend.state.load.forgive();
            self.resume.memory.emptied(&backend.state.load, self.pool.backends().len());
        }
        self.hold(backend, Known { instance: instance.into(), revision });
        Ok(believed)
    }

    /// Takes the changes of a worker's résumé since the one that is known.
    ///
    /// # Errors
    /// If none of it is believed; [`Disbelief::OtherInstance`] and [`Disbelief::Outdated`] are usual.
    pub fn changed<'c>(
        &self,
        worker: BackendId,
        classifier: u64,
        instance: &str,
        revision: u64,
        skills: impl IntoIterator<Item = (&'c [u8], f64)>,
    ) -> Result<Believed, Disbelief> {
        let backend = self.open(worker, classifier)?;
        // Who answers requests does not wait for a whole résumé to be taken in. Should that be older, the
        // worker's next response says so.
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

    /// The worker is gone, or has started anew: nothing is known of it.
    pub fn forget(&self, worker: BackendId) {
        let Some(backend) = self.backend(worker) else { return };
        let _alone = backend.state.load.taking.lock().unwrap_or_else(PoisonError::into_inner);
        self.resume.skills.retain(worker, |_, _| false);
        *lock(backend) = None;
    }

    /// How much is known.
    pub fn counts(&self) -> SkillCounts {
        self.resume.skills.counts()
    }

    /// The worker that has told of most classes, and of how many.
    pub fn most_reported(&self) -> Option<(BackendId, usize)> {
        self.resume.skills.most_reported()
    }

    /// What is known of a worker's résumé by the skills of this pool. A pool that this one took the place of
    /// may have others, which what was under way there still reaches: a whole résumé, the responses to its
    /// requests.
    fn held(&self, backend: &Backend) -> Option<Known> {
        self.ours(&lock(backend)).cloned()
    }

    fn ours<'k>(&self, known: &'k Option<(usize, Known)>) -> Option<&'k Known> {
        known.as_ref().filter(|(skills, _)| *skills == self.skills()).map(|(_, known)| known)
    }

    fn hold(&self, backend: &Backend, known: Known) {
        *lock(backend) = Some((self.skills(), known));
    }

    /// Which skills these are. No others have their address as long as somebody can ask for it.
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
