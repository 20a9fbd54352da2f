//! The restricted master problem as a simplex tableau with generalised upper bounds.
//!
//! Maximise `Σ (M·v_k − delay_p) x_p` over the paths known so far, with
//! `Σ_{p∈k} x_p + u_k = d_k` for each commodity `k` (`u_k` is what is not served) and
//! `Σ_p a_ep x_p + s_e = C_e` for each arc `e`. Each commodity has one *key* variable in the basis,
//! each arc that is not saturated its slack; only the remaining basic variables, as many as there are
//! saturated arcs, need linear algebra: with `w_j = a_j − a_key(j)` they solve `W x = C − Σ_k d_k a_key(k)`
//! on the saturated arcs. Prices are `π W = c_j − c_key(j)`, `σ_k = c_key(k) − π a_key(k)`.

use super::devex::DevexWeights;
use super::differences::Differences;
use super::loads::{ColumnSpan, Loads};
use super::rise::RiseColumn;
use super::sizes::VariableSizes;
use super::sparse::SparseVector;
use crate::graph::NONE;
use crate::halt::Halt;
use crate::lp::inverse::Inverse;
use crate::lp::{rise, sizes};

pub(crate) const KEY: u32 = NONE - 1;
/// Numbers below this are not pivots.
pub(crate) const MIN_PIVOT: f64 = 1e-7;

/// A variable of one commodity: a path, or the rate not served.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub group: u32,
    /// Differs where paths differ, nearly always.
    pub mark: u32,
    /// Bits of the arcs that it loads: most arcs that it does not load are told by theirs.
    pub(crate) mask: u64,
    pub(crate) span: ColumnSpan,
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
    pub(crate) place: u32,
}

/// A commodity: flows that are the same for the optimum, with one request limit.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Requested rate as the simplex sees it (perturbed while it stalls).
    pub(crate) rhs: f64,
    /// Requested rate.
    pub request: f64,
    /// The column of the rate not served.
    pub unserved: u32,
    pub key: u32,
    /// Columns in the working basis.
    pub working: Vec<u32>,
    /// All path columns.
    pub columns: Vec<u32>,
    pub active: bool,
}

/// The variable that enters the basis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EnteringVariable {
    Column(u32),
    /// The slack of a saturated arc.
    Slack(u32),
}

/// The variable that leaves the basis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LeavingVariable {
    /// Position in the working basis.
    Working(usize),
    /// Commodity whose key leaves.
    Key(u32),
    /// Arc that becomes saturated.
    Slack(u32),
}

/// A number for a path that tells it from most others (D. Knuth, The Art of Computer Programming 3, 6.4).
pub(crate) fn mark_of(path: &[u32]) -> u32 {
    path.iter().fold(0, |mark: u32, &arc| {
        (mark ^ arc).wrapping_mul(0x9e37_79b1).rotate_left(5)
    })
}

/// The bits of these arcs together; an arc whose bit is missing is not among them.
pub(crate) fn mask_of(arcs: &[u32]) -> u64 {
    arcs.iter().fold(0, |mask, &arc| mask | bit_of(arc))
}

pub(crate) fn bit_of(arc: u32) -> u64 {
    1 << (arc % 64)
}

/// How the basic variables move when one variable enters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    /// Decrease of each working variable per unit.
    pub y: Vec<f64>,
    /// Decrease of each commodity's key per unit.
    pub key: SparseVector,
    /// Increase of each arc's load per unit.
    pub load: SparseVector,
}

/// Simplex state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Master {
    /// Capacity of each arc, bit/s.
    pub capacity: Vec<f64>,
    pub(crate) rhs: Vec<f64>,
    pub columns: Vec<Column>,
    pub(crate) loads: Loads,
    /// Columns that load each arc, of the first `indexed` columns.
    pub(crate) by_arc: Vec<Vec<u32>>,
    pub(crate) indexed: usize,
    /// Arcs that have had a price, or may soon have one.
    pub priced: Vec<bool>,
    /// How often `priced` grew, columns got other numbers or other profits.
    pub epoch: u32,
    pub groups: Vec<Group>,
    /// The key of each commodity, as in its group: what pricing reads of all of them.
    pub keys: Vec<u32>,
    /// The rate of each commodity's key.
    pub key_values: Vec<f64>,
    /// Price of each arc (zero unless saturated).
    pub price: Vec<f64>,
    pub weights: DevexWeights,
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
    /// By how many tolerances a variable may pass its bound where the pivot is larger for it.
    pub leeway: f64,
    pub pivots: usize,
    /// Work done, in steps of about a nanosecond: what a hot restart may cost is measured by it.
    pub work: u64,
    /// When to stop short of the optimum.
    pub halt: Halt,
    pub(crate) scale: f64,
    /// Where one tolerance does not serve all variables.
    pub(crate) sizes: Option<VariableSizes>,
    pub direction: Direction,
    /// Arcs to leave the basis first of those that may; empty where all are alike.
    pub preferred: Vec<bool>,
    /// Working memory of the ratio test: variables that fall, their values and how fast.
    pub falling: Vec<(LeavingVariable, f64, f64)>,
    pub(crate) perturbed: bool,
    /// Arcs that failed since the last optimum, with the capacity they had.
    pub(crate) failed: Vec<(u32, f64)>,
    /// Where columns load most rows.
    pub(crate) differences: Option<Differences>,
    /// What raises requests together, and its column; `NONE` where there is none.
    pub(crate) rise: Option<RiseColumn>,
    pub rise_column: u32,
}

