//! Blocking estimation (Ferlin et al., "BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous Networks", IFIP
//! Networking 2016).

use super::{Scheduler, View};

/// What the estimate is raised by when it was too low, and lowered by while it holds (section III-B: delta, as in Linux).
const STEP: f64 = 0.01;

/// Waits for the fast subflow where a segment on the slow one would block the receive window meanwhile.
#[derive(Debug, Clone)]
pub struct Blest {
    /// The factor lambda that corrects the estimate.
    lambda: f64,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: 1.0 }
    }
}

impl Scheduler for Blest {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let fast = view.fastest()?;
        let slow = view.fastest_with_room()?;
        if slow.index == fast.index || fast.srtt == 0 {
            return Some(slow.index);
        }
        let segment = fast.segment as f64;
        // Section III-A: what the fast subflow could send while one segment travels on the slow one, its window growing by a
        // segment each round trip.
        let rounds = slow.srtt as f64 / fast.srtt as f64;
        let sent = segment * (fast.cwnd as f64 / segment + (rounds - 1.0) / 2.0) * rounds;
        let left = view.window_room as f64 - slow.segment as f64;
        if sent * self.lambda > left {
            return None;
        }
        self.lambda = (self.lambda - STEP / 10.0).max(1.0);
        Some(slow.index)
    }

    fn on_blocked(&mut self) {
        self.lambda = (self.lambda + STEP).min(2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{choice, flow};
    use super::*;

    #[test]
    fn the_slow_one_is_left_out_where_it_would_block_the_window() {
        let flows = [flow(0, 10, 20, 20), flow(1, 100, 10, 0)];
        // 10 rounds of 20 segments and 4.5 of growth: 245 segments.
        assert_eq!(choice(&mut Blest::default(), &flows, [500, 240]), None);
        assert_eq!(choice(&mut Blest::default(), &flows, [500, 250]), Some(1));
        let mut wary = Blest::default();
        (0..5).for_each(|_| wary.on_blocked());
        assert_eq!(choice(&mut wary, &flows, [500, 250]), None);
    }
}
