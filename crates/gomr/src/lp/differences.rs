//! The loads of the working columns less those of their keys, all rows of each: for programmes whose columns load
//! most rows, where sums over them are faster than over sparse columns.

use super::loads::{ColumnSpan, Loads};

/// A row for each position of the working basis, filled when it is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Differences {
    width: usize,
    /// The column and the key that each row is of.
    of: Vec<(u32, u32)>,
    entries: Vec<f64>,
}

impl Differences {
    /// This many rows of the programme.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            ..Self::default()
        }
    }

    /// Forgets all: columns have other numbers.
    pub fn clear(&mut self) {
        self.of.clear();
    }

    /// Makes sure that position `at` holds this column, given with its loads, less this key.
    pub fn fill(
        &mut self,
        at: usize,
        column: (u32, ColumnSpan),
        key: (u32, ColumnSpan),
        loads: &Loads,
    ) {
        let of = (column.0, key.0);
        if self.of.get(at) == Some(&of) {
            return;
        }
        if at >= self.of.len() {
            self.of.resize(at + 1, of);
            self.entries.resize((at + 1) * self.width, 0.0);
        }
        self.of[at] = of;
        let own = &mut self.entries[at * self.width..(at + 1) * self.width];
        own.fill(0.0);
        for (row, load) in loads.entries(column.1) {
            own[row as usize] += load;
        }
        for (row, load) in loads.entries(key.1) {
            own[row as usize] -= load;
        }
    }

    /// What the position adds to each row.
    pub fn row(&self, at: usize) -> &[f64] {
        &self.entries[at * self.width..(at + 1) * self.width]
    }
}

/// `to += factor · from`.
pub(crate) fn axpy(factor: f64, from: &[f64], to: &mut [f64]) {
    for (target, &value) in to.iter_mut().zip(from) {
        *target += factor * value;
    }
}