impl Master {
    pub fn new(capacity: Vec<f64>, big_m: f64) -> Self {
        let arcs = capacity.len();
        let mut master = Self {
            rhs: capacity.clone(),
            price: vec![0.0; arcs],
            slack: capacity.clone(),
            weights: DevexWeights::new(arcs),
            tight_at: vec![NONE; arcs],
            by_arc: vec![Vec::new(); arcs],
            priced: vec![false; arcs],
            capacity,
            big_m,
            rise_column: NONE,
            leeway: 1.0,
            ..Self::default()
        };
        master.direction.load.resize(arcs);
        master
    }

    /// Adds a commodity; nothing of it is served at first.
    pub fn add_group(&mut self, request: f64) -> u32 {
        let id = self.groups.len() as u32;
        let span = self.loads.push(&[], &[]);
        let unserved = self.place_column(id, 0.0, 0.0, span);
        self.columns[unserved as usize].place = KEY;
        self.groups.push(Group {
            rhs: request,
            request,
            unserved,
            key: unserved,
            working: Vec::new(),
            columns: Vec::new(),
            active: true,
        });
        self.keys.push(unserved);
        self.key_values.push(request);
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
        let span = self.loads.push(path, extra);
        let id = self.place_column(group, value, cost, span);
        self.groups[group as usize].columns.push(id);
        id
    }

    /// Adds a column of loads, no arc twice, to a commodity.
    pub fn add_loads(&mut self, group: u32, value: f64, cost: f64, loads: &[(u32, f64)]) -> u32 {
        let span = self.loads.push_loads(loads);
        let id = self.place_column(group, value, cost, span);
        self.groups[group as usize].columns.push(id);
        id
    }

    fn place_column(&mut self, group: u32, value: f64, cost: f64, span: ColumnSpan) -> u32 {
        let id = self.columns.len() as u32;
        self.columns.push(Column {
            group,
            mark: mark_of(self.loads.path(span)),
            mask: mask_of(self.loads.rows(span)),
            span,
            value,
            cost,
            profit: self.big_m * value - cost,
            banned: false,
            dead: false,
            place: NONE,
        });
        sizes::measure_columns(self);
        id
    }

    /// The arcs of a path, in order.
    pub fn path(&self, column: u32) -> &[u32] {
        self.loads.path(self.columns[column as usize].span)
    }

    /// Arcs a column loads.
    pub fn loaded(&self, column: u32) -> &[u32] {
        self.loads.rows(self.columns[column as usize].span)
    }

    /// Arcs a column loads, and how much.
    pub fn entries(&self, column: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.loads.entries(self.columns[column as usize].span)
    }

    /// `prices · a_column`.
    pub fn dot(&self, prices: &[f64], column: u32) -> f64 {
        if column == self.rise_column {
            return self.rise.as_ref().map_or(0.0, |level| level.dot(prices));
        }
        self.loads.dot(prices, self.columns[column as usize].span)
    }

    /// Whether every column loads the arcs of its path with 1 and no other.
    pub fn is_plain(&self) -> bool {
        self.loads.are_plain()
    }

    /// Expects columns that load most rows; before there are any, and without one that raises requests.
    pub fn expect_dense_columns(&mut self) {
        self.differences = Some(Differences::new(self.capacity.len()));
    }

    /// Brings the index of the columns by arc up to date.
    pub fn index_arcs(&mut self) {
        for id in self.indexed..self.columns.len() {
            for &arc in self.loads.rows(self.columns[id].span) {
                self.by_arc[arc as usize].push(id as u32);
            }
        }
        self.indexed = self.columns.len();
    }

    /// The columns that load an arc, and how much; [`Master::index_arcs`] must have been called.
    pub fn loading(&self, arc: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let plain = self.is_plain();
        self.by_arc[arc as usize].iter().map(move |&c| match plain {
            true => (c, 1.0),
            false => (c, self.loads.on(self.columns[c as usize].span, arc)),
        })
    }

