//! Paths over links that failed leave the basis by the primal simplex.
//!
//! Until none of them carries anything, the links keep their capacity and the paths have no worth. So the basis is
//! feasible all along, and a pivot costs far less than one of the dual simplex, which looks at all known paths.

use crate::lp::{bounds, dual};
use crate::problem::Error;
use crate::solver::Solver;

/// What a path that must go is worth: that much of the first objective's weight less than nothing. More than any
/// gain that is passed over.
const EVICTION_LOSS: f64 = 1.0;

/// Drives the paths over failed links out; false, with the basis as it was or worse, where the basis is not
/// feasible but for them, or when work passes `until`.
pub(crate) fn evict(solver: &mut Solver, until: u64) -> Result<bool, Error> {
    if !bounds::keep_failed_capacity(&mut solver.master) {
        return Ok(false);
    }
    let gone = dual::banned_basics(&solver.master);
    let profit = -EVICTION_LOSS * solver.master.big_m;
    solver.master.set_profits(&gone, |_| profit);
    let feasible = solver.accurate() && solver.master.infeasibility() <= solver.feasibility();
    let outcome = match feasible {
        true => solver.generate(until),
        false => Ok(false),
    };
    let big_m = solver.master.big_m;
    solver
        .master
        .set_profits(&gone, |column| big_m * column.value - column.cost);
    bounds::restore_bounds(&mut solver.master);
    solver.accurate();
    let feasible = solver.master.infeasibility() <= solver.feasibility();
    Ok(outcome? && feasible && dual::banned_basics(&solver.master).is_empty())
}
