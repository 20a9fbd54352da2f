//! Which paths are worth entering: pricing by origin, and a first path for newcomers.

use std::ops::Range;

use super::origin::{Offer, Origin, Terms};
use super::{Solver, BATCH};
use crate::constrained::cheapest_within;
use crate::master::Enter;
use crate::tree::Scratch;

/// A pricing pass ends with one candidate for so many commodities.
const COMMODITIES: usize = 600;
/// Most candidates that a pricing pass waits for, and that it takes from a block of origins.
const MOST_WANTED: usize = 200;
const MOST_TAKEN: usize = 1000;
const MOST_TAKEN_OF_CROWD: usize = 4000;
/// Origins priced between two looks at the candidates.
const BLOCK: usize = 64;
/// Commodities that come together and are worth the trees of all origins.
const MANY: usize = 64;
/// Nodes and commodities that are worth more than one thread.
const PARALLEL: usize = 20_000;

impl Solver {
    pub fn update_lengths(&mut self) {
        self.pricer
            .update(&self.graph, &self.cost, &self.master.price, &self.usable);
    }

    /// Shortest path of a commodity under the present prices if it is shorter than `limit`.
    pub fn best_path(&mut self, id: usize, limit: f64, path: &mut Vec<u32>) -> Option<f64> {
        let commodity = &self.commodities[id];
        let (source, target, class) = (commodity.source, commodity.target, commodity.class);
        self.pricer.prepare(&self.graph, target);
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
        if ids.len() > MANY {
            self.introduce_many();
        }
        let mut path = Vec::new();
        for &id in ids {
            if self.commodities[id as usize].fixed {
                self.introduce_fixed(id);
            } else if ids.len() <= MANY {
                self.introduce_one(id, &mut path);
            }
        }
    }

    fn introduce_one(&mut self, id: u32, path: &mut Vec<u32>) {
        if self.best_path(id as usize, f64::INFINITY, path).is_some() {
            self.start_on(id, path);
        }
    }

    fn start_on(&mut self, id: u32, path: &[u32]) {
        let column = self.add_path(id, path);
        let value = self.commodities[id as usize].value;
        self.raise_m(self.master.columns[column as usize].cost, value);
        self.prefer(id, column);
    }

    /// Gives all commodities without a path their best one, by the trees of their origins.
    fn introduce_many(&mut self) {
        let price: Vec<f64> = self.master.price.iter().map(|p| p.max(0.0)).collect();
        self.smooth_lengths
            .update(&self.graph, &self.cost, &price, &self.usable);
        let mut offers = Vec::new();
        let mut path = Vec::new();
        for start in (0..self.origins.len()).step_by(BLOCK) {
            let end = self.origins.len().min(start + BLOCK);
            self.visit(start..end, &mut offers, Origin::introduce);
            for offer in offers.drain(..) {
                match offer {
                    Offer::Path(_, id) if self.tree_path(id, &mut path) => self.start_on(id, &path),
                    Offer::Path(..) => {}
                    Offer::Search(id, _) => self.introduce_one(id, &mut path),
                    Offer::Known(..) => {}
                }
            }
        }
        self.note_least(&price);
    }

