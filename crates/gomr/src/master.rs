//! The restricted master problem as a simplex tableau with generalised upper bounds.
//!
//! Maximise `Σ (M·v_k − delay_p) x_p` over the paths known so far, with
//! `Σ_{p∈k} x_p + u_k = d_k` for each commodity `k` (`u_k` is what is not served) and
//! `Σ_p a_ep x_p + s_e = C_e` for each arc `e`. Each commodity has one *key* variable in the basis,
//! each arc that is not saturated its slack; only the remaining basic variables, as many as there are
//! saturated arcs, need linear algebra: with `w_j = a_j − a_key(j)` they solve `W x = C − Σ_k d_k a_key(k)`
//! on the saturated arcs. Prices are `π W = c_j − c_key(j)`, `σ_k = c_key(k) − π a_key(k)`.

use crate::basis::Inverse;
use crate::graph::NONE;

const KEY: u32 = NONE - 1;
/// Numbers below this are not pivots.
pub(crate) const PIVOT: f64 = 1e-7;
const NOISE: f64 = 1e-13;

/// A variable of one commodity: a path, or the rate not served.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub group: u32,
    start: u32,
    path_len: u32,
    len: u32,
    /// Worth of one unit in the first objective (0 for the rate not served).
    pub value: f64,
    /// Cost of one unit in the second objective.
    pub cost: f64,
    /// `M·value − cost`.
    pub profit: f64,
    /// Must leave the basis and stay out: an arc of it is down, or its flow is gone.
    pub banned: bool,
    /// Its flow is gone and its commodity may be another by now.
    pub dead: bool,
    place: u32,
}

/// A commodity: flows that are the same for the optimum, with one request limit.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Requested rate as the simplex sees it (perturbed while it stalls).
    rhs: f64,
    /// Requested rate.
    pub request: f64,
    /// The column of the rate not served.
    pub unserved: u32,
    pub key: u32,
    pub key_value: f64,
    /// Columns in the working basis.
    pub working: Vec<u32>,
    /// All path columns.
    pub columns: Vec<u32>,
    pub active: bool,
}

/// The variable that enters the basis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Enter {
    Column(u32),
    /// The slack of a saturated arc.
    Slack(u32),
}

/// The variable that leaves the basis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Leave {
    /// Position in the working basis.
    Working(usize),
    /// Commodity whose key leaves.
    Key(u32),
    /// Arc that becomes saturated.
    Slack(u32),
}

/// A dense vector that remembers which entries were touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sparse {
    pub values: Vec<f64>,
    pub touched: Vec<u32>,
    seen: Vec<bool>,
}

impl Sparse {
    pub fn resize(&mut self, len: usize) {
        self.values.resize(len, 0.0);
        self.seen.resize(len, false);
    }

    pub fn clear(&mut self) {
        for &i in &self.touched {
            self.values[i as usize] = 0.0;
            self.seen[i as usize] = false;
        }
        self.touched.clear();
    }

    pub fn add(&mut self, i: u32, value: f64) {
        if !self.seen[i as usize] {
            self.seen[i as usize] = true;
            self.touched.push(i);
        }
        self.values[i as usize] += value;
    }
}

/// How the basic variables move when one variable enters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    /// Decrease of each working variable per unit.
    pub y: Vec<f64>,
    /// Decrease of each commodity's key per unit.
    pub key: Sparse,
    /// Increase of each arc's load per unit.
    pub load: Sparse,
}

