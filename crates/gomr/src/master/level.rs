//! A column that raises the requests of many commodities together, each by a rate of its own.
//!
//! In the rows of the commodities it has entries that no path has. As each commodity's key takes up what the column
//! adds to its request, the column loads the arcs as the keys do, and is worth what they are.

use super::{Direction, Enter, Leave, Master, Sparse, KEY};
use crate::graph::NONE;

/// Where one of so many commodities rises, all are gone through in one sweep.
const MANY: usize = 8;

/// The column that raises requests.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The commodity whose request is the most that it may rise by.
    pub group: u32,
    /// What one unit adds to the request of each commodity.
    rise: Vec<f64>,
    /// Whether that is something for many commodities.
    raises_many: bool,
    /// What one unit adds to the load of each arc.
    load: Vec<f64>,
}

impl Level {
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

impl Master {
    /// Makes a column of the commodity `group`, which must have none, the one that raises requests.
    pub fn add_level(&mut self, group: u32) {
        self.level_column = self.add_path(group, 0.0, 0.0, &[], &[]);
        self.level = Some(Level {
            group,
            rise: Vec::new(),
            raises_many: false,
            load: Vec::new(),
        });
    }

    /// Takes the column out of use; requests stay as they are.
    pub fn remove_level(&mut self) {
        if self.level.is_some() {
            self.drop_level();
            self.columns[self.level_column as usize].banned = true;
            self.level_column = NONE;
            self.level = None;
        }
    }

    /// Lets the column raise each commodity's request by `rise`, up to `most` units; a unit is worth `value`, less what
    /// the keys cost. It must not be in the basis, and the keys of what rises must be paths.
    pub fn set_level(&mut self, rise: Vec<f64>, most: f64, value: f64) {
        let Some(mut level) = self.level.take() else {
            return;
        };
        level.load.clear();
        level.load.resize(self.capacity.len(), 0.0);
        level.raises_many = MANY * rise.iter().filter(|&&rise| rise != 0.0).count() > rise.len();
        level.rise = rise;
        let mut profit = self.big_m * value;
        for (group, rise) in level.rising() {
            profit -= rise * self.columns[self.keys[group as usize] as usize].cost;
        }
        for (&key, &rise) in self.keys.iter().zip(&level.rise) {
            if rise != 0.0 {
                for (arc, load) in self.entries(key) {
                    level.load[arc as usize] += rise * load;
                }
            }
        }
        let column = &mut self.columns[self.level_column as usize];
        (column.profit, column.value) = (profit, value);
        self.set_request(level.group, most);
        self.key_values[level.group as usize] = most;
        self.level = Some(level);
    }

    /// Takes the column out of the basis; what it had added to the requests is gone.
    pub fn drop_level(&mut self) {
        let Some(level) = &self.level else { return };
        let group = level.group;
        let (column, unserved) = (self.level_column, self.groups[group as usize].unserved);
        match self.columns[column as usize].place {
            NONE => {}
            KEY => {
                debug_assert!(self.groups[group as usize].working.is_empty());
                self.set_key(unserved);
            }
            at => {
                // Its value is zero now, so the slack of any arc may take its place.
                let row = self.inverse.row(at as usize).iter().enumerate();
                let largest = row.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
                if let Some((t, _)) = largest {
                    let arc = self.tight[t];
                    self.leave_working(Enter::Slack(arc), at as usize, 0.0);
                }
            }
        }
    }

    /// The commodity that limits the column; `None` where there is none.
    pub fn level_group(&self) -> Option<u32> {
        self.level.as_ref().map(|level| level.group)
    }

    /// Whether the column is in the basis at its limit.
    pub fn is_level_full(&self) -> bool {
        self.level_column != NONE && self.columns[self.level_column as usize].place == KEY
    }

    /// Whether a key leaves that nothing of its commodity could take the place of.
    pub fn leaves_gap(&self, enter: Enter, leave: Leave) -> bool {
        let Leave::Key(group) = leave else {
            return false;
        };
        let own = match enter {
            Enter::Column(column) => self.columns[column as usize].group == group,
            Enter::Slack(_) => false,
        };
        !own && self.groups[group as usize].working.is_empty()
    }

    /// Keeps the column's loads and worth in line with the key of a commodity.
    pub(super) fn follow_key(&mut self, group: u32, old: u32, new: u32) {
        let Some(mut level) = self.level.take() else {
            return;
        };
        let rise = level.rise.get(group as usize).copied().unwrap_or(0.0);
        if rise != 0.0 {
            for (column, sign) in [(new, rise), (old, -rise)] {
                for (arc, load) in self.entries(column) {
                    level.load[arc as usize] += sign * load;
                }
            }
            let profit = |c: u32| self.columns[c as usize].profit;
            let more = rise * (profit(new) - profit(old));
            self.columns[self.level_column as usize].profit += more;
        }
        self.level = Some(level);
    }

    /// The rows of the inverse that make up what the column adds to a commodity's key, and their factors.
    pub(super) fn level_rows(&self, group: u32) -> Vec<(usize, f64)> {
        let Some(level) = &self.level else {
            return Vec::new();
        };
        let rise = level.rise.get(group as usize).copied().unwrap_or(0.0);
        if rise == 0.0 {
            return Vec::new();
        }
        match self.columns[self.level_column as usize].place {
            NONE => Vec::new(),
            KEY => {
                let others = self.groups[level.group as usize].working.iter();
                let place = |&c: &u32| self.columns[c as usize].place as usize;
                others.map(|c| (place(c), -rise)).collect()
            }
            at => vec![(at as usize, rise)],
        }
    }

    /// Brings the inverse in line when the column that enters becomes the key of a commodity that had one alone.
    pub(super) fn follow_in_inverse(&mut self, group: u32) {
        for (at, factor) in self.level_rows(group) {
            let mut y: Vec<f64> = self.direction.y.iter().map(|y| factor * y).collect();
            y[at] += 1.0;
            self.inverse.replace_column(at, &y);
        }
    }

    /// How much the column decreases per unit of the entering variable.
    pub(super) fn level_decrease(&self, enter: Enter, direction: &Direction) -> f64 {
        let Some(level) = &self.level else {
            return 0.0;
        };
        match self.columns[self.level_column as usize].place {
            NONE if enter == Enter::Column(self.level_column) => -1.0,
            NONE => 0.0,
            KEY => direction.key.values[level.group as usize],
            at => direction.y[at as usize],
        }
    }

    /// Adds to a direction what the column's movement makes of the keys; `decrease` is that of the column.
    pub(super) fn add_risen(&self, decrease: f64, keys: &mut Sparse) {
        let Some(level) = &self.level else { return };
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
    pub(super) fn raise_keys(&mut self, value: f64) {
        if let Some(level) = &self.level {
            for (group, rise) in level.rising() {
                self.key_values[group as usize] += rise * value;
            }
        }
    }

    /// Takes from the commodities' bounds what the column at a value adds to them.
    pub(super) fn lower_bounds(&mut self, value: f64) {
        if let Some(level) = &self.level {
            for (group, rise) in level.rising() {
                self.groups[group as usize].rhs -= rise * value;
            }
        }
    }

    /// Value of the column; zero where there is none.
    pub fn level_value(&self) -> f64 {
        match self.level_column {
            NONE => 0.0,
            column => self.rate(column),
        }
    }
}
