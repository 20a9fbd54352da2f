//! Rates outside the basis, and the way into it or to zero.

use crate::lp::master::{Direction, EnteringVariable, LeavingVariable, Master, KEY};
use crate::lp::{primal, rise};

impl Direction {
    /// Lets all move the other way.
    fn turn(&mut self) {
        self.y.iter_mut().for_each(|y| *y = -*y);
        for moving in [&mut self.key, &mut self.load] {
            for &at in &moving.touched {
                moving.values[at as usize] = -moving.values[at as usize];
            }
        }
    }
}

/// Takes a rate of a column outside the basis out of the bounds, which leaves the others what it does not take.
pub(crate) fn set_aside(master: &mut Master, column: u32, rate: f64) {
    let span = master.columns[column as usize].span;
    for (arc, load) in master.loads.entries(span) {
        master.rhs[arc as usize] -= load * rate;
    }
    master.groups[master.columns[column as usize].group as usize].rhs -= rate;
}

/// Lets a rate that was laid aside grow, or where that does not gain shrink, until a basic variable or zero stops
/// it, and gives it back to the bounds.
pub(crate) fn push(master: &mut Master, column: u32, rate: f64, tolerance: f64) {
    let enter = EnteringVariable::Column(column);
    let gain = master.reduced_profit(column);
    master.compute_direction(enter);
    let (sign, most) = match gain > 0.0 {
        true => (1.0, f64::INFINITY),
        false => (-1.0, rate),
    };
    if sign < 0.0 {
        master.direction.turn();
    }
    let leave = blocking_before(master, most, tolerance);
    if sign < 0.0 {
        master.direction.turn();
    }
    set_aside(master, column, -rate);
    let Some((leave, theta)) = leave.filter(|&(leave, _)| !rise::leaves_gap(master, enter, leave))
    else {
        // Nothing stops it before zero; what grows for ever does so by rounding alone.
        master.move_along(-rate);
        return;
    };
    let mut rho = Vec::new();
    master.leaving_row(leave, &mut rho);
    master.pivot(enter, leave, sign * theta, gain, &rho);
    match master.columns[column as usize].place {
        KEY => master.key_values[master.columns[column as usize].group as usize] += rate,
        at => master.x[at as usize] += rate,
    }
}

/// What stops a variable that enters before it gets to `most`, and where.
fn blocking_before(
    master: &mut Master,
    most: f64,
    tolerance: f64,
) -> Option<(LeavingVariable, f64)> {
    let leave = primal::blocking(master, tolerance)?;
    let entry = master.pivot_entry(leave);
    let theta = (master.leaving_value(leave) / entry).max(0.0);
    (theta < most).then_some((leave, theta))
}
