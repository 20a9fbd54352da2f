//! Primal simplex steps: a variable with a gain enters until another reaches its bound.

use crate::graph::NONE;
use crate::master::{Enter, Leave, Master, PIVOT};

impl Master {
    /// Lets `enter` into the basis; returns its value there, or `None` when no variable blocks it
    /// (which a bounded problem shows only through rounding).
    pub fn primal_step(&mut self, enter: Enter, gain: f64, tolerance: f64) -> Option<f64> {
        self.compute_direction(enter);
        let leave = self.blocking(tolerance)?;
        let alpha = self.pivot_entry(leave);
        let theta = (self.leaving_value(leave) / alpha).max(0.0);
        let mut rho = Vec::new();
        self.leaving_row(leave, &mut rho);
        self.pivot(enter, leave, theta, gain, &rho);
        Some(theta)
    }

    /// Harris' ratio test: of the variables that reach zero within the tolerance first, the one with
    /// the largest pivot (P. Harris, Math. Programming 5, 1973).
    fn blocking(&self, tolerance: f64) -> Option<Leave> {
        let mut limit = f64::INFINITY;
        self.each_decrease(|_, value, alpha| {
            limit = limit.min((value.max(0.0) + tolerance) / alpha);
        });
        let mut best = None;
        let mut largest = 0.0;
        self.each_decrease(|leave, value, alpha| {
            if value <= limit * alpha && alpha > largest {
                largest = alpha;
                best = Some(leave);
            }
        });
        best
    }

    fn each_decrease(&self, mut f: impl FnMut(Leave, f64, f64)) {
        let d = &self.direction;
        for (p, &alpha) in d.y.iter().enumerate() {
            if alpha > PIVOT {
                f(Leave::Working(p), self.x[p], alpha);
            }
        }
        for &g in &d.key.touched {
            let alpha = d.key.values[g as usize];
            if alpha > PIVOT {
                f(Leave::Key(g), self.groups[g as usize].key_value, alpha);
            }
        }
        for &e in &d.load.touched {
            let alpha = d.load.values[e as usize];
            if alpha > PIVOT && self.tight_at[e as usize] == NONE {
                f(Leave::Slack(e), self.slack[e as usize], alpha);
            }
        }
    }
}
