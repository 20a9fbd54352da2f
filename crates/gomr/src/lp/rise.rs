//! A column that raises the requests of many commodities together, each by a rate of its own.
//!
//! In the rows of the commodities it has entries that no path has. As each commodity's key takes up what the column
//! adds to its request, the column loads the arcs as the keys do, and is worth what they are.

use super::master::{Direction, EnteringVariable, LeavingVariable, Master, KEY};
use super::sparse::SparseVector;
use crate::graph::NONE;

/// Where one of this many commodities rises, all are gone through in one sweep.
const DENSE_PART: usize = 8;

/// The column that raises requests.
#[derive(Clone, Debug)]
pub(crate) struct RiseColumn {
    /// The commodity whose request is the most that it may rise by.
    pub group: u32,
    /// What one unit adds to the request of each commodity.
    rise: Vec<f64>,
    /// Whether that is something for many commodities.
    raises_many: bool,
    /// What one unit adds to the load of each arc.
    load: Vec<f64>,
}

impl RiseColumn {
    /// What one unit of the column adds to the arcs' loads.
    pub fn entries(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let loads = self.load.iter().enumerate();
        loads.filter_map(|(arc, &load)| (load != 0.0).then_some((arc as u32, load)))
    }

    pub fn load(&self, arc: u32) -> f64 {
        self.load[arc as usize]
    }

    pub fn dot(&self, prices: &[f64]) -> f64 {
        self.load.iter().zip(prices).map(|(a, b)| a * b).sum()
    }

    fn rising(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let groups = self.rise.iter().enumerate();
        groups.filter_map(|(group, &rise)| (rise != 0.0).then_some((group as u32, rise)))
    }
}

/// Makes a column of the commodity `group`, which must have none, the one that raises requests.
pub(crate) fn add(master: &mut Master, group: u32) {
    master.rise_column = master.add_path(group, 0.0, 0.0, &[], &[]);
    master.rise = Some(RiseColumn {
        group,
        rise: Vec::new(),
        raises_many: false,
        load: Vec::new(),
    });
}

/// Takes the column out of use; requests stay as they are.
pub(crate) fn remove(master: &mut Master) {
    if master.rise.is_some() {
        leave_basis(master);
        master.columns[master.rise_column as usize].banned = true;
        master.rise_column = NONE;
        master.rise = None;
    }
}

/// Lets the column raise each commodity's request by `rise`, up to `most` units; a unit is worth `value`, less what
/// the keys cost. It must not be in the basis, and the keys of what rises must be paths.
pub(crate) fn set(master: &mut Master, rise: Vec<f64>, most: f64, value: f64) {
    let Some(mut level) = master.rise.take() else {
        return;
    };
    level.load.clear();
    level.load.resize(master.capacity.len(), 0.0);
    level.raises_many = DENSE_PART * rise.iter().filter(|&&rise| rise != 0.0).count() > rise.len();
    level.rise = rise;
    let mut profit = master.big_m * value;
    for (group, rise) in level.rising() {
        profit -= rise * master.columns[master.keys[group as usize] as usize].cost;
    }
    for (&key, &rise) in master.keys.iter().zip(&level.rise) {
        if rise != 0.0 {
            for (arc, load) in master.entries(key) {
                level.load[arc as usize] += rise * load;
            }
        }
    }
    let column = &mut master.columns[master.rise_column as usize];
    (column.profit, column.value) = (profit, value);
    master.set_request(level.group, most);
    master.key_values[level.group as usize] = most;
    master.rise = Some(level);
}

/// Takes the column out of the basis; what it had added to the requests is gone.
pub(crate) fn leave_basis(master: &mut Master) {
    let Some(level) = &master.rise else { return };
    let group = level.group;
    let (column, unserved) = (master.rise_column, master.groups[group as usize].unserved);
    match master.columns[column as usize].place {
        NONE => {}
        KEY => {
            debug_assert!(master.groups[group as usize].working.is_empty());
            master.set_key(unserved);
        }
        at => {
            // Its value is zero now, so the slack of any arc may take its place.
            let mut row = Vec::new();
            master.leaving_row(LeavingVariable::Working(at as usize), &mut row);
            let row = row.iter().zip(&master.tight);
            let largest = row.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
            if let Some((_, &arc)) = largest {
                master.compute_direction(EnteringVariable::Slack(arc));
                master.leave_working(EnteringVariable::Slack(arc), at as usize, 0.0);
            }
        }
    }
}

