//! The commodities and the paths that are known.

use super::origin::Origin;
use super::{Commodity, Solver};
use crate::graph::NONE;
use crate::master::mark_of;

/// Paths that lose more than this part of the first objective's weight are forgotten when there are many.
pub(crate) const KEPT_LOSS: f64 = 0.02;

impl Solver {
    /// Adds a commodity (or reuses the place of one that is gone).
    pub fn add_commodity(&mut self, mut commodity: Commodity, request: f64) -> u32 {
        commodity.class = self.pricer.class(commodity.ack_ratio);
        self.smooth_lengths.class(commodity.ack_ratio);
        let (source, class) = (commodity.source, commodity.class);
        let id = self.place_commodity(commodity, request);
        let next = self.origins.len();
        let origin = *self.origin_of.entry((source, class)).or_insert(next);
        if origin == next {
            self.origins.push(Origin::new(source, class));
        }
        self.origins[origin].add(id, &self.commodities[id as usize]);
        id
    }

    pub fn place_commodity(&mut self, commodity: Commodity, request: f64) -> u32 {
        if let Some(id) = self.spare.pop() {
            self.master.set_request(id, request);
            self.master.groups[id as usize].active = true;
            self.master.key_values[id as usize] = request;
            self.commodities[id as usize] = commodity;
            return id;
        }
        self.commodities.push(commodity);
        self.master.add_group(request)
    }

    /// Takes a commodity out; its paths leave the basis with the next solve.
    pub fn remove_commodity(&mut self, id: u32) {
        self.master.set_request(id, 0.0);
        self.master.groups[id as usize].active = false;
        let columns = std::mem::take(&mut self.master.groups[id as usize].columns);
        for &c in &columns {
            self.master.columns[c as usize].banned = true;
        }
        self.master.groups[id as usize].columns = columns;
        let commodity = &self.commodities[id as usize];
        if let Some(&origin) = self.origin_of.get(&(commodity.source, commodity.class)) {
            self.origins[origin].remove(id);
        }
    }

    /// Commodities that are gone and out of the basis can be used again.
    pub fn collect_spare(&mut self) {
        let columns = &mut self.master.columns;
        for (id, group) in self.master.groups.iter_mut().enumerate() {
            if !group.active
                && group.key == group.unserved
                && group.working.is_empty()
                && !group.columns.is_empty()
            {
                for c in group.columns.drain(..) {
                    columns[c as usize].dead = true;
                }
                self.spare.push(id as u32);
            }
        }
    }

    /// Keeps the pool small: far from optimal paths are priced again should they be needed.
    pub fn forget_poor_paths(&mut self) {
        let count = self.master.groups.len();
        let paths = self.master.columns.len() - count;
        if paths < self.kept + 2 * count + 1000 {
            return;
        }
        self.keep_good_paths(KEPT_LOSS);
    }

    /// Forgets the paths that lose more than so much of the first objective's weight.
    pub fn keep_good_paths(&mut self, most_loss: f64) {
        let mut loss = vec![0.0; self.master.columns.len()];
        for (g, group) in self.master.groups.iter().enumerate() {
            let sigma = self.master.sigma(g as u32);
            for &c in &group.columns {
                let column = &self.master.columns[c as usize];
                let dear = self.master.dot(&self.master.price, c) + sigma - column.profit;
                loss[c as usize] = if column.banned && !group.active {
                    f64::INFINITY
                } else {
                    dear
                };
            }
        }
        let fixed: Vec<bool> = self.commodities.iter().map(|c| c.fixed).collect();
        let groups: Vec<u32> = self.master.columns.iter().map(|c| c.group).collect();
        let limit = most_loss * self.master.big_m;
        self.master
            .purge(|c| fixed[groups[c as usize] as usize] || loss[c as usize] < limit);
        self.kept = self.master.columns.len() - self.master.groups.len();
    }

    /// Adds a path unless the commodity has it; returns its column.
    pub fn add_path(&mut self, id: u32, path: &[u32]) -> u32 {
        let group = &self.master.groups[id as usize];
        let mark = mark_of(path);
        let is_it = |&&c: &&u32| {
            self.master.columns[c as usize].mark == mark && self.master.path(c) == path
        };
        let known = group.columns.iter().find(is_it);
        if let Some(&column) = known {
            return column;
        }
        let commodity = &self.commodities[id as usize];
        let cost = path.iter().map(|&arc| self.cost[arc as usize]).sum();
        let mut extra = commodity.acks.clone();
        if commodity.ack_ratio > 0.0 {
            let reverse = path.iter().map(|&arc| self.graph.reverse[arc as usize]);
            extra.extend(
                reverse
                    .filter(|&r| r != NONE)
                    .map(|r| (r, commodity.ack_ratio)),
            );
        }
        let column = self
            .master
            .add_path(id, commodity.value, cost, path, &extra);
        let banned = !self.all_usable(column);
        self.master.columns[column as usize].banned = banned;
        column
    }

    pub fn all_usable(&self, column: u32) -> bool {
        self.master
            .loaded(column)
            .iter()
            .all(|&arc| self.usable[arc as usize])
    }

    /// Sets a capacity; an arc without any leaves the network with all paths over it.
    pub fn set_capacity(&mut self, arc: u32, capacity: f64) {
        self.master.set_capacity(arc, capacity);
        let usable = capacity > 0.0;
        if std::mem::replace(&mut self.usable[arc as usize], usable) == usable {
            return;
        }
        for column in 0..self.master.columns.len() as u32 {
            if self.master.loaded(column).contains(&arc) {
                let group = self.master.columns[column as usize].group as usize;
                let gone = !self.master.groups[group].active;
                let banned =
                    gone || self.master.columns[column as usize].dead || !self.all_usable(column);
                self.master.columns[column as usize].banned = banned;
            }
        }
    }
}
