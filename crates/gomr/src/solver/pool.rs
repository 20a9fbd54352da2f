//! The column pool: the commodities and the paths that are known of each.

use super::Solver;
use crate::graph::NONE;
use crate::lp::master::mark_of;

/// What a commodity asks of the pricing.
#[derive(Clone, Debug)]
pub(crate) struct Commodity {
    pub source: u32,
    pub target: u32,
    /// Worth of one unit in the first objective.
    pub value: f64,
    pub ack_ratio: f64,
    /// Arcs that carry the acknowledgements whatever the path, and how much.
    pub acks: Vec<(u32, f64)>,
    pub max_delay_s: Option<f64>,
    /// Its paths are given: nothing is priced.
    pub fixed: bool,
    /// Class of its arc lengths.
    pub class: usize,
}

impl Commodity {
    /// A commodity of given columns alone: nothing is priced.
    pub fn of_columns(value: f64) -> Self {
        Self {
            source: 0,
            target: 0,
            value,
            ack_ratio: 0.0,
            acks: Vec::new(),
            max_delay_s: None,
            fixed: true,
            class: 0,
        }
    }

    /// Whether its paths may load an arc more than once: their loads are all that is known of them.
    pub fn may_repeat(&self) -> bool {
        self.fixed && self.acks.is_empty() && self.ack_ratio == 0.0
    }

    /// Neither its paths nor their delay nor its acknowledgements are limited in any way, and these load nothing.
    pub fn is_free(&self) -> bool {
        let is_limited = self.fixed || self.max_delay_s.is_some();
        !is_limited && self.acks.is_empty() && self.ack_ratio == 0.0
    }
}

/// The commodities; their columns are the master's.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnPool {
    pub commodities: Vec<Commodity>,
    /// Places of commodities that are gone.
    spare: Vec<u32>,
    /// Paths that were kept when some were last forgotten.
    kept: usize,
}

impl Solver {
    /// Adds a commodity (or reuses the place of one that is gone).
    pub fn add_commodity(&mut self, mut commodity: Commodity, request: f64) -> u32 {
        commodity.class = self.pricing.search.class(commodity.ack_ratio);
        self.pricing.smooth_lengths.class(commodity.ack_ratio);
        let id = self.place_commodity(commodity, request);
        self.pricing
            .trees
            .add(id, &self.pool.commodities[id as usize]);
        id
    }

    pub fn place_commodity(&mut self, commodity: Commodity, request: f64) -> u32 {
        if let Some(id) = self.pool.spare.pop() {
            self.master.set_request(id, request);
            self.master.groups[id as usize].active = true;
            self.master.key_values[id as usize] = request;
            self.pool.commodities[id as usize] = commodity;
            return id;
        }
        self.pool.commodities.push(commodity);
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
        let commodity = &self.pool.commodities[id as usize];
        self.pricing.trees.remove(id, commodity);
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
                self.pool.spare.push(id as u32);
            }
        }
    }

    /// Keeps the pool small: far from optimal paths are priced again should they be needed.
    pub fn forget_poor_paths(&mut self) {
        let count = self.master.groups.len();
        let paths = self.master.columns.len() - count;
        if paths < self.pool.kept + 2 * count + 1000 {
            return;
        }
        self.keep_good_paths(self.settings.pricing.kept_loss);
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
        let fixed: Vec<bool> = self.pool.commodities.iter().map(|c| c.fixed).collect();
        let groups: Vec<u32> = self.master.columns.iter().map(|c| c.group).collect();
        let limit = most_loss * self.master.big_m;
        self.master
            .purge(|c| fixed[groups[c as usize] as usize] || loss[c as usize] < limit);
        self.pool.kept = self.master.columns.len() - self.master.groups.len();
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
        let commodity = &self.pool.commodities[id as usize];
        let cost = path
            .iter()
            .map(|&arc| self.pricing.cost[arc as usize])
            .sum();
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
            .all(|&arc| self.pricing.usable[arc as usize])
    }

    /// Sets a capacity; an arc without any leaves the network with all paths over it.
    pub fn set_capacity(&mut self, arc: u32, capacity: f64) {
        self.master.set_capacity(arc, capacity);
        let usable = capacity > 0.0;
        if std::mem::replace(&mut self.pricing.usable[arc as usize], usable) == usable {
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
