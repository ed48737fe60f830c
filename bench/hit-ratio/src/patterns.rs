//! The order in which objects are requested.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::random::Random;

/// What happens in a trace.
#[derive(Clone, Copy)]
pub(crate) enum Pattern {
    /// Each object keeps its popularity.
    Zipf,
    /// In the middle, this share of the objects exchange their popularity.
    Shift(f64),
    /// In the middle, so many new objects become the most popular ones.
    Launch(usize),
    /// This share of the requests is for objects that are requested so many `times` and never again, with
    /// about `gap` other requests between.
    Passing { share: f64, times: u32, gap: usize, sized: Option<u32> },
    /// After a tenth of the trace, this share of the requests is for so many `files`, evenly.
    Files { share: f64, files: usize, sized: Option<u32> },
    /// In the middle, every second request is for a new object, until they have taken so many times the cache.
    Scan(f64),
    /// Objects of so many times the cache are requested one after the other.
    Loop(f64),
    /// An object is born every so many requests, and loses half of its popularity in so many.
    News { born_every: usize, half_life: f64 },
}

/// Draws from `0..count`; the probability of the n-th is proportional to `1 / n^skew`.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let mut add = |n: usize| {
            sum += (n as f64).powf(-skew);
            sum
        };
        Zipf((1..=count).map(&mut add).collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let place = random.fraction() * self.0[self.0.len() - 1];
        self.0.partition_point(|&sum| sum <= place).min(self.0.len() - 1)
    }
}

/// The keys of `count` requests. Keys from `objects` on belong to objects that are not part of the Zipf
/// distribution. `filling(times, from)` is the number of objects, from a key on, that take so many times the
/// cache.
pub(crate) fn keys(
    pattern: Pattern,
    skew: f64,
    objects: usize,
    count: usize,
    filling: &dyn Fn(f64, usize) -> usize,
    random: &mut Random,
) -> Vec<u32> {
    match pattern {
        Pattern::Loop(times) => {
            let round = filling(times, 0).max(1);
            // The first object is drawn, so that the seed matters.
            let first = random.below(round);
            return (first..first + count).map(|n| (n % round) as u32).collect();
        }
        Pattern::News { born_every, half_life } => return news(born_every, half_life, count, random),
        _ => {}
    }
    let zipf = Zipf::new(objects, skew);
    let mut ranks: Vec<u32> = (0..objects as u32).collect();
    let draw = |ranks: &[u32], random: &mut Random| ranks[zipf.draw(random)];
    let middle = count / 2;
    match pattern {
        Pattern::Passing { share, times, gap, .. } => {
            let background = |random: &mut Random| draw(&ranks, random);
            passing(share, times, gap, objects as u32, count, background, random)
        }
        Pattern::Files { share, files, .. } => {
            let key = |n| match n >= count / 10 && random.fraction() < share {
                true => (objects + random.below(files)) as u32,
                false => draw(&ranks, random),
            };
            (0..count).map(key).collect()
        }
        Pattern::Scan(times) => {
            let scanned = filling(times, objects);
            let key = |n: usize| match n.checked_sub(middle) {
                Some(since) if since % 2 == 0 && since / 2 < scanned => (objects + since / 2) as u32,
                _ => draw(&ranks, random),
            };
            (0..count).map(key).collect()
        }
        _ => {
            let mut keys: Vec<u32> = (0..middle).map(|_| draw(&ranks, random)).collect();
            match pattern {
                Pattern::Shift(share) => exchange(&mut ranks, share, random),
                Pattern::Launch(new) => {
                    ranks.splice(0..0, (objects..objects + new).map(|key| key as u32));
                }
                _ => {}
            }
            keys.extend((middle..count).map(|_| draw(&ranks, random)));
            keys
        }
    }
}

/// Exchanges the ranks of a share of the objects.
fn exchange(ranks: &mut [u32], share: f64, random: &mut Random) {
    let places: Vec<usize> = (0..ranks.len()).filter(|_| random.fraction() < share).collect();
    let mut keys: Vec<u32> = places.iter().map(|&place| ranks[place]).collect();
    random.shuffle(&mut keys);
    places.into_iter().zip(keys).for_each(|(place, key)| ranks[place] = key);
}

