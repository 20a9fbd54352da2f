//! Linked increases (RFC 6356).

use super::{CouplingRule, SubflowState};

/// LIA: together as aggressive as one TCP on the best of the paths.
#[derive(Debug, Clone)]
pub struct Lia;

impl CouplingRule for Lia {
    /// RFC 6356, 3 equation 1.
    fn increase(&self, flows: &[SubflowState], own: usize) -> f64 {
        let total: f64 = flows.iter().map(|flow| flow.window).sum();
        (alpha(flows.iter().copied()) / total).min(1.0 / flows[own].window)
    }
}

/// LIA as the MPTCP model of ns-3 has it (Chihani and Collange 2011, `RTT_Compensator`): alpha is of smoothed windows.
#[derive(Debug, Clone)]
pub struct Ns3Lia;

impl CouplingRule for Ns3Lia {
    fn increase(&self, flows: &[SubflowState], own: usize) -> f64 {
        let smoothed = |flow: &SubflowState| SubflowState {
            window: flow.smoothed_window,
            ..*flow
        };
        let alpha = alpha(flows.iter().map(smoothed));
        let total: f64 = flows.iter().map(|flow| flow.window).sum();
        (alpha / total).min(1.0 / flows[own].window)
    }

    fn goes_by_smoothed_windows(&self) -> bool {
        true
    }
}

/// RFC 6356, 3 equation 2.
fn alpha(flows: impl Iterator<Item = SubflowState>) -> f64 {
    let (mut total, mut rates, mut best) = (0.0, 0.0, 0.0);
    for flow in flows {
        total += flow.window;
        rates += flow.rate();
        best = f64::max(best, flow.window / (flow.rtt * flow.rtt));
    }
    total * best / (rates * rates)
}
