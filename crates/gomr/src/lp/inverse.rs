//! The inverse of the working basis, dense and growing or shrinking by one row as links saturate.
//!
//! The working basis `W` is square: one row for each saturated arc, one column for each basic
//! variable that is not the key of its commodity (Dantzig and Van Slyke, "Generalized upper
//! bounding techniques", J. Comput. Syst. Sci. 1, 1967). It is small (tens to hundreds) and its
//! entries are 0, 1 and -1, so a dense inverse with rank-one updates is fast and steady; one step
//! of iterative refinement on every solution removes what rounding is left, and a residual that
//! grows asks for [`Inverse::invert`] again.

/// Numbers this small are rounding noise in a basis of entries near 1.
const LEAST_ENTRY: f64 = 1e-13;

/// `W⁻¹`: row `i` belongs to working column `i`, column `t` to saturated arc `t`.
#[derive(Debug, Default)]
pub(crate) struct Inverse {
    size: usize,
    stride: usize,
    entries: Vec<f64>,
}

impl Clone for Inverse {
    /// Copies what is in use, not the room to grow.
    fn clone(&self) -> Self {
        Self {
            size: self.size,
            stride: self.stride,
            entries: self.entries[..self.size * self.stride].to_vec(),
        }
    }
}

impl Inverse {
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn clear(&mut self) {
        self.size = 0;
    }