    /// Keeps how long paths are at least: by the trees just made where these are the shortest at any prices.
    fn note_least(&mut self, price: &[f64]) {
        let is_free = price.iter().all(|&price| price == 0.0) && self.pricer.is_least(&self.cost);
        if is_free && self.usable.iter().all(|&usable| usable) {
            let version = self.smooth_lengths.version();
            for origin in &mut self.origins {
                origin.note_least(version);
            }
            return;
        }
        for commodity in self.commodities.iter().filter(|commodity| !commodity.fixed) {
            self.pricer.prepare(&self.graph, commodity.target);
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
        self.gain * self.master.big_m.max(1.0)
    }

    /// The slack that gains most for its Devex weight, and what a unit of it gains.
    pub fn best_slack(&self) -> Option<(Enter, f64)> {
        let limit = self.gain_limit();
        let mut best = None;
        let mut most = 0.0;
        for &e in &self.master.tight {
            let gain = -self.master.price[e as usize];
            if gain <= limit {
                continue;
            }
            let squared = gain * gain / self.master.weights.of(e);
            if squared > most {
                most = squared;
                best = Some((Enter::Slack(e), gain));
            }
        }
        best
    }

    /// The slack of the first arc with a price below zero.
    pub fn first_slack(&self) -> Option<(Enter, f64)> {
        let limit = self.gain_limit();
        let gaining = self.master.tight.iter().copied();
        let gaining = gaining.filter(|&e| -self.master.price[e as usize] > limit);
        let first = gaining.min()?;
        Some((Enter::Slack(first), -self.master.price[first as usize]))
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
        self.smooth_lengths
            .update(&self.graph, &self.cost, &self.smooth, &self.usable);
        let enough = (self.commodities.len() / COMMODITIES).clamp(BATCH, MOST_WANTED);
        let mut gains: Vec<(f64, u32)> = Vec::new();
        let whole = match self.has_few_tolls() {
            true => self.price_by_tolls(enough, &mut gains),
            false => self.price_by_trees(enough, &mut gains),
        };
        gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        candidates.clear();
        candidates.extend(gains.iter().map(|&(_, column)| column));
        whole
    }

    fn price_by_trees(&mut self, enough: usize, gains: &mut Vec<(f64, u32)>) -> bool {
        let count = self.origins.len();
        let mut offers = Vec::new();
        let mut seen = 0;
        while seen < count && gains.len() < enough {
            if self.cursor >= count {
                self.cursor = 0;
            }
            let end = count.min(self.cursor + (count - seen).min(BLOCK));
            self.visit(self.cursor..end, &mut offers, Origin::price);
            seen += end - self.cursor;
            let members: usize = self.origins[self.cursor..end].iter().map(Origin::len).sum();
            self.master.work += (18 * self.graph.nodes * (end - self.cursor) + 12 * members) as u64;
            self.cursor = end;
            // Far more would lose their gain before they are looked at: prices move with each pivot.
            let most = match self.is_crowded() {
                true => MOST_TAKEN_OF_CROWD,
                false => MOST_TAKEN,
            };
            Offer::keep_best(&mut offers, most);
            self.take_offers(&mut offers, gains);
        }
        seen == count
    }

    /// Visits some origins, on several threads where there is enough to do.
    fn visit(&mut self, block: Range<usize>, offers: &mut Vec<Offer>, visit: impl Visit) {
        let terms = Terms {
            graph: &self.graph,
            master: &self.master,
            commodities: &self.commodities,
            pricer: &self.pricer,
            usable: &self.usable,
            lengths: self.smooth_lengths.all(),
            since: self.smooth_lengths.since(),
            version: self.smooth_lengths.version(),
            limit: self.gain_limit(),
        };
        let origins = &mut self.origins[block];
        on_threads(&mut self.scratch, origins, &terms, offers, visit);
    }

    /// The path to a commodity's target in the tree of its origin.
    fn tree_path(&self, id: u32, path: &mut Vec<u32>) -> bool {
        let commodity = &self.commodities[id as usize];
        let origin = self.origin_of.get(&(commodity.source, commodity.class));
        origin.is_some_and(|&at| self.origins[at].path_to(&self.graph, commodity.target, path))
    }

    pub(super) fn take_offers(&mut self, offers: &mut Vec<Offer>, gains: &mut Vec<(f64, u32)>) {
        let mut path = Vec::new();
        for offer in offers.drain(..) {
            match offer {
                Offer::Known(gain, column) => gains.push((gain, column)),
                Offer::Path(gain, id) if self.tree_path(id, &mut path) => {
                    self.offer(id, gain, &path, gains);
                }
                Offer::Path(..) => {}
                Offer::Search(id, worth) => self.search_one(id, worth, &mut path, gains),
            }
        }
    }

    /// Length that a path of a commodity with the price `sigma` may have without a loss.
    pub fn worth(&self, id: u32, sigma: f64) -> f64 {
        let value = self.commodities[id as usize].value;
        let acks = self.commodities[id as usize].acks.iter();
        let price = acks.map(|&(arc, load)| match self.usable[arc as usize] {
            true => load * self.master.price[arc as usize].max(0.0),
            false => f64::INFINITY,
        });
        value * self.master.big_m - sigma - price.sum::<f64>()
    }

    fn search_one(
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

    fn offer(&mut self, id: u32, gain: f64, path: &[u32], gains: &mut Vec<(f64, u32)>) {
        let column = self.add_path(id, path);
        if !self.master.is_basic(column) {
            gains.push((gain, column));
        }
    }
}

/// What is done to an origin, with the offers that come of it.
trait Visit: Fn(&mut Origin, &Terms<'_>, &mut Scratch, &mut Vec<Offer>) + Sync {}

impl<F: Fn(&mut Origin, &Terms<'_>, &mut Scratch, &mut Vec<Offer>) + Sync> Visit for F {}

/// Visits origins on as many threads as there are `scratch`es; the offers come in the origins' order.
fn on_threads(
    scratch: &mut [Scratch],
    origins: &mut [Origin],
    terms: &Terms<'_>,
    offers: &mut Vec<Offer>,
    visit: impl Visit,
) {
    let work: usize = origins
        .iter()
        .map(|origin| terms.graph.nodes + origin.len())
        .sum();
    let threads = if work < PARALLEL { 1 } else { scratch.len() };
    let share = origins.len().div_ceil(threads).max(1);
    let run = |origins: &mut [Origin], scratch: &mut Scratch, offers: &mut Vec<Offer>| {
        for origin in origins {
            visit(origin, terms, scratch, offers);
        }
    };
    let mut parts = origins.chunks_mut(share).zip(scratch);
    let Some((own, own_scratch)) = parts.next() else {
        return;
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = parts
            .map(|(origins, scratch)| {
                let run = &run;
                scope.spawn(move || {
                    let mut offers = Vec::new();
                    run(origins, scratch, &mut offers);
                    offers
                })
            })
            .collect();
        run(own, own_scratch, offers);
        for other in others {
            match other.join() {
                Ok(more) => offers.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}
