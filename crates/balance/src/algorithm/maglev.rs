//! Maglev's lookup table.

use super::resume::ClassKey;
use crate::candidates::Candidates;
use crate::choices::Chosen;
use crate::hash::{STEP, hash, mix};
use crate::{Backend, ChoiceReason};

/// Table sizes, primes: the first is the paper's small one. A table should hold a hundred places for each
/// backend, so that their shares differ by about a hundredth.
const SIZES: [usize; 3] = [65_537, 655_373, 6_553_621];

/// Further places probed for a class whose backend cannot take a request.
const PROBES: u64 = 64;

const NOBODY: u32 = u32::MAX;

/// The table: the backend of each place.
pub(crate) struct Maglev {
    places: Box<[u32]>,
}

/// The permutation of the table in which a backend takes places.
struct Permutation {
    /// Its position among the backends.
    at: usize,
    /// A hash of its address.
    seed: u64,
    /// The place that it wants next, and the step to the one after that. The size of the table is prime, so
    /// any step leads to every place.
    next: usize,
    step: usize,
    /// Unused weight.
    credit: u32,
}

impl Permutation {
    fn new((at, backend): (usize, &Backend), size: usize) -> Permutation {
        let seed = hash(backend.address().to_string().as_bytes(), 1);
        let next = (mix(seed) % size as u64) as usize;
        let step = (mix(seed ^ 1) % (size as u64 - 1) + 1) as usize;
        Permutation { at, seed, next, step, credit: 0 }
    }
}

impl Maglev {
    /// The backends take turns, in proportion to their weights, to take the next free place of their own
    /// permutation. The order of turns depends on addresses alone, so that all balancers agree whatever the
    /// order of their lists.
    pub(crate) fn new(backends: &[Backend]) -> Maglev {
        if backends.is_empty() {
            return Maglev { places: Box::default() };
        }
        let size = SIZES.into_iter().find(|&size| size >= 100 * backends.len()).unwrap_or(SIZES[2]);
        let mut permutations: Vec<Permutation> =
            backends.iter().enumerate().map(|permutation| Permutation::new(permutation, size)).collect();
        permutations.sort_unstable_by_key(|permutation| permutation.seed);
        let heaviest = backends.iter().map(Backend::weight).max().unwrap_or(1);
        let mut places = vec![NOBODY; size];
        let mut free = size;
        'fill: loop {
            for permutation in &mut permutations {
                permutation.credit += backends[permutation.at].weight();
                if permutation.credit < heaviest {
                    continue;
                }
                permutation.credit -= heaviest;
                while places[permutation.next] != NOBODY {
                    permutation.next = (permutation.next + permutation.step) % size;
                }
                places[permutation.next] = permutation.at as u32;
                free -= 1;
                if free == 0 {
                    break 'fill;
                }
            }
        }
        Maglev { places: places.into() }
    }

    /// The candidate at the place of the class, or at one of the next places by rehashing; the least loaded
    /// for a request without a class.
    pub(crate) fn choose(&self, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<Chosen> {
        let least_loaded = |reason| Some(Chosen::new(candidates.least_loaded()?, reason));
        let Some(ClassKey(key)) = class else { return least_loaded(ChoiceReason::Unclassified) };
        let place = |probe: u64| (mix(key ^ probe.wrapping_mul(STEP)) % self.places.len() as u64) as usize;
        (0..PROBES)
            .map(|probe| self.places[place(probe)] as usize)
            .find(|&at| candidates.eligible(at))
            .map(|at| Chosen::new(at, ChoiceReason::InTable))
            .or_else(|| least_loaded(ChoiceReason::LeastLoaded))
    }
}
