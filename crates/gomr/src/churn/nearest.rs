//! The rates nearest to given ones within linear limits, by a dual simplex with bounded variables.
//!
//! Minimise the sum of `up_w` and `down_w`, each times its cost, subject to `least ≤ A x ≤ most` and
//! `x_w = base_w + up_w − down_w ≥ 0`. With `up = down = 0` nothing costs anything and no reduced cost is negative:
//! from there each pivot brings one broken limit back to its bound, so the work grows with what is broken and not
//! with how many rates there are. Limits that become tighter leave the reduced costs as they are: the search goes on
//! from the last basis.
//!
//! The rows that are at a bound and the variables between theirs make the working basis ([`Inverse`]); every other row
//! has its own activity as the basic variable.

use std::ops::Range;

use crate::basis::Inverse;
use crate::graph::NONE;
use crate::halt::Halt;
use crate::master::Sparse;

/// Entries of a pivot row that are smaller count as zero.
const PIVOT: f64 = 1e-7;
/// Reduced costs that may become negative by so much, for the sake of larger pivots.
const HARRIS: f64 = 1e-9;
/// Costs differ by up to this share, so that hardly any two ways out cost the same.
const SPREAD: f64 = 1e-6;
/// Pivots between two inversions.
const RENEW: usize = 50;
/// Pivots for each row and rate before the search is given up.
const PATIENCE: usize = 20;

/// A rate that may change.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    /// What it should stay at.
    pub base: f64,
    /// Cost of a unit more.
    pub up: f64,
    /// Cost of a unit less.
    pub down: f64,
    /// The rows that it counts in, and how much.
    pub entries: Vec<(u32, f64)>,
    /// By how much it may be beyond its bounds.
    pub tolerance: f64,
}

/// Limits of a sum of rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub least: f64,
    pub most: f64,
    /// By how much it may be beyond them.
    pub tolerance: f64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All limits are kept, at least cost.
    Optimal,
    /// No rates keep all limits.
    Infeasible,
    /// Rounding defeated it.
    Stuck,
    /// It was told to stop.
    Halted,
}

/// A variable or row that is basic.
#[derive(Clone, Copy, Debug)]
enum Basic {
    /// By position in the working basis.
    Variable(usize),
    Row(u32),
}

/// What enters the basis.
#[derive(Clone, Copy, Debug)]
enum Enter {
    Variable(u32),
    /// By position among the rows at a bound.
    Row(usize),
}

/// What leaves the basis, the bound that it goes to, and by how much it changes.
#[derive(Clone, Copy, Debug)]
struct Leave {
    basic: Basic,
    at_most: bool,
    change: f64,
}

/// The rates and their limits, with the search for the nearest ones.
///
/// The variables of rate `w` are `2w`, by which it is more than its base, and `2w + 1`, by which it is less.
#[derive(Debug)]
pub(crate) struct Nearest {
    rates: Vec<Rate>,
    limits: Vec<Limits>,
    by_row: Vec<Vec<(u32, f64)>>,
    halt: Halt,
    state: State,
    pivots: usize,
    /// The pivot row: change of the leaving variable per unit of each rate.
    row: Sparse,
    /// Change of each row's activity per unit of what enters.
    load: Sparse,
}

/// A basis and what belongs to it.
#[derive(Clone, Debug, Default)]
struct State {
    inverse: Inverse,
    /// Variables of the working basis, by position, and their values.
    working: Vec<u32>,
    x: Vec<f64>,
    /// Position of each variable in the working basis, or `NONE`.
    place: Vec<u32>,
    /// Upper bound of each variable, and whether it is there.
    most: Vec<f64>,
    at_most: Vec<bool>,
    reduced: Vec<f64>,
    /// Rows at a bound, by position, and the position of each row, or `NONE`.
    tight: Vec<u32>,
    tight_at: Vec<u32>,
    row_at_most: Vec<bool>,
    /// Reduced cost of each row's activity.
    price: Vec<f64>,
    activity: Vec<f64>,
    since_renewed: usize,
}

