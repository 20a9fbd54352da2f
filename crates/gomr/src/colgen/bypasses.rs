//! Pricing where few arcs have a price: by the ways around these ([`crate::tolls`]).

use super::origin::{Offer, Origin, Terms};
use super::Solver;
use crate::tolls::{are_few, Tolls};

/// Fewest nodes for which paths around the arcs with a price are worthwhile.
pub(super) const LEAST_NODES: usize = 200;
/// Paths looked at for each candidate that is wanted.
const LOOKED_AT: usize = 4;

impl Solver {
    /// Whether so few arcs have a price that paths are found by the ways around them.
    pub(crate) fn has_few_tolls(&self) -> bool {
        let prices = self.master.price.iter().zip(&self.smooth);
        let count = prices.filter(|(&now, &smooth)| now.max(smooth) > 0.0);
        are_few(count.count(), self.graph.nodes, self.toll_nodes)
    }

    /// Brings the ways around tolls up to date with the smoothed lengths.
    fn update_tolls(&mut self) {
        let version = self.smooth_lengths.version();
        let lengths = self.smooth_lengths.all();
        while self.tolls.len() < lengths.len() {
            self.tolls.push(Tolls::new(&self.graph, self.cost.clone()));
        }
        for (tolls, length) in self.tolls.iter_mut().zip(lengths) {
            self.master.work += tolls.update(&self.graph, length, version);
        }
    }

    /// Collects columns that gain from so many candidates on; returns whether it saw all commodities.
    pub(super) fn price_by_tolls(&mut self, enough: usize, gains: &mut Vec<(f64, u32)>) -> bool {
        self.update_tolls();
        let most = LOOKED_AT * enough;
        let count = self.origins.len();
        let mut better: Vec<(f64, u32, u32)> = Vec::new();
        let mut offers = Vec::new();
        let mut seen = 0;
        while seen < count && better.len() + offers.len() < most {
            if self.cursor >= count {
                self.cursor = 0;
            }
            self.price_origin(self.cursor, &mut offers, &mut better);
            self.cursor += 1;
            seen += 1;
        }
        self.master.work += (2 * self.graph.nodes * seen) as u64;
        better.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        better.truncate(most);
        better.sort_by_key(|&(_, id, at)| (at, id));
        self.take_offers(&mut offers, gains);
        self.take_paths(&better, gains);
        seen == count
    }

    fn price_origin(
        &mut self,
        at: usize,
        offers: &mut Vec<Offer>,
        better: &mut Vec<(f64, u32, u32)>,
    ) {
        let limit = self.gain_limit();
        let terms = Terms {
            graph: &self.graph,
            master: &self.master,
            commodities: &self.commodities,
            pricer: &self.pricer,
            usable: &self.usable,
            lengths: self.smooth_lengths.all(),
            since: self.smooth_lengths.since(),
            version: self.smooth_lengths.version(),
            limit,
        };
        let Origin { source, class, .. } = self.origins[at];
        let tolls = &mut self.tolls[class];
        let open = self.origins[at].list_open(&terms, None, offers);
        if open.is_empty() {
            return;
        }
        tolls.prepare(&self.graph, source);
        tolls.reach(source, &mut self.reach);
        for &(id, worth) in open {
            let commodity = &self.commodities[id as usize];
            let gain = worth - tolls.distance(&self.reach, commodity.target);
            if gain <= limit {
                continue;
            }
            match commodity.max_delay_s {
                Some(_) => offers.push(Offer::Search(id, worth)),
                None => better.push((gain, id, at as u32)),
            }
        }
    }

