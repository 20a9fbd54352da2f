//! Costs and values that belong to a basis, solved for once more.

use super::{sign, NearestRates};
use crate::graph::NONE;
use crate::lp::factor::SparseVectors;
use crate::lp::inverse::Inverse;

/// Share of a row's tolerance by which the rows at a bound may miss it.
const VALUE_DRIFT: f64 = 0.1;
/// Reduced cost that a variable of the working basis may have, which should have none.
const COST_DRIFT: f64 = 1e-11;

impl NearestRates {
    /// Solves for all costs and values, and inverts the working basis where they have drifted; false where it is
    /// singular.
    pub(super) fn settle(&mut self) -> bool {
        self.state.settled = true;
        let is_close = self.compute_values() <= VALUE_DRIFT && self.compute_costs() <= COST_DRIFT;
        is_close || self.renew()
    }

    /// Inverts the working basis and solves for all costs and values; false where it is singular.
    fn renew(&mut self) -> bool {
        let is_regular = self.refactor();
        if is_regular {
            self.compute_costs();
            self.compute_values();
        }
        is_regular
    }

    /// Inverts the working basis; false where it is singular.
    pub(super) fn refactor(&mut self) -> bool {
        let state = &self.state;
        let mut matrix = SparseVectors::default();
        for &v in &state.working {
            let entries = self.rates[v as usize / 2].entries.iter();
            let at = |&(row, load): &(u32, f64)| (state.tight_at[row as usize], load * sign(v));
            matrix.push(entries.map(at).filter(|&(t, _)| t != NONE));
        }
        let Some(inverse) = Inverse::new(&matrix) else {
            return false;
        };
        self.state.inverse = inverse;
        self.work += 4 * self.state.inverse.work();
        true
    }

    /// Solves for all costs; returns the largest reduced cost of a variable of the working basis before the refinement
    /// step.
    pub(super) fn compute_costs(&mut self) -> f64 {
        self.state.price.fill(0.0);
        let mut drift = 0.0f64;
        for round in 0..2 {
            let rest = |(i, &v): (usize, &u32)| (i, self.cost_at_prices(v));
            let rest: Vec<(usize, f64)> = self.state.working.iter().enumerate().map(rest).collect();
            if round > 0 {
                drift = rest
                    .iter()
                    .fold(0.0, |most: f64, (_, rest)| most.max(rest.abs()));
            }
            let prices = self.state.inverse.rows(&rest);
            for (&row, price) in self.state.tight.iter().zip(prices) {
                self.state.price[row as usize] += price;
            }
        }
        let reduced = (0..2 * self.rates.len() as u32).map(|v| self.cost_at_prices(v));
        self.state.reduced = reduced.collect();
        drift
    }

    /// What a variable costs beyond what its rows pay for it.
    fn cost_at_prices(&self, v: u32) -> f64 {
        let price = &self.state.price;
        let entries = self.rates[v as usize / 2].entries.iter();
        let paid: f64 = entries.map(|&(row, load)| price[row as usize] * load).sum();
        self.cost(v) - sign(v) * paid
    }

    /// Solves for all values; returns by how much a row at a bound missed it before the refinement step, in its
    /// tolerance.
    pub(super) fn compute_values(&mut self) -> f64 {
        self.state.activity = self.activity_at_bounds();
        self.state.x.clear();
        self.state.x.resize(self.state.working.len(), 0.0);
        let mut drift = 0.0f64;
        let mut step = Vec::new();
        for round in 0..2 {
            let rest = |(t, &row): (usize, &u32)| {
                let row = row as usize;
                (t, self.bound(row) - self.state.activity[row])
            };
            let rest: Vec<(usize, f64)> = self.state.tight.iter().enumerate().map(rest).collect();
            if round > 0 {
                let missed = rest.iter().zip(&self.state.tight);
                let shares = missed.map(|(rest, &row)| {
                    rest.1.abs() / self.limits[row as usize].tolerance.max(f64::MIN_POSITIVE)
                });
                drift = shares.fold(drift, f64::max);
            }
            self.state.inverse.times(&rest, &mut step);
            for (i, &value) in step.iter().enumerate() {
                self.state.x[i] += value;
                let v = self.state.working[i];
                for &(row, load) in &self.rates[v as usize / 2].entries {
                    self.state.activity[row as usize] += value * load * sign(v);
                }
            }
        }
        self.work += 2 * self.state.inverse.work() + 20 * self.rates.len() as u64;
        drift
    }

    /// The rows' activities without the variables of the working basis.
    fn activity_at_bounds(&self) -> Vec<f64> {
        let mut activity = vec![0.0; self.limits.len()];
        for (w, rate) in self.rates.iter().enumerate() {
            let mut value = rate.base;
            for v in [2 * w, 2 * w + 1] {
                if self.state.place[v] == NONE && self.state.at_most[v] {
                    value += sign(v as u32) * self.state.most[v];
                }
            }
            if value != 0.0 {
                for &(row, load) in &rate.entries {
                    activity[row as usize] += value * load;
                }
            }
        }
        activity
    }
}
