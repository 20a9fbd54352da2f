//! Pricing where few arcs have a price: by the detours around these ([`crate::pricing::priced_arcs`]).

use super::origin::CandidatePath;
use super::priced_arcs::{are_few, PricedArcs, SourceDistances};
use super::{gain_limit, take, PathPricing, Pricing};
use crate::graph::Graph;
use crate::solver::{Commodity, Solver};

/// The detours around priced arcs, for each class of lengths.
#[derive(Clone, Debug, Default)]
pub(crate) struct PricedArcPaths {
    pub classes: Vec<PricedArcs>,
    /// Distances from one source.
    reach: SourceDistances,
    /// That source, and its class.
    reached: Option<(u32, usize)>,
}

impl PathPricing for PricedArcPaths {
    fn shortest(
        &mut self,
        graph: &Graph,
        commodity: &Commodity,
        limit: f64,
        path: &mut Vec<u32>,
    ) -> Option<f64> {
        let priced_arcs = &self.classes[commodity.class];
        let from = (commodity.source, commodity.class);
        if self.reached.replace(from) != Some(from) {
            priced_arcs.reach(commodity.source, &mut self.reach);
        }
        let length = priced_arcs.path_to(graph, &self.reach, commodity.target, path);
        (length < limit).then_some(length)
    }
}

/// Whether so few arcs have a price that paths are found by the detours around them.
pub(crate) fn are_worthwhile(solver: &Solver) -> bool {
    let prices = solver.master.price.iter().zip(&solver.pricing.smooth_price);
    let count = prices.filter(|(&now, &smooth)| now.max(smooth) > 0.0);
    are_few(
        count.count(),
        solver.graph.nodes,
        solver.settings.pricing.priced_arc_nodes,
    )
}

/// Brings the detours around priced arcs up to date with the smoothed lengths.
fn update_priced_arcs(solver: &mut Solver) {
    let Pricing {
        priced,
        smooth_lengths,
        cost,
        ..
    } = &mut solver.pricing;
    let lengths = smooth_lengths.all();
    let new = || PricedArcs::new(&solver.graph, cost.clone());
    priced.classes.resize_with(lengths.len(), new);
    for (priced_arcs, length) in priced.classes.iter_mut().zip(lengths) {
        let work = priced_arcs.update(&solver.graph, length, smooth_lengths.version());
        solver.master.work += work;
    }
    priced.reached = None;
}

/// Collects columns that gain, from this many candidates; returns whether it saw all commodities.
pub(crate) fn collect(solver: &mut Solver, enough: usize, gains: &mut Vec<(f64, u32)>) -> bool {
    update_priced_arcs(solver);
    let most = solver.settings.pricing.looked_at * enough;
    let count = solver.pricing.trees.origins.len();
    let mut candidates = Vec::new();
    let mut seen = 0;
    while seen < count && candidates.len() < most {
        let at = solver.pricing.cursor % count;
        price_origin(solver, at, &mut candidates);
        solver.pricing.cursor = at + 1;
        seen += 1;
    }
    solver.master.work += (2 * solver.graph.nodes * seen) as u64;
    CandidatePath::keep_best(&mut candidates, most);
    take(solver, &mut candidates, gains, |pricing| {
        &mut pricing.priced
    });
    seen == count
}

fn price_origin(solver: &mut Solver, at: usize, candidates: &mut Vec<CandidatePath>) {
    let mut trees = std::mem::take(&mut solver.pricing.trees);
    let origin = &mut trees.origins[at];
    let (source, class) = (origin.source, origin.class);
    let open = origin.list_open(solver, None, candidates);
    if !open.is_empty() {
        let limit = gain_limit(solver);
        let PricedArcPaths {
            classes,
            reach,
            reached,
        } = &mut solver.pricing.priced;
        let priced_arcs = &mut classes[class];
        priced_arcs.prepare(&solver.graph, source);
        priced_arcs.reach(source, reach);
        *reached = Some((source, class));
        for &(id, worth) in open {
            let commodity = &solver.pool.commodities[id as usize];
            let gain = worth - priced_arcs.distance(reach, commodity.target);
            if gain > limit {
                candidates.push(match commodity.max_delay_s {
                    Some(_) => CandidatePath::Search(id, worth),
                    None => CandidatePath::Path(gain, id),
                });
            }
        }
    }
    solver.pricing.trees = trees;
}

#[cfg(test)]
mod tests {
    use crate::random::Rng;
    use crate::{Arc, Engine, Flow, Objective, Problem};