    /// Adds the paths of some commodities, one origin after the other, and offers those that gain under the present
    /// prices.
    fn take_paths(&mut self, better: &[(f64, u32, u32)], gains: &mut Vec<(f64, u32)>) {
        let limit = self.gain_limit();
        let mut path = Vec::new();
        let mut reached = None;
        for &(_, id, at) in better {
            let Origin { source, class, .. } = self.origins[at as usize];
            let target = self.commodities[id as usize].target;
            if reached.replace(at) != Some(at) {
                self.tolls[class].reach(source, &mut self.reach);
            }
            self.tolls[class].path_to(&self.graph, &self.reach, target, &mut path);
            let column = self.add_path(id, &path);
            let gain = self.master.reduced_profit(column);
            if gain > limit && !self.master.is_basic(column) {
                gains.push((gain, column));
            }
        }
    }
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
        let arcs = links
            .iter()
            .enumerate()
            .flat_map(|(i, &(a, b, capacity_bps, delay_s))| {
                [(a, b, 2 * i + 1), (b, a, 2 * i)].map(|(tail, head, reverse)| Arc {
                    tail,
                    head,
                    capacity_bps,
                    delay_s,
                    reverse: Some(reverse),
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
            arcs: arcs.collect(),
            flows: (0..60)
                .map(flow)
                .filter(|f| f.source != f.destination)
                .collect(),
        }
    }

    #[test]
    fn finds_the_optimum_that_trees_find_through_events() {
        let problem = rings(9, 12);
        let mut by_trees = Engine::new(&problem, Objective::MaxThroughputMinDelay).expect("valid");
        let mut by_tolls = by_trees.clone();
        by_trees.solver.toll_nodes = usize::MAX;
        by_tolls.solver.toll_nodes = 0;
        for event in 0..30 {
            let arc = event * 11 % problem.arcs.len();
            for engine in [&mut by_trees, &mut by_tolls] {
                match event % 3 {
                    0 => engine.fail_link(arc).expect("it is there"),
                    1 => engine
                        .restore_link((event - 1) * 11 % problem.arcs.len())
                        .expect("it is there"),
                    _ => engine.change_rate(event % 50, 0.7).expect("it is there"),
                }
            }
            assert!(by_tolls.solver.has_few_tolls());
            let (one, other) = (
                by_trees.solve().expect("solves"),
                by_tolls.solve().expect("solves"),
            );
            assert!((one.admitted_bps - other.admitted_bps).abs() < 1e-10 * one.admitted_bps);
            assert!((one.cost_bps_s - other.cost_bps_s).abs() < 1e-9 * one.cost_bps_s);
            assert!(other.certificate.gap < 1e-10);
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

    const OBJECTIVES: [Objective; 4] = [
        Objective::MaxThroughputMinDelay,
        Objective::Fair,
        Objective::MaxMin,
        Objective::MinMaxUtilisation,
    ];

    #[test]
    fn agrees_with_trees_under_every_objective_through_random_events() {
        for seed in 0..8 {
            let mut rng = Rng(seed);
            let mut problem = rings(3 + rng.below(8), 4 + rng.below(12));
            for flow in &mut problem.flows {
                flow.rate_bps *= 0.5 + rng.below(40) as f64 / 10.0;
                flow.max_delay_s = (rng.below(11) == 0).then(|| 5.0 + rng.below(60) as f64);
            }
            for objective in OBJECTIVES {
                let mut by_trees = Engine::new(&problem, objective).expect("valid");
                let mut by_tolls = by_trees.clone();
                by_trees.solver.toll_nodes = usize::MAX;
                by_tolls.solver.toll_nodes = 0;
                for event in 0..12 {
                    let (arc, flow) = (
                        rng.below(problem.arcs.len()),
                        rng.below(problem.flows.len()),
                    );
                    let (kind, rate_bps) = (rng.below(4), rng.below(50) as f64 / 10.0);
                    for engine in [&mut by_trees, &mut by_tolls] {
                        match kind {
                            0 => engine.fail_link(arc),
                            1 => engine.restore_link(arc),
                            _ => engine.change_rate(flow, rate_bps),
                        }
                        .expect("it is there");
                    }
                    let one = by_trees.solve().expect("solves");
                    let other = by_tolls.solve().expect("solves");
                    let apart = one.certificate.value - other.certificate.value;
                    let what = format!("seed {seed}, {objective:?}, event {event}");
                    assert!(apart.abs() < 1e-9 * (1.0 + one.admitted_bps), "{what}");
                    let apart = one.cost_bps_s - other.cost_bps_s;
                    assert!(apart.abs() < 1e-8 * (1.0 + one.cost_bps_s), "{what}");
                    assert!(other.certificate.gap < 1e-9, "{what}");
                }
            }
        }
    }
}
