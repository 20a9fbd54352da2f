//! Random numbers: one seeded generator per purpose, the same draws on every machine.
//!
//! Only integer arithmetic and IEEE 754's exactly rounded operations are used, so nothing depends on a libm.

pub use rand_xoshiro::rand_core::{RngCore, SeedableRng};
pub use rand_xoshiro::SplitMix64;

use crate::time::Nanos;

/// What a generator is for. Each purpose and index has a sequence of its own, so that a change of one (another link with
/// loss, another flow) leaves the draws of all others as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Loss of a link.
    Loss = 1,
    /// Jitter of a link.
    Jitter = 2,
    /// Paths of packets at a splitting switch.
    Split = 3,
    /// The frame scheduler of an MSTCP connection.
    Schedule = 4,
    /// Times at which an application writes.
    Traffic = 5,
    /// The switches' hash of a connection.
    Hash = 6,
    /// Slots that stations of a medium wait.
    Backoff = 8,
    /// Fading and noise of a medium.
    Channel = 9,
    /// Where BBR's cycle begins.
    Probing = 11,
    /// ACKs that the F-RTO of ns-3's MPTCP ignores.
    IgnoredAcks = 12,
    /// How late an application's writes are.
    Lateness = 13,
    /// Loss of a link from a change on.
    ChangedLoss = 14,
    /// Jitter of a link from a change on.
    ChangedJitter = 15,
}

/// The seed of `purpose` number `index` in a run of seed `seed`.
pub fn derive_seed(seed: u64, purpose: Purpose, index: u64) -> u64 {
    let mut mixer = SplitMix64::seed_from_u64(seed);
    let salted = mixer.next_u64()
        ^ SplitMix64::seed_from_u64(purpose as u64)
            .next_u64()
            .rotate_left(17);
    SplitMix64::seed_from_u64(salted.wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95)))
        .next_u64()
}

/// The generator of `purpose` number `index` in a run of seed `seed`.
pub fn generator(seed: u64, purpose: Purpose, index: u64) -> SplitMix64 {
    SplitMix64::seed_from_u64(derive_seed(seed, purpose, index))
}

/// A Bernoulli trial: true with a given probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bernoulli(u64);

impl Bernoulli {
    /// An event of probability `p`, 0 to 1; the resolution is 2^-63.
    pub fn new(p: f64) -> Self {
        const SCALE: f64 = (1u64 << 63) as f64;
        Self((p * SCALE) as u64)
    }

    /// Draw whether it happens.
    pub fn happens(self, rng: &mut SplitMix64) -> bool {
        rng.next_u64() >> 1 < self.0
    }
}

/// A whole number below `bound`, which is not 0 (Lemire's multiplication; its bias is below `bound` / 2^64).
pub fn below(rng: &mut SplitMix64, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A uniform draw from (0, 1].
pub fn unit(rng: &mut SplitMix64) -> f64 {
    const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
    ((rng.next_u64() >> 11) + 1) as f64 * SCALE
}

/// A time of an exponential distribution with mean `mean_ns`.
pub fn exponential(rng: &mut SplitMix64, mean_ns: f64) -> Nanos {
    (-ln(unit(rng)) * mean_ns + 0.5) as Nanos
}

/// The natural logarithm of a normal positive number, within some 1e-16 of its magnitude.
///
/// The mantissa is brought to [sqrt(1/2), sqrt(2)), where ln m = 2 artanh((m - 1) / (m + 1)) converges fast.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in (1..=23).rev().step_by(2) {
        sum = sum * square + 1.0 / f64::from(odd);
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_standard_library() {
        let mut x = 1e-17;
        while x < 1e17 {
            let expected: f64 = f64::ln(x);
            assert!(
                (ln(x) - expected).abs() <= 4e-16 * expected.abs().max(1.0),
                "ln {x}"
            );
            x *= 1.000_37;
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn exponential_times_have_their_mean_and_variance() {
        let mut rng = generator(1, Purpose::Traffic, 0);
        let draws: Vec<f64> = (0..200_000)
            .map(|_| exponential(&mut rng, 1e6) as f64)
            .collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance / 1e12 - 1.0).abs() < 0.02, "variance {variance}");
    }

    #[test]
    fn purposes_and_indices_have_sequences_of_their_own() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..8 {
            for purpose in [
                Purpose::Loss,
                Purpose::Jitter,
                Purpose::Split,
                Purpose::Schedule,
            ] {
                for index in 0..64 {
                    assert!(seen.insert(derive_seed(seed, purpose, index)));
                }
            }
        }
    }

    #[test]
    fn certain_and_impossible_events() {
        let mut rng = SplitMix64::seed_from_u64(7);
        for _ in 0..1000 {
            assert!(!Bernoulli::new(0.0).happens(&mut rng));
            assert!(Bernoulli::new(1.0).happens(&mut rng));
        }
    }
}
