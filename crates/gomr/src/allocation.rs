//! What the engine answers: paths, rates and the proof.

use crate::colgen::Effort;

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
    /// No allocation has a larger value of the first objective. The objective is the admitted rate in
    /// bit/s for `max_throughput_min_delay`, the utility in bit/s for `fair`.
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

impl Allocation {
    /// Counts the flows of both allocations whose paths or rates differ by more than `tolerance_bps`.
    #[must_use]
    pub fn moved_since(&self, before: &Self, tolerance_bps: f64) -> usize {
        let old = |id: FlowId| {
            let at = before.flows.binary_search_by_key(&id, |f| f.flow).ok()?;
            before.flows.get(at)
        };
        let moved = |now: &FlowAllocation, then: &FlowAllocation| {
            let rate = |flow: &FlowAllocation, arcs: &[usize]| {
                let path = flow.paths.iter().find(|p| p.arcs == arcs);
                path.map_or(0.0, |p| p.rate_bps)
            };
            let mut paths = now.paths.iter().chain(&then.paths);
            paths.any(|p| (rate(now, &p.arcs) - rate(then, &p.arcs)).abs() > tolerance_bps)
        };
        let pairs = self
            .flows
            .iter()
            .filter_map(|now| Some((now, old(now.flow)?)));
        pairs.filter(|(now, then)| moved(now, then)).count()
    }
}