fn sign(variable: u32) -> f64 {
    match variable % 2 {
        0 => 1.0,
        _ => -1.0,
    }
}

impl Nearest {
    pub fn new(rates: Vec<Rate>, limits: Vec<Limits>, halt: Halt) -> Self {
        let mut by_row = vec![Vec::new(); limits.len()];
        for (w, rate) in rates.iter().enumerate() {
            for &(row, load) in &rate.entries {
                by_row[row as usize].push((w as u32, load));
            }
        }
        let variables = 2 * rates.len();
        let most = |v: usize| match v % 2 {
            0 => f64::INFINITY,
            _ => rates[v / 2].base,
        };
        let state = State {
            place: vec![NONE; variables],
            most: (0..variables).map(most).collect(),
            at_most: vec![false; variables],
            tight_at: vec![NONE; limits.len()],
            row_at_most: vec![false; limits.len()],
            price: vec![0.0; limits.len()],
            activity: vec![0.0; limits.len()],
            ..State::default()
        };
        let (mut row, mut load) = (Sparse::default(), Sparse::default());
        row.resize(rates.len());
        load.resize(limits.len());
        let mut nearest = Self {
            rates,
            limits,
            by_row,
            halt,
            state,
            pivots: 0,
            row,
            load,
        };
        nearest.compute_costs();
        nearest.compute_values();
        nearest
    }

    /// A rate as the last search left it.
    pub fn rate(&self, w: usize) -> f64 {
        let value = |v: usize| match self.state.place[v] {
            NONE if self.state.at_most[v] => self.state.most[v],
            NONE => 0.0,
            at => self.state.x[at as usize],
        };
        self.rates[w].base + value(2 * w) - value(2 * w + 1)
    }

    /// By how much the rates from `first` up to `end` have changed together.
    pub fn moved(&self, rates: Range<usize>) -> f64 {
        rates
            .map(|w| (self.rate(w) - self.rates[w].base).abs())
            .sum()
    }

    /// The largest tolerance of some rates.
    pub fn tolerance(&self, rates: Range<usize>) -> f64 {
        let rates = self.rates[rates].iter();
        rates.map(|rate| rate.tolerance).fold(0.0, f64::max)
    }

    /// Looks for the nearest rates from the last basis on.
    pub fn search(&mut self) -> End {
        let most_pivots = self.pivots + 200 + PATIENCE * (self.limits.len() + self.rates.len());
        while self.pivots < most_pivots {
            if self.pivots % 32 == 0 && self.halt.now() {
                return End::Halted;
            }
            let Some(leave) = self.leaving() else {
                if self.state.since_renewed == 0 {
                    return End::Optimal;
                }
                if !self.renew() {
                    return End::Stuck;
                }
                continue;
            };
            let rows = self.pivot_row(leave.basic);
            let Some(enter) = self.entering(leave, &rows) else {
                if self.state.since_renewed == 0 {
                    return End::Infeasible;
                }
                if !self.renew() {
                    return End::Stuck;
                }
                continue;
            };
            self.pivot(leave, enter, &rows);
            if self.state.since_renewed >= RENEW && !self.renew() {
                return End::Stuck;
            }
        }
        End::Stuck
    }

    /// Holds rates at their base and searches on; where that breaks a limit for good, they are as before again.
    pub fn hold(&mut self, held: impl Iterator<Item = usize>) -> End {
        let before = self.state.clone();
        for w in held {
            for v in [2 * w, 2 * w + 1] {
                self.state.most[v] = 0.0;
                self.state.at_most[v] = false;
            }
        }
        self.compute_values();
        let end = self.search();
        if end != End::Optimal {
            self.state = before;
        }
        end
    }

