//! The inverse of the working basis: all its entries while it is small, sparse factors and exchanges from there on.
//!
//! The working basis `W` is square: one row for each saturated arc, one column for each basic variable that is not the key
//! of its commodity (Dantzig and Van Slyke, "Generalized upper bounding techniques", J. Comput. Syst. Sci. 1, 1967). One
//! step of iterative refinement on every solution removes what rounding is left, and a residual that grows asks for new
//! factors.

use super::dense::DenseInverse;
use super::factor::{Factors, SparseVectors};
use super::product::ProductForm;

/// Rows up to which the inverse is dense: sparse factors alone cost 17 % more instructions on 20 nodes with 100 flows, and
/// nothing at 320 saturated arcs.
const MAX_DENSE: usize = 160;

/// `W⁻¹`: row `i` belongs to working column `i`, column `t` to saturated arc `t`.
#[derive(Clone, Debug)]
pub(crate) enum Inverse {
    Dense(DenseInverse),
    Product(Box<ProductForm>),
}

impl Default for Inverse {
    fn default() -> Self {
        Self::Dense(DenseInverse::default())
    }
}

/// Calls the method of whichever form the inverse has.
macro_rules! of_form {
    ($inverse:expr, $form:ident => $call:expr) => {
        match $inverse {
            Inverse::Dense($form) => $call,
            Inverse::Product($form) => $call,
        }
    };
}

impl Inverse {
    /// Inverts a matrix that is given by columns; `None` where it is singular.
    pub fn new(matrix: &SparseVectors) -> Option<Self> {
        let factors = Factors::new(matrix)?;
        Some(match matrix.len() <= MAX_DENSE {
            true => Self::Dense(DenseInverse::new(&factors, matrix.len())),
            false => Self::Product(Box::new(ProductForm::new(factors, matrix.len()))),
        })
    }

    pub fn size(&self) -> usize {
        of_form!(self, form => form.size())
    }

    /// What an exchange costs, in steps of about a nanosecond.
    pub fn work(&self) -> u64 {
        of_form!(self, form => form.work())
    }

    /// Whether an inverse of its own would serve the present basis better.
    pub fn is_worn(&self) -> bool {
        match self {
            Self::Dense(dense) => dense.size() > MAX_DENSE,
            Self::Product(product) => product.is_worn(),
        }
    }

    /// `out = W⁻¹ b`, both by position.
    pub fn times(&self, b: &[(usize, f64)], out: &mut Vec<f64>) {
        of_form!(self, form => form.times(b, out));
    }

    /// `Σ factor · row i` of `W⁻¹`, for these (i, factor).
    pub fn rows(&self, sum: &[(usize, f64)]) -> Vec<f64> {
        of_form!(self, form => form.rows(sum))
    }

    /// Puts a column whose `W⁻¹ a` is `y` in the place of working column `p`.
    pub fn replace_column(&mut self, p: usize, y: &[f64]) {
        of_form!(self, form => form.replace_column(p, y));
    }

    /// Removes working column `p` and row `t`, to which the column `y` of the inverse belongs; the last ones take their
    /// places.
    pub fn remove(&mut self, p: usize, t: usize, y: &[f64]) {
        of_form!(self, form => form.remove(p, t, y));
    }

    /// Appends a column whose `W⁻¹ a` is `y` and a row, given by its entries at the known columns and the one at the new
    /// column, less what the others make of it.
    pub fn append(&mut self, y: &[f64], row: &[(usize, f64)], pivot: f64) {
        of_form!(self, form => form.append(y, row, pivot));
    }

    /// Puts a row in the place of row `t`, to which the column `y` of the inverse belongs; `pivot` is minus the row times `y`.
    pub fn replace_row(&mut self, t: usize, y: &[f64], row: &[(usize, f64)], pivot: f64) {
        of_form!(self, form => form.replace_row(t, y, row, pivot));
    }

    /// Makes row `p` of the inverse a sum of rows.
    pub fn sum_rows(&mut self, p: usize, terms: &[(usize, f64)]) {
        of_form!(self, form => form.sum_rows(p, terms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn unit(rng: &mut Rng) -> f64 {
        rng.below(2001) as f64 / 1000.0 - 1.0
    }

    fn row(size: usize, rng: &mut Rng) -> Vec<(usize, f64)> {
        (0..size).map(|at| (at, unit(rng))).collect()
    }

    /// Exchanges something, the same in both forms, where the pivot is large enough.
    fn exchange(forms: &mut [Inverse; 2], rng: &mut Rng) {
        let size = forms[0].size();
        let mut y = Vec::new();
        let (p, t) = (rng.below(size.max(1)), rng.below(size.max(1)));
        let kind = if size < 3 { 0 } else { rng.below(4) };
        match kind {
            0 | 1 => forms[0].times(&row(size, rng), &mut y),
            _ => forms[0].times(&[(t, 1.0)], &mut y),
        }
        let new = row(size, rng);
        let made: f64 = new.iter().map(|&(at, entry)| entry * y[at]).sum();
        let pivot = [
            3.0,
            *y.get(p).unwrap_or(&0.0),
            *y.get(p).unwrap_or(&0.0),
            -made,
        ][kind];
        for form in forms.iter_mut().filter(|_| pivot.abs() > 0.2) {
            match kind {
                0 => form.append(&y, &new, pivot),
                1 => form.replace_column(p, &y),
                2 => form.remove(p, t, &y),
                _ => form.replace_row(t, &y, &new, pivot),
            }
        }
        if size > 3 && rng.below(3) == 0 {
            let terms = [(p, -1.0), ((p + 1) % size.min(forms[0].size()), 0.5)];
            if p < forms[0].size() && terms[1].0 != p {
                forms.iter_mut().for_each(|form| form.sum_rows(p, &terms));
            }
        }
    }

    #[test]
    fn both_forms_are_the_same_inverse() {
        let mut rng = Rng(3);
        for _ in 0..40 {
            let product = ProductForm::new(Factors::default(), 0);
            let mut forms = [Inverse::default(), Inverse::Product(Box::new(product))];
            for step in 0..60 {
                exchange(&mut forms, &mut rng);
                let b = row(forms[0].size(), &mut rng);
                let (mut one, mut other) = (Vec::new(), Vec::new());
                forms[0].times(&b, &mut one);
                forms[1].times(&b, &mut other);
                one.extend(forms[0].rows(&b));
                other.extend(forms[1].rows(&b));
                let size = one.iter().fold(1.0f64, |most, value| most.max(value.abs()));
                for (one, other) in one.iter().zip(&other) {
                    assert!(
                        (one - other).abs() < 1e-7 * size,
                        "step {step}: {one} {other}"
                    );
                }
            }
        }
    }
}
