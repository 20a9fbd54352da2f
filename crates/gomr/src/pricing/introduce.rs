//! First paths: for commodities that just came, and for those whose paths are gone.

use super::by_trees::visit;
use super::origin::{CandidatePath, Origin};
use super::{best_path, update_lengths, PathPricing};
use crate::solver::Solver;

/// Makes sure that `M` is at least four times the cost of the given shortest path.
pub(crate) fn raise_m(solver: &mut Solver, cost: f64, value: f64) {
    let needed = 4.0 * cost / value;
    if needed > solver.master.big_m {
        solver
            .master
            .set_big_m(needed.max(2.0 * solver.master.big_m));
    }
}

/// Gives commodities that just came their best path at the current prices.
pub(crate) fn introduce(solver: &mut Solver, ids: &[u32]) {
    update_lengths(solver);
    if ids.len() > solver.settings.pricing.many_new {
        introduce_many(solver);
    }
    let mut path = Vec::new();
    for &id in ids {
        if solver.pool.commodities[id as usize].fixed {
            introduce_fixed(solver, id);
        } else if ids.len() <= solver.settings.pricing.many_new {
            introduce_one(solver, id, &mut path);
        }
    }
}

fn introduce_one(solver: &mut Solver, id: u32, path: &mut Vec<u32>) {
    if best_path(solver, id, f64::INFINITY, path).is_some() {
        start_on(solver, id, path);
    }
}

fn start_on(solver: &mut Solver, id: u32, path: &[u32]) {
    let column = solver.add_path(id, path);
    let value = solver.pool.commodities[id as usize].value;
    raise_m(solver, solver.master.columns[column as usize].cost, value);
    prefer(solver, id, column);
}

/// Gives all commodities without a path their best one, by the trees of their origins.
fn introduce_many(solver: &mut Solver) {
    let price: Vec<f64> = solver.master.price.iter().map(|p| p.max(0.0)).collect();
    solver.pricing.smooth_lengths.update(
        &solver.graph,
        &solver.pricing.cost,
        &price,
        &solver.pricing.usable,
    );
    let mut candidates = Vec::new();
    let mut path = Vec::new();
    for start in (0..solver.pricing.trees.origins.len()).step_by(solver.settings.pricing.block) {
        let end = solver
            .pricing
            .trees
            .origins
            .len()
            .min(start + solver.settings.pricing.block);
        visit(solver, start..end, &mut candidates, Origin::introduce);
        for candidate in candidates.drain(..) {
            match candidate {
                CandidatePath::Path(_, id) => {
                    let commodity = &solver.pool.commodities[id as usize];
                    let trees = &mut solver.pricing.trees;
                    if trees
                        .shortest(&solver.graph, commodity, f64::INFINITY, &mut path)
                        .is_some()
                    {
                        start_on(solver, id, &path);
                    }
                }
                CandidatePath::Search(id, _) => introduce_one(solver, id, &mut path),
                CandidatePath::Known(..) => {}
            }
        }
    }
    note_least(solver, &price);
}

/// Keeps how long paths are at least: by the trees just made where these are the shortest at any prices.
fn note_least(solver: &mut Solver, price: &[f64]) {
    let is_free = price.iter().all(|&price| price == 0.0)
        && solver.pricing.search.is_least(&solver.pricing.cost);
    if is_free && solver.pricing.usable.iter().all(|&usable| usable) {
        let version = solver.pricing.smooth_lengths.version();
        for origin in &mut solver.pricing.trees.origins {
            origin.note_least(version);
        }
        return;
    }
    for commodity in solver
        .pool
        .commodities
        .iter()
        .filter(|commodity| !commodity.fixed)
    {
        solver
            .pricing
            .search
            .prepare(&solver.graph, commodity.target);
    }
}

pub(crate) fn introduce_fixed(solver: &mut Solver, id: u32) {
    for i in 0..solver.master.groups[id as usize].columns.len() {
        let column = solver.master.groups[id as usize].columns[i];
        raise_m(
            solver,
            solver.master.columns[column as usize].cost,
            solver.pool.commodities[id as usize].value,
        );
        prefer(solver, id, column);
    }
}

/// Makes `column` the key if that gains and the commodity has no working columns.
pub(crate) fn prefer(solver: &mut Solver, id: u32, column: u32) {
    let group = &solver.master.groups[id as usize];
    let allowed = group.working.is_empty()
        && group.key != column
        && !solver.master.columns[column as usize].banned;
    if allowed && solver.master.reduced_profit(column) > 0.0 {
        solver.master.set_key(column);
    }
}

/// Offers commodities whose path is gone the best one left, before the dual simplex looks for it.
pub(crate) fn replace_gone(solver: &mut Solver) {
    let hit: Vec<usize> = (0..solver.master.groups.len())
        .filter(|&g| {
            let group = &solver.master.groups[g];
            let gone = |c: u32| solver.master.columns[c as usize].banned;
            group.active
                && !solver.pool.commodities[g].fixed
                && (gone(group.key) || group.working.iter().any(|&c| gone(c)))
        })
        .collect();
    if hit.is_empty() {
        return;
    }
    update_lengths(solver);
    let mut path = Vec::new();
    for id in hit {
        if best_path(solver, id as u32, f64::INFINITY, &mut path).is_some() {
            solver.add_path(id as u32, &path);
        }
    }
}
