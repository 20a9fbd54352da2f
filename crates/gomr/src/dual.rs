//! Dual simplex: restores feasible rates after bounds changed, keeping the prices right.
//!
//! After an event the basis is still optimal in its prices, but some basic variables may be negative
//! or belong to paths that are gone. Each pivot drives one of them out and takes in the variable that
//! loses least. It sees only the paths known so far; new ones are priced afterwards.

use crate::graph::NONE;
use crate::master::{Enter, Leave, Master, Sparse, PIVOT};

/// Pivots between two looks at the clock.
pub(crate) const HALT: usize = 32;

/// How the dual simplex ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DualEnd {
    /// All rates are feasible.
    Feasible,
    /// It made too many pivots or met one that is numerically worthless: start from scratch.
    Stuck,
}

/// Reduced profits and the row of the current pivot.
#[derive(Default)]
struct Row {
    /// Of each column; NaN where no row has asked for it yet.
    reduced: Vec<f64>,
    alpha: Vec<f64>,
    touched: Vec<u32>,
    rho: Vec<f64>,
    /// The row times each column's loads.
    dot: Sparse,
    /// What the key of each commodity adds to its columns.
    offset: Sparse,
}

impl Master {
    /// Pivots until no rate is below `-tolerance` and no banned path is in the basis, but gives up after
    /// `limit` pivots or when [`Master::work`] passes `until` (a hot restart can be slower than a cold one).
    pub fn dual_simplex(&mut self, tolerance: f64, limit: usize, until: u64) -> DualEnd {
        if self.replace_banned_keys() {
            self.compute_values();
        }
        self.index_arcs();
        let mut banned: Vec<u32> = self.banned_basics();
        let mut row: Option<Row> = None;
        let mut retries = 0;
        for _ in 0..limit {
            let Some((leave, sign)) = self.infeasible(&mut banned, tolerance) else {
                return DualEnd::Feasible;
            };
            let row = row.get_or_insert_with(|| self.dual_row());
            let scanned = self.groups.len() + self.slack.len();
            self.work += (20 * row.dot.touched.len() + 3 * scanned) as u64;
            if self.work > until || (self.pivots % HALT == 0 && self.halt.now()) {
                return DualEnd::Stuck;
            }
            if !self.dual_pivot(leave, sign, row, tolerance) {
                retries += 1;
                if retries > 3 || !self.renew() {
                    return DualEnd::Stuck;
                }
                row.reduced.fill(f64::NAN);
                continue;
            }
            if self.pivots % 64 == 0 {
                if self.compute_prices().max(self.compute_values()) > 1e-9 && !self.renew() {
                    return DualEnd::Stuck;
                }
                row.reduced.fill(f64::NAN);
            }
        }
        DualEnd::Stuck
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

    fn dual_row(&self) -> Row {
        let mut row = Row {
            reduced: vec![f64::NAN; self.columns.len()],
            alpha: vec![0.0; self.columns.len()],
            ..Row::default()
        };
        row.dot.resize(self.columns.len());
        row.offset.resize(self.groups.len());
        row
    }

    /// A commodity with one basic variable, and that banned, takes its best other one: no pivot needed. Returns whether
    /// there was one.
    fn replace_banned_keys(&mut self) -> bool {
        let mut any = false;
        for g in 0..self.groups.len() {
            let group = &self.groups[g];
            if !self.columns[group.key as usize].banned || !group.working.is_empty() {
                continue;
            }
            let net = |c: u32| self.columns[c as usize].profit - self.dot(&self.price, c);
            let mut best = group.unserved;
            for &c in group
                .columns
                .iter()
                .filter(|&&c| !self.columns[c as usize].banned)
            {
                if net(c) > net(best) {
                    best = c;
                }
            }
            self.set_key(best);
            any = true;
        }
        any
    }

    /// The columns in the basis that must leave it.
    pub fn banned_basics(&self) -> Vec<u32> {
        let basic = self.keys.iter().chain(&self.working).copied();
        let mut banned: Vec<u32> = basic.filter(|&c| self.columns[c as usize].banned).collect();
        banned.sort_unstable();
        banned
    }

    fn place_of(&self, column: u32) -> Leave {
        let group = self.columns[column as usize].group;
        if self.groups[group as usize].key == column {
            return Leave::Key(group);
        }
        let p = self.working.iter().position(|&c| c == column);
        Leave::Working(p.unwrap_or_default())
    }

    /// The variable to drive out and the direction it must move in.
    fn infeasible(&self, banned: &mut Vec<u32>, tolerance: f64) -> Option<(Leave, f64)> {
        while let Some(&column) = banned.last() {
            if self.is_basic(column) {
                let place = self.place_of(column);
                let sign = match self.rate(column) < -tolerance * self.size_of(place) {
                    true => 1.0,
                    false => -1.0,
                };
                return Some((place, sign));
            }
            banned.pop();
        }
        let mut worst = -tolerance;
        let mut leave = None;
        // Sizes are at most 1, so that most variables need no second look.
        let mut look = |variable: Leave, value: f64| {
            if value < 0.0 && value < worst * self.size_of(variable) {
                worst = value / self.size_of(variable);
                leave = Some(variable);
            }
        };
        for (p, &value) in self.x.iter().enumerate() {
            look(Leave::Working(p), value);
        }
        for (g, &value) in self.key_values.iter().enumerate() {
            look(Leave::Key(g as u32), value);
        }
        for (e, &value) in self.slack.iter().enumerate() {
            look(Leave::Slack(e as u32), value);
        }
        leave.map(|leave| (leave, 1.0))
    }

    fn dual_pivot(&mut self, leave: Leave, mut sign: f64, row: &mut Row, tolerance: f64) -> bool {
        let mut rho = std::mem::take(&mut row.rho);
        self.leaving_row(leave, &mut rho);
        row.rho = rho;
        self.fill_row(leave, row);
        let mut enter = self.cheapest(sign, row);
        if enter.is_none() && self.leaving_value(leave).abs() <= tolerance * self.size_of(leave) {
            // A banned variable at zero may leave either way.
            sign = -sign;
            enter = self.cheapest(sign, row);
        }
        let Some((enter, alpha)) = enter else {
            return false;
        };
        self.compute_direction(enter);
        let exact = self.pivot_entry(leave);
        if (exact - alpha).abs() > 1e-6 * (1.0 + alpha.abs()) {
            return false;
        }
        let gain = match enter {
            Enter::Column(c) => row.reduced[c as usize],
            Enter::Slack(e) => -self.price[e as usize],
        };
        let theta = self.leaving_value(leave) / exact;
        self.update_reduced(enter, leave, gain / exact, row);
        self.pivot(enter, leave, theta, gain, &row.rho);
        true
    }

    /// The leaving variable's row of the tableau, on the columns out of the basis.
    fn fill_row(&self, leave: Leave, row: &mut Row) {
        row.touched.clear();
        row.dot.clear();
        row.offset.clear();
        let own = match leave {
            Leave::Slack(e) => Some((e, 1.0)),
            _ => None,
        };
        let tight = self
            .tight
            .iter()
            .zip(&row.rho)
            .map(|(&e, &value)| (e, value));
        for (e, value) in tight.chain(own).filter(|(_, value)| value.abs() > 1e-13) {
            for (c, load) in self.loading(e) {
                row.dot.add(c, value * load);
            }
        }
        if let Leave::Key(g) = leave {
            row.offset.add(g, 1.0);
        }
        for &c in &row.dot.touched {
            let group = self.columns[c as usize].group;
            if self.groups[group as usize].key == c {
                row.offset.add(group, -row.dot.values[c as usize]);
            }
        }
        for &g in &row.offset.touched {
            let group = &self.groups[g as usize];
            for &c in group.columns.iter().chain([&group.unserved]) {
                row.dot.add(c, row.offset.values[g as usize]);
            }
        }
        for &c in &row.dot.touched {
            let alpha = row.dot.values[c as usize];
            if alpha.abs() > 1e-11 && !self.columns[c as usize].banned && !self.is_basic(c) {
                row.alpha[c as usize] = alpha;
                row.touched.push(c);
                let reduced = &mut row.reduced[c as usize];
                if reduced.is_nan() {
                    *reduced = self.reduced_profit(c);
                }
            }
        }
    }

    /// Harris' ratio test on the prices: least loss first, then the largest pivot.
    fn cheapest(&self, sign: f64, row: &Row) -> Option<(Enter, f64)> {
        let slack = 1e-11 * self.big_m;
        let mut limit = f64::INFINITY;
        self.each_candidate(sign, row, |_, loss, size, _| {
            limit = limit.min((loss + slack) / size)
        });
        let mut best = None;
        let mut largest = 0.0;
        self.each_candidate(sign, row, |enter, loss, size, alpha| {
            if loss <= limit * size && size > largest {
                largest = size;
                best = Some((enter, alpha));
            }
        });
        best
    }

    fn each_candidate(&self, sign: f64, row: &Row, mut f: impl FnMut(Enter, f64, f64, f64)) {
        for &c in &row.touched {
            let alpha = row.alpha[c as usize];
            if -sign * alpha > PIVOT {
                f(
                    Enter::Column(c),
                    (-row.reduced[c as usize]).max(0.0),
                    alpha.abs(),
                    alpha,
                );
            }
        }
        for (t, &e) in self.tight.iter().enumerate() {
            let alpha = row.rho[t];
            if -sign * alpha > PIVOT {
                f(
                    Enter::Slack(e),
                    self.price[e as usize].max(0.0),
                    alpha.abs(),
                    alpha,
                );
            }
        }
    }

    fn update_reduced(&self, enter: Enter, leave: Leave, step: f64, row: &mut Row) {
        for &c in &row.touched {
            row.reduced[c as usize] -= step * row.alpha[c as usize];
        }
        if let Enter::Column(c) = enter {
            row.reduced[c as usize] = 0.0;
        }
        match leave {
            Leave::Working(p) => row.reduced[self.working[p] as usize] = -step,
            Leave::Key(g) => row.reduced[self.groups[g as usize].key as usize] = -step,
            Leave::Slack(_) => {}
        }
    }

    /// Largest infeasibility of the basic solution, a negative rate or an overloaded arc, over the variable's size.
    pub fn infeasibility(&self) -> f64 {
        let mut least = 0.0;
        let mut look = |variable: Leave, value: f64| {
            if value < 0.0 {
                least = f64::min(least, value / self.size_of(variable));
            }
        };
        for (p, &value) in self.x.iter().enumerate() {
            look(Leave::Working(p), value);
        }
        for (g, &value) in self.key_values.iter().enumerate() {
            look(Leave::Key(g as u32), value);
        }
        for (e, &value) in self.slack.iter().enumerate() {
            if self.tight_at[e] == NONE {
                look(Leave::Slack(e as u32), value);
            }
        }
        -least
    }
}
