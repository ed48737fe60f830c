//! Throttles messages on standard error per subject, with doubling intervals: no subject keeps another out.

use sandarac_balance::{BackendId, Backoff};
use sandarac_net::Moment;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

/// For how long a message is not repeated.
const REPEAT_AFTER: Backoff = Backoff { first: Duration::from_secs(10), longest: Duration::from_secs(600) };

/// So many things are told apart. A backend or a worker more waits until one of them has been quiet for long enough.
const MOST: usize = 64;

/// What is complained of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// More clients than may connect.
    Clients,
    /// Connections that cannot be accepted.
    Accepting,
    /// Skills of a pool that cannot be saved.
    Saving(Box<str>),
    /// A backend of a pool that gives no response, and how.
    Backend(Box<str>, BackendId, &'static str),
    /// What a worker of a pool says of itself, and why that is not believed.
    Worker(Box<str>, BackendId, &'static str),
}

/// What was said, and when.
#[derive(Default)]
pub(crate) struct Complaints(HashMap<Subject, Said>);

struct Said {
    last: Moment,
    /// How often it was repeated.
    repeats: u32,
}

impl Said {
    /// For how long it is not repeated.
    fn silence(&self) -> Duration {
        REPEAT_AFTER.pause(self.repeats)
    }
}

impl Complaints {
    /// Whether to say it, at `now`.
    pub(crate) fn is_due(&mut self, subject: Subject, now: Moment) -> bool {
        let is_of_many = matches!(subject, Subject::Backend(..) | Subject::Worker(..));
        if is_of_many && self.0.len() >= MOST && !self.0.contains_key(&subject) {
            self.0.retain(|_, said| now.since(said.last) < said.silence());
            if self.0.len() >= MOST {
                return false;
            }
        }
        match self.0.entry(subject) {
            Entry::Vacant(new) => {
                new.insert(Said { last: now, repeats: 0 });
                true
            }
            Entry::Occupied(mut said) => {
                let said = said.get_mut();
                let (since, silence) = (now.since(said.last), said.silence());
                if since < silence {
                    return false;
                }
                // What was well for as long again is new.
                let repeats = if since < silence * 2 { said.repeats.saturating_add(1) } else { 0 };
                *said = Said { last: now, repeats };
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_balance::{Algorithm, Backend, Pool};

    /// Complaints about so many workers.
    fn workers(count: usize, why: &'static str) -> Vec<Subject> {
        let backend = |n: usize| Backend::new(format!("unix:/workers/{n}").parse().unwrap());
        let pool = Pool::new("app", (0..count).map(backend).collect(), Algorithm::Resume);
        pool.ids().iter().map(|&id| Subject::Worker(pool.name().into(), id, why)).collect()
    }

    #[test]
    fn one_thing_does_not_keep_another_out() {
        let (mut complaints, now) = (Complaints::default(), Moment::now());
        let of_workers = [workers(2, "score"), workers(2, "class")].concat();
        for subject in of_workers.into_iter().chain([Subject::Clients]) {
            assert!(complaints.is_due(subject.clone(), now), "{subject:?}");
            assert!(!complaints.is_due(subject.clone(), now), "{subject:?}");
        }
    }

    #[test]
    fn what_lasts_is_said_ever_more_seldom_and_anew_when_it_comes_back() {
        let (mut complaints, start) = (Complaints::default(), Moment::now());
        let at = |second: u64| start.plus(Duration::from_secs(second));
        let said: Vec<u64> = (0..2000).filter(|&now| complaints.is_due(Subject::Clients, at(now))).collect();
        assert_eq!(said, [0, 10, 30, 70, 150, 310, 630, 1230, 1830]);
        let said: Vec<u64> =
            (5000..5040).filter(|&now| complaints.is_due(Subject::Clients, at(now))).collect();
        assert_eq!(said, [5000, 5010, 5030]);
    }

    #[test]
    fn however_many_things_are_wrong_what_is_remembered_is_bounded() {
        let (mut complaints, now) = (Complaints::default(), Moment::now());
        let mut say = |why: &'static str, now: Moment| {
            workers(1000, why).into_iter().filter(|subject| complaints.is_due(subject.clone(), now)).count()
        };
        assert_eq!(say("score", now), MOST);
        assert_eq!(say("class", now.plus(REPEAT_AFTER.first)), MOST);
        assert!(complaints.0.len() <= MOST);
    }
}
