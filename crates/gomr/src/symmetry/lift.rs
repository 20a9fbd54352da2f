//! The answer of the classes for all their members: each arc carries the mean of its class.

use std::collections::BTreeMap;

use super::partition::Partition;
use super::reduced::ReducedProblem;
use crate::certificate::audit::PathRates;
use crate::graph::NONE;
use crate::problem::Problem;

/// Part of a flow's rate that is rounding.
const ROUNDING: f64 = 1e-12;

/// A path of a flow with its rate.
type FlowPath = (u32, f64, Vec<u32>);

/// Splits what each source sends over its arcs into paths of its flows; `None` where it goes in circles.
pub(super) fn lift(
    problem: &Problem,
    partition: &Partition,
    reduced: &ReducedProblem,
) -> Option<PathRates> {
    let rates: Vec<Vec<f64>> = (0..reduced.members.len())
        .map(|own| reduced.rates(own))
        .collect();
    let mean = means(problem, partition, reduced, &rates);
    let mut entering = vec![Vec::new(); problem.nodes];
    for (at, arc) in problem.arcs.iter().enumerate() {
        entering[arc.head].push(at as u32);
    }
    let mut paths: Vec<FlowPath> = Vec::new();
    let mut order = partition.order.iter().copied().peekable();
    for (place, &source) in partition.sources.iter().enumerate() {
        let carried = |at| mean.get(&partition.arc_colour(place, problem, at)).copied();
        let mut splitter = FlowDecomposition {
            problem,
            entering: &entering,
            carried: (0..problem.arcs.len())
                .map(|at| carried(at).map_or(0.0, |(sum, count)| sum / count as f64))
                .collect(),
            on_path: vec![false; problem.nodes],
            source: source as usize,
        };
        let is_own = |at: &u32| problem.flows[*at as usize].source == source as usize;
        while let Some(flow) = order.next_if(is_own) {
            let own = reduced.stands_for[flow as usize] as usize;
            let rate_bps = rates[own].iter().sum::<f64>() / reduced.members[own] as f64;
            splitter.split(flow, rate_bps, &mut paths)?;
        }
    }
    paths.sort_by_key(|&(flow, ..)| flow);
    let mut answer = PathRates {
        start: vec![0],
        ..PathRates::default()
    };
    for (flow, rate_bps, arcs) in paths {
        answer.flow.push(flow);
        answer.rate_bps.push(rate_bps);
        answer.arcs.extend(arcs);
        answer.start.push(answer.arcs.len() as u32);
    }
    Some(answer)
}

/// What the arcs of each colour carry together, and how many there are; an arc has a colour for each source.
fn means(
    problem: &Problem,
    partition: &Partition,
    reduced: &ReducedProblem,
    rates: &[Vec<f64>],
) -> BTreeMap<u64, (f64, usize)> {
    let mut sums: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
    for (own, &place) in reduced.places.iter().enumerate() {
        for (path, &rate) in reduced.paths[own].iter().zip(&rates[own]) {
            for &arc in path.iter().filter(|_| rate > 0.0) {
                let colour = partition.arc_colour(place, problem, arc as usize);
                sums.entry(colour).or_insert((0.0, 0)).0 += rate;
            }
        }
    }
    for place in 0..partition.sources.len() {
        for (arc, _) in partition
            .class
            .iter()
            .enumerate()
            .filter(|(_, &class)| class != NONE)
        {
            let colour = partition.arc_colour(place, problem, arc);
            sums.entry(colour).and_modify(|(_, count)| *count += 1);
        }
    }
    sums
}

/// Takes paths out of what a source's arcs carry.
struct FlowDecomposition<'a> {
    problem: &'a Problem,
    entering: &'a [Vec<u32>],
    /// What is left on each arc, bit/s.
    carried: Vec<f64>,
    /// Whether each node is on the path that is looked for.
    on_path: Vec<bool>,
    source: usize,
}

impl FlowDecomposition<'_> {
    /// Each path empties an arc or ends the flow.
    fn split(&mut self, flow: u32, rate_bps: f64, paths: &mut Vec<FlowPath>) -> Option<()> {
        let mut left_bps = rate_bps;
        while left_bps > ROUNDING * rate_bps {
            let path = self.fullest(self.problem.flows[flow as usize].destination)?;
            let carried = path.iter().map(|&arc| self.carried[arc as usize]);
            let mut part_bps = carried.fold(f64::INFINITY, f64::min).min(left_bps);
            if part_bps <= ROUNDING * rate_bps {
                part_bps = left_bps;
            }
            for &arc in &path {
                self.carried[arc as usize] -= part_bps;
            }
            left_bps -= part_bps;
            paths.push((flow, part_bps, path));
        }
        Some(())
    }

    /// A path by the fullest arc into each node, backwards.
    fn fullest(&mut self, destination: usize) -> Option<Vec<u32>> {
        self.on_path.fill(false);
        let mut path = Vec::new();
        let mut node = destination;
        while node != self.source {
            if std::mem::replace(&mut self.on_path[node], true) {
                return None;
            }
            let carried = |arc: &u32| self.carried[*arc as usize];
            let arcs = self.entering[node].iter().copied();
            let arc = arcs.max_by(|a, b| carried(a).total_cmp(&carried(b)))?;
            path.push(arc);
            node = self.problem.arcs[arc as usize].tail;
        }
        path.reverse();
        Some(path)
    }
}
