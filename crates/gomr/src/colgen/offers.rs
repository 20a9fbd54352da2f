//! Which paths are worth entering: pricing by origin, and a first path for newcomers.

use super::{Solver, BATCH, GAIN, TREE};
use crate::constrained::cheapest_within;
use crate::master::Enter;

impl Solver {
    pub fn update_lengths(&mut self) {
        self.pricer
            .update(&self.graph, &self.cost, &self.master.price, &self.usable);
    }

    /// Shortest path of a commodity under the present prices if it is shorter than `limit`.
    pub fn best_path(&mut self, id: usize, limit: f64, path: &mut Vec<u32>) -> Option<f64> {
        let commodity = &self.commodities[id];
        let (source, target, class) = (commodity.source, commodity.target, commodity.class);
        let length = self
            .pricer
            .shortest(&self.graph, class, source, target, limit, path)?;
        match commodity.max_delay_s {
            Some(limit_s) if self.graph.path_delay(path) > limit_s * (1.0 + 1e-12) => {
                let lengths = self.pricer.length(class);
                cheapest_within(&self.graph, lengths, source, target, limit_s, path)
            }
            _ => Some(length),
        }
    }

    /// Makes sure that `M` is at least four times the cost of the given shortest path.
    pub fn raise_m(&mut self, cost: f64, value: f64) {
        let needed = 4.0 * cost / value;
        if needed > self.master.big_m {
            self.master.set_big_m(needed.max(2.0 * self.master.big_m));
        }
    }

    /// Gives commodities that just came their best path at the current prices.
    pub fn introduce(&mut self, ids: &[u32]) {
        self.update_lengths();
        let mut path = Vec::new();
        for &id in ids {
            let value = self.commodities[id as usize].value;
            if self.commodities[id as usize].fixed {
                self.introduce_fixed(id);
                continue;
            }
            if self
                .best_path(id as usize, f64::INFINITY, &mut path)
                .is_some()
            {
                let column = self.add_path(id, &path);
                self.raise_m(self.master.columns[column as usize].cost, value);
                self.prefer(id, column);
            }
        }
    }

    pub fn introduce_fixed(&mut self, id: u32) {
        for i in 0..self.master.groups[id as usize].columns.len() {
            let column = self.master.groups[id as usize].columns[i];
            self.raise_m(
                self.master.columns[column as usize].cost,
                self.commodities[id as usize].value,
            );
            self.prefer(id, column);
        }
    }

    /// Makes `column` the key if that gains and the commodity has no working columns.
    pub fn prefer(&mut self, id: u32, column: u32) {
        let group = &self.master.groups[id as usize];
        let allowed = group.working.is_empty()
            && group.key != column
            && !self.master.columns[column as usize].banned;
        if allowed && self.master.reduced_profit(column) > 0.0 {
            self.master.set_key(column);
        }
    }

    /// Offers commodities whose path is gone the best one left, before the dual simplex looks for it.
    pub fn replace_gone(&mut self) {
        let hit: Vec<usize> = (0..self.master.groups.len())
            .filter(|&g| {
                let group = &self.master.groups[g];
                let gone = |c: u32| self.master.columns[c as usize].banned;
                group.active
                    && !self.commodities[g].fixed
                    && (gone(group.key) || group.working.iter().any(|&c| gone(c)))
            })
            .collect();
        if hit.is_empty() {
            return;
        }
        self.update_lengths();
        let mut path = Vec::new();
        for id in hit {
            if self.best_path(id, f64::INFINITY, &mut path).is_some() {
                self.add_path(id as u32, &path);
            }
        }
    }

    pub fn gain_limit(&self) -> f64 {
        GAIN * self.master.big_m.max(1.0)
    }

    pub fn best_slack(&self) -> Option<(Enter, f64)> {
        let mut best = None;
        let mut most = self.gain_limit();
        for &e in &self.master.tight {
            let gain = -self.master.price[e as usize];
            if gain > most {
                most = gain;
                best = Some((Enter::Slack(e), gain));
            }
        }
        best
    }

