//! The loads of all columns: for each the arcs of its path, then those that only its acknowledgements load.
//!
//! Most problems have no acknowledgements, and every load is 1: coefficients are stored once one is not. Which
//! columns load an arc is indexed when it is first asked for, since a solve from scratch never asks.

/// A column's place in the rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ColumnSpan {
    start: u32,
    path_len: u32,
    len: u32,
}

impl ColumnSpan {
    fn all(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// Sparse columns in one array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    rows: Vec<u32>,
    /// Load of each row; empty while all are 1.
    coefficients: Vec<f64>,
}

impl Loads {
    /// Appends a column that loads each arc of `path` with 1, and `extra` beside.
    pub fn push(&mut self, path: &[u32], extra: &[(u32, f64)]) -> ColumnSpan {
        let start = self.rows.len();
        if !extra.is_empty() && self.coefficients.is_empty() {
            self.coefficients.resize(start, 1.0);
        }
        self.rows.extend_from_slice(path);
        if !extra.is_empty() || !self.coefficients.is_empty() {
            self.coefficients.resize(self.rows.len(), 1.0);
        }
        for &(arc, load) in extra {
            match self.rows[start..].iter().position(|&row| row == arc) {
                Some(at) => self.coefficients[start + at] += load,
                None => {
                    self.rows.push(arc);
                    self.coefficients.push(load);
                }
            }
        }
        ColumnSpan {
            start: start as u32,
            path_len: path.len() as u32,
            len: (self.rows.len() - start) as u32,
        }
    }

    /// Appends a column of loads, no arc twice, that has no path.
    pub fn push_loads(&mut self, loads: &[(u32, f64)]) -> ColumnSpan {
        let start = self.rows.len();
        self.coefficients.resize(start, 1.0);
        self.rows.extend(loads.iter().map(|&(arc, _)| arc));
        self.coefficients
            .extend(loads.iter().map(|&(_, load)| load));
        ColumnSpan {
            start: start as u32,
            path_len: 0,
            len: loads.len() as u32,
        }
    }

    /// Appends a column of other loads.
    pub fn push_from(&mut self, other: &Self, span: ColumnSpan) -> ColumnSpan {
        let start = self.rows.len() as u32;
        self.rows.extend_from_slice(&other.rows[span.all()]);
        if !other.coefficients.is_empty() {
            self.coefficients
                .extend_from_slice(&other.coefficients[span.all()]);
        }
        ColumnSpan { start, ..span }
    }

    /// The arcs of the column's path, in order.
    pub fn path(&self, span: ColumnSpan) -> &[u32] {
        &self.rows[span.start as usize..(span.start + span.path_len) as usize]
    }

    /// The arcs a column loads.
    pub fn rows(&self, span: ColumnSpan) -> &[u32] {
        &self.rows[span.all()]
    }

    /// The arcs a column loads, and how much.
    pub fn entries(&self, span: ColumnSpan) -> impl Iterator<Item = (u32, f64)> + '_ {
        let coefficients = match self.coefficients.is_empty() {
            true => &[][..],
            false => &self.coefficients[span.all()],
        };
        let rows = self.rows[span.all()].iter().enumerate();
        rows.map(move |(i, &row)| (row, coefficients.get(i).copied().unwrap_or(1.0)))
    }

    /// `prices · a_column`.
    pub fn dot(&self, prices: &[f64], span: ColumnSpan) -> f64 {
        if self.coefficients.is_empty() {
            return self.rows(span).iter().map(|&e| prices[e as usize]).sum();
        }
        let entries = self.rows[span.all()]
            .iter()
            .zip(&self.coefficients[span.all()]);
        entries.map(|(&e, load)| prices[e as usize] * load).sum()
    }

    /// The load on one arc.
    pub fn on(&self, span: ColumnSpan, arc: u32) -> f64 {
        let at = self.rows(span).iter().position(|&row| row == arc);
        let load = |at: usize| self.coefficients.get(span.start as usize + at);
        at.map_or(0.0, |at| load(at).copied().unwrap_or(1.0))
    }

    /// Whether every column loads the arcs of its path with 1 and no other.
    pub fn are_plain(&self) -> bool {
        self.coefficients.is_empty()
    }
}
