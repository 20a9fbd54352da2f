//! What the engine answers: paths, rates and the proof.

use crate::solver::Effort;

/// Number of a flow within its engine; never used twice.
pub type FlowId = usize;

/// One path of a flow and its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRate {
    /// Arc indices from source to destination; empty when they are the same node.
    pub arcs: Vec<usize>,
    /// Rate, bit/s.
    pub rate_bps: f64,
    /// Sum of the arcs' delays, seconds.
    pub delay_s: f64,
}

/// What one flow got.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowAllocation {
    /// The flow.
    pub flow: FlowId,
    /// Admitted rate, bit/s.
    pub rate_bps: f64,
    /// Paths with a rate above zero, by delay.
    pub paths: Vec<PathRate>,
}

/// Proof of optimality by weak duality.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certificate {
    /// No allocation has a larger value of the first objective, bit/s. That is the admitted rate for
    /// `max_throughput_min_delay` and `min_max_utilisation`, the utility for `fair`; for `max_min` it is the
    /// sum of the most each flow could get while none that has less per weight loses.
    pub upper_bound: f64,
    /// Value of the first objective reached.
    pub value: f64,
    /// `(upper_bound − value) / upper_bound`, not below zero.
    pub gap: f64,
    /// Largest excess of a load over its capacity or of a rate over its request, bit/s.
    pub max_violation_bps: f64,
}

/// Totals of a solve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Sum of the admitted rates, bit/s.
    pub admitted_bps: f64,
    /// Sum of the requested rates, bit/s.
    pub requested_bps: f64,
    /// Sum of rate times path delay, bit (bit/s times seconds).
    pub cost_bps_s: f64,
    /// Largest load over capacity of any arc (no unit).
    pub max_utilisation: f64,
    /// Proof of optimality.
    pub certificate: Certificate,
    /// Work done by the engine so far.
    pub effort: Effort,
}

/// Paths and rates of all flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// One entry per flow, by flow number.
    pub flows: Vec<FlowAllocation>,
    /// Totals and proof.
    pub summary: Summary,
}

/// What a solve changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The flows whose paths or rates are not what was reported before; new ones included.
    pub flows: Vec<FlowAllocation>,
    /// Totals and proof.
    pub summary: Summary,
}

/// Share of its rate by which a path's rate may differ and still count as the same.
const RATE_ROUNDING: f64 = 1e-10;

pub(crate) fn is_same_rate(one_bps: f64, other_bps: f64) -> bool {
    (one_bps - other_bps).abs() <= RATE_ROUNDING * one_bps.max(other_bps)
}

impl FlowAllocation {
    /// Whether both have the same paths with the same rates.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same =
            |a: &PathRate, b: &PathRate| a.arcs == b.arcs && is_same_rate(a.rate_bps, b.rate_bps);
        let pairs = || self.paths.iter().zip(&other.paths);
        self.paths.len() == other.paths.len() && pairs().all(|(a, b)| same(a, b))
    }
}