    /// A ring of rings, each joined to the next by one narrow link, with flows across.
    fn rings(count: usize, size: usize) -> Problem {
        let mut links = Vec::new();
        for ring in 0..count {
            for place in 0..size {
                let other = ring * size + (place + 1) % size;
                links.push((ring * size + place, other, 10.0, 1.0 + place as f64));
            }
            let (next, gate) = ((ring + 1) % count * size, ring * size + size / 2);
            links.push((gate, next, 3.0, 0.5));
        }
        let ways = links
            .into_iter()
            .enumerate()
            .flat_map(|(i, (a, b, capacity_bps, delay_s))| {
                [(a, b, 2 * i + 1), (b, a, 2 * i)].map(|(tail, head, reverse)| Arc {
                    reverse: Some(reverse),
                    ..Arc::new(tail, head, capacity_bps, delay_s)
                })
            });
        let nodes = count * size;
        let flow = |i: usize| {
            let mut flow = Flow::new(
                i * 7 % nodes,
                (i * 13 + 5) % nodes,
                0.2 + 0.1 * (i % 5) as f64,
            );
            flow.ack_ratio = if i % 9 == 0 { 0.05 } else { 0.0 };
            flow
        };
        Problem {
            nodes,
            arcs: ways.collect(),
            flows: (0..60)
                .map(flow)
                .filter(|f| f.source != f.destination)
                .collect(),
        }
    }

    #[test]
    fn a_copy_that_ignores_delays_admits_as_much_after_a_failure() {
        let problem = rings(5, 8);
        let mut base = Engine::new(&problem, Objective::MaxThroughputMinDelay).expect("valid");
        base.solve().expect("solves");
        base.forget_poor_paths();
        base.ignore_delays();
        for arc in 0..problem.arcs.len() {
            let mut broken = problem.clone();
            broken.arcs[arc].capacity_bps = 0.0;
            let fresh = Engine::new(&broken, Objective::MaxThroughputMinDelay)
                .expect("valid")
                .solve();
            let mut copy = base.clone();
            copy.fail_link(arc).expect("it is there");
            let solved = copy.solve().expect("solves");
            let expected = fresh.expect("solves").admitted_bps;
            assert!(
                (solved.admitted_bps - expected).abs() < 1e-10 * expected,
                "arc {arc}"
            );
        }
    }

    #[test]
    fn agrees_with_trees_under_every_objective_through_random_events() {
        let mut worthwhile = 0;
        for seed in 0..8 {
            let mut rng = Rng(seed);
            let mut problem = rings(3 + rng.below(8), 4 + rng.below(12));
            for flow in &mut problem.flows {
                flow.rate_bps *= 0.5 + rng.below(40) as f64 / 10.0;
                flow.max_delay_s = (rng.below(11) == 0).then(|| 5.0 + rng.below(60) as f64);
            }
            for (name, objective) in Objective::ALL {
                let mut by_trees = Engine::new(&problem, objective).expect("valid");
                let mut by_priced_arcs = by_trees.clone();
                by_trees.solver.settings.pricing.priced_arc_nodes = usize::MAX;
                by_priced_arcs.solver.settings.pricing.priced_arc_nodes = 0;
                for event in 0..12 {
                    let (arc, flow) = (
                        rng.below(problem.arcs.len()),
                        rng.below(problem.flows.len()),
                    );
                    let (kind, rate_bps) = (rng.below(4), rng.below(50) as f64 / 10.0);
                    for engine in [&mut by_trees, &mut by_priced_arcs] {
                        match kind {
                            0 => engine.fail_link(arc),
                            1 => engine.restore_link(arc),
                            _ => engine.change_rate(flow, rate_bps),
                        }
                        .expect("it is there");
                    }
                    worthwhile += usize::from(super::are_worthwhile(&by_priced_arcs.solver));
                    let one = by_trees.solve().expect("solves");
                    let other = by_priced_arcs.solve().expect("solves");
                    let apart = one.certificate.value - other.certificate.value;
                    let what = format!("seed {seed}, {name}, event {event}");
                    assert!(apart.abs() < 1e-9 * (1.0 + one.admitted_bps), "{what}");
                    let apart = one.cost_bps_s - other.cost_bps_s;
                    assert!(apart.abs() < 1e-8 * (1.0 + one.cost_bps_s), "{what}");
                    assert!(other.certificate.gap < 1e-9, "{what}");
                }
            }
        }
        assert!(worthwhile > 100, "{worthwhile}");
    }
}