    /// Notes that arcs have or may soon have a price.
    pub fn expect_prices(&mut self, arcs: impl Iterator<Item = u32>) {
        for arc in arcs {
            if !std::mem::replace(&mut self.priced[arc as usize], true) {
                self.epoch += 1;
            }
        }
    }

    pub fn is_basic(&self, column: u32) -> bool {
        self.columns[column as usize].place != NONE
    }

    /// Rate of a column.
    pub fn rate(&self, column: u32) -> f64 {
        let c = &self.columns[column as usize];
        match c.place {
            NONE => 0.0,
            KEY => self.key_values[c.group as usize],
            at => self.x[at as usize],
        }
    }

    /// The paths of a commodity that carry something, and their rates.
    pub fn used_paths<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (u32, f64)> + 'a {
        let basic = std::iter::once(&group.key).chain(&group.working);
        let paths = basic.filter(|&&column| column != group.unserved);
        let used = paths.map(|&column| (column, self.rate(column)));
        used.filter(|&(_, rate)| rate > 0.0)
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
        let before = std::mem::replace(&mut self.capacity[arc as usize], capacity);
        self.rhs[arc as usize] = capacity;
        if capacity > 0.0 {
            self.failed.retain(|&(other, _)| other != arc);
        } else if before > 0.0 {
            self.failed.push((arc, before));
        }
    }

    pub fn set_big_m(&mut self, big_m: f64) {
        self.big_m = big_m;
        self.epoch += 1;
        for c in &mut self.columns {
            c.profit = big_m * c.value - c.cost;
        }
    }

    /// Gives columns other profits.
    pub fn set_profits(&mut self, columns: &[u32], profit: impl Fn(&Column) -> f64) {
        for &c in columns {
            let column = &mut self.columns[c as usize];
            column.profit = profit(column);
        }
        self.epoch += 1;
    }

    /// Gives a path another cost in the second objective; [`Master::epoch`] is the caller's to change.
    pub fn set_cost(&mut self, column: u32, cost: f64) {
        let c = &mut self.columns[column as usize];
        c.cost = cost;
        c.profit = self.big_m * c.value - cost;
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

    /// Makes `column` the key of its commodity, which must have no working column.
    pub fn set_key(&mut self, column: u32) {
        let group = self.columns[column as usize].group as usize;
        debug_assert!(self.groups[group].working.is_empty());
        let old = std::mem::replace(&mut self.groups[group].key, column);
        self.keys[group] = column;
        self.columns[old as usize].place = NONE;
        self.columns[column as usize].place = KEY;
        rise::follow_key(self, group as u32, old, column);
    }

    pub(crate) fn key_of(&self, column: u32) -> u32 {
        self.groups[self.columns[column as usize].group as usize].key
    }

    /// Calls `f` with the entries of a column, of the one that raises requests too.
    pub(crate) fn each_load(&self, column: u32, mut f: impl FnMut(u32, f64)) {
        match &self.rise {
            Some(level) if column == self.rise_column => {
                level.entries().for_each(|(row, load)| f(row, load));
            }
            _ => self.entries(column).for_each(|(row, load)| f(row, load)),
        }
    }

    /// Calls `f` with the entries of `a_column − a_key`.
    pub(crate) fn each_entry(&self, column: u32, mut f: impl FnMut(u32, f64)) {
        self.each_load(column, &mut f);
        self.each_load(self.key_of(column), |row, load| f(row, -load));
    }

    pub(crate) fn entry(&self, column: u32, arc: u32) -> f64 {
        let at = |c: u32| match &self.rise {
            Some(level) if c == self.rise_column => level.load(arc),
            _ => match &self.columns[c as usize] {
                column if column.mask & bit_of(arc) == 0 => 0.0,
                column => self.loads.on(column.span, arc),
            },
        };
        at(column) - at(self.key_of(column))
    }

    /// Forgets the paths that are not in the basis and for which `keep` is false.
    pub fn purge(&mut self, keep: impl Fn(u32) -> bool) {
        let mut renamed = vec![NONE; self.columns.len()];
        let old = std::mem::take(&mut self.columns);
        let loads = std::mem::take(&mut self.loads);
        self.by_arc.iter_mut().for_each(Vec::clear);
        self.indexed = 0;
        self.differences.iter_mut().for_each(Differences::clear);
        self.epoch += 1;
        for (c, mut column) in old.into_iter().enumerate() {
            let unserved = self.groups[column.group as usize].unserved == c as u32;
            let rises = c as u32 == self.rise_column;
            if column.place == NONE && !unserved && !rises && (column.dead || !keep(c as u32)) {
                continue;
            }
            let id = self.columns.len() as u32;
            column.span = self.loads.push_from(&loads, column.span);
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
        self.keys.iter_mut().for_each(name);
        if self.rise.is_some() {
            name(&mut self.rise_column);
        }
        sizes::measure_columns_again(self);
    }
}
