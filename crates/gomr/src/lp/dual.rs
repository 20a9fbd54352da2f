//! Dual simplex: restores feasible rates after bounds changed, keeping the prices right.
//!
//! After an event the basis is still optimal in its prices, but some basic variables may be negative
//! or belong to paths that are gone. Each pivot drives one of them out and brings in the variable that
//! loses least. It sees only the paths known so far; new ones are priced afterwards. Devex weights tell which one to
//! drive out (P. Harris, Mathematical Programming 5, 1973).

use crate::lp::master::{EnteringVariable, LeavingVariable, Master, MIN_PIVOT};
use crate::lp::sizes;
use crate::lp::sparse::SparseVector;

/// Pivots between two looks at the clock.
pub(crate) const PIVOTS_PER_LOOK: usize = 32;

/// How the dual simplex ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DualOutcome {
    /// All rates are feasible.
    Feasible,
    /// It made too many pivots or met one that is numerically worthless: start from scratch.
    Stuck,
}

/// Reduced profits and the row of the current pivot.
#[derive(Default)]
struct PivotRow {
    /// Of each column; NaN where no row has asked for it yet.
    reduced: Vec<f64>,
    alpha: Vec<f64>,
    touched: Vec<u32>,
    rho: Vec<f64>,
    /// The row times each column's loads.
    dot: SparseVector,
    /// What the key of each commodity adds to its columns.
    offset: SparseVector,
}

/// Pivots until no rate is below `-tolerance` and no banned path is in the basis, but gives up after
/// `limit` pivots or when [`Master::work`] passes `until` (a hot restart can be slower than a cold one).
pub(crate) fn run(master: &mut Master, tolerance: f64, limit: usize, until: u64) -> DualOutcome {
    if replace_banned_keys(master) {
        master.compute_values();
    }
    master.index_arcs();
    let mut banned: Vec<u32> = banned_basics(master);
    let mut row: Option<PivotRow> = None;
    let mut weights = RowWeights::new(master);
    let mut retries = 0;
    for _ in 0..limit {
        let Some((leave, sign)) = infeasible(master, &mut banned, &weights, tolerance) else {
            return DualOutcome::Feasible;
        };
        let row = row.get_or_insert_with(|| dual_row(master));
        let scanned = master.groups.len() + master.slack.len();
        master.work += (20 * row.dot.touched.len() + 3 * scanned) as u64;
        if master.work > until || (master.pivots % PIVOTS_PER_LOOK == 0 && master.halt.now()) {
            return DualOutcome::Stuck;
        }
        if !dual_pivot(master, leave, sign, row, &mut weights, tolerance) {
            retries += 1;
            if retries > 3 || !master.renew() {
                return DualOutcome::Stuck;
            }
            row.reduced.fill(f64::NAN);
            continue;
        }
        if master.pivots % 64 == 0 {
            if master.compute_prices().max(master.compute_values()) > 1e-9 && !master.renew() {
                return DualOutcome::Stuck;
            }
            row.reduced.fill(f64::NAN);
        }
    }
    DualOutcome::Stuck
}

/// Devex weights of the basic variables, in the reference framework of the basis that a run begins with.
struct RowWeights {
    column: Vec<f64>,
    slack: Vec<f64>,
}

impl RowWeights {
    fn new(master: &Master) -> Self {
        Self {
            column: vec![1.0; master.columns.len()],
            slack: vec![1.0; master.slack.len()],
        }
    }

    fn of(&self, master: &Master, variable: LeavingVariable) -> f64 {
        match variable {
            LeavingVariable::Working(p) => self.column[master.working[p] as usize],
            LeavingVariable::Key(g) => self.column[master.keys[g as usize] as usize],
            LeavingVariable::Slack(e) => self.slack[e as usize],
        }
    }

    /// Follows a pivot that is about to be made; [`Master::direction`] is that of `enter`, and `alpha` its entry in the row
    /// of `leave`.
    fn follow(
        &mut self,
        master: &Master,
        enter: EnteringVariable,
        leave: LeavingVariable,
        alpha: f64,
    ) {
        let scale = self.of(master, leave) / (alpha * alpha);
        let direction = &master.direction;
        let raise = |weight: &mut f64, entry: f64| *weight = weight.max(scale * entry * entry);
        for (&column, &entry) in master.working.iter().zip(&direction.y) {
            raise(&mut self.column[column as usize], entry);
        }
        for &g in &direction.key.touched {
            let key = master.keys[g as usize] as usize;
            raise(&mut self.column[key], direction.key.values[g as usize]);
        }
        for &e in &direction.load.touched {
            raise(
                &mut self.slack[e as usize],
                direction.load.values[e as usize],
            );
        }
        match enter {
            EnteringVariable::Column(c) => self.column[c as usize] = scale.max(1.0),
            EnteringVariable::Slack(e) => self.slack[e as usize] = scale.max(1.0),
        }
    }
}

