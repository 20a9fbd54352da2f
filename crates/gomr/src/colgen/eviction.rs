//! Paths over links that failed leave the basis by the primal simplex.
//!
//! Until none of them carries anything, the links keep their capacity and the paths have no worth. So the basis is
//! feasible all along, and a pivot costs far less than one of the dual simplex, which looks at all known paths.

use super::Solver;
use crate::problem::Error;

/// What a path that must go is worth: that much of the first objective's weight less than nothing. More than any
/// gain that is passed over.
const WORTHLESS: f64 = 1.0;

impl Solver {
    /// Drives the paths over failed links out; false, with the basis as it was or worse, where the basis is not
    /// feasible but for them, or when work passes `until`.
    pub(super) fn evict(&mut self, until: u64) -> Result<bool, Error> {
        if !self.master.lend_capacity() {
            return Ok(false);
        }
        let gone = self.master.banned_basics();
        let profit = -WORTHLESS * self.master.big_m;
        self.master.set_profits(&gone, |_| profit);
        let feasible = self.accurate() && self.master.infeasibility() <= self.feasibility();
        let outcome = match feasible {
            true => self.generate(until),
            false => Ok(false),
        };
        let big_m = self.master.big_m;
        self.master
            .set_profits(&gone, |column| big_m * column.value - column.cost);
        self.master.restore_bounds();
        self.accurate();
        let feasible = self.master.infeasibility() <= self.feasibility();
        Ok(outcome? && feasible && self.master.banned_basics().is_empty())
    }
}