    /// Cost of a variable.
    fn cost(&self, v: u32) -> f64 {
        let rate = &self.rates[v as usize / 2];
        let cost = if v % 2 == 0 { rate.up } else { rate.down };
        // Weyl's sequence: the same at each run, and hardly two sums alike.
        let part = (f64::from(v) * 0.618_033_988_749_894_9).fract();
        cost + SPREAD * (1.0 + part)
    }

    /// The basic variable that is farthest beyond its bounds, in its tolerance.
    fn leaving(&self) -> Option<Leave> {
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
                leave = Some(Leave {
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
    fn pivot_row(&mut self, basic: Basic) -> Vec<f64> {
        let state = &self.state;
        self.row.clear();
        let mut rows = vec![0.0; state.inverse.size()];
        match basic {
            Basic::Variable(i) => rows.copy_from_slice(state.inverse.row(i)),
            Basic::Row(row) => {
                for &(w, load) in &self.by_row[row as usize] {
                    self.row.add(w, load);
                    for v in [2 * w, 2 * w + 1] {
                        let at = state.place[v as usize];
                        if at != NONE {
                            state
                                .inverse
                                .add_row(at as usize, load * sign(v), &mut rows);
                        }
                    }
                }
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

    /// Calls `f` with all that may enter so that what leaves changes as it must: what it is, its reduced cost and its
    /// entry in the pivot row, both without sign.
    fn each_candidate(&self, leave: Leave, rows: &[f64], mut f: impl FnMut(Enter, f64, f64)) {
        let state = &self.state;
        let wanted = leave.change.signum();
        let mut look = |enter: Enter, at_most: bool, reduced: f64, entry: f64| {
            let (towards, loss) = match at_most {
                true => (-wanted * entry, -reduced),
                false => (wanted * entry, reduced),
            };
            if towards > PIVOT {
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
                        Enter::Variable(v),
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
                    Enter::Row(t),
                    state.row_at_most[row],
                    state.price[row],
                    entry,
                );
            }
        }
    }

    /// Harris' ratio test: of what loses least, within a tolerance, the one with the largest entry.
    fn entering(&self, leave: Leave, rows: &[f64]) -> Option<Enter> {
        let mut limit = f64::INFINITY;
        self.each_candidate(leave, rows, |_, loss, entry| {
            limit = limit.min((loss + HARRIS) / entry);
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

    fn pivot(&mut self, leave: Leave, enter: Enter, rows: &[f64]) {
        self.pivots += 1;
        self.state.since_renewed += 1;
        let (entry, reduced, start) = match enter {
            Enter::Variable(v) => {
                let at = v as usize;
                let value = match self.state.at_most[at] {
                    true => self.state.most[at],
                    false => 0.0,
                };
                let entry = self.row.values[at / 2] * sign(v);
                (entry, self.state.reduced[at], value)
            }
            Enter::Row(t) => {
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
            Basic::Variable(p) => self.leave_variable(p, leave.at_most, enter, value, &direction),
            Basic::Row(row) => self.leave_row(row, leave, enter, value, (&direction, rows, schur)),
        }
    }

    /// Changes all basic variables by a step of what enters. Returns how the variables of the working basis change
    /// per unit, without sign where a variable enters, and how the leaving row does.
    fn move_along(&mut self, leaving: Basic, enter: Enter, step: f64) -> (Vec<f64>, f64) {
        let state = &mut self.state;
        let mut direction = Vec::new();
        self.load.clear();
        let toward = match enter {
            Enter::Variable(v) => {
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
            Enter::Row(t) => {
                state.inverse.column(t, &mut direction);
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

    fn leave_variable(
        &mut self,
        p: usize,
        at_most: bool,
        enter: Enter,
        value: f64,
        direction: &[f64],
    ) {
        let state = &mut self.state;
        let out = state.working[p] as usize;
        state.place[out] = NONE;
        state.at_most[out] = at_most;
        match enter {
            Enter::Variable(v) => {
                state.inverse.replace_column(p, direction);
                state.working[p] = v;
                state.x[p] = value;
                state.place[v as usize] = p as u32;
                state.reduced[v as usize] = 0.0;
            }
            Enter::Row(t) => {
                state.inverse.remove(p, t);
                state.working.swap_remove(p);
                state.x.swap_remove(p);
                if let Some(&moved) = state.working.get(p) {
                    state.place[moved as usize] = p as u32;
                }
                let row = state.tight.swap_remove(t);
                if let Some(&moved) = state.tight.get(t) {
                    state.tight_at[moved as usize] = t as u32;
                }
                state.free_row(row, value);
            }
        }
    }

    fn leave_row(
        &mut self,
        row: u32,
        leave: Leave,
        enter: Enter,
        value: f64,
        (direction, rows, schur): (&[f64], &[f64], f64),
    ) {
        let state = &mut self.state;
        match enter {
            Enter::Variable(v) => {
                state.inverse.append(direction, rows, schur);
                state.place[v as usize] = state.working.len() as u32;
                state.reduced[v as usize] = 0.0;
                state.working.push(v);
                state.x.push(value);
                state.tight_at[row as usize] = state.tight.len() as u32;
                state.tight.push(row);
            }
            Enter::Row(t) => {
                state.inverse.replace_row(t, rows);
                let freed = std::mem::replace(&mut state.tight[t], row);
                state.tight_at[row as usize] = t as u32;
                state.free_row(freed, value);
            }
        }
        state.row_at_most[row as usize] = leave.at_most;
    }

    /// The bound that a row is at.
    fn bound(&self, row: usize) -> f64 {
        match self.state.row_at_most[row] {
            true => self.limits[row].most,
            false => self.limits[row].least,
        }
    }

    /// Inverts the working basis and solves for all costs and values; false where it is singular.
    fn renew(&mut self) -> bool {
        let state = &self.state;
        let size = state.working.len();
        let mut matrix = vec![0.0; size * size];
        for (i, &v) in state.working.iter().enumerate() {
            for &(row, load) in &self.rates[v as usize / 2].entries {
                let t = state.tight_at[row as usize];
                if t != NONE {
                    matrix[t as usize * size + i] += load * sign(v);
                }
            }
        }
        self.state.since_renewed = 0;
        if !self.state.inverse.invert(size, matrix) {
            return false;
        }
        self.compute_costs();
        self.compute_values();
        true
    }

    fn compute_costs(&mut self) {
        let mut prices = vec![0.0; self.state.tight.len()];
        for (i, &v) in self.state.working.iter().enumerate() {
            let cost = self.cost(v);
            self.state.inverse.add_row(i, cost, &mut prices);
        }
        self.state.price.fill(0.0);
        for (&row, price) in self.state.tight.iter().zip(prices) {
            self.state.price[row as usize] = price;
        }
        let price = &self.state.price;
        let reduced = (0..2 * self.rates.len() as u32).map(|v| {
            let entries = self.rates[v as usize / 2].entries.iter();
            let paid: f64 = entries.map(|&(row, load)| price[row as usize] * load).sum();
            self.cost(v) - sign(v) * paid
        });
        self.state.reduced = reduced.collect();
    }

    fn compute_values(&mut self) {
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
        let tight = self.state.tight.iter().enumerate();
        let rest = tight.map(|(t, &row)| (t, self.bound(row as usize) - activity[row as usize]));
        let rest: Vec<(usize, f64)> = rest.collect();
        let mut x = Vec::new();
        self.state.inverse.times(&rest, &mut x);
        for (&v, value) in self.state.working.iter().zip(&x) {
            for &(row, load) in &self.rates[v as usize / 2].entries {
                activity[row as usize] += value * load * sign(v);
            }
        }
        self.state.x = x;
        self.state.activity = activity;
    }
}

impl State {
    /// A row is not at a bound any more.
    fn free_row(&mut self, row: u32, activity: f64) {
        self.tight_at[row as usize] = NONE;
        self.price[row as usize] = 0.0;
        self.activity[row as usize] = activity;
    }
}
