//! The scheduler of Linux since 5.6 (`mptcp_subflow_get_send` in net/mptcp/protocol.c): least time to drain.

use super::{Scheduler, SubflowView, View};

/// The subflow that has sent soonest what it was given: what it has under way over its rate, window by round-trip time.
#[derive(Debug, Clone)]
pub struct LeastLinger;

/// `wmem_queued / pacing_rate`, in units that all subflows share.
fn linger(flow: &SubflowView) -> u128 {
    u128::from(flow.in_flight) * u128::from(flow.srtt.max(1)) / u128::from(flow.cwnd.max(1))
}

impl Scheduler for LeastLinger {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let with_room = view.subflows.iter().filter(|flow| flow.has_room());
        with_room
            .min_by_key(|flow| linger(flow))
            .map(|flow| flow.index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{choice, flow};
    use super::*;

    #[test]
    fn the_one_that_drains_first_is_chosen_whatever_its_round_trip() {
        // 40 of 50 segments at 10 ms drain in 8 ms, 10 of 100 at 60 ms in 6 ms.
        let flows = [flow(0, 10, 50, 40), flow(1, 60, 100, 10)];
        assert_eq!(choice(&mut LeastLinger, &flows, [5, 1000]), Some(1));
        let flows = [flow(0, 10, 50, 20), flow(1, 60, 100, 10)];
        assert_eq!(choice(&mut LeastLinger, &flows, [5, 1000]), Some(0));
    }
}
