//! One exchange of basic variables: how all others move, and the new basis.

use super::differences::{axpy, Differences};
use super::master::{Direction, EnteringVariable, LeavingVariable, Master, KEY};
use super::sparse::SparseVector;
use crate::graph::NONE;
use crate::lp::rise;

/// Rates of change below this are rounding.
const MIN_CHANGE: f64 = 1e-13;
/// Arcs that a moving column changes the load of, more or less: where all of them together are more than there are, each
/// is looked at.
const MANY_LOADS: usize = 8;

impl Master {
    /// Fills [`Master::direction`] for a variable that enters.
    pub fn compute_direction(&mut self, enter: EnteringVariable) {
        let mut d = std::mem::take(&mut self.direction);
        d.key.clear();
        d.load.clear();
        match enter {
            EnteringVariable::Column(column) => {
                self.each_entry(column, |row, load| d.load.add(row, load));
                let b: Vec<(usize, f64)> = d
                    .load
                    .touched
                    .iter()
                    .filter(|&&row| self.tight_at[row as usize] != NONE)
                    .map(|&row| {
                        (
                            self.tight_at[row as usize] as usize,
                            d.load.values[row as usize],
                        )
                    })
                    .filter(|&(_, value)| value != 0.0)
                    .collect();
                self.inverse.times(&b, &mut d.y);
                d.key.add(self.columns[column as usize].group, 1.0);
            }
            EnteringVariable::Slack(arc) => {
                let t = self.tight_at[arc as usize] as usize;
                self.inverse.times(&[(t, 1.0)], &mut d.y);
            }
        }
        for (y, &column) in d.y.iter_mut().zip(&self.working) {
            if y.abs() <= MIN_CHANGE {
                *y = 0.0;
                continue;
            }
            d.key.add(self.columns[column as usize].group, -*y);
        }
        self.add_working_loads(&mut d);
        rise::add_risen(self, rise::decrease(self, enter, &d), &mut d.key);
        self.direction = d;
    }

    /// Adds to a direction what the working columns' movement makes of the loads.
    fn add_working_loads(&mut self, d: &mut Direction) {
        let Some(mut differences) = self.differences.take() else {
            let moving = d.y.iter().filter(|&&y| y != 0.0).count();
            if self.is_plain() && MANY_LOADS * moving > self.capacity.len() {
                self.add_many_loads(d);
                return;
            }
            for (&y, &column) in d.y.iter().zip(&self.working) {
                if y != 0.0 {
                    self.add_sparse_loads(column, y, &mut d.load);
                }
            }
            return;
        };
        d.load.touch_all();
        for (at, &y) in d.y.iter().enumerate() {
            if y != 0.0 {
                self.fill_difference(&mut differences, at);
                axpy(-y, differences.row(at), &mut d.load.values);
            }
        }
        self.differences = Some(differences);
    }

    /// Adds the loads of plain columns where they touch most arcs together.
    fn add_many_loads(&self, d: &mut Direction) {
        d.load.touch_all();
        let values = &mut d.load.values;
        for (&y, &column) in d.y.iter().zip(&self.working) {
            if y == 0.0 {
                continue;
            }
            let key = self.key_of(column);
            if [column, key].contains(&self.rise_column) {
                self.each_entry(column, |row, entry| values[row as usize] -= entry * y);
                continue;
            }
            for &row in self.loaded(column) {
                values[row as usize] -= y;
            }
            for &row in self.loaded(key) {
                values[row as usize] += y;
            }
        }
    }

    fn add_sparse_loads(&self, column: u32, y: f64, load: &mut SparseVector) {
        let key = self.key_of(column);
        if !self.is_plain() || [column, key].contains(&self.rise_column) {
            self.each_entry(column, |row, entry| load.add(row, -entry * y));
            return;
        }
        for &row in self.loaded(column) {
            load.add(row, -y);
        }
        for &row in self.loaded(key) {
            load.add(row, y);
        }
    }

    fn fill_difference(&self, differences: &mut Differences, at: usize) {
        let column = self.working[at];
        let span = |column: u32| (column, self.columns[column as usize].span);
        differences.fill(at, span(column), span(self.key_of(column)), &self.loads);
    }

