//! Random numbers and problems of the tests.

use crate::{Arc, Flow, Problem};

/// SplitMix64.
pub(crate) struct Rng(pub u64);

impl Rng {
    /// A number from 0 to `n`, `n` left out.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// Random links of unequal rates, some of them all alike, and more flows than fit.
pub(crate) fn congested(nodes: usize, flows: usize, rng: &mut Rng) -> Problem {
    let is_even = rng.below(2) == 0;
    let arc = |from: usize, rng: &mut Rng| {
        let head = (from + 1 + rng.below(nodes - 1)) % nodes;
        let mut uneven = |most: usize| rng.below(most) as f64 / 4.0;
        match is_even {
            true => Arc::new(from, head, 4.0, 1.0),
            false => Arc::new(from, head, 1.0 + uneven(40), uneven(20)),
        }
    };
    let flow = |rng: &mut Rng| {
        let source = rng.below(nodes);
        let target = (source + 1 + rng.below(nodes - 1)) % nodes;
        Flow::new(source, target, rng.below(12) as f64 / 4.0)
    };
    Problem {
        nodes,
        arcs: (0..3 * nodes).map(|i| arc(i % nodes, rng)).collect(),
        flows: (0..flows).map(|_| flow(rng)).collect(),
    }
}
