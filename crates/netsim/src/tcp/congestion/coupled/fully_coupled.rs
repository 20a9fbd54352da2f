//! One window for all paths (Raiciu, Wischik, Handley, "Practical Congestion Control for Multipath Transport Protocols", UCL 2009;
//! equations 3 and 4 of Alheid et al. 2014).

use super::{CouplingRule, SubflowState};

/// Fully coupled: the sum of the windows grows and shrinks as one TCP's does, so that all is moved to the least congested path.
#[derive(Debug, Clone)]
pub struct FullyCoupled;

impl CouplingRule for FullyCoupled {
    fn increase(&self, flows: &[SubflowState], _own: usize) -> f64 {
        1.0 / flows.iter().map(|flow| flow.window).sum::<f64>()
    }

    fn decrease(&self, flows: &[SubflowState], own: usize) -> f64 {
        let total: f64 = flows.iter().map(|flow| flow.window).sum();
        (flows[own].window - total / 2.0).max(0.0)
    }
}
