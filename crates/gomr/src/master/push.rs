//! Rates outside the basis, and the way into it or to zero.

use super::{Direction, Enter, Leave, Master, KEY};

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

impl Master {
    /// Takes a rate of a column outside the basis out of the bounds, which leaves the others what it does not take.
    pub fn lay_aside(&mut self, column: u32, rate: f64) {
        let span = self.columns[column as usize].span;
        for (arc, load) in self.loads.entries(span) {
            self.rhs[arc as usize] -= load * rate;
        }
        self.groups[self.columns[column as usize].group as usize].rhs -= rate;
    }

    /// Lets a rate that was laid aside grow, or where that does not gain shrink, until a basic variable or zero stops
    /// it, and gives it back to the bounds.
    pub fn push(&mut self, column: u32, rate: f64, tolerance: f64) {
        let enter = Enter::Column(column);
        let gain = self.reduced_profit(column);
        self.compute_direction(enter);
        let (sign, most) = match gain > 0.0 {
            true => (1.0, f64::INFINITY),
            false => (-1.0, rate),
        };
        if sign < 0.0 {
            self.direction.turn();
        }
        let leave = self.blocking_before(most, tolerance);
        if sign < 0.0 {
            self.direction.turn();
        }
        self.lay_aside(column, -rate);
        let Some((leave, theta)) = leave.filter(|&(leave, _)| !self.leaves_gap(enter, leave))
        else {
            // Nothing stops it before zero; what grows for ever does so by rounding alone.
            self.move_along(-rate);
            return;
        };
        let mut rho = Vec::new();
        self.leaving_row(leave, &mut rho);
        self.pivot(enter, leave, sign * theta, gain, &rho);
        match self.columns[column as usize].place {
            KEY => self.key_values[self.columns[column as usize].group as usize] += rate,
            at => self.x[at as usize] += rate,
        }
    }

    /// What stops a variable that enters before it gets to `most`, and where.
    fn blocking_before(&mut self, most: f64, tolerance: f64) -> Option<(Leave, f64)> {
        let leave = self.blocking(tolerance)?;
        let entry = self.pivot_entry(leave);
        let theta = (self.leaving_value(leave) / entry).max(0.0);
        (theta < most).then_some((leave, theta))
    }
}
