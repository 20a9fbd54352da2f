//! The first basis, from balanced rates: all but one rate of each commodity are pushed into the basis or to zero.
//!
//! The simplex from what fits at once takes many pivots for each commodity where much is congested, since each lets in
//! one path at prices that are far from the last ones. A push costs a pivot at most and never loses (N. Megiddo, "On
//! finding primal- and dual-optimal bases", ORSA J. Computing 3, 1991), and the basis that it ends with is
//! about as good as the rates that it began with.

use super::balance::{Balance, Penalty};
use crate::lp::bounds;
use crate::lp::dual::PIVOTS_PER_LOOK;
use crate::lp::master::Column;
use crate::solver::Solver;
use crate::start::crossover;

/// Starts from balanced rates and returns the known paths outside the basis; `None` where rates are not to be
/// balanced, or the time is up.
pub(crate) fn start_balanced(solver: &mut Solver) -> Option<Vec<u32>> {
    if !solver.run.is_balanced || !are_all_free(solver) {
        return None;
    }
    let (mut balance, is_near) = balance(solver)?;
    fit(solver, &mut balance);
    bounds::reset(&mut solver.master);
    let aside = set_keys(solver, &balance);
    solver.master.compute_values();
    let tolerance = solver.master.tolerance();
    for (count, (column, rate)) in aside.into_iter().enumerate() {
        if count % PIVOTS_PER_LOOK == 0 && solver.master.halt.now() {
            return None;
        }
        crossover::push(&mut solver.master, column, rate, tolerance);
    }
    bounds::restore_bounds(&mut solver.master);
    solver.accurate();
    if solver.master.infeasibility() > solver.feasibility() {
        return None;
    }
    // Prices that are near the optimum's hardly jump.
    solver.pricing.smoothing = if is_near {
        0.0
    } else {
        solver.settings.pricing.smoothing
    };
    solver.run.last_prices = balance.prices();
    let priced = (0..solver.pricing.cost.len() as u32)
        .filter(|&arc| solver.run.last_prices[arc as usize] > 0.0);
    solver.master.expect_prices(priced);
    Some(paths_outside(solver))
}

/// Decides by the shortest paths, which are the keys, whether solves from scratch balance rates first: not where
/// they overload few arcs, since the detours around these are found faster.
pub(crate) fn choose_start(solver: &mut Solver) {
    let slack = solver.master.slack.iter();
    let overloaded = slack.filter(|&&slack| slack < 0.0).count();
    let is_any = overloaded > 0;
    let is_congested = solver.settings.start.congested_nodes * overloaded > solver.graph.nodes;
    let is_meshed = solver.graph.arcs() >= solver.settings.start.meshed_arcs * solver.graph.nodes;
    // Not the parts of `fair`, of which those of one flow differ in worth: 50 to 200 nodes take as many pivots or more.
    let values = solver
        .pool
        .commodities
        .iter()
        .map(|commodity| commodity.value);
    let is_even = values.clone().zip(values.skip(1)).all(|(a, b)| a == b);
    let are_many = solver.pool.commodities.len() >= solver.settings.start.least_balanced;
    let is_large = solver.graph.arcs() >= solver.settings.start.regular_arcs;
    let is_alike = is_any && is_large && is_regular(solver);
    solver.run.is_balanced = is_meshed && is_even && ((is_congested && are_many) || is_alike);
    if is_even && !solver.run.is_balanced && !are_many {
        solver.run.balance_from =
            solver.master.pivots + solver.settings.start.late_pivots * solver.size();
    }
}

/// Counts the pivots of a solve from here, not those of solves before it.
pub(crate) fn begin_pivots(solver: &mut Solver) {
    if solver.run.balance_from < usize::MAX {
        solver.run.balance_from =
            solver.master.pivots + solver.settings.start.late_pivots * solver.size();
    }
}

