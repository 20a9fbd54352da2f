//! Opportunistic linked increases (Khalili et al., "MPTCP is not Pareto-optimal", CoNEXT 2012; draft-khalili-mptcp-congestion-control).

use super::{CouplingRule, SubflowState};

/// OLIA: Kelly and Voice's increase, and a term that moves windows from large ones to the best paths.
#[derive(Debug, Clone)]
pub struct Olia;

/// Largest by `value`, and all within rounding of it.
fn largest(flows: &[SubflowState], value: impl Fn(&SubflowState) -> f64) -> Vec<usize> {
    let best = flows.iter().map(&value).fold(f64::MIN, f64::max);
    let near = |index: &usize| value(&flows[*index]) >= best * (1.0 - 1e-9);
    (0..flows.len()).filter(near).collect()
}

impl CouplingRule for Olia {
    /// Equations 5 and 6.
    fn increase(&self, flows: &[SubflowState], own: usize) -> f64 {
        let rates: f64 = flows.iter().map(SubflowState::rate).sum();
        let flow = &flows[own];
        let kelly = flow.window / (flow.rtt * flow.rtt) / (rates * rates);
        let largest_windows = largest(flows, |flow| flow.window);
        let best = largest(flows, |flow| {
            let between = flow.between_losses[0].max(flow.between_losses[1]);
            between * between / flow.rtt
        });
        let better: Vec<usize> = best
            .into_iter()
            .filter(|index| !largest_windows.contains(index))
            .collect();
        let share = 1.0 / flows.len() as f64;
        let alpha = if better.is_empty() {
            0.0
        } else if better.contains(&own) {
            share / better.len() as f64
        } else if largest_windows.contains(&own) {
            -share / largest_windows.len() as f64
        } else {
            0.0
        };
        kelly + alpha / flow.window
    }

    fn goes_by_losses(&self) -> bool {
        true
    }
}
