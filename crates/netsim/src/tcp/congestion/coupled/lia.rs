//! Linked increases (RFC 6356).

use super::{Flow, Rule};

/// LIA: together as aggressive as one TCP on the best of the paths.
#[derive(Debug, Clone)]
pub struct Lia;

impl Rule for Lia {
    /// RFC 6356, 3 equations 1 and 2.
    fn increase(&self, flows: &[Flow], own: usize) -> f64 {
        let total: f64 = flows.iter().map(|flow| flow.window).sum();
        let rates: f64 = flows.iter().map(Flow::rate).sum();
        let best = flows
            .iter()
            .map(|flow| flow.window / (flow.rtt * flow.rtt))
            .fold(0.0, f64::max);
        let alpha = total * best / (rates * rates);
        (alpha / total).min(1.0 / flows[own].window)
    }

    fn name(&self) -> &'static str {
        "lia"
    }
}
