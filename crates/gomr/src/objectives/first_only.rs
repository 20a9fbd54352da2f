//! Solves of which the first objective alone counts.
//!
//! A path that gains by its delay alone is no gain then, which saves most pivots. But costs still decide between
//! paths that are equal in the first objective, and differ from arc to arc: where all delays are equal, most
//! reduced profits are zero, and the dual simplex would make pivot after pivot without progress.

use crate::solver::Solver;

/// What [`count_delays`] needs to undo [`ignore_delays`].
pub(crate) struct SavedCosts {
    cost: Vec<f64>,
    big_m: f64,
}

/// Lets the first objective alone count from now on.
pub(crate) fn ignore_delays(solver: &mut Solver) -> SavedCosts {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    // No arc costs less than before, so that distances at the true costs bound those to come (A*).
    let raised = solver.pricing.cost.iter().map(|&cost| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        cost + solver.settings.simplex.cost_spread * (seed >> 11) as f64 / (1u64 << 53) as f64
    });
    let raised = raised.collect();
    let big_m = solver.master.big_m;
    solver.run.least_gain = solver.settings.simplex.least_gain_of_level;
    solver
        .master
        .set_big_m(solver.settings.simplex.level_weight * big_m);
    let cost = set_costs(solver, raised);
    SavedCosts { cost, big_m }
}

/// Lets delays count again. The next solve goes on from this basis, however long: one from scratch would have to
/// find once more what all fits by, which took many solves.
pub(crate) fn count_delays(solver: &mut Solver, ignored: SavedCosts) {
    solver.run.least_gain = solver.settings.simplex.least_gain;
    solver.run.cold_work = 0;
    set_costs(solver, ignored.cost);
    solver.master.set_big_m(ignored.big_m);
}

/// Gives the arcs other costs; returns those they had.
fn set_costs(solver: &mut Solver, cost: Vec<f64>) -> Vec<f64> {
    solver.pricing.priced.classes.clear();
    let before = std::mem::replace(&mut solver.pricing.cost, cost);
    for column in 0..solver.master.columns.len() as u32 {
        let group = solver.master.columns[column as usize].group;
        let repeats = solver.pool.commodities[group as usize].may_repeat();
        let cost = |arc: u32| solver.pricing.cost[arc as usize];
        let path = solver.master.path(column).iter();
        let cost = match repeats {
            true => (solver.master.entries(column))
                .map(|(arc, times)| times * cost(arc))
                .sum(),
            false => path.map(|&arc| cost(arc)).sum(),
        };
        solver.master.set_cost(column, cost);
    }
    solver.master.epoch += 1;
    before
}
