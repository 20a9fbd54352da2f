//! The paper's scheduler.

use super::{Scheduler, View};
use crate::rng::SplitMix64;

/// An independent draw for each frame, by the streams' rates (the paper, section II).
///
/// Only streams with room take part, in proportion to their weights.
#[derive(Debug, Clone)]
pub struct Stochastic {
    rng: SplitMix64,
}

impl Stochastic {
    /// Draw with the generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: SplitMix64::new(seed),
        }
    }
}

impl Scheduler for Stochastic {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let total: f64 = view.with_room.iter().map(|index| view.weight(index)).sum();
        if total <= 0.0 {
            return None;
        }
        let mut point = self.rng.next_unit() * total;
        let mut last = None;
        for index in view.weighed(view.with_room) {
            last = Some(index);
            if point < view.weight(index) {
                break;
            }
            point -= view.weight(index);
        }
        // Rounding may carry the point past the last weight: the last stream it is then.
        last
    }
}
