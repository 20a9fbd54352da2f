//! Objectives by name.

pub(crate) mod concurrent;
pub(crate) mod first_only;
pub(crate) mod max_min;
pub(crate) mod utilisation;

use crate::allocation::{FlowAllocation, FlowId, PathRate};
use crate::problem::Flow;

/// Segments of the concave utility of [`Objective::Fair`].
pub const SEGMENTS: usize = 8;

/// What is optimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Admit as much as possible; among those allocations, least rate-weighted delay.
    #[default]
    MaxThroughputMinDelay,
    /// Maximise a concave utility of each flow's admitted share, then least rate-weighted delay.
    ///
    /// The first eighth of a request counts its weight per bit/s, the second half of it, the third a
    /// third: the slopes of the logarithm, so this is proportional fairness in eight steps.
    Fair,
    /// Exact max-min fairness of rate per weight, then least rate-weighted delay.
    MaxMin,
    /// Admit as much as possible, then the least largest utilisation, then least rate-weighted delay.
    MinMaxUtilisation,
}

impl Objective {
    /// All objectives with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("max_throughput_min_delay", Self::MaxThroughputMinDelay),
        ("fair", Self::Fair),
        ("max_min", Self::MaxMin),
        ("min_max_utilisation", Self::MinMaxUtilisation),
    ];

    /// The objective of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, objective)| objective)
    }

    /// The worth per bit/s and the rate of each part of a flow.
    pub(crate) fn parts(self, flow: &Flow) -> impl Iterator<Item = (f64, f64)> {
        let (count, weight) = match self {
            Self::Fair => (SEGMENTS, flow.weight),
            _ => (1, 1.0),
        };
        let rate_bps = flow.rate_bps / count as f64;
        (0..count).map(move |part| (weight / (part + 1) as f64, rate_bps))
    }
}

/// A flow before anything of it is routed; within one node it is admitted at once.
pub(crate) fn start_of(id: FlowId, flow: &Flow) -> FlowAllocation {
    let mut start = FlowAllocation {
        flow: id,
        rate_bps: 0.0,
        paths: Vec::new(),
    };
    if flow.source == flow.destination && flow.rate_bps > 0.0 {
        start.paths.push(PathRate {
            arcs: Vec::new(),
            rate_bps: flow.rate_bps,
            delay_s: 0.0,
        });
    }
    start
}

/// Merges equal paths, sorts by delay and sums the rate.
pub(crate) fn tidy(flow: &mut FlowAllocation) {
    if flow.paths.len() > 1 {
        flow.paths.sort_by(|a, b| {
            a.delay_s
                .total_cmp(&b.delay_s)
                .then_with(|| a.arcs.cmp(&b.arcs))
        });
        flow.paths.dedup_by(|next, kept| {
            let same = next.arcs == kept.arcs;
            if same {
                kept.rate_bps += next.rate_bps;
            }
            same
        });
    }
    flow.rate_bps = flow.paths.iter().map(|p| p.rate_bps).sum();
}
