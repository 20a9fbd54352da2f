//! One exchange of what is in the basis: what leaves, what enters, and how all others change.

use super::{sign, NearestRates};
use crate::graph::NONE;
use crate::lp::master::MIN_PIVOT;

/// Reduced costs that may become negative by so much, for the sake of larger pivots.
const HARRIS_TOLERANCE: f64 = 1e-9;

/// A variable or row that is basic.
#[derive(Clone, Copy, Debug)]
pub(super) enum Basic {
    /// By position in the working basis.
    Variable(usize),
    Row(u32),
}

/// What enters the basis.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entering {
    Variable(u32),
    /// By position among the rows at a bound.
    Row(usize),
}

/// What leaves the basis, the bound that it goes to, and by how much it changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub basic: Basic,
    pub at_most: bool,
    pub change: f64,
}

impl NearestRates {
    /// The basic variable that is farthest beyond its bounds, in its tolerance.
    pub(super) fn leaving(&self) -> Option<Leaving> {
        let state = &self.state;
        let mut worst = 1.0;
        let mut leave = None;
        let mut look = |basic: Basic, value: f64, (least, most): (f64, f64), tolerance: f64| {
            let (at_most, change) = match value < least {
                true => (false, least - value),
                false => (true, most - value),
            };
            if (value < least || value > most) && change.abs() > worst * tolerance {
                worst = change.abs() / tolerance;
                leave = Some(Leaving {
                    basic,
                    at_most,
                    change,
                });
            }
        };
        for (i, (&v, &value)) in state.working.iter().zip(&state.x).enumerate() {
            let bounds = (0.0, state.most[v as usize]);
            let tolerance = self.rates[v as usize / 2].tolerance;
            look(Basic::Variable(i), value, bounds, tolerance);
        }
        for (row, limits) in self.limits.iter().enumerate() {
            if state.tight_at[row] == NONE {
                let bounds = (limits.least, limits.most);
                let value = state.activity[row];
                look(Basic::Row(row as u32), value, bounds, limits.tolerance);
            }
        }
        leave
    }

    /// Prepares the row of a basic variable: how it changes with each rate (`self.row`) and with the activity of each
    /// row at a bound (returned).
    pub(super) fn pivot_row(&mut self, basic: Basic) -> Vec<f64> {
        let state = &self.state;
        self.row.clear();
        let rows = state.inverse.rows(&self.working_entries(basic));
        if let Basic::Row(row) = basic {
            for &(w, load) in &self.by_row[row as usize] {
                self.row.add(w, load);
            }
        }
        for (t, &value) in rows.iter().enumerate() {
            if value.abs() > 1e-12 {
                for &(w, load) in &self.by_row[state.tight[t] as usize] {
                    self.row.add(w, -value * load);
                }
            }
        }
        rows
    }

    /// A basic variable by its position, or a row by its entries at the working variables.
    fn working_entries(&self, basic: Basic) -> Vec<(usize, f64)> {
        let row = match basic {
            Basic::Variable(i) => return vec![(i, 1.0)],
            Basic::Row(row) => self.by_row[row as usize].iter(),
        };
        let both = row.flat_map(|&(w, load)| [(2 * w, load), (2 * w + 1, -load)]);
        let place = |v: u32| self.state.place[v as usize];
        let working = both.filter(|&(v, _)| place(v) != NONE);
        working.map(|(v, load)| (place(v) as usize, load)).collect()
    }

    /// Calls `f` with all that may enter so that what leaves changes as it must: what it is, its reduced cost and its
    /// entry in the pivot row, both without sign.
    fn each_candidate(&self, leave: Leaving, rows: &[f64], mut f: impl FnMut(Entering, f64, f64)) {
        let state = &self.state;
        let wanted = leave.change.signum();
        let mut look = |enter: Entering, at_most: bool, reduced: f64, entry: f64| {
            let (towards, loss) = match at_most {
                true => (-wanted * entry, -reduced),
                false => (wanted * entry, reduced),
            };
            if towards > MIN_PIVOT {
                f(enter, loss.max(0.0), towards);
            }
        };
        for &w in &self.row.touched {
            let entry = self.row.values[w as usize];
            for v in [2 * w, 2 * w + 1] {
                let at = v as usize;
                if state.place[at] == NONE && state.most[at] > 0.0 {
                    let entry = entry * sign(v);
                    look(
                        Entering::Variable(v),
                        state.at_most[at],
                        state.reduced[at],
                        entry,
                    );
                }
            }
        }
        for (t, (&row, &entry)) in state.tight.iter().zip(rows).enumerate() {
            let row = row as usize;
            if self.limits[row].least < self.limits[row].most {
                look(
                    Entering::Row(t),
                    state.row_at_most[row],
                    state.price[row],
                    entry,
                );
            }
        }
    }

