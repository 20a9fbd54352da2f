//! Earliest completion first (Lim et al., "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017).

use super::{Scheduler, View};

/// Hysteresis of the decision to wait (section 4.2).
const BETA: f64 = 0.25;

/// Waits for the fast subflow where that completes the data earlier than the slow one would.
#[derive(Debug, Clone, Default)]
pub struct Ecf {
    waiting: bool,
}

impl Scheduler for Ecf {
    /// Algorithm 1; k, cwnd_f and cwnd_s in segments.
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let fast = view.fastest()?;
        if fast.has_room() {
            return Some(fast.index);
        }
        let slow = view.fastest_with_room()?;
        let segments = |bytes: u64| bytes as f64 / fast.segment as f64;
        let k = segments(view.unsent);
        let n = 1.0 + k / segments(fast.cwnd).max(1.0);
        let delta = fast.rtt_variation.max(slow.rtt_variation) as f64;
        let (rtt_f, rtt_s) = (fast.srtt as f64, slow.srtt as f64);
        let slack = if self.waiting { 1.0 + BETA } else { 1.0 };
        if n * rtt_f < slack * (rtt_s + delta) {
            if k / segments(slow.cwnd).max(1.0) * rtt_s >= 2.0 * rtt_f + delta {
                self.waiting = true;
                return None;
            }
        } else {
            self.waiting = false;
        }
        Some(slow.index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{choice, flow};
    use super::*;

    #[test]
    fn it_waits_while_the_fast_one_would_be_done_earlier() {
        let flows = [flow(0, 10, 10, 10), flow(1, 100, 10, 0)];
        // 20 segments take 3 rounds of 10 ms on the fast one, and 100 ms on the slow one.
        let mut ecf = Ecf::default();
        assert_eq!(choice(&mut ecf, &flows, [20, 1000]), None);
        // 105 segments: 115 ms, within the hysteresis once it waits.
        assert_eq!(choice(&mut ecf, &flows, [105, 1000]), None);
        assert_eq!(
            choice(&mut Ecf::default(), &flows, [105, 1000]),
            Some(1),
            "one that did not wait"
        );
        assert_eq!(choice(&mut ecf, &flows, [200, 1000]), Some(1));
    }

    #[test]
    fn what_is_little_goes_on_the_slow_one_at_once_if_that_costs_nothing() {
        let flows = [flow(0, 60, 10, 10), flow(1, 70, 10, 0)];
        // One segment on the slow one: 7 ms of its window, less than two rounds of the fast one.
        assert_eq!(choice(&mut Ecf::default(), &flows, [1, 1000]), Some(1));
    }
}