/// Requests for objects from `first` on, `times` for each, among those of the background.
fn passing(
    share: f64,
    times: u32,
    gap: usize,
    first: u32,
    count: usize,
    mut background: impl FnMut(&mut Random) -> u32,
    random: &mut Random,
) -> Vec<u32> {
    let times_f = f64::from(times);
    // The share of new objects among the requests that are not repetitions.
    let new = share / (times_f - share * times_f + share);
    let mut due: BinaryHeap<Reverse<(usize, u32, u32)>> = BinaryHeap::new();
    let mut fresh = first;
    let request = |n| {
        let repeated = due.peek().is_some_and(|Reverse((when, ..))| *when <= n);
        let (key, left) = if repeated && let Some(Reverse((_, key, left))) = due.pop() {
            (key, left)
        } else if random.fraction() < new {
            fresh += 1;
            (fresh - 1, times - 1)
        } else {
            return background(random);
        };
        if left > 0 {
            // Between half of the gap and one and a half of it.
            due.push(Reverse((n + 1 + gap / 2 + random.below(gap + 1), key, left - 1)));
        }
        key
    };
    (0..count).map(request).collect()
}

/// The age of a requested object is exponentially distributed; its appeal is drawn once.
fn news(born_every: usize, half_life: f64, count: usize, random: &mut Random) -> Vec<u32> {
    // Objects that were born before the trace begins.
    let before = (10.0 * half_life) as usize / born_every;
    let appeals: Vec<f64> = (0..before + count / born_every + 1).map(|_| random.fraction().powi(3)).collect();
    let request = |n: usize| loop {
        let age = -(1.0 - random.fraction()).log2() * half_life;
        let born = before as f64 + (n as f64 - age) / born_every as f64;
        if born >= 0.0 && random.fraction() < appeals[born as usize] {
            return born as u32;
        }
    };
    (0..count).map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pattern: Pattern) -> Vec<u32> {
        keys(pattern, 0.9, 1000, 40_000, &|_, _| 500, &mut Random::new(1))
    }

    fn counts(keys: &[u32]) -> Vec<usize> {
        let mut counts = vec![0; 60_000];
        keys.iter().for_each(|&key| counts[key as usize] += 1);
        counts
    }

    #[test]
    fn zipf_gives_the_nth_object_its_share() {
        let counts = counts(&drawn(Pattern::Zipf));
        let sum: f64 = (1..=1000).map(|n| f64::from(n).powf(-0.9)).sum();
        for (n, share) in [(1, 1.0), (10, 10f64.powf(-0.9))] {
            let expected = 40_000.0 * share / sum;
            assert!((counts[n - 1] as f64 / expected - 1.0).abs() < 0.1, "{n}: {}", counts[n - 1]);
        }
    }

    #[test]
    fn bursts_have_their_share_and_their_number_of_requests() {
        let keys = drawn(Pattern::Passing { share: 0.5, times: 3, gap: 50, sized: None });
        let bursts = keys.iter().filter(|&&key| key >= 1000).count();
        assert!((19_000..21_000).contains(&bursts), "{bursts}");
        let counts = counts(&keys);
        assert!(counts[1000..7000].iter().all(|&count| count == 3));
    }

    #[test]
    fn a_scan_requests_each_object_once() {
        let counts = counts(&drawn(Pattern::Scan(1.0)));
        assert!(counts[1000..1500].iter().all(|&count| count == 1));
        assert_eq!(counts[1500], 0);
    }

    #[test]
    fn a_launch_gives_the_first_ranks_to_new_objects() {
        let keys = drawn(Pattern::Launch(10));
        let (before, after) = keys.split_at(20_000);
        assert_eq!(before.iter().max(), Some(&999));
        assert!(counts(after)[1000] > counts(after)[0]);
    }
}
