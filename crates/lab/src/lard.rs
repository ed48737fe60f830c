//! LARD with replication (Pai and others 1998, "Locality-aware request distribution in cluster-based network
//! servers", figure 4), for comparison. Not part of the shipping balancer.

/// The bounds of LARD. The paper's 65 and 25 are for servers that work on many requests at once; here a
/// worker works on one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LardSettings {
    /// Workers with fewer requests in flight may take over a class.
    pub low: u32,
    /// Workers with more requests in flight are overloaded, and give classes away to one below `low`.
    pub high: u32,
    /// A class with several workers that have not changed for this long loses one of them, in seconds. The
    /// paper's 20.
    pub shrink_seconds: f64,
}

impl Default for LardSettings {
    fn default() -> LardSettings {
        LardSettings { low: 2, high: 6, shrink_seconds: 20.0 }
    }
}

/// The workers of each class.
pub(crate) struct Lard {
    settings: LardSettings,
    /// The workers of each class, and the time of their last change, in microseconds.
    sets: Vec<(Vec<usize>, u64)>,
    in_flight: Vec<u32>,
    turn: usize,
}

impl Lard {
    pub(crate) fn new(settings: LardSettings, classes: u32, workers: usize) -> Lard {
        Lard { settings, sets: vec![(Vec::new(), 0); classes as usize], in_flight: vec![0; workers], turn: 0 }
    }

    /// The worker for a request of a class, among those that are `alive`.
    pub(crate) fn pick(&mut self, class: u32, now: u64, alive: impl Fn(usize) -> bool) -> Option<usize> {
        self.turn += 1;
        let count = self.in_flight.len();
        let load = |at: usize| self.in_flight[at];
        // Equally idle ones take turns, so that the first does not get all classes.
        let all = (0..count).map(|step| (self.turn + step) % count).filter(|&at| alive(at));
        let idlest = all.min_by_key(|&at| load(at))?;
        let (set, changed) = &mut self.sets[class as usize];
        set.retain(|&at| alive(at));
        let best = set.iter().copied().min_by_key(|&at| load(at));
        let picked = match best {
            Some(best) => {
                let LardSettings { low, high, .. } = self.settings;
                let overloaded = (load(best) > high && load(idlest) < low) || load(best) >= 2 * high;
                if overloaded && !set.contains(&idlest) {
                    set.push(idlest);
                    *changed = now;
                    idlest
                } else {
                    best
                }
            }
            None => {
                set.push(idlest);
                *changed = now;
                idlest
            }
        };
        let age = now.saturating_sub(*changed) as f64 / 1e6;
        if set.len() > 1 && age > self.settings.shrink_seconds {
            let busiest = set.iter().copied().filter(|&at| at != picked).max_by_key(|&at| load(at));
            set.retain(|&at| Some(at) != busiest);
            *changed = now;
        }
        self.in_flight[picked] += 1;
        Some(picked)
    }

    pub(crate) fn done(&mut self, worker: usize) {
        self.in_flight[worker] -= 1;
    }

    pub(crate) fn joined(&mut self) {
        self.in_flight.push(0);
    }
}