/// Simplex state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Master {
    /// Capacity of each arc, bit/s.
    pub capacity: Vec<f64>,
    rhs: Vec<f64>,
    pub columns: Vec<Column>,
    rows: Vec<u32>,
    coefficients: Vec<f64>,
    /// Columns that load each arc, and how much.
    pub by_arc: Vec<Vec<(u32, f64)>>,
    pub groups: Vec<Group>,
    /// Price of each arc (zero unless saturated).
    pub price: Vec<f64>,
    /// Unused capacity of each arc.
    pub slack: Vec<f64>,
    pub inverse: Inverse,
    /// Working columns, by position.
    pub working: Vec<u32>,
    /// Values of the working columns, by position.
    pub x: Vec<f64>,
    /// Saturated arcs, by position.
    pub tight: Vec<u32>,
    /// Position of each arc among the saturated, or `NONE`.
    pub tight_at: Vec<u32>,
    /// Weight of the first objective against the second.
    pub big_m: f64,
    pub pivots: usize,
    scale: f64,
    pub direction: Direction,
    perturbed: bool,
}

impl Master {
    pub fn new(capacity: Vec<f64>, big_m: f64) -> Self {
        let arcs = capacity.len();
        let mut master = Self {
            rhs: capacity.clone(),
            price: vec![0.0; arcs],
            slack: capacity.clone(),
            tight_at: vec![NONE; arcs],
            by_arc: vec![Vec::new(); arcs],
            capacity,
            big_m,
            ..Self::default()
        };
        master.direction.load.resize(arcs);
        master
    }

    /// Adds a commodity; nothing of it is served at first.
    pub fn add_group(&mut self, request: f64) -> u32 {
        let id = self.groups.len() as u32;
        let unserved = self.push_column(id, 0.0, 0.0, &[], &[]);
        self.columns[unserved as usize].place = KEY;
        self.groups.push(Group {
            rhs: request,
            request,
            unserved,
            key: unserved,
            key_value: request,
            working: Vec::new(),
            columns: Vec::new(),
            active: true,
        });
        self.direction.key.resize(self.groups.len());
        id
    }

    /// Adds a path of a commodity; `extra` are its loads beside one on each arc of the path.
    pub fn add_path(
        &mut self,
        group: u32,
        value: f64,
        cost: f64,
        path: &[u32],
        extra: &[(u32, f64)],
    ) -> u32 {
        let id = self.push_column(group, value, cost, path, extra);
        self.groups[group as usize].columns.push(id);
        id
    }

    fn push_column(
        &mut self,
        group: u32,
        value: f64,
        cost: f64,
        path: &[u32],
        extra: &[(u32, f64)],
    ) -> u32 {
        let start = self.rows.len();
        self.rows.extend_from_slice(path);
        self.coefficients.resize(self.rows.len(), 1.0);
        for &(arc, load) in extra {
            match self.rows[start..].iter().position(|&row| row == arc) {
                Some(at) => self.coefficients[start + at] += load,
                None => {
                    self.rows.push(arc);
                    self.coefficients.push(load);
                }
            }
        }
        let id = self.columns.len() as u32;
        for at in start..self.rows.len() {
            self.by_arc[self.rows[at] as usize].push((id, self.coefficients[at]));
        }
        self.columns.push(Column {
            group,
            start: start as u32,
            path_len: path.len() as u32,
            len: (self.rows.len() - start) as u32,
            value,
            cost,
            profit: self.big_m * value - cost,
            banned: false,
            dead: false,
            place: NONE,
        });
        id
    }

    /// The arcs of a path, in order.
    pub fn path(&self, column: u32) -> &[u32] {
        let c = &self.columns[column as usize];
        &self.rows[c.start as usize..(c.start + c.path_len) as usize]
    }

    /// Arcs a column loads.
    pub fn loaded(&self, column: u32) -> &[u32] {
        let c = &self.columns[column as usize];
        &self.rows[c.start as usize..(c.start + c.len) as usize]
    }

    pub fn entries(&self, column: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let c = &self.columns[column as usize];
        let range = c.start as usize..(c.start + c.len) as usize;
        self.rows[range.clone()]
            .iter()
            .copied()
            .zip(self.coefficients[range].iter().copied())
    }

    /// `prices · a_column`.
    pub fn dot(&self, prices: &[f64], column: u32) -> f64 {
        self.entries(column)
            .map(|(row, load)| prices[row as usize] * load)
            .sum()
    }

