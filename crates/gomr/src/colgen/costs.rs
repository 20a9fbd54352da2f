//! Solves of which the first objective alone counts.
//!
//! A path that gains by its delay alone is no gain then, which saves most pivots. But costs still decide between
//! paths that are equal in the first objective, and differ from arc to arc: where all delays are equal, most
//! reduced profits are zero, and the dual simplex would make pivot after pivot without progress.

use super::{Solver, GAIN};

/// Most that an arc's cost is raised by, in those of the arc of the longest delay.
const RAISED: f64 = 0.5;
/// Weight of the first objective, in its usual one.
const WEIGHT: f64 = 1e6;
/// Relative gain below which a path is not worth entering: more than any path gains by its cost.
const FIRST_GAIN: f64 = 1e-5;

/// What [`Solver::count_delays`] needs to undo [`Solver::ignore_delays`].
pub(crate) struct Ignored {
    cost: Vec<f64>,
    big_m: f64,
}

impl Solver {
    /// Lets the first objective alone count from now on.
    pub fn ignore_delays(&mut self) -> Ignored {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        // No arc costs less than before, so that distances at the true costs bound those to come (A*).
        let raised = self.cost.iter().map(|&cost| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            cost + RAISED * (seed >> 11) as f64 / (1u64 << 53) as f64
        });
        let raised = raised.collect();
        let big_m = self.master.big_m;
        self.gain = FIRST_GAIN;
        self.master.set_big_m(WEIGHT * big_m);
        let cost = self.set_costs(raised);
        Ignored { cost, big_m }
    }

    /// Lets delays count again. The next solve goes on from this basis, however long: one from scratch would have to
    /// find once more what all fits by, which took many solves.
    pub fn count_delays(&mut self, ignored: Ignored) {
        self.gain = GAIN;
        self.cold_work = 0;
        self.set_costs(ignored.cost);
        self.master.set_big_m(ignored.big_m);
    }

    /// Gives the arcs other costs; returns those they had.
    fn set_costs(&mut self, cost: Vec<f64>) -> Vec<f64> {
        self.tolls.clear();
        let before = std::mem::replace(&mut self.cost, cost);
        for column in 0..self.master.columns.len() as u32 {
            let path = self.master.path(column).iter();
            let cost = path.map(|&arc| self.cost[arc as usize]).sum();
            self.master.set_cost(column, cost);
        }
        self.master.epoch += 1;
        before
    }
}