fn dual_row(master: &Master) -> PivotRow {
    let mut row = PivotRow {
        reduced: vec![f64::NAN; master.columns.len()],
        alpha: vec![0.0; master.columns.len()],
        ..PivotRow::default()
    };
    row.dot.resize(master.columns.len());
    row.offset.resize(master.groups.len());
    row
}

/// A commodity with one basic variable, and that banned, takes its best other one: no pivot needed. Returns whether
/// there was one.
fn replace_banned_keys(master: &mut Master) -> bool {
    let mut any = false;
    for g in 0..master.groups.len() {
        let group = &master.groups[g];
        if !master.columns[group.key as usize].banned || !group.working.is_empty() {
            continue;
        }
        let net = |c: u32| master.columns[c as usize].profit - master.dot(&master.price, c);
        let mut best = group.unserved;
        for &c in group
            .columns
            .iter()
            .filter(|&&c| !master.columns[c as usize].banned)
        {
            if net(c) > net(best) {
                best = c;
            }
        }
        master.set_key(best);
        any = true;
    }
    any
}

/// The columns in the basis that must leave it.
pub(crate) fn banned_basics(master: &Master) -> Vec<u32> {
    let basic = master.keys.iter().chain(&master.working).copied();
    let mut banned: Vec<u32> = basic
        .filter(|&c| master.columns[c as usize].banned)
        .collect();
    banned.sort_unstable();
    banned
}

fn place_of(master: &Master, column: u32) -> LeavingVariable {
    let group = master.columns[column as usize].group;
    if master.groups[group as usize].key == column {
        return LeavingVariable::Key(group);
    }
    let p = master.working.iter().position(|&c| c == column);
    LeavingVariable::Working(p.unwrap_or_default())
}

/// The variable to drive out and the direction it must move in.
fn infeasible(
    master: &Master,
    banned: &mut Vec<u32>,
    weights: &RowWeights,
    tolerance: f64,
) -> Option<(LeavingVariable, f64)> {
    while let Some(&column) = banned.last() {
        if master.is_basic(column) {
            let place = place_of(master, column);
            let sign = match master.rate(column) < -tolerance * sizes::size_of(master, place) {
                true => 1.0,
                false => -1.0,
            };
            return Some((place, sign));
        }
        banned.pop();
    }
    let mut worst = 0.0;
    let mut leave = None;
    // Sizes are at most 1, so that most variables need no second look.
    let mut look = |variable: LeavingVariable, value: f64| {
        if value < 0.0 && value < -tolerance * sizes::size_of(master, variable) {
            let scaled = value / sizes::size_of(master, variable);
            let squared = scaled * scaled / weights.of(master, variable);
            if squared > worst {
                worst = squared;
                leave = Some(variable);
            }
        }
    };
    for (p, &value) in master.x.iter().enumerate() {
        look(LeavingVariable::Working(p), value);
    }
    for (g, &value) in master.key_values.iter().enumerate() {
        look(LeavingVariable::Key(g as u32), value);
    }
    for (e, &value) in master.slack.iter().enumerate() {
        look(LeavingVariable::Slack(e as u32), value);
    }
    leave.map(|leave| (leave, 1.0))
}

fn dual_pivot(
    master: &mut Master,
    leave: LeavingVariable,
    mut sign: f64,
    row: &mut PivotRow,
    weights: &mut RowWeights,
    tolerance: f64,
) -> bool {
    let mut rho = std::mem::take(&mut row.rho);
    master.leaving_row(leave, &mut rho);
    row.rho = rho;
    fill_row(master, leave, row);
    let mut enter = cheapest(master, sign, row);
    if enter.is_none()
        && master.leaving_value(leave).abs() <= tolerance * sizes::size_of(master, leave)
    {
        // A banned variable at zero may leave either way.
        sign = -sign;
        enter = cheapest(master, sign, row);
    }
    let Some((enter, alpha)) = enter else {
        return false;
    };
    master.compute_direction(enter);
    let exact = master.pivot_entry(leave);
    if (exact - alpha).abs() > 1e-6 * (1.0 + alpha.abs()) {
        return false;
    }
    let gain = match enter {
        EnteringVariable::Column(c) => row.reduced[c as usize],
        EnteringVariable::Slack(e) => -master.price[e as usize],
    };
    let theta = master.leaving_value(leave) / exact;
    weights.follow(master, enter, leave, exact);
    update_reduced(master, enter, leave, gain / exact, row);
    master.pivot(enter, leave, theta, gain, &row.rho);
    true
}

