//! Even split: each flow spreads its rate evenly over the paths the optimum gave it.
//!
//! Where that overloads an arc, the flows over it are scaled by the worst `capacity / load` of their
//! arcs; one pass suffices, because each load falls at least to its capacity.

use crate::allocation::{Allocation, FlowAllocation};
use crate::problem::Arc;

/// Load of each arc, bit/s.
pub(crate) fn loads(
    arcs: &[Arc],
    flows: &[FlowAllocation],
    ack_ratio: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let mut load = vec![0.0; arcs.len()];
    for flow in flows {
        let ack = ack_ratio(flow.flow);
        for path in &flow.paths {
            for &arc in &path.arcs {
                load[arc] += path.rate_bps;
                if let Some(reverse) = arcs[arc].reverse {
                    load[reverse] += ack * path.rate_bps;
                }
            }
        }
    }
    load
}

/// Splits the rates evenly and keeps them within `capacity`.
pub(crate) fn split(
    allocation: &mut Allocation,
    arcs: &[Arc],
    capacity: &[f64],
    ack_ratio: impl Fn(usize) -> f64,
) {
    for flow in &mut allocation.flows {
        let even = flow.rate_bps / flow.paths.len().max(1) as f64;
        flow.paths.iter_mut().for_each(|p| p.rate_bps = even);
    }
    let load = loads(arcs, &allocation.flows, &ack_ratio);
    let room = |arc: usize| {
        if load[arc] > capacity[arc] {
            capacity[arc] / load[arc]
        } else {
            1.0
        }
    };
    for flow in &mut allocation.flows {
        let ack = ack_ratio(flow.flow);
        let mut factor = 1.0f64;
        for &arc in flow.paths.iter().flat_map(|p| &p.arcs) {
            factor = factor.min(room(arc));
            if let Some(reverse) = arcs[arc].reverse.filter(|_| ack > 0.0) {
                factor = factor.min(room(reverse));
            }
        }
        flow.paths.iter_mut().for_each(|p| p.rate_bps *= factor);
        flow.rate_bps *= factor;
    }
}