    pub fn is_basic(&self, column: u32) -> bool {
        self.columns[column as usize].place != NONE
    }

    /// Rate of a column.
    pub fn rate(&self, column: u32) -> f64 {
        let c = &self.columns[column as usize];
        match c.place {
            NONE => 0.0,
            KEY => self.groups[c.group as usize].key_value,
            at => self.x[at as usize],
        }
    }

    /// Price of one unit of the commodity's request.
    pub fn sigma(&self, group: u32) -> f64 {
        let key = self.groups[group as usize].key;
        self.columns[key as usize].profit - self.dot(&self.price, key)
    }

    /// What one unit of the column gains.
    pub fn reduced_profit(&self, column: u32) -> f64 {
        let c = &self.columns[column as usize];
        c.profit - self.dot(&self.price, column) - self.sigma(c.group)
    }

    pub fn set_request(&mut self, group: u32, request: f64) {
        let g = &mut self.groups[group as usize];
        g.request = request;
        g.rhs = request;
    }

    pub fn set_capacity(&mut self, arc: u32, capacity: f64) {
        self.capacity[arc as usize] = capacity;
        self.rhs[arc as usize] = capacity;
    }

    pub fn set_big_m(&mut self, big_m: f64) {
        self.big_m = big_m;
        for c in &mut self.columns {
            c.profit = big_m * c.value - c.cost;
        }
    }

    /// Rates below this are zero: noise of sums over the whole network.
    pub fn tolerance(&self) -> f64 {
        1e-12 * self.scale
    }

    /// Takes the largest total rate that could be admitted as the scale of all rates.
    pub fn estimate_scale(&mut self) {
        let requests: f64 = self.groups.iter().map(|g| g.request).sum();
        let capacity = self.capacity.iter().copied().fold(0.0, f64::max);
        self.scale = requests.min(capacity).max(f64::MIN_POSITIVE);
    }

    /// Takes the rate that is admitted as the scale, where it is much smaller than thought; returns
    /// whether it was.
    pub fn lower_scale(&mut self) -> bool {
        let admitted: f64 = (0..self.columns.len() as u32)
            .filter(|&c| self.columns[c as usize].value > 0.0)
            .map(|c| self.rate(c).max(0.0))
            .sum();
        let lower = admitted < 0.1 * self.scale;
        if lower {
            self.scale = admitted.max(1e-3 * self.scale).max(f64::MIN_POSITIVE);
        }
        lower
    }

    /// Makes the largest rate of each commodity its key, so that no small rate is the difference of
    /// two large ones.
    pub fn choose_largest_keys(&mut self) {
        for g in 0..self.groups.len() {
            let group = &self.groups[g];
            let mut largest = group.key_value.abs();
            let mut at = None;
            for &c in &group.working {
                let rate = self.rate(c).abs();
                if rate > 2.0 * largest {
                    largest = rate;
                    at = Some(self.columns[c as usize].place as usize);
                }
            }
            if let Some(p) = at {
                self.swap_key(g as u32, p);
            }
        }
    }

    /// Back to the basis where nothing is served.
    pub fn reset(&mut self) {
        for c in &mut self.columns {
            c.place = NONE;
        }
        for g in &mut self.groups {
            g.key = g.unserved;
            g.working.clear();
            self.columns[g.key as usize].place = KEY;
        }
        self.inverse.clear();
        self.working.clear();
        self.x.clear();
        self.tight.clear();
        self.tight_at.fill(NONE);
        self.restore_bounds();
        self.compute_prices();
        self.compute_values();
    }

