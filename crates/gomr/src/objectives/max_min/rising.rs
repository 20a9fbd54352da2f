//! Solves that raise many requests together as far as they fit.
//!
//! One column raises them ([`crate::lp::master`]), and nothing else is worth anything. The basis is feasible all along,
//! so what is known at one level is where the search for the next begins.

use crate::graph::NONE;
use crate::lp::bounds;
use crate::lp::master::EnteringVariable;
use crate::lp::rise;
use crate::pricing;
use crate::problem::Error;
use crate::solver::{Commodity, Solver};

/// What stopped the requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RiseOutcome {
    /// Units by which they rose.
    pub units: f64,
    /// Whether that is all they were to rise by.
    pub is_all: bool,
}

/// Prepares to raise requests from zero: every commodity that has a path gets one as its key.
pub(crate) fn begin(solver: &mut Solver) {
    let spec = Commodity::of_columns(0.0);
    let own = solver.place_commodity(spec, 0.0);
    let groups = solver.master.groups.iter();
    let main: Vec<u32> = groups
        .map(|g| bounds::main_path(&solver.master, g))
        .collect();
    for id in 0..solver.master.groups.len() as u32 {
        solver.master.set_request(id, 0.0);
    }
    bounds::reset(&mut solver.master);
    pricing::update_lengths(solver);
    for (id, main) in main.into_iter().enumerate() {
        let start = if main == NONE {
            first_path(solver, id as u32)
        } else {
            main
        };
        if start != NONE {
            solver.master.set_key(start);
        }
    }
    ban_unserved(solver, true);
    solver.master.columns[solver.master.groups[own as usize].unserved as usize].banned = false;
    rise::add(&mut solver.master, own);
    solver.master.compute_values();
    solver.pricing.smoothing = solver.settings.pricing.smoothing;
    solver.run.last_prices.clear();
}

/// A path of a commodity of which none is known; `NONE` where there is none.
fn first_path(solver: &mut Solver, id: u32) -> u32 {
    let mut path = Vec::new();
    let may =
        solver.master.groups[id as usize].active && !solver.pool.commodities[id as usize].fixed;
    if !may || pricing::best_path(solver, id, f64::INFINITY, &mut path).is_none() {
        return NONE;
    }
    let column = solver.add_path(id, &path);
    match solver.master.columns[column as usize].banned {
        true => NONE,
        false => column,
    }
}

/// Ends what [`begin`] began.
pub(crate) fn end(solver: &mut Solver) {
    let Some(own) = rise::group(&solver.master) else {
        return;
    };
    rise::remove(&mut solver.master);
    solver.master.set_request(own, 0.0);
    solver.master.groups[own as usize].active = false;
    ban_unserved(solver, false);
    solver.accurate();
}

fn ban_unserved(solver: &mut Solver, banned: bool) {
    for group in &solver.master.groups {
        solver.master.columns[group.unserved as usize].banned = banned;
    }
}

/// Whether a path of the commodity can carry something.
pub(crate) fn has_path(solver: &Solver, id: u32) -> bool {
    let group = &solver.master.groups[id as usize];
    group.key != group.unserved
}

/// Raises the request of each commodity by `rise` a unit, as far as that fits but not beyond `most` units.
///
/// # Errors
/// [`Error::NotSolved`] when rounding defeats it.
pub(crate) fn raise(solver: &mut Solver, rise: &[f64], most: f64) -> Result<RiseOutcome, Error> {
    let value = rise.iter().map(|rise| rise.abs()).sum();
    solver.run.bland_from = solver.master.pivots + solver.settings.simplex.patience * solver.size();
    rise::set(&mut solver.master, rise.to_vec(), most, value);
    solver.accurate();
    let column = solver.master.rise_column;
    solver.improve(&[column])?;
    solver.pricing.smoothing = solver.settings.pricing.smoothing;
    for _ in 0..solver.settings.simplex.level_rounds {
        if !rise::is_full(&solver.master) && !solver.generate(solver.run.rise_until)? {
            return Err(solver.not_solved("the level takes too long"));
        }
        if bounds::restore_bounds(&mut solver.master) {
            solver.master.compute_values();
        }
        if solver.accurate() && solver.master.infeasibility() <= solver.feasibility() {
            return Ok(RiseOutcome {
                units: rise::value(&solver.master).clamp(0.0, most),
                is_all: rise::is_full(&solver.master),
            });
        }
    }
    Err(solver.not_solved("the level does not settle"))
}

/// Gives the commodities these requests, and takes what raised them out of the basis.
pub(crate) fn settle_requests(solver: &mut Solver, requests: &[f64]) {
    rise::leave_basis(&mut solver.master);
    for (id, &request) in requests.iter().enumerate() {
        if solver.master.groups[id].active {
            solver.master.set_request(id as u32, request);
        }
    }
}

/// The column that raises requests, where it is worth entering.
pub(crate) fn entering(solver: &Solver, limit: f64) -> Option<(EnteringVariable, f64)> {
    let column = solver.master.rise_column;
    if column == NONE || solver.master.is_basic(column) {
        return None;
    }
    let gain = solver.master.reduced_profit(column);
    (gain > limit).then_some((EnteringVariable::Column(column), gain))
}
