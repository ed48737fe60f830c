//! The choice itself.

use std::sync::atomic::Ordering;

use super::{ClassKey, Resume};
use crate::candidates::Candidates;

/// Workers looked at one by one; of more, as many are drawn.
const SAMPLE: usize = 32;

pub(super) fn choose(resume: &Resume, candidates: &Candidates<'_>, class: Option<ClassKey>) -> Option<usize> {
    let k = &resume.settings.knobs;
    let lru = least_recently_used(candidates);
    let mean = candidates.load.backlog.get() / candidates.count() as f32;
    let ceiling = (resume.settings.variance as f32 * mean).max(1.0);
    let backlog = |at: usize| candidates.backends[at].state.load.backlog();
    let floor = lru.map_or(0.0, backlog) + 1.0;
    let mut best = None;
    let mut best_value = 0.0;
    if let Some(key) = class {
        let shard = resume.skills.read(key);
        if let Some(class) = shard.get(key) {
            class.asked.store(candidates.load.ticks(), Ordering::Relaxed);
            let skilled = class.skilled.as_slice();
            for skill in skilled.iter().take(SAMPLE) {
                let Some(at) = candidates.places.of(skill.worker) else { continue };
                if !candidates.eligible(at) {
                    continue;
                }
                let now = if k[0] == 1.0 { candidates.backends[at].in_flight() as f32 } else { backlog(at) };
                if now - floor > ceiling {
                    continue;
                }
                let b = candidates.backends[at].in_flight() as f32
                    + candidates.backends[at].state.load.others(candidates.now);
                let value = if k[1] == 1.0 { skill.score / (b + 1.0) } else { skill.score / b.max(1.0) };
                if value > best_value {
                    best_value = value;
                    best = Some(at);
                }
            }
        }
    }
    best.or(lru)
}

/// The candidate used least recently, of all or of a sample.
fn least_recently_used(candidates: &Candidates<'_>) -> Option<usize> {
    let count = candidates.count();
    let used = |at: &usize| candidates.backends[*at].state.load.used();
    let eligible = |at: &usize| candidates.eligible(*at);
    if count <= SAMPLE {
        return candidates.all().filter(eligible).min_by_key(used);
    }
    let sample = (0..SAMPLE).map(|_| candidates.random.below(count));
    sample.filter(eligible).min_by_key(used).or_else(|| candidates.all().filter(eligible).min_by_key(used))
}
