//! The largest factor by which all requests can be multiplied, by raising them together from nothing: the maximum
//! concurrent flow by paths, where there are few demands for each source.
//!
//! The basis is feasible all along, so that what was reached when the time is up is an answer; the prices of any basis
//! prove a bound. On large regular networks nearly every pivot on that way is degenerate: where it takes long, demands are
//! routed by source instead, from rates and prices that are near the optimum ([`crate::by_source`]).

use super::max_min::cuts::MetricCut;
use super::max_min::rising;
use crate::by_source::ConcurrentFlow;
use crate::halt::HaltTest;
use crate::incremental::membership::Membership;
use crate::lp::{bounds, sizes};
use crate::objectives::{first_only, Objective};
use crate::pricing::introduce;
use crate::problem::{Error, Problem};
use crate::solver::Solver;

/// Relative distance of the factor to its bound at which it is exact.
const LARGEST_FACTOR_GAP: f64 = 1e-9;

/// Raises all requests of a solver together, from zero; returns the largest factor of `requests` that fits, which its prices
/// prove. The solver is left with the column that raises them: [`rising::settle_requests`] and [`rising::end`] take it out.
///
/// # Errors
/// [`Error::NotSolved`] when rounding defeats it, [`Error::Halted`] when the time is up.
fn raise_all(solver: &mut Solver, requests: &[f64]) -> Result<f64, Error> {
    // Every bit/s loads an arc at least.
    let room: f64 = solver.master.capacity.iter().sum();
    let most = 2.0 * room / requests.iter().sum::<f64>();
    rising::begin(solver);
    let unit = requests.iter().copied().fold(0.0, f64::max);
    let mut rise: Vec<f64> = requests.iter().map(|request| request / unit).collect();
    rise.resize(solver.master.groups.len(), 0.0);
    let risen = rising::raise(solver, &rise, most * unit)?;
    let factor = risen.units / unit;
    if is_largest(factor, proven(solver, requests)) {
        return Ok(factor);
    }
    Err(solver.not_solved("the factor does not reach its bound"))
}

fn is_largest(factor: f64, upper_bound: f64) -> bool {
    upper_bound <= factor * (1.0 + LARGEST_FACTOR_GAP)
}

/// Returns the largest factor of a problem's demands, or what was reached when the time was up or after so much work; `None`
/// where rounding defeats the search.
pub(crate) fn largest_factor(
    problem: &Problem,
    threads: usize,
    halt: Option<HaltTest>,
    most_work: u64,
) -> Option<ConcurrentFlow> {
    largest_factor_of(&mut asking_all(problem, threads, halt), most_work)
}

/// The same of a solver that knows a path of each commodity that has one.
pub(crate) fn largest_factor_of(solver: &mut Solver, most_work: u64) -> Option<ConcurrentFlow> {
    let requests: Vec<f64> = solver.master.groups.iter().map(|g| g.request).collect();
    let mut asking = solver.master.groups.iter().filter(|g| g.request > 0.0);
    if asking.clone().next().is_none() {
        return Some(ConcurrentFlow::exactly(f64::INFINITY));
    }
    if asking.any(|group| group.columns.is_empty()) {
        return Some(ConcurrentFlow::exactly(0.0));
    }
    solver.master.estimate_scale();
    sizes::measure(&mut solver.master, 0.0);
    let _ = first_only::ignore_delays(solver);
    solver.run.rise_until = most_work;
    let factor = match raise_all(solver, &requests) {
        Ok(factor) => factor,
        Err(Error::NotSolved { .. }) if solver.master.work <= most_work => return None,
        Err(_) => reached(solver, &requests),
    };
    let upper_bound = proven(solver, &requests).max(factor);
    Some(ConcurrentFlow {
        factor,
        upper_bound,
        complete: is_largest(factor, upper_bound),
    })
}

/// A solver that knows the shortest paths of a problem's demands.
fn asking_all(problem: &Problem, threads: usize, halt: Option<HaltTest>) -> Solver {
    let capacity = problem.arcs.iter().map(|arc| arc.capacity_bps).collect();
    let mut solver = Solver::new(problem.graph(), capacity);
    solver.set_threads(threads);
    solver.master.halt.0 = halt;
    solver.run.stage = "concurrent flow";
    let mut membership = Membership::new(Objective::MaxThroughputMinDelay);
    for flow in &problem.flows {
        membership.admit(&mut solver, flow.clone());
    }
    introduce::introduce(&mut solver, &membership.fresh);
    solver
}

/// The factor that the rates of the present basis serve, scaled into all capacities.
fn reached(solver: &mut Solver, requests: &[f64]) -> f64 {
    bounds::restore_bounds(&mut solver.master);
    solver.master.compute_values();
    let master = &solver.master;
    let mut load = vec![0.0; master.capacity.len()];
    let mut least = f64::INFINITY;
    for (group, &request) in master.groups.iter().zip(requests) {
        let mut served = 0.0;
        for (column, rate) in master.used_paths(group) {
            served += rate;
            for (arc, share) in master.entries(column) {
                load[arc as usize] += share * rate;
            }
        }
        if request > 0.0 {
            least = least.min(served / request);
        }
    }
    let loads = load.iter().zip(&master.capacity);
    let fullest = loads.map(|(load, capacity)| match *load > 0.0 {
        true => load / capacity,
        false => 0.0,
    });
    least / fullest.fold(1.0, f64::max)
}

/// What the prices of the present basis prove.
fn proven(solver: &mut Solver, requests: &[f64]) -> f64 {
    let barrier = MetricCut::of(solver);
    let paid = requests.iter().enumerate();
    let paid: f64 = paid
        .filter(|(_, &request)| request > 0.0)
        .map(|(id, &request)| request * barrier.distance(id))
        .sum();
    let room: f64 = solver.master.capacity.iter().sum();
    let at_least_an_arc = room / requests.iter().sum::<f64>();
    match paid > 0.0 {
        true => at_least_an_arc.min(barrier.room / paid),
        false => at_least_an_arc,
    }
}
