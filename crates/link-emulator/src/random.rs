//! Seeded random numbers.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// Starts a sequence of `seed`; `stream` names one of many unrelated ones.
pub fn generator(seed: u64, stream: &str) -> SplitMix64 {
    // FNV-1a spreads the name; one step of the generator then separates neighbouring seeds.
    let hash = stream
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    SplitMix64::seed_from_u64(SplitMix64::seed_from_u64(seed).next_u64() ^ hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_seeds_have_sequences_of_their_own() {
        let streams = [(1, "S0-S1 loss"), (1, "S1-S0 loss"), (2, "S0-S1 loss")];
        let first = streams.map(|(seed, stream)| generator(seed, stream).next_u64());
        assert_eq!(
            first,
            streams.map(|(seed, stream)| generator(seed, stream).next_u64())
        );
        assert!(first[0] != first[1] && first[0] != first[2]);
    }
}