    /// Harris' ratio test: of what loses least, within a tolerance, the one with the largest entry.
    pub(super) fn entering(&self, leave: Leaving, rows: &[f64]) -> Option<Entering> {
        let mut limit = f64::INFINITY;
        self.each_candidate(leave, rows, |_, loss, entry| {
            limit = limit.min((loss + HARRIS_TOLERANCE) / entry);
        });
        let mut best = None;
        let mut largest = 0.0;
        self.each_candidate(leave, rows, |enter, loss, entry| {
            if loss <= limit * entry && entry > largest {
                largest = entry;
                best = Some(enter);
            }
        });
        best
    }

    pub(super) fn pivot(&mut self, leave: Leaving, enter: Entering, rows: &[f64]) {
        self.pivots += 1;
        self.work += self.pivot_work();
        self.state.settled = false;
        let (entry, reduced, start) = match enter {
            Entering::Variable(v) => {
                let at = v as usize;
                let value = match self.state.at_most[at] {
                    true => self.state.most[at],
                    false => 0.0,
                };
                let entry = self.row.values[at / 2] * sign(v);
                (entry, self.state.reduced[at], value)
            }
            Entering::Row(t) => {
                let row = self.state.tight[t] as usize;
                (rows[t], self.state.price[row], self.bound(row))
            }
        };
        let step = leave.change / entry;
        let (direction, schur) = self.move_along(leave.basic, enter, step);
        self.change_costs(reduced / entry, rows);
        let value = start + step;
        match leave.basic {
            Basic::Variable(p) => {
                self.state.reduced[self.state.working[p] as usize] = reduced / entry;
            }
            Basic::Row(row) => self.state.price[row as usize] = reduced / entry,
        }
        match leave.basic {
            Basic::Variable(p) => {
                self.state
                    .leave_variable(p, leave.at_most, enter, value, &direction)
            }
            Basic::Row(row) => {
                let entries = self.working_entries(leave.basic);
                let change = (&direction[..], &entries[..], schur);
                self.state
                    .leave_row(row, leave.at_most, enter, value, change);
            }
        }
        if self.state.inverse.is_worn() {
            self.refactor();
        }
    }

    /// What a pivot costs: the inverse, what enters and leaves, and the rates that its row touches.
    fn pivot_work(&self) -> u64 {
        let size = self.state.inverse.size();
        let looked_at = self.limits.len() + size + 4 * self.row.touched.len();
        500 + self.state.inverse.work() + 2 * looked_at as u64
    }

    /// Changes all basic variables by a step of what enters. Returns how the variables of the working basis change
    /// per unit, without sign where a variable enters, and how the leaving row does.
    fn move_along(&mut self, leaving: Basic, enter: Entering, step: f64) -> (Vec<f64>, f64) {
        let state = &mut self.state;
        let mut direction = Vec::new();
        self.load.clear();
        let toward = match enter {
            Entering::Variable(v) => {
                let entries = &self.rates[v as usize / 2].entries;
                let at = |&(row, load): &(u32, f64)| match state.tight_at[row as usize] {
                    NONE => None,
                    t => Some((t as usize, load * sign(v))),
                };
                let column: Vec<(usize, f64)> = entries.iter().filter_map(at).collect();
                state.inverse.times(&column, &mut direction);
                for &(row, load) in entries {
                    self.load.add(row, load * sign(v));
                }
                -1.0
            }
            Entering::Row(t) => {
                state.inverse.times(&[(t, 1.0)], &mut direction);
                1.0
            }
        };
        for (i, &y) in direction.iter().enumerate() {
            if y != 0.0 {
                state.x[i] += step * toward * y;
                let v = state.working[i];
                for &(row, load) in &self.rates[v as usize / 2].entries {
                    self.load.add(row, toward * y * load * sign(v));
                }
            }
        }
        for &row in &self.load.touched {
            if state.tight_at[row as usize] == NONE {
                state.activity[row as usize] += step * self.load.values[row as usize];
            }
        }
        let schur = match leaving {
            Basic::Row(row) => self.load.values[row as usize],
            Basic::Variable(_) => 0.0,
        };
        (direction, schur)
    }

    fn change_costs(&mut self, step: f64, rows: &[f64]) {
        let state = &mut self.state;
        for &w in &self.row.touched {
            let entry = self.row.values[w as usize];
            for v in [2 * w, 2 * w + 1] {
                if state.place[v as usize] == NONE {
                    state.reduced[v as usize] -= step * entry * sign(v);
                }
            }
        }
        for (&row, entry) in state.tight.iter().zip(rows) {
            state.price[row as usize] -= step * entry;
        }
    }
}
