//! Balanced linked adaptation (Peng et al., "Multipath TCP: Analysis, Design, and Implementation", IEEE/ACM ToN 2016;
//! draft-walid-mptcp-congestion-control-04).

use super::{CouplingRule, SubflowState};

/// BALIA: between friendliness and responsiveness.
#[derive(Debug, Clone)]
pub struct Balia;

/// max_k x_k / x_own.
fn ratio(flows: &[SubflowState], own: usize) -> f64 {
    let most = flows.iter().map(SubflowState::rate).fold(0.0, f64::max);
    most / flows[own].rate()
}

impl CouplingRule for Balia {
    /// Section 3: x_r / (rtt_r (sum x)^2) (1 + a)/2 (4 + a)/5.
    fn increase(&self, flows: &[SubflowState], own: usize) -> f64 {
        let rates: f64 = flows.iter().map(SubflowState::rate).sum();
        let alpha = ratio(flows, own);
        let flow = &flows[own];
        flow.rate() / flow.rtt / (rates * rates) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    }

    /// Section 3: w_r / 2 min(a, 1.5) less.
    fn decrease(&self, flows: &[SubflowState], own: usize) -> f64 {
        let window = flows[own].window;
        window - window / 2.0 * ratio(flows, own).min(1.5)
    }
}
