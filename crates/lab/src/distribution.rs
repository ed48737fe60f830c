//! Random draws of a simulation, which depend only on its seed.

use sandarac_balance::Random;

use crate::scenario::Popularity;

/// The random source for request `number` of a simulation, the same for every algorithm.
pub(crate) fn of_request(seed: u64, number: u64) -> Random {
    Random::new(Random::new(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95)).bits())
}

/// A factor of mean 1 and this standard deviation, lognormal.
pub(crate) fn factor(random: &mut Random, deviation: f64) -> f64 {
    let variance = (deviation * deviation).ln_1p();
    // Box and Muller 1958.
    let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * random.fraction()).cos();
    (normal * variance.sqrt() - variance / 2.0).exp()
}

/// The time to the next of randomly timed events whose mean interval is `mean`.
pub(crate) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.fraction()).ln()
}

/// Draws numbers by popularity, in constant time (Walker 1974, Vose 1991: the alias method).
#[derive(Clone, Debug)]
pub(crate) struct Lottery {
    /// For each number: the share of its lots that are its own, and the owner of the others.
    lots: Vec<(f64, u32)>,
}

impl Lottery {
    /// A lottery over `count` numbers, which MUST NOT be 0; the first is the most popular.
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

    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let at = random.below(self.lots.len());
        let (own, other) = self.lots[at];
        if random.fraction() < own { at as u32 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_the_mean_of_1_and_the_deviation_asked_for() {
        for deviation in [0.0, 0.3, 1.0] {
            let mut random = Random::new(1);
            let factors: Vec<f64> = (0..400_000).map(|_| factor(&mut random, deviation)).collect();
            let mean = factors.iter().sum::<f64>() / factors.len() as f64;
            let square =
                factors.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>() / factors.len() as f64;
            assert!((mean - 1.0).abs() < 0.01, "{deviation}: {mean}");
            assert!((square.sqrt() - deviation).abs() < 0.03, "{deviation}: {}", square.sqrt());
        }
    }

    #[test]
    fn numbers_are_drawn_as_often_as_they_are_popular() {
        let mut random = Random::new(1);
        for popularity in [Popularity::Uniform, Popularity::Zipf(0.9), Popularity::Exponential(5.0)] {
            let lottery = Lottery::new(popularity, 50);
            let mut counts = [0_u32; 50];
            for _ in 0..500_000 {
                counts[lottery.draw(&mut random) as usize] += 1;
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