    /// Collects columns worth entering, best first, origin after origin from where the last call
    /// stopped; returns whether it saw all of them.
    ///
    /// Far from the optimum prices jump from basis to basis. Paths that are short under the prices of the
    /// last passes together last longer (P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear
    /// mixed-integer programming", Int. Trans. Operational Research 4, 1997); each is offered only if it
    /// gains under the present prices.
    pub fn price_some(&mut self, candidates: &mut Vec<u32>) -> bool {
        self.effort.passes += 1;
        self.update_lengths();
        let kept = self.smoothing;
        for (smooth, &price) in self.smooth.iter_mut().zip(&self.master.price) {
            *smooth = kept * *smooth + (1.0 - kept) * price.max(0.0);
        }
        let cost = Some(&self.cost[..]);
        self.forest
            .update(&self.graph, cost, &self.smooth, &self.usable);
        let count = self.origins.len();
        let mut gains: Vec<(f64, u32)> = Vec::new();
        let mut seen = 0;
        while seen < count && gains.len() < BATCH {
            self.cursor = if self.cursor + 1 < count {
                self.cursor + 1
            } else {
                0
            };
            seen += 1;
            self.price_origin(self.cursor, &mut gains);
        }
        gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        candidates.clear();
        candidates.extend(gains.iter().map(|&(_, column)| column));
        seen == count
    }

    /// Prices the commodities of one origin: with one tree when many of them pay for congestion,
    /// otherwise each by a search of its own.
    fn price_origin(&mut self, at: usize, gains: &mut Vec<(f64, u32)>) {
        let limit = self.gain_limit();
        let mut open: Vec<(u32, f64)> = Vec::new();
        for &id in &self.origins[at].members {
            let sigma = self.master.sigma(id);
            let unserved = self.master.groups[id as usize].unserved;
            if -sigma > limit && !self.master.is_basic(unserved) {
                gains.push((-sigma, unserved));
            }
            let commodity = &self.commodities[id as usize];
            if commodity.fixed {
                self.price_known(id as usize, sigma, gains);
                continue;
            }
            let worth = self.worth(id, sigma);
            if worth - limit > self.pricer.least(commodity.source, commodity.target) {
                open.push((id, worth));
            }
        }
        let mut path = Vec::new();
        if open.len() >= TREE {
            self.price_by_tree(at, &open, gains);
            return;
        }
        for (id, worth) in open {
            self.search_one(id, worth, &mut path, gains);
        }
    }

    fn price_by_tree(&mut self, at: usize, open: &[(u32, f64)], gains: &mut Vec<(f64, u32)>) {
        let limit = self.gain_limit();
        let (source, class) = (self.origins[at].source, self.origins[at].class);
        let mut path = Vec::new();
        for &(id, worth) in open {
            let commodity = &self.commodities[id as usize];
            let (target, limited) = (commodity.target, commodity.max_delay_s.is_some());
            let tree = self.forest.tree(&self.graph, source, class);
            if worth - tree.distance[target as usize] <= limit {
                continue;
            }
            if limited {
                self.search_one(id, worth, &mut path, gains);
            } else if tree.path_to(&self.graph, target, &mut path) {
                let length = self.pricer.length(class);
                let now: f64 = path.iter().map(|&arc| length[arc as usize]).sum();
                if worth - now > limit {
                    self.offer(id, worth - now, &path, gains);
                }
            }
        }
    }

    /// Length that a path of a commodity with the price `sigma` may have without a loss.
    pub fn worth(&self, id: u32, sigma: f64) -> f64 {
        let value = self.commodities[id as usize].value;
        value * self.master.big_m - sigma - self.ack_price(id)
    }

    /// What the acknowledgements of one unit pay on a way of their own; infinite when that is down.
    fn ack_price(&self, id: u32) -> f64 {
        let acks = self.commodities[id as usize].acks.iter();
        acks.map(|&(arc, load)| match self.usable[arc as usize] {
            true => load * self.master.price[arc as usize].max(0.0),
            false => f64::INFINITY,
        })
        .sum()
    }

    pub fn search_one(
        &mut self,
        id: u32,
        worth: f64,
        path: &mut Vec<u32>,
        gains: &mut Vec<(f64, u32)>,
    ) {
        let limit = self.gain_limit();
        if let Some(length) = self.best_path(id as usize, worth - limit, path) {
            if worth - length > limit {
                self.offer(id, worth - length, path, gains);
            }
        }
    }

    pub fn offer(&mut self, id: u32, gain: f64, path: &[u32], gains: &mut Vec<(f64, u32)>) {
        let column = self.add_path(id, path);
        if !self.master.is_basic(column) {
            gains.push((gain, column));
        }
    }

    pub fn price_known(&self, id: usize, sigma: f64, gains: &mut Vec<(f64, u32)>) {
        for &c in &self.master.groups[id].columns {
            let column = &self.master.columns[c as usize];
            if column.banned || self.master.is_basic(c) {
                continue;
            }
            let gain = column.profit - self.master.dot(&self.master.price, c) - sigma;
            if gain > self.gain_limit() {
                gains.push((gain, c));
            }
        }
    }
}