    /// Starts from an empty basis with, for each commodity in turn, the path that carried most of it if
    /// that has room for the whole request; returns the paths that had none.
    pub fn keep_what_fits(&mut self) -> Vec<u32> {
        let chosen: Vec<u32> = self.groups.iter().map(|g| self.main_path(g)).collect();
        self.reset();
        let mut room = self.capacity.clone();
        let mut rest = Vec::new();
        for (g, column) in chosen.into_iter().enumerate().filter(|&(_, c)| c != NONE) {
            let request = self.groups[g].request;
            if self
                .entries(column)
                .any(|(e, load)| load * request > room[e as usize])
            {
                rest.push(column);
                continue;
            }
            for (e, load) in self.entries(column) {
                room[e as usize] -= load * request;
            }
            self.set_key(column);
        }
        self.compute_values();
        rest
    }

    /// The usable path of a commodity with the largest rate, or the best one known.
    fn main_path(&self, group: &Group) -> u32 {
        let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY, NONE);
        for &c in group
            .columns
            .iter()
            .filter(|&&c| !self.columns[c as usize].banned)
        {
            let now = (self.rate(c), self.columns[c as usize].profit, c);
            if (now.0, now.1) > (best.0, best.1) && now.1 > 0.0 {
                best = now;
            }
        }
        best.2
    }

    /// Makes `column` the key of its commodity, which must have no working column.
    pub fn set_key(&mut self, column: u32) {
        let group = self.columns[column as usize].group as usize;
        debug_assert!(self.groups[group].working.is_empty());
        let old = std::mem::replace(&mut self.groups[group].key, column);
        self.columns[old as usize].place = NONE;
        self.columns[column as usize].place = KEY;
    }

    fn key_of(&self, column: u32) -> u32 {
        self.groups[self.columns[column as usize].group as usize].key
    }

    /// Calls `f` with the entries of `a_column − a_key`.
    fn each_entry(&self, column: u32, mut f: impl FnMut(u32, f64)) {
        for (row, load) in self.entries(column) {
            f(row, load);
        }
        for (row, load) in self.entries(self.key_of(column)) {
            f(row, -load);
        }
    }

    fn entry(&self, column: u32, arc: u32) -> f64 {
        let at = |c: u32| {
            let rows = self.loaded(c);
            rows.iter().position(|&row| row == arc).map_or(0.0, |i| {
                self.coefficients[self.columns[c as usize].start as usize + i]
            })
        };
        at(column) - at(self.key_of(column))
    }

    /// Forgets the paths that are not in the basis and for which `keep` is false.
    pub fn purge(&mut self, keep: impl Fn(u32) -> bool) {
        let mut renamed = vec![NONE; self.columns.len()];
        let (old, rows) = (
            std::mem::take(&mut self.columns),
            std::mem::take(&mut self.rows),
        );
        let coefficients = std::mem::take(&mut self.coefficients);
        self.by_arc.iter_mut().for_each(Vec::clear);
        for (c, mut column) in old.into_iter().enumerate() {
            let unserved = self.groups[column.group as usize].unserved == c as u32;
            if column.place == NONE && !unserved && (column.dead || !keep(c as u32)) {
                continue;
            }
            let id = self.columns.len() as u32;
            let range = column.start as usize..(column.start + column.len) as usize;
            column.start = self.rows.len() as u32;
            for at in range {
                self.by_arc[rows[at] as usize].push((id, coefficients[at]));
                self.rows.push(rows[at]);
                self.coefficients.push(coefficients[at]);
            }
            renamed[c] = id;
            self.columns.push(column);
        }
        let name = |c: &mut u32| *c = renamed[*c as usize];
        self.working.iter_mut().for_each(name);
        for g in &mut self.groups {
            name(&mut g.unserved);
            name(&mut g.key);
            g.working.iter_mut().for_each(name);
            g.columns.retain(|&c| renamed[c as usize] != NONE);
            g.columns.iter_mut().for_each(name);
        }
    }

    /// Solves for all prices from the basis; returns the residual before the refinement step.
    pub fn compute_prices(&mut self) -> f64 {
        let n = self.inverse.size();
        let mut prices = vec![0.0; n];
        for (i, &column) in self.working.iter().enumerate() {
            let gain = self.columns[column as usize].profit
                - self.columns[self.key_of(column) as usize].profit;
            self.inverse.add_row(i, gain, &mut prices);
        }
        self.price.fill(0.0);
        self.store_prices(&prices);
        let mut worst = 0.0f64;
        for (i, &column) in self.working.iter().enumerate() {
            let key = self.key_of(column);
            let gain = self.columns[column as usize].profit - self.columns[key as usize].profit;
            let rest = gain - self.dot(&self.price, column) + self.dot(&self.price, key);
            worst = worst.max(rest.abs());
            self.inverse.add_row(i, rest, &mut prices);
        }
        self.store_prices(&prices);
        worst / self.big_m.max(1.0)
    }

    fn store_prices(&mut self, prices: &[f64]) {
        for (t, &arc) in self.tight.iter().enumerate() {
            self.price[arc as usize] = prices[t];
        }
    }

    /// Solves for all rates from the basis; returns the residual before the refinement step,
    /// relative to the largest right-hand side.
    pub fn compute_values(&mut self) -> f64 {
        let mut rest = self.rhs.clone();
        for g in &self.groups {
            for (row, load) in self.entries(g.key) {
                rest[row as usize] -= load * g.rhs;
            }
        }
        let scale = self
            .tight
            .iter()
            .map(|&e| self.rhs[e as usize])
            .fold(0.0, f64::max);
        let mut b: Vec<(usize, f64)> = self.residual(&rest);
        let mut x = Vec::new();
        self.inverse.times(&b, &mut x);
        self.x = x;
        self.settle(&rest);
        b = self
            .tight
            .iter()
            .enumerate()
            .map(|(t, &e)| (t, self.slack[e as usize]))
            .collect();
        let worst = b.iter().fold(0.0f64, |worst, &(_, v)| worst.max(v.abs()));
        let mut correction = Vec::new();
        self.inverse.times(&b, &mut correction);
        for (value, delta) in self.x.iter_mut().zip(correction) {
            *value += delta;
        }
        self.settle(&rest);
        for t in 0..self.tight.len() {
            self.slack[self.tight[t] as usize] = 0.0;
        }
        if scale > 0.0 {
            worst / scale
        } else {
            0.0
        }
    }

    fn residual(&self, rest: &[f64]) -> Vec<(usize, f64)> {
        self.tight
            .iter()
            .enumerate()
            .map(|(t, &e)| (t, rest[e as usize]))
            .collect()
    }

    /// Keys and slacks that follow from the working values.
    fn settle(&mut self, rest: &[f64]) {
        let mut slack = std::mem::take(&mut self.slack);
        slack.copy_from_slice(rest);
        for g in &mut self.groups {
            g.key_value = g.rhs;
        }
        for (i, &column) in self.working.iter().enumerate() {
            let value = self.x[i];
            self.each_entry(column, |row, load| slack[row as usize] -= load * value);
            self.groups[self.columns[column as usize].group as usize].key_value -= value;
        }
        self.slack = slack;
    }

    /// Inverts the working basis from scratch; false when it is singular.
    pub fn refactor(&mut self) -> bool {
        let n = self.working.len();
        let mut matrix = vec![0.0; n * n];
        for (i, &column) in self.working.iter().enumerate() {
            self.each_entry(column, |row, load| {
                let t = self.tight_at[row as usize];
                if t != NONE {
                    matrix[t as usize * n + i] += load;
                }
            });
        }
        self.inverse.invert(n, matrix)
    }

    /// Fills [`Master::direction`] for a variable that enters.
    pub fn compute_direction(&mut self, enter: Enter) {
        let mut d = std::mem::take(&mut self.direction);
        d.key.clear();
        d.load.clear();
        match enter {
            Enter::Column(column) => {
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
            Enter::Slack(arc) => {
                self.inverse
                    .column(self.tight_at[arc as usize] as usize, &mut d.y);
            }
        }
        for (i, y) in d.y.iter_mut().enumerate() {
            if y.abs() <= NOISE {
                *y = 0.0;
                continue;
            }
            let column = self.working[i];
            let rate = *y;
            self.each_entry(column, |row, load| d.load.add(row, -load * rate));
            d.key.add(self.columns[column as usize].group, -rate);
        }
        self.direction = d;
    }

    /// Rate of change of the leaving variable (its decrease per unit of the entering one).
    pub fn pivot_entry(&self, leave: Leave) -> f64 {
        match leave {
            Leave::Working(p) => self.direction.y[p],
            Leave::Key(g) => self.direction.key.values[g as usize],
            Leave::Slack(e) => self.direction.load.values[e as usize],
        }
    }

    pub fn leaving_value(&self, leave: Leave) -> f64 {
        match leave {
            Leave::Working(p) => self.x[p],
            Leave::Key(g) => self.groups[g as usize].key_value,
            Leave::Slack(e) => self.slack[e as usize],
        }
    }

    /// The leaving variable's row of the basis inverse on the saturated arcs, by position.
    pub fn leaving_row(&self, leave: Leave, rho: &mut Vec<f64>) {
        rho.clear();
        rho.resize(self.inverse.size(), 0.0);
        match leave {
            Leave::Working(p) => rho.copy_from_slice(self.inverse.row(p)),
            Leave::Key(g) => {
                for &column in &self.groups[g as usize].working {
                    let at = self.columns[column as usize].place as usize;
                    self.inverse.add_row(at, -1.0, rho);
                }
            }
            Leave::Slack(e) => {
                for (i, &column) in self.working.iter().enumerate() {
                    let load = self.entry(column, e);
                    if load != 0.0 {
                        self.inverse.add_row(i, -load, rho);
                    }
                }
            }
        }
    }

    /// Exchanges `enter` and `leave`; [`Master::direction`] must be that of `enter`, `rho` the row of
    /// `leave`, `theta` the value of the entering variable and `gain` its reduced profit.
    pub fn pivot(&mut self, enter: Enter, leave: Leave, theta: f64, gain: f64, rho: &[f64]) {
        self.pivots += 1;
        let alpha = self.pivot_entry(leave);
        let step = gain / alpha;
        for (t, &value) in rho.iter().enumerate() {
            self.price[self.tight[t] as usize] += step * value;
        }
        if let Leave::Slack(e) = leave {
            self.price[e as usize] += step;
        }
        self.move_along(theta);
        match leave {
            Leave::Working(p) => self.leave_working(enter, p, theta),
            Leave::Key(g) => self.leave_key(enter, g, theta),
            Leave::Slack(e) => self.leave_slack(enter, e, theta, rho),
        }
    }

    fn move_along(&mut self, theta: f64) {
        if theta == 0.0 {
            return;
        }
        for (value, y) in self.x.iter_mut().zip(&self.direction.y) {
            *value -= theta * y;
        }
        for &g in &self.direction.key.touched {
            self.groups[g as usize].key_value -= theta * self.direction.key.values[g as usize];
        }
        for &e in &self.direction.load.touched {
            if self.tight_at[e as usize] == NONE {
                self.slack[e as usize] -= theta * self.direction.load.values[e as usize];
            }
        }
    }

    fn leave_working(&mut self, enter: Enter, p: usize, theta: f64) {
        let out = self.working[p];
        self.drop_from_group(out);
        self.columns[out as usize].place = NONE;
        match enter {
            Enter::Column(column) => {
                self.inverse.replace_column(p, &self.direction.y);
                self.working[p] = column;
                self.x[p] = theta;
                self.join_group(column, p);
            }
            Enter::Slack(arc) => {
                let t = self.tight_at[arc as usize] as usize;
                self.inverse.remove(p, t);
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

    fn leave_key(&mut self, enter: Enter, g: u32, theta: f64) {
        let Some(&column) = self.groups[g as usize].working.last() else {
            // Nothing else of the commodity is in the basis, so its own column enters as the key.
            if let Enter::Column(column) = enter {
                self.set_key(column);
                self.groups[g as usize].key_value = theta;
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
    fn swap_key(&mut self, g: u32, p: usize) {
        let group = &mut self.groups[g as usize];
        let members: Vec<usize> = group
            .working
            .iter()
            .map(|&c| self.columns[c as usize].place as usize)
            .collect();
        self.inverse.swap_key(p, &members);
        let column = self.working[p];
        let old = std::mem::replace(&mut group.key, column);
        std::mem::swap(&mut group.key_value, &mut self.x[p]);
        self.columns[column as usize].place = KEY;
        self.columns[old as usize].place = p as u32;
        self.working[p] = old;
        for entry in &mut group.working {
            if *entry == column {
                *entry = old;
            }
        }
    }

    fn leave_slack(&mut self, enter: Enter, e: u32, theta: f64, rho: &[f64]) {
        // rho is minus (row e of the working columns) times the inverse.
        let z: Vec<f64> = rho.iter().map(|v| -v).collect();
        match enter {
            Enter::Column(column) => {
                let schur = self.direction.load.values[e as usize];
                self.inverse.append(&self.direction.y, &z, schur);
                self.join_group(column, self.working.len());
                self.working.push(column);
                self.x.push(theta);
                self.tight_at[e as usize] = self.tight.len() as u32;
                self.tight.push(e);
            }
            Enter::Slack(arc) => {
                let t = self.tight_at[arc as usize];
                self.inverse.replace_row(t as usize, &z);
                self.tight[t as usize] = e;
                self.tight_at[e as usize] = t;
                self.tight_at[arc as usize] = NONE;
                self.price[arc as usize] = 0.0;
                self.slack[arc as usize] = theta;
            }
        }
        self.slack[e as usize] = 0.0;
    }

    fn join_group(&mut self, column: u32, p: usize) {
        self.columns[column as usize].place = p as u32;
        let group = self.columns[column as usize].group as usize;
        self.groups[group].working.push(column);
    }

    fn drop_from_group(&mut self, column: u32) {
        let group = self.columns[column as usize].group as usize;
        self.groups[group].working.retain(|&c| c != column);
    }

    /// Pushes basic variables that are zero slightly away from it and takes the bounds that this
    /// basis then meets, so that a run of pivots without progress ends.
    pub fn perturb(&mut self, size: f64) {
        self.perturbed = true;
        let mut seed = 0x9e37_79b9_7f4a_7c15u64 ^ self.pivots as u64;
        let mut push = |value: f64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let unit = (seed >> 11) as f64 / (1u64 << 53) as f64;
            if value < size {
                value.max(0.0) + size * (0.5 + unit)
            } else {
                value
            }
        };
        for value in &mut self.x {
            *value = push(*value);
        }
        for g in &mut self.groups {
            g.key_value = push(g.key_value);
            g.rhs = g.key_value;
        }
        for (i, &column) in self.working.iter().enumerate() {
            self.groups[self.columns[column as usize].group as usize].rhs += self.x[i];
        }
        for e in 0..self.slack.len() {
            if self.tight_at[e] == NONE {
                self.slack[e] = push(self.slack[e]);
            }
            self.rhs[e] = self.slack[e];
        }
        for column in 0..self.columns.len() as u32 {
            let rate = self.rate(column);
            if rate != 0.0 {
                let c = &self.columns[column as usize];
                for i in c.start as usize..(c.start + c.len) as usize {
                    self.rhs[self.rows[i] as usize] += rate * self.coefficients[i];
                }
            }
        }
    }

    /// Takes the true bounds again; returns whether they had been perturbed.
    pub fn restore_bounds(&mut self) -> bool {
        self.rhs.copy_from_slice(&self.capacity);
        for g in &mut self.groups {
            g.rhs = g.request;
        }
        std::mem::take(&mut self.perturbed)
    }
}
