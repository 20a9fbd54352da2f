//! Prices and rates that belong to a basis, recomputed.

use super::factor::SparseVectors;
use super::inverse::Inverse;
use super::master::{LeavingVariable, Master};
use super::sparse::SparseVector;
use crate::graph::NONE;
use crate::lp::{rise, sizes};

/// Differences of loads below this are rounding.
const MIN_ENTRY: f64 = 1e-13;

impl Master {
    /// Solves for all prices from the basis; returns the residual before the refinement step.
    pub fn compute_prices(&mut self) -> f64 {
        let n = self.inverse.size();
        let mut prices = vec![0.0; n];
        let mut worst = 0.0f64;
        self.price.fill(0.0);
        // The second round refines the first.
        for _ in 0..2 {
            let rest: Vec<(usize, f64)> = (0..n).map(|i| (i, self.unpaid(i))).collect();
            for (price, more) in prices.iter_mut().zip(self.inverse.rows(&rest)) {
                *price += more;
            }
            self.store_prices(&prices);
            worst = rest
                .iter()
                .fold(0.0, |most, (_, rest)| most.max(rest.abs()));
        }
        worst / self.big_m.max(1.0)
    }

    /// What the working column at a position gains beyond its key and what both pay.
    fn unpaid(&self, at: usize) -> f64 {
        let (column, key) = (self.working[at], self.key_of(self.working[at]));
        let gain = self.columns[column as usize].profit - self.columns[key as usize].profit;
        gain - self.dot(&self.price, column) + self.dot(&self.price, key)
    }

    pub fn store_prices(&mut self, prices: &[f64]) {
        for (t, &arc) in self.tight.iter().enumerate() {
            self.price[arc as usize] = prices[t];
        }
    }

    /// Solves for all rates from the basis; returns the residual before the refinement step,
    /// relative to the largest right-hand side.
    pub fn compute_values(&mut self) -> f64 {
        let mut rest = self.rhs.clone();
        for g in &self.groups {
            self.each_load(g.key, |row, load| rest[row as usize] -= load * g.rhs);
        }
        let scale = self
            .tight
            .iter()
            .map(|&e| self.rhs[e as usize])
            .fold(0.0, f64::max);
        let mut b: Vec<(usize, f64)> = self.residual(&rest);
        let mut x = Vec::new();
        self.inverse.times(&b, &mut x);
        self.x = x;
        self.settle(&rest);
        b = self
            .tight
            .iter()
            .enumerate()
            .map(|(t, &e)| (t, self.slack[e as usize]))
            .collect();
        let worst = b.iter().fold(0.0f64, |worst, &(_, v)| worst.max(v.abs()));
        let mut correction = Vec::new();
        self.inverse.times(&b, &mut correction);
        for (value, delta) in self.x.iter_mut().zip(correction) {
            *value += delta;
        }
        self.settle(&rest);
        for t in 0..self.tight.len() {
            self.slack[self.tight[t] as usize] = 0.0;
        }
        if scale > 0.0 {
            worst / scale
        } else {
            0.0
        }
    }

    pub fn residual(&self, rest: &[f64]) -> Vec<(usize, f64)> {
        self.tight
            .iter()
            .enumerate()
            .map(|(t, &e)| (t, rest[e as usize]))
            .collect()
    }

    /// Keys and slacks that follow from the working values.
    pub fn settle(&mut self, rest: &[f64]) {
        let mut slack = std::mem::take(&mut self.slack);
        slack.copy_from_slice(rest);
        for (value, g) in self.key_values.iter_mut().zip(&self.groups) {
            *value = g.rhs;
        }
        for (i, &column) in self.working.iter().enumerate() {
            let value = self.x[i];
            self.each_entry(column, |row, load| slack[row as usize] -= load * value);
            self.key_values[self.columns[column as usize].group as usize] -= value;
        }
        self.slack = slack;
        rise::raise_keys(self, rise::value(self));
    }

    /// Inverts the working basis from scratch; false when it is singular.
    pub fn refactor(&mut self) -> bool {
        let mut own = SparseVector::default();
        own.resize(self.tight.len());
        let mut matrix = SparseVectors::default();
        for &column in &self.working {
            own.clear();
            self.each_entry(column, |row, load| match self.tight_at[row as usize] {
                NONE => {}
                t => own.add(t, load),
            });
            let entries = own.touched.iter().map(|&t| (t, own.values[t as usize]));
            matrix.push(entries.filter(|&(_, value)| value.abs() > MIN_ENTRY));
        }
        let inverse = Inverse::new(&matrix);
        let is_regular = inverse.is_some();
        self.inverse = inverse.unwrap_or_else(|| std::mem::take(&mut self.inverse));
        is_regular
    }

    /// Refactors and solves again; false when the basis is singular.
    pub fn renew(&mut self) -> bool {
        if !self.refactor() {
            return false;
        }
        self.compute_prices();
        self.compute_values();
        true
    }

    /// Largest infeasibility of the basic solution, a negative rate or an overloaded arc, over the variable's size.
    pub fn infeasibility(&self) -> f64 {
        let mut least = 0.0;
        let mut look = |variable: LeavingVariable, value: f64| {
            if value < 0.0 {
                least = f64::min(least, value / sizes::size_of(self, variable));
            }
        };
        for (p, &value) in self.x.iter().enumerate() {
            look(LeavingVariable::Working(p), value);
        }
        for (g, &value) in self.key_values.iter().enumerate() {
            look(LeavingVariable::Key(g as u32), value);
        }
        for (e, &value) in self.slack.iter().enumerate() {
            if self.tight_at[e] == NONE {
                look(LeavingVariable::Slack(e as u32), value);
            }
        }
        -least
    }
}
