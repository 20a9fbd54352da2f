//! The first basis, from balanced rates: all but one rate of each commodity are pushed into the basis or to zero.
//!
//! The simplex from what fits at once takes many pivots for each commodity where much is congested, since each lets in
//! one path at prices that are far from the last ones. A push costs a pivot at most and never loses (N. Megiddo, "On
//! finding primal- and dual-optimal bases", ORSA J. Computing 3, 1991), and the basis that it ends with is
//! about as good as the rates that it began with.

use super::balance::Balance;
use super::{Solver, SMOOTHING};
use crate::dual::HALT;
use crate::master::Column;

/// Most sweeps over all commodities.
const MOST_SWEEPS: usize = 200;
/// Sweeps that look for new paths: the first ones, fewer where an optimum was known, and one in so many of the others.
/// Trees are most of a sweep's time: 1,000 flows on 100 nodes take 18 ms so, and 30 ms with trees in every sweep.
const FIRST: usize = 6;
const FIRST_AGAIN: usize = 3;
const EVERY: usize = 4;
/// Sweeps end when they move less than so many mean requests, and overload arcs by less than `FITS` of them: what is left
/// costs about as many pivots, and in larger networks each of them takes longer. 2,000 nodes with 20,000 flows take 54 s
/// where sweeps end by the parts that are best for 500 nodes.
const STILL: f64 = 50.0;
const FITS: f64 = 1.0;
/// From a known optimum, which is near, they end as well where the overload did not become less than `BETTER` of its least
/// in so many: prices then go round.
const STUCK: usize = 12;
const BETTER: f64 = 0.8;
/// Or where they took so great a part of the first solve's work.
const PART: u64 = 3;
/// Nodes for each arc that shortest paths overload, and least arcs for each node, where rates are balanced. Generated
/// networks of 100 to 2,000 nodes have 2 to 4 and 4, and gain. Kdl with 10,000 flows has 4.4 and 2.4: few ways lead
/// around its full links, these are found faster, and it took twice as long with balanced rates.
const CONGESTED: usize = 4;
const MESHED: usize = 3;
/// Fewest commodities for which rates are balanced: on 50 nodes 500 take as long with it as without, and 200 a quarter longer.
pub(super) const LEAST_COMMODITIES: usize = 1000;
/// Pivots for each link and commodity after which rates are balanced all the same, where no more of the requests is unserved.
const LONG: usize = 3;
const MOST_UNSERVED: f64 = 0.25;
/// Work for each arc of a path that is looked at, and for each node of a tree: a unit takes about as long as one of the
/// simplex, by which events are given up. With 3 and 18 most link failures on 100 nodes were solved from scratch.
const STEP_WORK: u64 = 5;
const NODE_WORK: usize = 30;
/// Parts of a request that are too small for a path of their own.
const CRUMB: f64 = 0.01;

impl Solver {
    /// Starts from balanced rates and returns the known paths outside the basis; `None` where rates are not to be
    /// balanced, or the time is up.
    pub(super) fn start_balanced(&mut self) -> Option<Vec<u32>> {
        if !self.is_balanced || !self.are_all_free() {
            return None;
        }
        let (mut balance, is_near) = self.balance()?;
        self.fit(&mut balance);
        self.master.reset();
        let aside = self.lay_out(&balance);
        self.master.compute_values();
        let tolerance = self.master.tolerance();
        for (count, (column, rate)) in aside.into_iter().enumerate() {
            if count % HALT == 0 && self.master.halt.now() {
                return None;
            }
            self.master.push(column, rate, tolerance);
        }
        self.master.restore_bounds();
        self.accurate();
        if self.master.infeasibility() > self.feasibility() {
            return None;
        }
        // Prices that are near the optimum's hardly jump.
        self.smoothing = if is_near { 0.0 } else { SMOOTHING };
        self.last_prices = balance.prices();
        let priced =
            (0..self.cost.len() as u32).filter(|&arc| self.last_prices[arc as usize] > 0.0);
        self.master.expect_prices(priced);
        Some(self.paths_outside())
    }

    /// Decides by the shortest paths, which are the keys, whether solves from scratch balance rates first: not where
    /// they overload few arcs, since the ways around these are found faster.
    pub(super) fn choose_start(&mut self) {
        let overloaded = self.master.slack.iter().filter(|&&slack| slack < 0.0);
        let is_congested = CONGESTED * overloaded.count() > self.graph.nodes;
        let is_meshed = self.graph.arcs() >= MESHED * self.graph.nodes;
        // Not the parts of `fair`, of which those of one flow differ in worth: 50 to 200 nodes take as many pivots or more.
        let values = self.commodities.iter().map(|commodity| commodity.value);
        let is_even = values.clone().zip(values.skip(1)).all(|(a, b)| a == b);
        let are_many = self.commodities.len() >= self.least_balanced;
        self.is_balanced = is_congested && is_meshed && is_even && are_many;
        if is_even && !are_many {
            self.balance_from = self.master.pivots + LONG * self.size();
        }
    }

