//! The inverse of a large working basis: sparse factors, and what has changed since they were made.
//!
//! Each exchange adds a factor to the product form of the inverse (G. Dantzig and W. Orchard-Hays, Math. Tables and Other
//! Aids to Computation 8, 1954).

use super::factor::{Factors, SparseVectors, MIN_FACTOR};

/// Exchanges after which the basis is factored again, and entries of theirs beyond those of its own factors.
const MAX_EXCHANGES: usize = 100;
const MAX_GROWTH: usize = 16;

/// What an exchange makes of a solution.
#[derive(Clone, Copy, Debug)]
enum Eta {
    /// Another column in this slot.
    Column { slot: u32, pivot: f64 },
    /// A row and a column more, in the next slot; its row is the exchange's second vector.
    Border { slot: u32, pivot: f64 },
    /// The value of this slot becomes a sum of values.
    Sum { slot: u32 },
}

/// Sparse factors, and one exchange after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProductForm {
    factors: Factors,
    exchanges: Vec<Eta>,
    /// Two for each exchange.
    vectors: SparseVectors,
    /// Slot of each position of a column, and of each position of a row.
    columns: Vec<u32>,
    rows: Vec<u32>,
    slots: usize,
}

impl ProductForm {
    pub fn new(factors: Factors, slots: usize) -> Self {
        let positions: Vec<u32> = (0..slots as u32).collect();
        Self {
            factors,
            columns: positions.clone(),
            rows: positions,
            slots,
            ..Self::default()
        }
    }

    pub fn size(&self) -> usize {
        self.columns.len()
    }

    pub fn work(&self) -> u64 {
        let entries = self.factors.entries() + self.vectors.entries.len();
        (2 * entries + 4 * self.slots) as u64
    }

    pub fn is_worn(&self) -> bool {
        let own = self.factors.entries();
        self.exchanges.len() >= MAX_EXCHANGES || self.vectors.entries.len() > own + MAX_GROWTH
    }

    pub fn times(&self, b: &[(usize, f64)], out: &mut Vec<f64>) {
        let mut x = vec![0.0; self.slots];
        for &(t, value) in b {
            x[self.rows[t] as usize] += value;
        }
        let mut scratch = Vec::new();
        self.factors.solve(&mut x, &mut scratch);
        for (at, exchange) in self.exchanges.iter().enumerate() {
            let (own, row) = (self.vectors.of(2 * at), self.vectors.of(2 * at + 1));
            let dot = |x: &[f64], entries: &[(u32, f64)]| -> f64 {
                entries
                    .iter()
                    .map(|&(slot, value)| value * x[slot as usize])
                    .sum()
            };
            match *exchange {
                Eta::Sum { slot } => x[slot as usize] = dot(&x, own),
                Eta::Column { slot, pivot } | Eta::Border { slot, pivot } => {
                    let value = (x[slot as usize] - dot(&x, row)) / pivot;
                    if value != 0.0 {
                        for &(other, entry) in own {
                            x[other as usize] -= entry * value;
                        }
                    }
                    x[slot as usize] = value;
                }
            }
        }
        out.clear();
        out.extend(self.columns.iter().map(|&slot| x[slot as usize]));
    }

    pub fn rows(&self, sum: &[(usize, f64)]) -> Vec<f64> {
        let mut x = vec![0.0; self.slots];
        for &(i, factor) in sum {
            x[self.columns[i] as usize] += factor;
        }
        for (at, exchange) in self.exchanges.iter().enumerate().rev() {
            let (own, row) = (self.vectors.of(2 * at), self.vectors.of(2 * at + 1));
            match *exchange {
                Eta::Sum { slot } => {
                    let value = std::mem::take(&mut x[slot as usize]);
                    if value != 0.0 {
                        for &(other, factor) in own {
                            x[other as usize] += factor * value;
                        }
                    }
                }
                Eta::Column { slot, pivot } | Eta::Border { slot, pivot } => {
                    let known: f64 = own.iter().map(|&(i, entry)| entry * x[i as usize]).sum();
                    let value = (x[slot as usize] - known) / pivot;
                    for &(other, entry) in row {
                        x[other as usize] -= entry * value;
                    }
                    x[slot as usize] = value;
                }
            }
        }
        let mut scratch = Vec::new();
        self.factors.solve_transposed(&mut x, &mut scratch);
        self.rows.iter().map(|&slot| x[slot as usize]).collect()
    }

    pub fn replace_column(&mut self, p: usize, y: &[f64]) {
        let (slot, pivot) = (self.columns[p], y[p]);
        self.push(Eta::Column { slot, pivot }, y, slot, &[]);
    }

    pub fn remove(&mut self, p: usize, t: usize, y: &[f64]) {
        self.replace_column(p, y);
        self.columns.swap_remove(p);
        self.rows.swap_remove(t);
    }

    pub fn append(&mut self, y: &[f64], row: &[(usize, f64)], pivot: f64) {
        let slot = self.border(y, row, pivot);
        self.columns.push(slot);
        self.rows.push(slot);
    }

    pub fn replace_row(&mut self, t: usize, y: &[f64], row: &[(usize, f64)], pivot: f64) {
        self.rows[t] = self.border(y, row, pivot);
    }

    fn border(&mut self, y: &[f64], row: &[(usize, f64)], pivot: f64) -> u32 {
        let slot = self.slots as u32;
        self.slots += 1;
        self.push(Eta::Border { slot, pivot }, y, slot, row);
        slot
    }

    fn push(&mut self, exchange: Eta, y: &[f64], slot: u32, row: &[(usize, f64)]) {
        let own = self.columns.iter().zip(y);
        let own = own.filter(|&(&other, y)| other != slot && y.abs() > MIN_FACTOR);
        self.vectors.push(own.map(|(&other, &y)| (other, y)));
        let row = row.iter().map(|&(i, entry)| (self.columns[i], entry));
        self.vectors.push(row);
        self.exchanges.push(exchange);
    }

    pub fn sum_rows(&mut self, p: usize, terms: &[(usize, f64)]) {
        let columns = &self.columns;
        self.vectors
            .push(terms.iter().map(|&(i, factor)| (columns[i], factor)));
        self.vectors.push(std::iter::empty());
        self.exchanges.push(Eta::Sum { slot: columns[p] });
    }
}
