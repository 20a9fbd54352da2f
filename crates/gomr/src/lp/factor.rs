//! Sparse factors of a square matrix.
//!
//! Columns and rows that have one entry left come first and cause no fill; the rest is factored column by column
//! (J. Gilbert and T. Peierls, SIAM J. Sci. Stat. Computing 9, 1988), sparse columns first, where of the entries that are
//! large enough the one in the sparsest row is the pivot (H. Markowitz, Management Science 3, 1957).

use crate::graph::NONE;

/// Part of the largest entry of a column that a pivot has at least.
const PIVOT_PART: f64 = 0.1;
/// Entries below this are rounding.
pub(super) const MIN_FACTOR: f64 = 1e-14;
/// A column without an entry of this size is a sum of others.
const MIN_COLUMN: f64 = 1e-9;

/// Sparse vectors one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseVectors {
    ends: Vec<usize>,
    pub entries: Vec<(u32, f64)>,
}

impl SparseVectors {
    pub fn push(&mut self, entries: impl Iterator<Item = (u32, f64)>) {
        self.entries.extend(entries);
        self.ends.push(self.entries.len());
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn of(&self, at: usize) -> &[(u32, f64)] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.entries[start..self.ends[at]]
    }
}

/// `L U` of a matrix, with the row and the column of each pivot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Factors {
    /// Multipliers below each pivot, by row.
    lower: SparseVectors,
    /// Entries above each pivot, by the number of the pivot in their row.
    upper: SparseVectors,
    pivots: Vec<f64>,
    rows: Vec<u32>,
    columns: Vec<u32>,
}

impl Factors {
    /// Factors a square matrix, given by columns; `None` where it is singular.
    pub fn new(matrix: &SparseVectors) -> Option<Self> {
        let mut order = PivotOrder::new(matrix);
        let mut factors = Self::default();
        let mut number = vec![NONE; matrix.len()];
        for (column, row) in order.singletons(matrix) {
            let at = |&&(other, _): &&(u32, f64)| other == row;
            let (_, pivot) = *matrix.of(column as usize).iter().find(at)?;
            factors.push(
                matrix.of(column as usize),
                &mut number,
                (row, column),
                pivot,
            );
        }
        let easy = factors.pivots.len();
        let mut rest: Vec<u32> = (0..matrix.len() as u32)
            .filter(|&column| order.is_open[column as usize])
            .collect();
        rest.sort_by_key(|&column| order.in_column[column as usize]);
        let mut dense = vec![0.0; matrix.len()];
        let mut own = Vec::new();
        for column in rest {
            factors.eliminate(matrix.of(column as usize), easy, &mut dense);
            own.clear();
            for (row, value) in dense.iter_mut().enumerate().filter(|(_, v)| **v != 0.0) {
                own.push((row as u32, std::mem::take(value)));
            }
            let (row, pivot) = order.pivot(&own, &number)?;
            factors.push(&own, &mut number, (row, column), pivot);
        }
        Some(factors)
    }

    /// Writes a column into `dense`, without what the pivots from `first` on make of it.
    fn eliminate(&self, column: &[(u32, f64)], first: usize, dense: &mut [f64]) {
        for &(row, value) in column {
            dense[row as usize] += value;
        }
        for at in first..self.pivots.len() {
            let value = dense[self.rows[at] as usize];
            if value != 0.0 {
                for &(row, factor) in self.lower.of(at) {
                    dense[row as usize] -= factor * value;
                }
            }
        }
    }

    fn push(
        &mut self,
        own: &[(u32, f64)],
        number: &mut [u32],
        (row, column): (u32, u32),
        pivot: f64,
    ) {
        let large = own.iter().filter(|(_, value)| value.abs() > MIN_FACTOR);
        let is_above = |row: u32| number[row as usize] != NONE;
        let above = large.clone().filter(|&&(row, _)| is_above(row));
        let above = above.map(|&(row, value)| (number[row as usize], value));
        self.upper.push(above);
        let below = large.filter(|&&(other, _)| other != row && !is_above(other));
        self.lower
            .push(below.map(|&(row, value)| (row, value / pivot)));
        number[row as usize] = self.pivots.len() as u32;
        self.pivots.push(pivot);
        self.rows.push(row);
        self.columns.push(column);
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.lower.entries.len() + self.upper.entries.len() + self.pivots.len()
    }

    /// Solves for what is given by row; the solution is by column.
    pub fn solve(&self, x: &mut [f64], scratch: &mut Vec<f64>) {
        let size = self.pivots.len();
        for (at, &row) in self.rows.iter().enumerate() {
            let value = x[row as usize];
            if value != 0.0 {
                for &(row, factor) in self.lower.of(at) {
                    x[row as usize] -= factor * value;
                }
            }
        }
        scratch.clear();
        scratch.resize(size, 0.0);
        for at in (0..size).rev() {
            let value = x[self.rows[at] as usize] / self.pivots[at];
            if value != 0.0 {
                scratch[self.columns[at] as usize] = value;
                for &(other, entry) in self.upper.of(at) {
                    x[self.rows[other as usize] as usize] -= entry * value;
                }
            }
        }
        x[..size].copy_from_slice(scratch);
    }

