//! The reasons for the last choices, recorded for people without blocking.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::BackendId;
use crate::algorithm::resume::MAX_CLASS_BYTES;

/// The number of recorded choices.
const KEPT: usize = 64;

/// Why a backend was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChoiceReason {
    /// The pool has no other.
    OnlyOne,
    /// The session of the request sticks to it.
    Sticky,
    /// No backend in service could take the request: this one is ejected.
    ForWantOfOthers,
    /// `resume`: its ejection is over, and one request is to find out whether it is back.
    OnTrial,
    /// `resume`: of the workers skilled in the class, it finishes first.
    BestScore,
    /// `resume`: others know the class, but it finishes before them although it has to load the data.
    Unskilled,
    /// `resume`: it is new, and should get a share of the class.
    Explored,
    /// `resume`: no worker knows the class. It has the least work; of several such, it is the least recently
    /// used.
    NewClass,
    /// `resume`: the workers that know the class may not take the request. It has the least work; of several
    /// such, it is the least recently used.
    LeastRecentlyUsed,
    /// The request has no class: this backend has the least work.
    Unclassified,
    /// `least_requests`: of two drawn, it has fewer requests in flight.
    FewerInFlight,
    /// `peak_ewma`: of two drawn, it has the smaller product of latency and requests in flight.
    SoonerDone,
    /// `round_robin`: it is its turn.
    InTurn,
    /// `random`: it was drawn.
    Drawn,
    /// `consistent_hash`: it is the next on the ring with a load below its bound.
    NextOnRing,
    /// `maglev`: the table contains it.
    InTable,
    /// `consistent_hash`, `maglev`: no place of the class leads to an eligible backend; it has the least
    /// load.
    LeastLoaded,
    /// `fallback`: it is the first that can take the request.
    FirstInOrder,
}

impl ChoiceReason {
    /// Every reason, at the index `reason as usize`.
    pub const ALL: [ChoiceReason; 18] = [
        ChoiceReason::OnlyOne,
        ChoiceReason::Sticky,
        ChoiceReason::ForWantOfOthers,
        ChoiceReason::OnTrial,
        ChoiceReason::BestScore,
        ChoiceReason::Unskilled,
        ChoiceReason::Explored,
        ChoiceReason::NewClass,
        ChoiceReason::LeastRecentlyUsed,
        ChoiceReason::Unclassified,
        ChoiceReason::FewerInFlight,
        ChoiceReason::SoonerDone,
        ChoiceReason::InTurn,
        ChoiceReason::Drawn,
        ChoiceReason::NextOnRing,
        ChoiceReason::InTable,
        ChoiceReason::LeastLoaded,
        ChoiceReason::FirstInOrder,
    ];

    /// The name of the reason in reports and counters.
    pub const fn name(self) -> &'static str {
        match self {
            ChoiceReason::OnlyOne => "only-one",
            ChoiceReason::Sticky => "sticky",
            ChoiceReason::ForWantOfOthers => "for-want-of-others",
            ChoiceReason::OnTrial => "on-trial",
            ChoiceReason::BestScore => "best-score",
            ChoiceReason::Unskilled => "unskilled",
            ChoiceReason::Explored => "explored",
            ChoiceReason::NewClass => "new-class",
            ChoiceReason::LeastRecentlyUsed => "least-recently-used",
            ChoiceReason::Unclassified => "unclassified",
            ChoiceReason::FewerInFlight => "fewer-in-flight",
            ChoiceReason::SoonerDone => "sooner-done",
            ChoiceReason::InTurn => "in-turn",
            ChoiceReason::Drawn => "drawn",
            ChoiceReason::NextOnRing => "next-on-ring",
            ChoiceReason::InTable => "in-table",
            ChoiceReason::LeastLoaded => "least-loaded",
            ChoiceReason::FirstInOrder => "first-in-order",
        }
    }
}

impl std::fmt::Display for ChoiceReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A recorded choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The time, on the clock of the pool.
    pub at: Duration,
    /// The class of the request; of a long name, the first [`MAX_CLASS_BYTES`].
    pub class: Option<Box<[u8]>>,
    /// The backend, which may be gone since.
    pub backend: BackendId,
    /// The reason.
    pub reason: ChoiceReason,
    /// How many backends had been tried for this request before.
    pub tried: u32,
}

/// The result of an algorithm: the position of the backend, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) at: usize,
    pub(crate) reason: ChoiceReason,
}

impl Chosen {
    pub(crate) fn new(at: usize, reason: ChoiceReason) -> Chosen {
        Chosen { at, reason }
    }
}