    /// Rate of change of the leaving variable (its decrease per unit of the entering one).
    pub fn pivot_entry(&self, leave: LeavingVariable) -> f64 {
        match leave {
            LeavingVariable::Working(p) => self.direction.y[p],
            LeavingVariable::Key(g) => self.direction.key.values[g as usize],
            LeavingVariable::Slack(e) => self.direction.load.values[e as usize],
        }
    }

    pub fn leaving_value(&self, leave: LeavingVariable) -> f64 {
        match leave {
            LeavingVariable::Working(p) => self.x[p],
            LeavingVariable::Key(g) => self.key_values[g as usize],
            LeavingVariable::Slack(e) => self.slack[e as usize],
        }
    }

    /// The leaving variable's row of the basis inverse on the saturated arcs, by position.
    pub fn leaving_row(&mut self, leave: LeavingVariable, rho: &mut Vec<f64>) {
        let sum = match leave {
            LeavingVariable::Working(p) => vec![(p, 1.0)],
            LeavingVariable::Key(g) => {
                let own = self.groups[g as usize].working.iter();
                let own = own.map(|&c| (self.columns[c as usize].place as usize, -1.0));
                own.chain(rise::rows(self, g)).collect()
            }
            LeavingVariable::Slack(e) => {
                let mut sum = self.working_loads(e);
                sum.iter_mut().for_each(|(_, load)| *load = -*load);
                sum
            }
        };
        *rho = self.inverse.rows(&sum);
    }

    /// The working columns, by position, that load an arc more or less than their keys do, and by how much.
    fn working_loads(&mut self, e: u32) -> Vec<(usize, f64)> {
        let mut differences = self.differences.take();
        let mut loads = Vec::new();
        for (at, &column) in self.working.iter().enumerate() {
            let load = match &mut differences {
                Some(differences) => {
                    self.fill_difference(differences, at);
                    differences.row(at)[e as usize]
                }
                None => self.entry(column, e),
            };
            if load != 0.0 {
                loads.push((at, load));
            }
        }
        self.differences = differences;
        loads
    }

    /// Exchanges `enter` and `leave`; [`Master::direction`] must be that of `enter`, `rho` the row of
    /// `leave`, `theta` the value of the entering variable and `gain` its reduced profit.
    pub fn pivot(
        &mut self,
        enter: EnteringVariable,
        leave: LeavingVariable,
        theta: f64,
        gain: f64,
        rho: &[f64],
    ) {
        self.pivots += 1;
        self.work += 2000 + self.inverse.work() + 10 * self.direction.load.touched.len() as u64;
        let alpha = self.pivot_entry(leave);
        let step = gain / alpha;
        self.weights.follow(enter, leave, alpha, &self.tight, rho);
        for (t, &value) in rho.iter().enumerate() {
            self.price[self.tight[t] as usize] += step * value;
        }
        if let LeavingVariable::Slack(e) = leave {
            self.price[e as usize] += step;
        }
        self.move_along(theta);
        match leave {
            LeavingVariable::Working(p) => self.leave_working(enter, p, theta),
            LeavingVariable::Key(g) => self.leave_key(enter, g, theta),
            LeavingVariable::Slack(e) => self.leave_slack(enter, e, theta),
        }
        if self.inverse.is_worn() {
            self.refactor();
        }
    }

    pub fn move_along(&mut self, theta: f64) {
        if theta == 0.0 {
            return;
        }
        for (value, y) in self.x.iter_mut().zip(&self.direction.y) {
            *value -= theta * y;
        }
        let keys = &self.direction.key;
        if keys.is_dense() {
            for (value, rate) in self.key_values.iter_mut().zip(&keys.values) {
                *value -= theta * rate;
            }
        } else {
            for &g in &keys.touched {
                self.key_values[g as usize] -= theta * keys.values[g as usize];
            }
        }
        for &e in &self.direction.load.touched {
            if self.tight_at[e as usize] == NONE {
                self.slack[e as usize] -= theta * self.direction.load.values[e as usize];
            }
        }
    }

