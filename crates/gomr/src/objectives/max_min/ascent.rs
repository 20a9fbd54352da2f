//! All levels in one climb: what flows have is raised from level to level, and stays feasible all along.

use super::cuts::{CutPool, CutSlack, Level, MetricCut};
use super::{rising, FillingFlow, MAX_CUTS};
use crate::problem::Error;
use crate::solver::Solver;
use crate::start::balanced;

/// Relative difference of two levels that are the same.
const LEVEL_ROUNDING: f64 = 1e-13;
/// Most by which what rises in one step may differ.
const MAX_UNEVEN_RISE: f64 = 1e5;

/// The levels one after another, each from the basis of the one before.
pub(super) struct Ascent {
    /// What each commodity has by now; nothing where rounding or its work stopped the ascent, and levels
    /// are looked for one by one.
    reached: Option<Vec<f64>>,
    /// Solves from scratch whose work the climb to one level may take.
    most_solves: u64,
}

/// Work of a solve from scratch, at least: about a millisecond.
const MIN_FRESH_WORK: u64 = 1_000_000;

impl Ascent {
    /// Begins from nothing.
    pub fn begin(solver: &mut Solver) -> Self {
        let simplex = &solver.settings.simplex;
        let most_solves = match balanced::is_uniform(solver) {
            true => simplex.rise_solves_of_uniform,
            false => simplex.rise_solves,
        };
        rising::begin(solver);
        Self {
            reached: Some(vec![0.0; solver.pool.commodities.len()]),
            most_solves,
        }
    }

    pub fn end(&mut self, solver: &mut Solver) {
        if self.reached.take().is_some() {
            rising::end(solver);
        }
    }

    /// The next level at which flows stop; nothing where rounding defeats the search, or it takes too long.
    pub fn next(
        &mut self,
        solver: &mut Solver,
        flows: &[FillingFlow],
        frozen: &[Option<f64>],
        pool: &mut CutPool,
    ) -> Result<Option<Level>, Error> {
        let Some(mut reached) = self.reached.take() else {
            return Ok(None);
        };
        let most_work = self.most_solves * solver.fresh_work().max(MIN_FRESH_WORK);
        solver.run.rise_until = solver.master.work.saturating_add(most_work);
        let outcome = climb(solver, flows, frozen, pool, &mut reached);
        match outcome {
            Ok(level) => {
                self.reached = Some(reached);
                Ok(Some(level))
            }
            Err(error) => {
                rising::end(solver);
                match error {
                    Error::NotSolved { .. } => Ok(None),
                    halted => Err(halted),
                }
            }
        }
    }
}

/// Raises what the commodities have to the highest level.
///
/// From the right: up to where the known cuts allow. What stops it short of that is another cut.
fn climb(
    solver: &mut Solver,
    flows: &[FillingFlow],
    frozen: &[Option<f64>],
    pool: &mut CutPool,
    reached: &mut Vec<f64>,
) -> Result<Level, Error> {
    let mut next_level = pool.bound(flows, frozen);
    for _ in 0..MAX_CUTS {
        let step = next_level.level.min(even_level(flows, frozen, reached));
        let goal = requests_at(solver, flows, frozen, step);
        let mut rise: Vec<f64> = goal.iter().zip(&*reached).map(|(a, b)| a - b).collect();
        let unit = rise
            .iter()
            .fold(0.0, |most, rise| f64::max(most, rise.abs()));
        let mut left = rise.iter().zip(&goal);
        if left.all(|(rise, goal)| rise.abs() <= LEVEL_ROUNDING * goal) {
            return Ok(next_level);
        }
        rise.iter_mut().for_each(|rise| *rise /= unit);
        rising::settle_requests(solver, reached);
        let risen = rising::raise(solver, &rise, unit)?;
        if risen.is_all {
            *reached = goal;
            if step < next_level.level {
                continue;
            }
            return Ok(next_level);
        }
        for (reached, rise) in reached.iter_mut().zip(&rise) {
            *reached += risen.units * rise;
        }
        let cut = pool.add(MetricCut::scaled(solver));
        let next = CutSlack::new(flows, frozen, &cut).root(next_level.level);
        let is_there = next >= next_level.level * (1.0 - LEVEL_ROUNDING);
        next_level = Level {
            level: next.min(next_level.level),
            cut: Some(cut),
        };
        if is_there {
            *reached = goal;
            return Ok(next_level);
        }
    }
    Err(solver.not_solved("the levels do not settle"))
}

/// The level up to which those that rise rise alike, but for a factor of `MAX_UNEVEN_RISE`: beside larger ones a pivot would not
/// see the smallest.
fn even_level(flows: &[FillingFlow], frozen: &[Option<f64>], reached: &[f64]) -> f64 {
    let rising = || flows.iter().zip(frozen).filter(|(_, rate)| rate.is_none());
    let left = rising().filter_map(|(flow, _)| {
        let left = flow.request - reached[flow.commodity as usize];
        (left > LEVEL_ROUNDING * flow.request).then_some(left)
    });
    let least = left.fold(f64::INFINITY, f64::min);
    let heaviest = rising().map(|(flow, _)| flow.weight).fold(0.0, f64::max);
    let levels = rising().map(|(flow, _)| reached[flow.commodity as usize] / flow.weight);
    levels.fold(0.0, f64::max) + MAX_UNEVEN_RISE * least / heaviest
}

/// What each commodity asks for at a level.
fn requests_at(
    solver: &Solver,
    flows: &[FillingFlow],
    frozen: &[Option<f64>],
    level: f64,
) -> Vec<f64> {
    let mut requests = vec![0.0; solver.pool.commodities.len()];
    for (flow, rate) in flows.iter().zip(frozen) {
        let rising = flow.request.min(flow.weight * level);
        requests[flow.commodity as usize] += rate.unwrap_or(rising);
    }
    requests
}