    /// Solves with the transposed matrix for what is given by column; the solution is by row.
    pub fn solve_transposed(&self, x: &mut [f64], scratch: &mut Vec<f64>) {
        let size = self.pivots.len();
        scratch.clear();
        for at in 0..size {
            let above = self.upper.of(at).iter();
            let known: f64 = above.map(|&(i, entry)| entry * scratch[i as usize]).sum();
            scratch.push((x[self.columns[at] as usize] - known) / self.pivots[at]);
        }
        for at in (0..size).rev() {
            let below = self.lower.of(at).iter();
            let known: f64 = below.map(|&(row, factor)| factor * x[row as usize]).sum();
            x[self.rows[at] as usize] = scratch[at] - known;
        }
    }
}

/// Which column comes next, and by which row.
struct PivotOrder {
    /// Columns that are left, and the entries that these and the rows have left.
    is_open: Vec<bool>,
    in_column: Vec<u32>,
    in_row: Vec<u32>,
    /// The columns with an entry in each row.
    starts: Vec<usize>,
    columns: Vec<u32>,
}

impl PivotOrder {
    fn new(matrix: &SparseVectors) -> Self {
        let size = matrix.len();
        let mut in_row = vec![0; size];
        for &(row, _) in &matrix.entries {
            in_row[row as usize] += 1;
        }
        let mut next = vec![0; size + 1];
        for row in 0..size {
            next[row + 1] = next[row] + in_row[row] as usize;
        }
        let starts = next.clone();
        let mut columns = vec![0; matrix.entries.len()];
        for column in 0..size {
            for &(row, _) in matrix.of(column) {
                columns[next[row as usize]] = column as u32;
                next[row as usize] += 1;
            }
        }
        Self {
            is_open: vec![true; size],
            in_column: (0..size).map(|c| matrix.of(c).len() as u32).collect(),
            in_row,
            starts,
            columns,
        }
    }

    fn columns_of(&self, row: u32) -> &[u32] {
        &self.columns[self.starts[row as usize]..self.starts[row as usize + 1]]
    }

    /// Columns with one entry that is left, then rows with one, as (column, row).
    fn singletons(&mut self, matrix: &SparseVectors) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut is_row_open = vec![true; matrix.len()];
        let all = || 0..matrix.len() as u32;
        let mut ready: Vec<u32> = all().filter(|&c| self.in_column[c as usize] == 1).collect();
        while let Some(column) = ready.pop() {
            let open = |&&(row, _): &&(u32, f64)| is_row_open[row as usize];
            let Some(&(row, _)) = matrix.of(column as usize).iter().find(open) else {
                continue;
            };
            is_row_open[row as usize] = false;
            self.close(column, matrix);
            found.push((column, row));
            for at in self.starts[row as usize]..self.starts[row as usize + 1] {
                let other = self.columns[at];
                self.in_column[other as usize] -= 1;
                if self.is_open[other as usize] && self.in_column[other as usize] == 1 {
                    ready.push(other);
                }
            }
        }
        let one_left = |order: &Self, row: u32| order.in_row[row as usize] == 1;
        let mut ready: Vec<u32> = all()
            .filter(|&row| is_row_open[row as usize] && one_left(self, row))
            .collect();
        while let Some(row) = ready.pop() {
            let mut columns = self.columns_of(row).iter();
            let Some(&column) = columns.find(|&&column| self.is_open[column as usize]) else {
                continue;
            };
            let open = |&&(row, _): &&(u32, f64)| is_row_open[row as usize];
            let entries = || matrix.of(column as usize).iter().filter(open);
            let largest = entries().fold(0.0, |most: f64, (_, value)| most.max(value.abs()));
            let is_large =
                |&(other, value): &(u32, f64)| other == row && value.abs() >= PIVOT_PART * largest;
            if !entries().any(is_large) {
                continue;
            }
            let rows: Vec<u32> = entries().map(|&(row, _)| row).collect();
            is_row_open[row as usize] = false;
            self.close(column, matrix);
            found.push((column, row));
            let more = |&&row: &&u32| is_row_open[row as usize] && one_left(self, row);
            ready.extend(rows.iter().filter(more));
        }
        found
    }

    fn close(&mut self, column: u32, matrix: &SparseVectors) {
        self.is_open[column as usize] = false;
        for &(row, _) in matrix.of(column as usize) {
            self.in_row[row as usize] -= 1;
        }
    }

    /// The row of a column's pivot, and the pivot.
    fn pivot(&self, own: &[(u32, f64)], number: &[u32]) -> Option<(u32, f64)> {
        let open = own.iter().filter(|&&(row, _)| number[row as usize] == NONE);
        let largest = open
            .clone()
            .map(|(_, value)| value.abs())
            .fold(0.0, f64::max);
        if largest < MIN_COLUMN {
            return None;
        }
        let large = open.filter(|(_, value)| value.abs() >= PIVOT_PART * largest);
        let sparsest = large.min_by(|a, b| {
            let in_row = |row: u32| self.in_row[row as usize];
            let sparser = in_row(a.0).cmp(&in_row(b.0));
            sparser.then(b.1.abs().total_cmp(&a.1.abs()))
        });
        sparsest.copied()
    }
}