    /// Counts the pivots of a solve from here, not those of solves before it.
    pub(super) fn begin_pivots(&mut self) {
        if self.balance_from < usize::MAX {
            self.balance_from = self.master.pivots + LONG * self.size();
        }
    }

    /// Whether the solve is to begin again with balanced rates: it takes long, and what is left to find are ways for all.
    /// Fat-trees with a permutation at full rate take a hundredth of the time so; where much is not served, it saves nothing.
    pub(super) fn balances_after_all(&mut self) -> bool {
        if self.master.pivots < self.balance_from {
            return false;
        }
        self.balance_from = self.master.pivots + self.size() / 2;
        let groups = self.master.groups.iter().filter(|group| group.active);
        let asked = groups.clone().map(|group| group.request).sum::<f64>();
        let unserved = groups
            .map(|group| self.master.rate(group.unserved))
            .sum::<f64>();
        if unserved > MOST_UNSERVED * asked || !self.are_all_free() {
            return false;
        }
        self.balance_from = usize::MAX;
        self.is_balanced = true;
        true
    }

    fn are_all_free(&self) -> bool {
        let active = self.commodities.iter().zip(&self.master.groups);
        let mut active = active.filter(|(_, group)| group.active);
        active.all(|(commodity, _)| commodity.is_free())
    }

    pub(super) fn paths_outside(&self) -> Vec<u32> {
        let master = &self.master;
        let groups = master.groups.iter().filter(|group| group.active);
        let paths = groups.flat_map(|group| &group.columns).copied();
        let is_open = |&c: &u32| !master.is_basic(c) && !master.columns[c as usize].banned;
        paths.filter(is_open).collect()
    }

    /// Sweeps over all commodities, and whether until rates hardly moved; `None` when the time is up.
    fn balance(&mut self) -> Option<(Balance, bool)> {
        let worth = self.commodities.iter().map(|c| c.value * self.master.big_m);
        let requests = self.master.groups.iter().map(|group| match group.active {
            true => group.request,
            false => 0.0,
        });
        let active = self.master.groups.iter().filter(|group| group.active);
        let mean = requests.clone().sum::<f64>() / active.count().max(1) as f64;
        let mut balance = Balance::new(&self.cost, &self.master.capacity, requests.zip(worth));
        let is_known = !self.last_prices.is_empty();
        if is_known {
            self.resume(&mut balance);
        }
        let first = if is_known { FIRST_AGAIN } else { FIRST };
        let mut path = Vec::new();
        let (mut least, mut least_at) = (f64::INFINITY, 0);
        let mut is_near = false;
        for sweep in 0..MOST_SWEEPS {
            if self.master.halt.now() {
                return None;
            }
            balance.moved = 0.0;
            let has_trees = sweep < first || sweep % EVERY == 0;
            if has_trees {
                for at in 0..self.origins.len() {
                    self.sweep_origin(at, &mut balance, &mut path);
                }
                self.master.work += (NODE_WORK * self.graph.nodes * self.origins.len()) as u64;
            }
            let is_still = balance.moved <= STILL * mean;
            let overload = balance.overload();
            if overload < BETTER * least {
                (least, least_at) = (overload, sweep);
            }
            let is_long = STEP_WORK * balance.steps > self.fresh_work / PART;
            let is_stuck = is_known && (sweep > least_at + STUCK || is_long);
            is_near = has_trees && is_still && (overload <= FITS * mean || is_stuck);
            if is_near {
                break;
            }
            balance.end_sweep(sweep == 0 && !is_known);
        }
        self.master.work += STEP_WORK * balance.steps;
        Some((balance, is_near))
    }

    /// Begins with the prices of the last optimum and the rates that the simplex has come to since.
    fn resume(&self, balance: &mut Balance) {
        balance.set_prices(&self.last_prices);
        let master = &self.master;
        let mut serve = |column: u32, rate: f64| {
            let Column { group, banned, .. } = master.columns[column as usize];
            let path = master.path(column);
            if !banned && !path.is_empty() {
                balance.serve(group as usize, path, rate);
            }
        };
        for (&column, &rate) in master.keys.iter().zip(&master.key_values) {
            serve(column, rate);
        }
        for (&column, &rate) in master.working.iter().zip(&master.x) {
            serve(column, rate);
        }
        balance.update_lengths();
    }

    fn sweep_origin(&mut self, at: usize, balance: &mut Balance, path: &mut Vec<u32>) {
        let origin = &mut self.origins[at];
        origin.measure(&self.graph, balance.lengths(), &mut self.scratch[0]);
        for (id, target, distance) in origin.distances() {
            balance.visit(id as usize, distance, || {
                let is_there = origin.path_to(&self.graph, target, path);
                is_there.then_some(&path[..])
            });
        }
    }

    /// Takes small rates together, and as much away as is too much.
    fn fit(&self, balance: &mut Balance) {
        for (commodity, group) in self.master.groups.iter().enumerate() {
            balance.sweep_up(commodity, CRUMB * group.request);
        }
        balance.keep_within_capacity();
    }

