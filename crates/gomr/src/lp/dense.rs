//! The inverse of a small working basis with all its entries: below a hundred or so rows, updates of whole rows are
//! quicker than sparse factors.

use super::differences::axpy;
use super::factor::Factors;

/// Entries of a column below this leave their row as it is.
const MIN_MULTIPLE: f64 = 1e-13;

/// Row `i` belongs to working column `i`, entry `t` of it to saturated arc `t`.
#[derive(Clone, Debug, Default)]
pub(crate) struct DenseInverse {
    rows: Vec<Vec<f64>>,
}

impl DenseInverse {
    /// The inverse of the matrix that these are the factors of.
    pub fn new(factors: &Factors, size: usize) -> Self {
        let mut scratch = Vec::new();
        let mut row = |i: usize| {
            let mut x = vec![0.0; size];
            x[i] = 1.0;
            factors.solve_transposed(&mut x, &mut scratch);
            x
        };
        Self {
            rows: (0..size).map(&mut row).collect(),
        }
    }

    pub fn size(&self) -> usize {
        self.rows.len()
    }

    pub fn work(&self) -> u64 {
        (self.rows.len() * self.rows.len() / 4) as u64
    }

    pub fn times(&self, b: &[(usize, f64)], out: &mut Vec<f64>) {
        let dot = |row: &Vec<f64>| b.iter().map(|&(t, value)| row[t] * value).sum::<f64>();
        out.clear();
        out.extend(self.rows.iter().map(dot));
    }

    pub fn rows(&self, sum: &[(usize, f64)]) -> Vec<f64> {
        let mut x = vec![0.0; self.rows.len()];
        for &(i, factor) in sum {
            axpy(factor, &self.rows[i], &mut x);
        }
        x
    }

    pub fn replace_column(&mut self, p: usize, y: &[f64]) {
        let mut own = std::mem::take(&mut self.rows[p]);
        own.iter_mut().for_each(|entry| *entry /= y[p]);
        let others = self.rows.iter_mut().zip(y).enumerate();
        for (_, (row, &entry)) in others.filter(|&(i, (_, y))| i != p && y.abs() > MIN_MULTIPLE) {
            axpy(-entry, &own, row);
        }
        self.rows[p] = own;
    }

    pub fn remove(&mut self, p: usize, t: usize, y: &[f64]) {
        self.replace_column(p, y);
        self.rows.swap_remove(p);
        for row in &mut self.rows {
            row.swap_remove(t);
        }
    }

    pub fn append(&mut self, y: &[f64], row: &[(usize, f64)], pivot: f64) {
        let known = self.rows(row);
        for (own, &entry) in self.rows.iter_mut().zip(y) {
            add_multiple(own, entry / pivot, &known);
            own.push(-entry / pivot);
        }
        let mut last: Vec<f64> = known.iter().map(|entry| -entry / pivot).collect();
        last.push(1.0 / pivot);
        self.rows.push(last);
    }

    pub fn replace_row(&mut self, t: usize, y: &[f64], row: &[(usize, f64)], pivot: f64) {
        let known = self.rows(row);
        for (own, &entry) in self.rows.iter_mut().zip(y) {
            add_multiple(own, entry / pivot, &known);
            own[t] = -entry / pivot;
        }
    }

    pub fn sum_rows(&mut self, p: usize, terms: &[(usize, f64)]) {
        self.rows[p] = self.rows(terms);
    }
}

fn add_multiple(to: &mut [f64], factor: f64, from: &[f64]) {
    if factor.abs() > MIN_MULTIPLE {
        axpy(factor, from, to);
    }
}