/// Whether the solve is to begin again with balanced rates: it takes long, and what is left to find are ways for all.
/// Fat-trees with a permutation at full rate take a hundredth of the time so; where much is not served, it saves nothing.
pub(crate) fn balances_after_all(solver: &mut Solver) -> bool {
    if solver.master.pivots < solver.run.balance_from {
        return false;
    }
    solver.run.balance_from = solver.master.pivots + solver.size() / 2;
    let groups = solver.master.groups.iter().filter(|group| group.active);
    let asked = groups.clone().map(|group| group.request).sum::<f64>();
    let unserved = groups
        .map(|group| solver.master.rate(group.unserved))
        .sum::<f64>();
    let is_much = unserved > solver.settings.start.most_unserved * asked;
    if (is_much && !is_regular(solver)) || !are_all_free(solver) {
        return false;
    }
    solver.run.balance_from = usize::MAX;
    solver.run.is_balanced = true;
    true
}

/// Whether links are of at most two capacities and two delays, as in fat-trees and tori: most pivots are degenerate there.
pub(crate) fn is_regular(solver: &Solver) -> bool {
    let open = || (0..solver.pricing.cost.len()).filter(|&arc| solver.pricing.usable[arc]);
    let is_alike = |values: &[f64]| {
        let of = |arc: usize| values[arc];
        let least = open().map(of).fold(f64::INFINITY, f64::min);
        let most = open().map(of).fold(0.0, f64::max);
        open().map(of).all(|value| value == least || value == most)
    };
    is_alike(&solver.master.capacity) && is_alike(&solver.graph.delay_s)
}

/// Whether many equal demands are on links that are alike, and solves from scratch balance their rates first.
pub(crate) fn is_uniform(solver: &Solver) -> bool {
    let groups = solver.master.groups.iter();
    let mut requests = groups.filter(|g| g.active).map(|g| g.request);
    let first = requests.next();
    let are_alike = requests.all(|request| Some(request) == first);
    solver.run.is_balanced && are_alike && is_regular(solver)
}

fn are_all_free(solver: &Solver) -> bool {
    let active = solver.pool.commodities.iter().zip(&solver.master.groups);
    let mut active = active.filter(|(_, group)| group.active);
    active.all(|(commodity, _)| commodity.is_free())
}

pub(crate) fn paths_outside(solver: &Solver) -> Vec<u32> {
    let master = &solver.master;
    let groups = master.groups.iter().filter(|group| group.active);
    let paths = groups.flat_map(|group| &group.columns).copied();
    let is_open = |&c: &u32| !master.is_basic(c) && !master.columns[c as usize].banned;
    paths.filter(is_open).collect()
}

/// Sweeps over all commodities, and whether until rates hardly moved; `None` when the time is up.
fn balance(solver: &mut Solver) -> Option<(Balance, bool)> {
    let worth = solver
        .pool
        .commodities
        .iter()
        .map(|c| c.value * solver.master.big_m);
    let requests = solver.master.groups.iter().map(|group| match group.active {
        true => group.request,
        false => 0.0,
    });
    let active = solver.master.groups.iter().filter(|group| group.active);
    let mean = requests.clone().sum::<f64>() / active.count().max(1) as f64;
    let mut balance = Balance::new(
        &solver.pricing.cost,
        &solver.master.capacity,
        Penalty::OF_COSTS,
        requests.zip(worth),
    );
    let is_known = !solver.run.last_prices.is_empty();
    if is_known {
        resume(solver, &mut balance);
    }
    let first = if is_known {
        solver.settings.start.tree_sweeps_again
    } else {
        solver.settings.start.tree_sweeps
    };
    let mut path = Vec::new();
    let (mut least, mut least_at) = (f64::INFINITY, 0);
    let mut is_near = false;
    for sweep in 0..solver.settings.start.most_sweeps {
        if solver.master.halt.now() {
            return None;
        }
        balance.moved = 0.0;
        let has_trees = sweep < first || sweep % solver.settings.start.tree_sweep_period == 0;
        if has_trees {
            for at in 0..solver.pricing.trees.origins.len() {
                sweep_origin(solver, at, &mut balance, &mut path);
            }
            solver.master.work += (solver.settings.start.node_work
                * solver.graph.nodes
                * solver.pricing.trees.origins.len()) as u64;
        }
        let is_still = balance.moved <= solver.settings.start.most_moved * mean;
        let overload = balance.overload();
        if overload < solver.settings.start.progress * least {
            (least, least_at) = (overload, sweep);
        }
        let is_long = solver.settings.start.step_work * balance.steps
            > solver.run.fresh_work / solver.settings.start.work_part;
        let is_stuck =
            is_known && (sweep > least_at + solver.settings.start.stuck_sweeps || is_long);
        is_near = has_trees
            && is_still
            && (overload <= solver.settings.start.most_overload * mean || is_stuck);
        if is_near {
            break;
        }
        balance.end_sweep(sweep == 0 && !is_known);
    }
    solver.master.work += solver.settings.start.step_work * balance.steps;
    Some((balance, is_near))
}

