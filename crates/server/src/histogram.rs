//! Durations counted in buckets of bounded relative width, so that a quantile costs no memory of its samples.

use std::time::Duration;

/// Sub-buckets of one octave: a bucket is at most 1/16 of its value wide.
const SUBDIVISIONS: u64 = 16;
const SUBDIVISION_BITS: u32 = SUBDIVISIONS.trailing_zeros();

/// The longest duration told apart from longer ones, about 19 hours; a u64 of microseconds needs no more octaves.
const OCTAVES: usize = 32;
const BUCKETS: usize = (OCTAVES + 1) * SUBDIVISIONS as usize;

/// Durations, counted in microseconds. Reported values are at most 6.25 % above the true ones, never below.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum_us: u64,
    max_us: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS].into(), count: 0, sum_us: 0, max_us: 0 }
    }
}

fn bucket_of(us: u64) -> usize {
    if us < SUBDIVISIONS {
        return us as usize;
    }
    let octave = us.ilog2() - SUBDIVISION_BITS;
    let within = (us >> octave) - SUBDIVISIONS;
    ((u64::from(octave) + 1) * SUBDIVISIONS + within).min(BUCKETS as u64 - 1) as usize
}

/// The largest value, in microseconds, that falls into a bucket.
fn upper_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUBDIVISIONS {
        return bucket;
    }
    let octave = bucket / SUBDIVISIONS - 1;
    ((SUBDIVISIONS + bucket % SUBDIVISIONS + 1) << octave) - 1
}

impl Histogram {
    /// Nothing counted yet.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(us)] += 1;
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(us);
        self.max_us = self.max_us.max(us);
    }

    /// Counts everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration counted, exact.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_us)
    }

    /// The smallest duration that at least `fraction` (0 to 1) of those counted do not exceed; `None` where there
    /// are none.
    pub fn quantile(&self, fraction: f64) -> Option<Duration> {
        let buckets = self.counts.iter().enumerate().map(|(bucket, &count)| (upper_of(bucket), count));
        quantile(buckets, self.count, fraction).map(|us| Duration::from_micros(us.min(self.max_us)))
    }
}

/// The upper bound of the bucket in which the `fraction` quantile of `count` values lies. `buckets` are pairs of
/// upper bound and count, in ascending order.
pub fn quantile(buckets: impl IntoIterator<Item = (u64, u64)>, count: u64, fraction: f64) -> Option<u64> {
    let rank = ((count as f64 * fraction.clamp(0.0, 1.0)).ceil() as u64).max(1);
    let mut seen = 0;
    buckets.into_iter().find_map(|(upper, count)| {
        seen += count;
        (seen >= rank).then_some(upper)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        for ms in 1..=1000 {
            histogram.record(Duration::from_millis(ms));
        }
        let median = histogram.quantile(0.5).unwrap().as_secs_f64();
        assert!((0.5..=0.5 * 1.0625).contains(&median), "{median}");
        assert_eq!(histogram.quantile(1.0), Some(Duration::from_secs(1)));
        assert_eq!(histogram.max(), Duration::from_secs(1));
    }

    #[test]
    fn merged_histograms_count_as_one() {
        let (mut a, mut b) = (Histogram::new(), Histogram::new());
        a.record(Duration::from_micros(3));
        b.record(Duration::MAX);
        a.merge(&b);
        assert_eq!((a.count(), a.quantile(0.5)), (2, Some(Duration::from_micros(3))));
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket_and_the_bucket_is_narrow(us in 0u64..1 << 34) {
            let bucket = bucket_of(us);
            prop_assert!(us <= upper_of(bucket));
            prop_assert!(bucket == 0 || us > upper_of(bucket - 1));
            prop_assert!(upper_of(bucket) as f64 <= us as f64 * 1.0625);
        }
    }
}
