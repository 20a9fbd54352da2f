//! Least largest utilisation: admit what fits, then spread it so that the fullest arc is as empty as can be.
//!
//! With the rates fixed, `T(U)` is what fits into capacities `U·C_e`. It is concave in `U`, and the
//! first-objective prices of each solve give a tangent, so Newton's method from the left meets the least
//! `U` with `T(U) = Σ d_k` in finitely many solves. Delay is minimised last.

use crate::objectives::first_only;
use crate::problem::Error;
use crate::solver::Solver;
use crate::start::balanced;

/// Share of a level, or of all that is served, that is rounding.
const SAME_UTILISATION: f64 = 1e-11;

/// Fixes the admitted rates and lowers all capacities as far as they allow; returns the utilisation.
pub(crate) fn spread(solver: &mut Solver) -> Result<f64, Error> {
    solver.solve()?;
    if !solver.serves_all() {
        // A cut of full arcs stops the rest, so the fullest arc is full whatever the paths.
        return Ok(1.0);
    }
    let mut floor = least_by_ends(solver);
    if balanced::is_regular(solver) {
        floor = floor.max(least_by_hops(solver));
    }
    if floor >= 1.0 - SAME_UTILISATION {
        return Ok(1.0);
    }
    let capacity = solver.master.capacity.clone();
    let mut total = 0.0;
    for id in 0..solver.pool.commodities.len() {
        if solver.master.groups[id].active {
            let served = solver.served(id);
            total += served;
            solver.master.set_request(id as u32, served);
        }
    }
    if total == 0.0 {
        return Ok(0.0);
    }
    let delays = first_only::ignore_delays(solver);
    let level = least_level(solver, &capacity, total, floor)?;
    first_only::count_delays(solver, delays);
    solver.solve()?;
    Ok(level)
}

/// The utilisation that what is served of each node's demands makes of the arcs that leave it, or enter it, at least.
fn least_by_ends(solver: &Solver) -> f64 {
    let (graph, capacity) = (&solver.graph, &solver.master.capacity);
    let (mut sent, mut received) = (vec![0.0; graph.nodes], vec![0.0; graph.nodes]);
    for (id, commodity) in solver.pool.commodities.iter().enumerate() {
        if solver.master.groups[id].active && !commodity.fixed {
            sent[commodity.source as usize] += solver.served(id);
            received[commodity.target as usize] += solver.served(id);
        }
    }
    let room = |arcs: &[u32]| arcs.iter().map(|&arc| capacity[arc as usize]).sum::<f64>();
    let least = |node: usize| {
        let ends = [
            (sent[node], graph.out(node)),
            (received[node], graph.into(node)),
        ];
        let busy = ends.into_iter().filter(|&(rate, _)| rate > 0.0);
        let shares = busy.map(|(rate, arcs)| rate / room(arcs));
        shares.fold(0.0, f64::max)
    };
    (0..graph.nodes).map(least).fold(0.0, f64::max)
}

/// The utilisation of all arcs together where all that is served takes as few of them as it can: where links are alike,
/// often the least.
fn least_by_hops(solver: &Solver) -> f64 {
    let mut distances = vec![Vec::new(); solver.graph.nodes];
    let mut load = 0.0;
    for (id, commodity) in solver.pool.commodities.iter().enumerate() {
        let served = solver.served(id);
        if solver.master.groups[id].active && !commodity.fixed && served > 0.0 {
            let hops = &mut distances[commodity.source as usize];
            if hops.is_empty() {
                let hop = |arc: usize| match solver.pricing.usable[arc] {
                    true => 1.0,
                    false => f64::INFINITY,
                };
                *hops = solver.graph.distances(commodity.source, true, hop);
            }
            load += served * hops[commodity.target as usize];
        }
    }
    load / solver.master.capacity.iter().sum::<f64>()
}

/// The least part of all capacities that carries `total`; delays play no part.
fn least_level(
    solver: &mut Solver,
    capacity: &[f64],
    total: f64,
    floor: f64,
) -> Result<f64, Error> {
    // From the left, where no level can do.
    let mut next = floor.max(total / capacity.iter().sum::<f64>());
    for _ in 0..200 {
        let level = next.min(1.0);
        for (e, &c) in capacity.iter().enumerate() {
            solver.master.set_capacity(e as u32, level * c);
        }
        let proof = solver.solve()?;
        if level >= 1.0 || total - proof.value <= SAME_UTILISATION * total {
            return Ok(level);
        }
        let (room, distance) = solver.cut();
        let need: f64 = (0..solver.pool.commodities.len())
            .filter(|&id| solver.master.groups[id].active)
            .map(|id| distance[id].min(1.0) * solver.master.groups[id].request)
            .sum();
        if room <= 0.0 || need <= room {
            return Ok(level);
        }
        next = level * need / room;
    }
    Err(solver.not_solved("the utilisation does not settle"))
}
