//! Randomness that depends on nothing but its seed.

use crate::scenario::Popularity;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The source of what request `number` of a simulation asks for, the same whichever algorithm serves it.
    pub(crate) fn of_request(seed: u64, number: u64) -> Chance {
        let mut chance = Chance(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        Chance(chance.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// A number from 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A factor of mean 1 and this standard deviation, lognormal.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        let variance = (deviation * deviation).ln_1p();
        // Box and Muller 1958.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        (normal * variance.sqrt() - variance / 2.0).exp()
    }

    /// The time to the next of events that come at random, `mean` apart.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Draws numbers by how popular they are, in constant time (Walker 1974, Vose 1991: the alias method).
#[derive(Clone, Debug)]
pub(crate) struct Lottery {
    /// For each number: the share of its lots that are its own, and whose the others are.
    lots: Vec<(f64, u32)>,
}

impl Lottery {
    /// A lottery over `count` numbers, which is not 0; the first is the most popular.
    pub(crate) fn new(popularity: Popularity, count: u32) -> Lottery {
        let weight = |rank: u32| match popularity {
            Popularity::Uniform => 1.0,
            Popularity::Zipf(exponent) => f64::from(rank + 1).powf(-exponent),
            Popularity::Exponential(half) => (-f64::from(rank) / half * std::f64::consts::LN_2).exp(),
        };
        let weights: Vec<f64> = (0..count).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        let mut lots: Vec<(f64, u32)> = (0..count).map(|number| (1.0, number)).collect();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / sum * f64::from(count)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|&at| shares[at as usize] < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            lots[poor as usize] = (shares[poor as usize], rich);
            shares[rich as usize] -= 1.0 - shares[poor as usize];
            if shares[rich as usize] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Lottery { lots }
    }

    pub(crate) fn draw(&self, chance: &mut Chance) -> u32 {
        let at = chance.below(self.lots.len() as u32);
        let (own, other) = self.lots[at as usize];
        if chance.unit() < own { at } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_the_mean_of_1_and_the_deviation_asked_for() {
        for deviation in [0.0, 0.3, 1.0] {
            let mut chance = Chance::new(1);
            let factors: Vec<f64> = (0..400_000).map(|_| chance.factor(deviation)).collect();
            let mean = factors.iter().sum::<f64>() / factors.len() as f64;
            let square =
                factors.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>() / factors.len() as f64;
            assert!((mean - 1.0).abs() < 0.01, "{deviation}: {mean}");
            assert!((square.sqrt() - deviation).abs() < 0.03, "{deviation}: {}", square.sqrt());
        }
    }

    #[test]
    fn numbers_are_drawn_as_often_as_they_are_popular() {
        let mut chance = Chance::new(1);
        for popularity in [Popularity::Uniform, Popularity::Zipf(0.9), Popularity::Exponential(5.0)] {
            let lottery = Lottery::new(popularity, 50);
            let mut counts = [0_u32; 50];
            for _ in 0..500_000 {
                counts[lottery.draw(&mut chance) as usize] += 1;
            }
            let expected = match popularity {
                Popularity::Uniform => 1.0,
                Popularity::Zipf(exponent) => 10_f64.powf(exponent),
                Popularity::Exponential(half) => 2_f64.powf(9.0 / half),
            };
            let seen = f64::from(counts[0]) / f64::from(counts[9]);
            assert!((seen / expected - 1.0).abs() < 0.06, "{popularity:?}: {seen} instead of {expected}");
        }
    }
}