/// The last choices of a pool, and the count of each reason; shared by the pools that succeed each other.
#[derive(Debug)]
pub(crate) struct Choices {
    next: AtomicU64,
    ring: Box<[Mutex<Slot>]>,
    counts: [AtomicU64; ChoiceReason::ALL.len()],
}

#[derive(Debug, Default)]
struct Slot {
    /// The number of the choice, from 1; 0 if there is none.
    number: u64,
    micros: u64,
    /// Overwritten in place, so that nothing is allocated once the ring is full.
    class: Vec<u8>,
    classified: bool,
    chosen: Option<(BackendId, ChoiceReason)>,
    tried: u32,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices {
            next: AtomicU64::new(0),
            ring: (0..KEPT).map(|_| Mutex::default()).collect(),
            counts: [const { AtomicU64::new(0) }; ChoiceReason::ALL.len()],
        }
    }
}

impl Choices {
    /// Records a choice without blocking. If the slot is being read, or written by a core that has lapped the
    /// ring, this choice is only counted.
    #[inline(never)]
    pub(crate) fn record(
        &self,
        chosen: Chosen,
        class: Option<&[u8]>,
        backend: BackendId,
        tried: usize,
        micros: u64,
    ) {
        self.counts[chosen.reason as usize].fetch_add(1, Ordering::Relaxed);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Ok(mut slot) = self.ring[number as usize % KEPT].try_lock() else { return };
        slot.number = number + 1;
        slot.micros = micros;
        slot.class.clear();
        slot.classified = class.is_some();
        if let Some(class) = class {
            slot.class.extend_from_slice(&class[..class.len().min(MAX_CLASS_BYTES)]);
        }
        slot.chosen = Some((backend, chosen.reason));
        slot.tried = tried as u32;
    }

    /// The last choices, the newest first.
    pub(crate) fn last(&self) -> Vec<Choice> {
        let mut numbered: Vec<(u64, Choice)> = self
            .ring
            .iter()
            .filter_map(|slot| {
                let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                let (backend, reason) = slot.chosen?;
                let choice = Choice {
                    at: Duration::from_micros(slot.micros),
                    class: slot.classified.then(|| slot.class.as_slice().into()),
                    backend,
                    reason,
                    tried: slot.tried,
                };
                Some((slot.number, choice))
            })
            .collect();
        numbered.sort_unstable_by_key(|&(number, _)| std::cmp::Reverse(number));
        numbered.into_iter().map(|(_, choice)| choice).collect()
    }

    /// The number of choices for a reason, in total.
    pub(crate) fn count(&self, reason: ChoiceReason) -> u64 {
        self.counts[reason as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(choices: &Choices, n: usize) {
        let class = format!("class-{n}");
        let chosen = Chosen::new(0, ChoiceReason::BestScore);
        choices.record(chosen, Some(class.as_bytes()), BackendId(n as u32), 0, n as u64);
    }

    #[test]
    fn the_last_choices_are_kept_and_all_are_counted() {
        let choices = Choices::default();
        (0..KEPT + 10).for_each(|n| record(&choices, n));
        let last = choices.last();
        let newest_first: Vec<u32> = last.iter().map(|choice| choice.backend.0).collect();
        let expected: Vec<u32> = (10..KEPT as u32 + 10).rev().collect();
        assert_eq!(newest_first, expected);
        assert_eq!(last[0].class.as_deref(), Some(&b"class-73"[..]));
        assert_eq!(choices.count(ChoiceReason::BestScore), KEPT as u64 + 10);
    }

    #[test]
    fn a_choice_does_not_wait_for_a_reader() {
        let choices = Choices::default();
        let reader = choices.ring[0].lock().unwrap();
        record(&choices, 7);
        drop(reader);
        assert!(choices.last().is_empty());
        assert_eq!(choices.count(ChoiceReason::BestScore), 1);
    }

    #[test]
    fn what_is_kept_of_a_class_is_bounded_and_no_class_is_another_thing_than_an_empty_one() {
        let choices = Choices::default();
        let chosen = Chosen::new(0, ChoiceReason::Unclassified);
        choices.record(chosen, Some(&[b'x'; 10_000]), BackendId(0), 0, 0);
        choices.record(chosen, Some(b""), BackendId(0), 0, 0);
        choices.record(chosen, None, BackendId(0), 2, 0);
        let classes: Vec<_> =
            choices.last().into_iter().map(|choice| choice.class.map(|name| name.len())).collect();
        assert_eq!(classes, [None, Some(0), Some(MAX_CLASS_BYTES)]);
        assert_eq!(choices.last()[0].tried, 2);
    }

    #[test]
    fn each_reason_stands_at_its_number_and_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> =
            ChoiceReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), ChoiceReason::ALL.len());
        for (number, &reason) in ChoiceReason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason}");
        }
    }
}