    pub fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.stride..i * self.stride + self.size]
    }

    fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.entries[i * self.stride..i * self.stride + self.size]
    }

    /// `out = W⁻¹ b` for a sparse `b` of (position, value).
    pub fn times(&self, b: &[(usize, f64)], out: &mut Vec<f64>) {
        out.clear();
        out.extend((0..self.size).map(|i| {
            let row = self.row(i);
            b.iter().map(|&(t, value)| row[t] * value).sum::<f64>()
        }));
    }

    /// Column `t` of the inverse.
    pub fn column(&self, t: usize, out: &mut Vec<f64>) {
        out.clear();
        out.extend((0..self.size).map(|i| self.entries[i * self.stride + t]));
    }

    /// `out += factor · row i`.
    pub fn add_row(&self, i: usize, factor: f64, out: &mut [f64]) {
        axpy(factor, self.row(i), out);
    }

    /// `row p += factor · row i`.
    pub fn add_row_to(&mut self, i: usize, factor: f64, p: usize) {
        let row = self.row(i).to_vec();
        axpy(factor, &row, self.row_mut(p));
    }

    fn reserve(&mut self, size: usize) {
        if size <= self.stride {
            let least = size * self.stride;
            self.entries.resize(self.entries.len().max(least), 0.0);
            return;
        }
        let stride = (2 * size).max(16);
        let mut entries = vec![0.0; stride * stride];
        for i in 0..self.size {
            entries[i * stride..i * stride + self.size].copy_from_slice(self.row(i));
        }
        self.stride = stride;
        self.entries = entries;
    }

    /// Puts a column whose `W⁻¹ a` is `y` in the place of working column `p`.
    pub fn replace_column(&mut self, p: usize, y: &[f64]) {
        let mut pivot_row = self.row(p).to_vec();
        let scale = 1.0 / y[p];
        pivot_row.iter_mut().for_each(|v| *v *= scale);
        for (i, &factor) in y.iter().enumerate() {
            if i != p && factor.abs() > LEAST_ENTRY {
                axpy(-factor, &pivot_row, self.row_mut(i));
            }
        }
        self.row_mut(p).copy_from_slice(&pivot_row);
    }

    /// Puts a row `v` with `v W⁻¹ = z` in the place of row `t`.
    pub fn replace_row(&mut self, t: usize, z: &[f64]) {
        let scale = 1.0 / z[t];
        for i in 0..self.size {
            let row = self.row_mut(i);
            let entry = row[t] * scale;
            if entry.abs() > LEAST_ENTRY {
                axpy(-entry, z, row);
            }
            row[t] = entry;
        }
    }

    /// Appends a row and a column: `y = W⁻¹ a`, `z = v W⁻¹`, `s` the Schur complement `d - v y`.
    pub fn append(&mut self, y: &[f64], z: &[f64], s: f64) {
        let n = self.size;
        self.reserve(n + 1);
        self.size = n + 1;
        let scale = 1.0 / s;
        for (i, &factor) in y.iter().enumerate() {
            let row = self.row_mut(i);
            row[n] = -factor * scale;
            if factor.abs() > LEAST_ENTRY {
                axpy(factor * scale, z, &mut row[..n]);
            }
        }
        let last = self.row_mut(n);
        for (entry, &value) in last.iter_mut().zip(z) {
            *entry = -value * scale;
        }
        last[n] = scale;
    }

    /// Removes working column `p` and row `t`; the last ones take their places.
    pub fn remove(&mut self, p: usize, t: usize) {
        let n = self.size;
        let pivot_row = self.row(p).to_vec();
        let scale = 1.0 / pivot_row[t];
        for i in (0..n).filter(|&i| i != p) {
            let row = self.row_mut(i);
            let factor = row[t] * scale;
            if factor.abs() > LEAST_ENTRY {
                axpy(-factor, &pivot_row, row);
            }
            row[t] = row[n - 1];
        }
        if p != n - 1 {
            let (head, tail) = self.entries.split_at_mut((n - 1) * self.stride);
            head[p * self.stride..p * self.stride + n].copy_from_slice(&tail[..n]);
        }
        self.size = n - 1;
    }

    /// Makes row `p` minus the sum of the rows `members` (which hold `p`): the key of a commodity
    /// and its working column `p` change places.
    pub fn swap_key(&mut self, p: usize, members: &[usize]) {
        let mut sum = vec![0.0; self.size];
        for &i in members {
            axpy(1.0, self.row(i), &mut sum);
        }
        for (entry, value) in self.row_mut(p).iter_mut().zip(sum) {
            *entry = -value;
        }
    }

    /// Inverts `matrix` (row-major, rows saturated arcs, columns working columns) by Gauss-Jordan
    /// elimination with partial pivoting; false when it is singular.
    pub fn invert(&mut self, size: usize, mut matrix: Vec<f64>) -> bool {
        self.size = size;
        self.reserve(size);
        for i in 0..size {
            let row = self.row_mut(i);
            row.fill(0.0);
            row[i] = 1.0;
        }
        for k in 0..size {
            let pick = (k..size).max_by(|&a, &b| {
                let magnitude = |i: usize| matrix[i * size + k].abs();
                magnitude(a).total_cmp(&magnitude(b)).then(b.cmp(&a))
            });
            let Some(best) = pick else { return false };
            if matrix[best * size + k].abs() < 1e-9 {
                return false;
            }
            self.exchange(&mut matrix, k, best);
            self.eliminate(&mut matrix, k);
        }
        true
    }

    fn exchange(&mut self, matrix: &mut [f64], a: usize, b: usize) {
        if a == b {
            return;
        }
        for c in 0..self.size {
            matrix.swap(a * self.size + c, b * self.size + c);
            self.entries.swap(a * self.stride + c, b * self.stride + c);
        }
    }

    fn eliminate(&mut self, matrix: &mut [f64], k: usize) {
        let size = self.size;
        let scale = 1.0 / matrix[k * size + k];
        matrix[k * size..(k + 1) * size]
            .iter_mut()
            .for_each(|v| *v *= scale);
        self.row_mut(k).iter_mut().for_each(|v| *v *= scale);
        let left = matrix[k * size..(k + 1) * size].to_vec();
        let right = self.row(k).to_vec();
        for i in (0..size).filter(|&i| i != k) {
            let factor = matrix[i * size + k];
            if factor != 0.0 {
                axpy(-factor, &left, &mut matrix[i * size..(i + 1) * size]);
                axpy(-factor, &right, self.row_mut(i));
            }
        }
    }
}

/// `to += factor · from`.
pub(crate) fn axpy(factor: f64, from: &[f64], to: &mut [f64]) {
    for (target, &value) in to.iter_mut().zip(from) {
        *target += factor * value;
    }
}