/// Begins with the prices of the last optimum and the rates that the simplex has come to since.
fn resume(solver: &Solver, balance: &mut Balance) {
    balance.set_prices(&solver.run.last_prices);
    let master = &solver.master;
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

fn sweep_origin(solver: &mut Solver, at: usize, balance: &mut Balance, path: &mut Vec<u32>) {
    let origin = &mut solver.pricing.trees.origins[at];
    origin.measure(
        &solver.graph,
        balance.lengths(),
        &mut solver.pricing.trees.scratch[0],
    );
    for (id, target, distance) in origin.distances() {
        balance.visit(id as usize, distance, || {
            let is_there = origin.path_to(&solver.graph, target, path);
            is_there.then_some(&path[..])
        });
    }
}

/// Takes small rates together, and as much away as is too much.
fn fit(solver: &Solver, balance: &mut Balance) {
    for (commodity, group) in solver.master.groups.iter().enumerate() {
        balance.merge_small_rates(commodity, solver.settings.start.least_split * group.request);
    }
    balance.keep_within_capacity();
}

/// Makes the largest rate of each commodity its key, in an empty basis; returns the others, taken out of the
/// bounds.
fn set_keys(solver: &mut Solver, balance: &Balance) -> Vec<(u32, f64)> {
    let mut aside = Vec::new();
    for (commodity, split) in balance.splits.iter().enumerate() {
        let id = commodity as u32;
        let mut rates = vec![(solver.master.groups[commodity].unserved, split.unserved)];
        for route in &split.routes {
            rates.push((solver.add_path(id, balance.path(route)), route.rate));
        }
        rates.sort_by(|a, b| b.1.total_cmp(&a.1));
        if rates[0].0 != solver.master.groups[commodity].unserved {
            solver.master.set_key(rates[0].0);
        }
        for &(column, rate) in rates[1..].iter().filter(|&&(_, rate)| rate > 0.0) {
            crossover::set_aside(&mut solver.master, column, rate);
            aside.push((column, rate));
        }
    }
    aside
}

#[cfg(test)]
mod tests {
    use crate::random::{congested, Rng};
    use crate::{Engine, Objective};

    #[test]
    fn ends_at_the_same_optimum_from_balanced_rates() {
        for seed in 0..30 {
            let mut rng = Rng(seed);
            let nodes = 4 + rng.below(16);
            let problem = congested(nodes, 8 * nodes, &mut rng);
            for (name, objective) in Objective::ALL {
                let mut usual = Engine::new(&problem, objective).expect("valid");
                let mut balanced = usual.clone();
                usual.solver.settings.start.least_balanced = usize::MAX;
                balanced.solver.settings.start.least_balanced = 0;
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
        let problem = congested(60, 3000, &mut Rng(7));
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
            engine.solver.settings.start.least_balanced = least_balanced;
            engine.solve().expect("solves");
            assert_eq!(engine.solver.run.is_balanced, least_balanced == 0);
            engine.effort().pivots
        };
        let (balanced, usual) = (pivots(0), pivots(usize::MAX));
        assert!(2 * balanced < usual, "{balanced} and {usual}");
    }
}