/// The leaving variable's row of the tableau, on the columns out of the basis.
fn fill_row(master: &Master, leave: LeavingVariable, row: &mut PivotRow) {
    row.touched.clear();
    row.dot.clear();
    row.offset.clear();
    let own = match leave {
        LeavingVariable::Slack(e) => Some((e, 1.0)),
        _ => None,
    };
    let tight = master
        .tight
        .iter()
        .zip(&row.rho)
        .map(|(&e, &value)| (e, value));
    for (e, value) in tight.chain(own).filter(|(_, value)| value.abs() > 1e-13) {
        for (c, load) in master.loading(e) {
            row.dot.add(c, value * load);
        }
    }
    if let LeavingVariable::Key(g) = leave {
        row.offset.add(g, 1.0);
    }
    for &c in &row.dot.touched {
        let group = master.columns[c as usize].group;
        if master.groups[group as usize].key == c {
            row.offset.add(group, -row.dot.values[c as usize]);
        }
    }
    for &g in &row.offset.touched {
        let group = &master.groups[g as usize];
        for &c in group.columns.iter().chain([&group.unserved]) {
            row.dot.add(c, row.offset.values[g as usize]);
        }
    }
    for &c in &row.dot.touched {
        let alpha = row.dot.values[c as usize];
        if alpha.abs() > 1e-11 && !master.columns[c as usize].banned && !master.is_basic(c) {
            row.alpha[c as usize] = alpha;
            row.touched.push(c);
            let reduced = &mut row.reduced[c as usize];
            if reduced.is_nan() {
                *reduced = master.reduced_profit(c);
            }
        }
    }
}

/// Harris' ratio test on the prices: least loss first, then the largest pivot.
fn cheapest(master: &Master, sign: f64, row: &PivotRow) -> Option<(EnteringVariable, f64)> {
    let slack = 1e-11 * master.big_m;
    let mut limit = f64::INFINITY;
    each_candidate(master, sign, row, |_, loss, size, _| {
        limit = limit.min((loss + slack) / size)
    });
    let mut best = None;
    let mut largest = 0.0;
    each_candidate(master, sign, row, |enter, loss, size, alpha| {
        if loss <= limit * size && size > largest {
            largest = size;
            best = Some((enter, alpha));
        }
    });
    best
}

fn each_candidate(
    master: &Master,
    sign: f64,
    row: &PivotRow,
    mut f: impl FnMut(EnteringVariable, f64, f64, f64),
) {
    for &c in &row.touched {
        let alpha = row.alpha[c as usize];
        if -sign * alpha > MIN_PIVOT {
            f(
                EnteringVariable::Column(c),
                (-row.reduced[c as usize]).max(0.0),
                alpha.abs(),
                alpha,
            );
        }
    }
    for (t, &e) in master.tight.iter().enumerate() {
        let alpha = row.rho[t];
        if -sign * alpha > MIN_PIVOT {
            f(
                EnteringVariable::Slack(e),
                master.price[e as usize].max(0.0),
                alpha.abs(),
                alpha,
            );
        }
    }
}

fn update_reduced(
    master: &Master,
    enter: EnteringVariable,
    leave: LeavingVariable,
    step: f64,
    row: &mut PivotRow,
) {
    for &c in &row.touched {
        row.reduced[c as usize] -= step * row.alpha[c as usize];
    }
    if let EnteringVariable::Column(c) = enter {
        row.reduced[c as usize] = 0.0;
    }
    match leave {
        LeavingVariable::Working(p) => row.reduced[master.working[p] as usize] = -step,
        LeavingVariable::Key(g) => row.reduced[master.groups[g as usize].key as usize] = -step,
        LeavingVariable::Slack(_) => {}
    }
}
