//! Durations counted in buckets of bounded relative width, so that quantiles need no samples in memory.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The buckets of a log-linear histogram: one for each value below 2^`bits`, then 2^`bits` equal ones to each
/// doubling. A bucket is at most 1 / 2^`bits` of its values wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    bits: u32,
    count: usize,
}

impl Buckets {
    /// Buckets that distinguish values below 2^`limit`. `limit` is more than `bits` and at most 64.
    pub const fn new(bits: u32, limit: u32) -> Buckets {
        assert!(bits < limit && limit <= 64);
        Buckets { bits, count: ((limit - bits + 1) as usize) << bits }
    }

    /// How many there are.
    pub const fn count(self) -> usize {
        self.count
    }

    /// The bucket of a value, counted from 0. Values of 2^`limit` and more are in the last.
    #[inline]
    pub const fn of(self, value: u64) -> usize {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(self.bits + 1);
        let bucket = ((shift as usize) << self.bits) + (value >> shift) as usize;
        if bucket < self.count { bucket } else { self.count - 1 }
    }

    /// The smallest and the largest value of a bucket.
    pub const fn bounds(self, bucket: usize) -> RangeInclusive<u64> {
        let shift = (bucket >> self.bits).saturating_sub(1);
        let smallest = ((bucket - (shift << self.bits)) as u64) << shift;
        RangeInclusive::new(smallest, smallest + ((1 << shift) - 1))
    }
}

/// Durations, counted in microseconds, each to 1 / 2^`BITS` of itself.
#[derive(Clone, Debug)]
pub struct Histogram<const BITS: u32> {
    counts: Box<[u64]>,
    count: u64,
    longest: u64,
}

impl<const BITS: u32> Histogram<BITS> {
    const BUCKETS: Buckets = Buckets::new(BITS, 64);

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[Self::BUCKETS.of(micros)] += 1;
        self.count += 1;
        self.longest = self.longest.max(micros);
    }

    /// Counts everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram<BITS>) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.longest = self.longest.max(other.longest);
    }

    /// Bounds of the smallest duration that at least `fraction` (0 to 1) of those counted do not exceed;
    /// `None` if there are none.
    pub fn quantile(&self, fraction: f64) -> Option<RangeInclusive<Duration>> {
        let bucket = quantile(self.counts.iter().copied(), self.count, fraction)?;
        let (least, most) = Self::BUCKETS.bounds(bucket).into_inner();
        Some(Duration::from_micros(least)..=Duration::from_micros(most.min(self.longest)))
    }
}

impl<const BITS: u32> Default for Histogram<BITS> {
    fn default() -> Histogram<BITS> {
        Histogram { counts: vec![0; Self::BUCKETS.count()].into(), count: 0, longest: 0 }
    }
}

/// The bucket, counted from 0, in which the `fraction` (0 to 1) quantile of `total` values lies. `counts` are
/// those of all buckets in ascending order.
pub fn quantile(counts: impl IntoIterator<Item = u64>, total: u64, fraction: f64) -> Option<usize> {
    let rank = ((total as f64 * fraction.clamp(0.0, 1.0)).ceil() as u64).max(1);
    let mut seen = 0;
    counts.into_iter().position(|count| {
        seen += count;
        seen >= rank
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::<4>::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=1000).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let median = histogram.quantile(0.5).unwrap();
        assert!(median.contains(&Duration::from_millis(500)), "{median:?}");
        assert!(median.end().as_secs_f64() <= 0.5 * 1.0625, "{median:?}");
        assert_eq!(*histogram.quantile(1.0).unwrap().end(), Duration::from_secs(1));
    }

    #[test]
    fn merged_histograms_count_as_one() {
        let (mut a, mut b) = (Histogram::<4>::default(), Histogram::default());
        a.record(Duration::from_micros(3));
        b.record(Duration::MAX);
        a.merge(&b);
        let (three, all) = (Duration::from_micros(3), Duration::from_micros(u64::MAX));
        assert_eq!(a.quantile(0.5), Some(three..=three));
        assert_eq!(*a.quantile(1.0).unwrap().end(), all);
    }

    #[test]
    fn values_past_the_limit_are_in_the_last_bucket() {
        for (bits, limit) in [(3, 34), (4, 36), (6, 64)] {
            let buckets = Buckets::new(bits, limit);
            let last = buckets.count() - 1;
            assert_eq!(buckets.of(u64::MAX), last);
            assert_eq!(*buckets.bounds(last).end(), u64::MAX >> (64 - limit));
        }
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket_and_the_bucket_is_narrow(value in 0u64..1 << 34, bits in 0u32..8) {
            let buckets = Buckets::new(bits, 34);
            let bucket = buckets.of(value);
            let (least, most) = buckets.bounds(bucket).into_inner();
            prop_assert!((least..=most).contains(&value));
            prop_assert!(bucket == 0 || *buckets.bounds(bucket - 1).end() == least - 1);
            prop_assert!(most - least <= least >> bits);
        }

        #[test]
        fn quantiles_are_those_of_a_sorted_list(mut values in prop::collection::vec(0_u64..10_000_000, 1..300)) {
            let mut histogram = Histogram::<6>::default();
            values.iter().for_each(|&value| histogram.record(Duration::from_micros(value)));
            values.sort_unstable();
            for fraction in [0.01, 0.5, 0.99] {
                let exact = values[((values.len() as f64 * fraction).ceil() as usize).max(1) - 1];
                let found = histogram.quantile(fraction).unwrap();
                prop_assert!(found.contains(&Duration::from_micros(exact)), "{fraction}: {found:?} for {exact}");
            }
        }
    }
}
