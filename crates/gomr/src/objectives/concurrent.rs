//! The largest factor by which all requests can be multiplied, by raising them together from nothing: the maximum
//! concurrent flow by paths, where there are few demands for each source.
//!
//! The basis is feasible all along, so that what was reached when the time is up is an answer; the prices of any basis
//! prove a bound. On large regular networks nearly every pivot on that way is degenerate. Where it takes long, the factor
//! is looked for by Newton's method from above instead: the largest throughput at a factor beyond what fits has prices
//! that prove a smaller one, until one fits.

use super::max_min::cuts::Barrier;
use super::max_min::{rising, MOST_MISSING};
use crate::by_source::Concurrent;
use crate::halt::HaltTest;
use crate::incremental::membership::Membership;
use crate::lp::{bounds, sizes};
use crate::objectives::{first_only, Objective};
use crate::pricing::introduce;
use crate::problem::{Error, Problem};
use crate::solver::Solver;

/// Relative distance of the factor to its bound at which it is exact.
const LARGEST_FACTOR_GAP: f64 = 1e-9;
/// Work on raising all requests after which the factor is looked for from above, about a second.
const MOST_RISE_WORK: u64 = 1_000_000_000;
/// First factor that is tried then, in the one that was reached.
const BEYOND_REACHED: f64 = 1.05;
/// Factors that are tried.
const MOST_FACTORS: usize = 100;

/// Raises all requests of a solver together, from zero; returns the largest factor of `requests` that fits, which its prices
/// prove. The solver is left with the column that raises them: [`rising::settle_requests`] and [`rising::end`] take it out.
///
/// # Errors
/// [`Error::NotSolved`] when rounding defeats it, [`Error::Halted`] when the time is up.
pub(crate) fn raise_all(solver: &mut Solver, requests: &[f64]) -> Result<f64, Error> {
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

/// Returns the largest factor of a problem's demands, or what was reached when the time was up; `None` where rounding
/// defeats the search.
pub(crate) fn largest_factor(
    problem: &Problem,
    threads: usize,
    halt: Option<HaltTest>,
) -> Option<Concurrent> {
    largest_factor_by(problem, threads, halt, MOST_RISE_WORK)
}

fn largest_factor_by(
    problem: &Problem,
    threads: usize,
    halt: Option<HaltTest>,
    most_rise_work: u64,
) -> Option<Concurrent> {
    let mut solver = asking_all(problem, threads, halt);
    let fresh = solver.clone();
    let requests: Vec<f64> = solver.master.groups.iter().map(|g| g.request).collect();
    let mut asking = solver.master.groups.iter().filter(|g| g.request > 0.0);
    if asking.clone().next().is_none() {
        return Some(Concurrent::exactly(f64::INFINITY));
    }
    if asking.any(|group| group.columns.is_empty()) {
        return Some(Concurrent::exactly(0.0));
    }
    solver.master.estimate_scale();
    sizes::measure(&mut solver.master, 0.0);
    let _ = first_only::ignore_delays(&mut solver);
    solver.run.rise_until = most_rise_work;
    let risen = raise_all(&mut solver, &requests);
    let takes_long = solver.master.work > solver.run.rise_until;
    let factor = match risen {
        Ok(factor) => factor,
        Err(Error::Halted { .. }) => reached(&mut solver, &requests),
        Err(_) if takes_long => reached(&mut solver, &requests),
        Err(_) => return None,
    };
    let upper_bound = proven(&mut solver, &requests).max(factor);
    let found = Concurrent {
        factor,
        upper_bound,
        complete: is_largest(factor, upper_bound),
    };
    match risen {
        Err(Error::NotSolved { .. }) if factor > 0.0 => from_above(fresh, &requests, found),
        _ => Some(found),
    }
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

/// Brings the factor and its bound together by solves of their own, from beyond what is known to fit.
fn from_above(mut solver: Solver, requests: &[f64], mut found: Concurrent) -> Option<Concurrent> {
    let _ = first_only::ignore_delays(&mut solver);
    let asked: f64 = requests.iter().sum();
    let mut factor = found.upper_bound.min(BEYOND_REACHED * found.factor);
    for _ in 0..MOST_FACTORS {
        for (id, &request) in requests.iter().enumerate() {
            solver.master.set_request(id as u32, factor * request);
        }
        let proof = match solver.solve() {
            Ok(proof) => proof,
            Err(Error::Halted { .. }) => return Some(found),
            Err(_) => return None,
        };
        if factor * asked - proof.bound <= MOST_MISSING * factor * asked && solver.serves_all() {
            found.factor = found.factor.max(factor);
            factor = found.upper_bound.min(BEYOND_REACHED * factor);
        } else {
            found.upper_bound = found.upper_bound.min(proven(&mut solver, requests));
            factor = found.upper_bound;
        }
        found.upper_bound = found.upper_bound.max(found.factor);
        found.complete = is_largest(found.factor, found.upper_bound);
        if found.complete {
            return Some(found);
        }
    }
    None
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
    let barrier = Barrier::of(solver);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arc, Flow};

    /// A hypercube of equal links, where each node sends to one that is far.
    fn hypercube(dimensions: usize) -> Problem {
        let nodes = 1 << dimensions;
        let links = (0..nodes).flat_map(|a| (0..dimensions).map(move |bit| (a, a ^ (1 << bit))));
        let arc = |(tail, head): (usize, usize)| Arc {
            tail,
            head,
            capacity_bps: 10.0,
            delay_s: 1.0,
            reverse: None,
        };
        let flow = |a: usize| Flow::new(a, (5 * a + 3) % nodes, 4.0);
        Problem {
            nodes,
            arcs: links.map(arc).collect(),
            flows: (0..nodes)
                .filter(|a| (5 * a + 3) % nodes != *a)
                .map(flow)
                .collect(),
        }
    }

    #[test]
    fn the_factor_from_above_is_the_one_that_raising_reaches() {
        for dimensions in 2..6 {
            let problem = hypercube(dimensions);
            let risen = largest_factor_by(&problem, 1, None, u64::MAX).expect("no rounding");
            let other = largest_factor_by(&problem, 1, None, 1).expect("no rounding");
            assert!(risen.complete && other.complete, "{dimensions}");
            let apart = (risen.factor - other.factor).abs();
            assert!(apart <= 1e-8 * risen.factor, "{dimensions}: {apart}");
        }
    }

    #[test]
    fn at_every_halt_the_factor_is_bounded() {
        let problem = hypercube(4);
        let largest = largest_factor_by(&problem, 1, None, u64::MAX).expect("no rounding");
        for most_rise_work in [1, u64::MAX] {
            for looks in (0..200).step_by(9) {
                let left = std::sync::atomic::AtomicUsize::new(looks);
                let halt: HaltTest = std::sync::Arc::new(move || {
                    let order = std::sync::atomic::Ordering::Relaxed;
                    left.fetch_update(order, order, |n| n.checked_sub(1))
                        .is_err()
                });
                let found = largest_factor_by(&problem, 1, Some(halt), most_rise_work);
                let found = found.expect("no rounding");
                assert!(found.factor <= largest.factor * (1.0 + 1e-9));
                assert!(found.upper_bound >= largest.factor * (1.0 - 1e-9));
            }
        }
    }
}