/// The commodity that limits the column; `None` where there is none.
pub(crate) fn group(master: &Master) -> Option<u32> {
    master.rise.as_ref().map(|level| level.group)
}

/// Whether the column is in the basis at its limit.
pub(crate) fn is_full(master: &Master) -> bool {
    master.rise_column != NONE && master.columns[master.rise_column as usize].place == KEY
}

/// Whether a key leaves that nothing of its commodity could take the place of.
pub(crate) fn leaves_gap(master: &Master, enter: EnteringVariable, leave: LeavingVariable) -> bool {
    let LeavingVariable::Key(group) = leave else {
        return false;
    };
    let own = match enter {
        EnteringVariable::Column(column) => master.columns[column as usize].group == group,
        EnteringVariable::Slack(_) => false,
    };
    !own && master.groups[group as usize].working.is_empty()
}

/// Keeps the column's loads and worth in line with the key of a commodity.
pub(crate) fn follow_key(master: &mut Master, group: u32, old: u32, new: u32) {
    let Some(mut level) = master.rise.take() else {
        return;
    };
    let rise = level.rise.get(group as usize).copied().unwrap_or(0.0);
    if rise != 0.0 {
        for (column, sign) in [(new, rise), (old, -rise)] {
            for (arc, load) in master.entries(column) {
                level.load[arc as usize] += sign * load;
            }
        }
        let profit = |c: u32| master.columns[c as usize].profit;
        let more = rise * (profit(new) - profit(old));
        master.columns[master.rise_column as usize].profit += more;
    }
    master.rise = Some(level);
}

/// The rows of the inverse that make up what the column adds to a commodity's key, and their factors.
pub(crate) fn rows(master: &Master, group: u32) -> Vec<(usize, f64)> {
    let Some(level) = &master.rise else {
        return Vec::new();
    };
    let rise = level.rise.get(group as usize).copied().unwrap_or(0.0);
    if rise == 0.0 {
        return Vec::new();
    }
    match master.columns[master.rise_column as usize].place {
        NONE => Vec::new(),
        KEY => {
            let others = master.groups[level.group as usize].working.iter();
            let place = |&c: &u32| master.columns[c as usize].place as usize;
            others.map(|c| (place(c), -rise)).collect()
        }
        at => vec![(at as usize, rise)],
    }
}

/// Brings the inverse in line when the column that enters becomes the key of a commodity that had one alone.
pub(crate) fn follow_in_inverse(master: &mut Master, group: u32) {
    for (at, factor) in rows(master, group) {
        let mut y: Vec<f64> = master.direction.y.iter().map(|y| factor * y).collect();
        y[at] += 1.0;
        master.inverse.replace_column(at, &y);
    }
}

/// How much the column decreases per unit of the entering variable.
pub(crate) fn decrease(master: &Master, enter: EnteringVariable, direction: &Direction) -> f64 {
    let Some(level) = &master.rise else {
        return 0.0;
    };
    match master.columns[master.rise_column as usize].place {
        NONE if enter == EnteringVariable::Column(master.rise_column) => -1.0,
        NONE => 0.0,
        KEY => direction.key.values[level.group as usize],
        at => direction.y[at as usize],
    }
}

/// Adds to a direction what the column's movement makes of the keys; `decrease` is that of the column.
pub(crate) fn add_risen(master: &Master, decrease: f64, keys: &mut SparseVector) {
    let Some(level) = &master.rise else { return };
    if decrease == 0.0 {
        return;
    }
    if level.raises_many {
        keys.touch_all();
        for (value, rise) in keys.values.iter_mut().zip(&level.rise) {
            *value += rise * decrease;
        }
        return;
    }
    for (group, rise) in level.rising() {
        keys.add(group, rise * decrease);
    }
}

/// Adds what the column at a value makes of the keys.
pub(crate) fn raise_keys(master: &mut Master, value: f64) {
    if let Some(level) = &master.rise {
        for (group, rise) in level.rising() {
            master.key_values[group as usize] += rise * value;
        }
    }
}

/// Takes from the commodities' bounds what the column at a value adds to them.
pub(crate) fn lower_bounds(master: &mut Master, value: f64) {
    if let Some(level) = &master.rise {
        for (group, rise) in level.rising() {
            master.groups[group as usize].rhs -= rise * value;
        }
    }
}

/// Value of the column; zero where there is none.
pub(crate) fn value(master: &Master) -> f64 {
    match master.rise_column {
        NONE => 0.0,
        column => master.rate(column),
    }
}