    /// Makes the largest rate of each commodity its key, in an empty basis; returns the others, taken out of the
    /// bounds.
    fn lay_out(&mut self, balance: &Balance) -> Vec<(u32, f64)> {
        let mut aside = Vec::new();
        for (commodity, share) in balance.shares.iter().enumerate() {
            let id = commodity as u32;
            let mut rates = vec![(self.master.groups[commodity].unserved, share.unserved)];
            for route in &share.routes {
                rates.push((self.add_path(id, balance.path(route)), route.rate));
            }
            rates.sort_by(|a, b| b.1.total_cmp(&a.1));
            if rates[0].0 != self.master.groups[commodity].unserved {
                self.master.set_key(rates[0].0);
            }
            for &(column, rate) in rates[1..].iter().filter(|&&(_, rate)| rate > 0.0) {
                self.master.lay_aside(column, rate);
                aside.push((column, rate));
            }
        }
        aside
    }
}

#[cfg(test)]
mod tests {
    use crate::random::Rng;
    use crate::{Arc, Engine, Flow, Objective, Problem};

    /// Random links of unequal rates, some of them all alike, and more flows than fit.
    fn congested(nodes: usize, flows: usize, rng: &mut Rng) -> Problem {
        let is_even = rng.below(2) == 0;
        let arc = |from: usize, rng: &mut Rng| Arc {
            tail: from,
            head: (from + 1 + rng.below(nodes - 1)) % nodes,
            capacity_bps: if is_even {
                4.0
            } else {
                1.0 + rng.below(40) as f64 / 4.0
            },
            delay_s: if is_even {
                1.0
            } else {
                rng.below(20) as f64 / 4.0
            },
            reverse: None,
        };
        let flow = |rng: &mut Rng| {
            let source = rng.below(nodes);
            let target = (source + 1 + rng.below(nodes - 1)) % nodes;
            Flow::new(source, target, rng.below(12) as f64 / 4.0)
        };
        Problem {
            nodes,
            arcs: (0..3 * nodes).map(|i| arc(i % nodes, rng)).collect(),
            flows: (0..flows).map(|_| flow(rng)).collect(),
        }
    }

    #[test]
    fn ends_at_the_same_optimum_from_balanced_rates() {
        for seed in 0..30 {
            let mut rng = Rng(seed);
            let nodes = 4 + rng.below(16);
            let problem = congested(nodes, 8 * nodes, &mut rng);
            for (name, objective) in Objective::ALL {
                let mut usual = Engine::new(&problem, objective).expect("valid");
                let mut balanced = usual.clone();
                usual.solver.least_balanced = usize::MAX;
                balanced.solver.least_balanced = 0;
                for event in 0..4 {
                    let (arc, flow) = (
                        rng.below(problem.arcs.len()),
                        rng.below(problem.flows.len()),
                    );
                    let what = format!("seed {seed}, {name}, event {event}");
                    let one = usual.solve().expect(&what);
                    let other = balanced.solve().expect(&what);
                    let apart = one.certificate.value - other.certificate.value;
                    assert!(apart.abs() < 1e-9 * (1.0 + one.admitted_bps), "{what}");
                    let apart = one.cost_bps_s - other.cost_bps_s;
                    assert!(apart.abs() < 1e-8 * (1.0 + one.cost_bps_s), "{what}");
                    assert!(other.certificate.gap < 1e-9, "{what}");
                    for engine in [&mut usual, &mut balanced] {
                        engine.fail_link(arc).expect("it is there");
                        engine.change_rate(flow, 2.5).expect("it is there");
                    }
                }
            }
        }
    }

    #[test]
    fn a_link_that_fails_costs_at_most_a_fifth_more_than_a_fresh_solve() {
        let problem = congested(60, 1500, &mut Rng(7));
        let fresh = || Engine::new(&problem, Objective::MaxThroughputMinDelay).expect("valid");
        let mut live = fresh();
        live.solve().expect("solves");
        let mut restarts = 0;
        for arc in (0..problem.arcs.len()).step_by(9) {
            live.fail_link(arc).expect("it is there");
            let before = live.effort();
            live.solve().expect("solves");
            let after = live.effort();
            let mut alone = fresh();
            alone.fail_link(arc).expect("it is there");
            alone.solve().expect("solves");
            let (work, most) = (after.work - before.work, alone.effort().work * 6 / 5);
            assert!(work <= most, "link {arc}: {work} of {most}");
            restarts += after.restarts - before.restarts;
            live.restore_link(arc).expect("it is there");
            live.solve().expect("solves");
        }
        assert!(restarts > 0, "none began from the rates of before");
    }

    #[test]
    fn balanced_rates_save_most_pivots() {
        let mut rng = Rng(5);
        let problem = congested(40, 1200, &mut rng);
        let pivots = |least_balanced: usize| {
            let mut engine =
                Engine::new(&problem, Objective::MaxThroughputMinDelay).expect("valid");
            engine.solver.least_balanced = least_balanced;
            engine.solve().expect("solves");
            assert_eq!(engine.solver.is_balanced, least_balanced == 0);
            engine.effort().pivots
        };
        let (balanced, usual) = (pivots(0), pivots(usize::MAX));
        assert!(2 * balanced < usual, "{balanced} and {usual}");
    }
}