    pub fn leave_working(&mut self, enter: EnteringVariable, p: usize, theta: f64) {
        let out = self.working[p];
        self.drop_from_group(out);
        self.columns[out as usize].place = NONE;
        match enter {
            EnteringVariable::Column(column) => {
                self.inverse.replace_column(p, &self.direction.y);
                self.working[p] = column;
                self.x[p] = theta;
                self.join_group(column, p);
            }
            EnteringVariable::Slack(arc) => {
                let t = self.tight_at[arc as usize] as usize;
                self.inverse.remove(p, t, &self.direction.y);
                self.working.swap_remove(p);
                self.x.swap_remove(p);
                if let Some(&moved) = self.working.get(p) {
                    self.columns[moved as usize].place = p as u32;
                }
                self.tight.swap_remove(t);
                if let Some(&moved) = self.tight.get(t) {
                    self.tight_at[moved as usize] = t as u32;
                }
                self.tight_at[arc as usize] = NONE;
                self.price[arc as usize] = 0.0;
                self.slack[arc as usize] = theta;
            }
        }
    }

    pub fn leave_key(&mut self, enter: EnteringVariable, g: u32, theta: f64) {
        let Some(&column) = self.groups[g as usize].working.last() else {
            // Nothing else of the commodity is in the basis, so its own column enters as the key.
            if let EnteringVariable::Column(column) = enter {
                rise::follow_in_inverse(self, g);
                self.set_key(column);
                self.key_values[g as usize] = theta;
            }
            return;
        };
        let p = self.columns[column as usize].place as usize;
        // With the old key in position p, its decrease per unit there is what the key's was.
        let alpha = self.direction.key.values[g as usize];
        self.swap_key(g, p);
        self.direction.y[p] = alpha;
        self.leave_working(enter, p, theta);
    }

    /// Exchanges the key of commodity `g` with its working column at `p`.
    pub fn swap_key(&mut self, g: u32, p: usize) {
        let rise_rows = rise::rows(self, g);
        let group = &mut self.groups[g as usize];
        // The key in the place of `p` is all that the commodity has less what its working columns have.
        let columns = &self.columns;
        let members = group.working.iter();
        let members = members.map(|&c| (columns[c as usize].place as usize, -1.0));
        let terms: Vec<(usize, f64)> = members.chain(rise_rows).collect();
        self.inverse.sum_rows(p, &terms);
        let column = self.working[p];
        let old = std::mem::replace(&mut group.key, column);
        self.keys[g as usize] = column;
        std::mem::swap(&mut self.key_values[g as usize], &mut self.x[p]);
        self.columns[column as usize].place = KEY;
        self.columns[old as usize].place = p as u32;
        self.working[p] = old;
        for entry in &mut group.working {
            if *entry == column {
                *entry = old;
            }
        }
        rise::follow_key(self, g, old, column);
    }

    pub fn leave_slack(&mut self, enter: EnteringVariable, e: u32, theta: f64) {
        self.expect_prices(std::iter::once(e));
        let (row, pivot) = (
            self.working_loads(e),
            self.direction.load.values[e as usize],
        );
        match enter {
            EnteringVariable::Column(column) => {
                self.inverse.append(&self.direction.y, &row, pivot);
                self.join_group(column, self.working.len());
                self.working.push(column);
                self.x.push(theta);
                self.tight_at[e as usize] = self.tight.len() as u32;
                self.tight.push(e);
            }
            EnteringVariable::Slack(arc) => {
                let t = self.tight_at[arc as usize];
                self.inverse
                    .replace_row(t as usize, &self.direction.y, &row, pivot);
                self.tight[t as usize] = e;
                self.tight_at[e as usize] = t;
                self.tight_at[arc as usize] = NONE;
                self.price[arc as usize] = 0.0;
                self.slack[arc as usize] = theta;
            }
        }
        self.slack[e as usize] = 0.0;
    }

    pub fn join_group(&mut self, column: u32, p: usize) {
        self.columns[column as usize].place = p as u32;
        let group = self.columns[column as usize].group as usize;
        self.groups[group].working.push(column);
    }

    pub fn drop_from_group(&mut self, column: u32) {
        let group = self.columns[column as usize].group as usize;
        self.groups[group].working.retain(|&c| c != column);
    }
}
