//! Column generation: the optimum over all paths, from whatever basis is at hand.
//!
//! Lexicographic optimum in one linear programme: a path is worth `M·value − cost` with `M` at least
//! three times the longest shortest path. No general bound on `M` is known, so each optimum is checked:
//! the basis is priced once more for the first objective alone ([`crate::certify`]), and `M` is raised
//! if a path could still gain.

use std::collections::BTreeMap;

use crate::constrained::cheapest_within;
use crate::dual::DualEnd;
use crate::forest::Forest;
use crate::graph::{Graph, NONE};
use crate::master::{Enter, Master};
use crate::pricing::Pricer;
use crate::problem::Error;

/// Relative gain below which a path is not worth entering.
const GAIN: f64 = 1e-11;
/// Candidates looked at for each pivot.
const WINDOW: usize = 24;
/// Open commodities of an origin that are worth a tree.
const TREE: usize = 2;
/// Tableau entries per known path that a hot restart may cost.
const WORK: usize = 300;
/// Fewest candidates that end a pricing pass early.
const BATCH: usize = 64;
/// Pivots without progress before the bounds are perturbed.
const STALL: usize = 200;

/// What a commodity asks of the pricing.
#[derive(Clone, Debug)]
pub(crate) struct Commodity {
    pub source: u32,
    pub target: u32,
    /// Worth of one unit in the first objective.
    pub value: f64,
    pub ack_ratio: f64,
    pub max_delay_s: Option<f64>,
    /// Its paths are given: nothing is priced.
    pub fixed: bool,
    /// Class of its arc lengths.
    pub class: usize,
}

/// Commodities priced together: same source, same arc lengths.
#[derive(Clone, Debug)]
struct Origin {
    source: u32,
    class: usize,
    members: Vec<u32>,
}

/// Work done, for tests and benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Simplex pivots.
    pub pivots: usize,
    /// Pricing passes over all sources.
    pub passes: usize,
    /// Paths known to the master problem.
    pub columns: usize,
    /// Saturated links in the basis.
    pub saturated: usize,
    /// Restarts from an empty basis.
    pub restarts: usize,
}

/// A live linear programme over one network.
#[derive(Clone, Debug)]
pub(crate) struct Solver {
    pub graph: Graph,
    pub master: Master,
    pub commodities: Vec<Commodity>,
    pub pricer: Pricer,
    forest: Forest,
    origins: Vec<Origin>,
    origin_of: BTreeMap<(u32, usize), usize>,
    pub proof: Forest,
    /// Cost of each arc in the second objective: its delay over the longest arc's.
    pub cost: Vec<f64>,
    pub usable: Vec<bool>,
    pub effort: Effort,
    spare: Vec<u32>,
    cursor: usize,
    kept: usize,
}

impl Solver {
    pub fn new(graph: Graph, capacity: Vec<f64>) -> Self {
        let longest = graph.delay_s.iter().copied().fold(0.0, f64::max);
        let unit_s = if longest > 0.0 { longest } else { 1.0 };
        Self {
            cost: graph.delay_s.iter().map(|d| d / unit_s).collect(),
            usable: capacity.iter().map(|&c| c > 0.0).collect(),
            master: Master::new(capacity, 1.0),
            commodities: Vec::new(),
            pricer: Pricer::new(graph.nodes),
            forest: Forest::default(),
            origins: Vec::new(),
            origin_of: BTreeMap::new(),
            proof: Forest::default(),
            effort: Effort::default(),
            spare: Vec::new(),
            cursor: 0,
            kept: 0,
            graph,
        }
    }

    /// Adds a commodity (or reuses the place of one that is gone).
    pub fn add_commodity(&mut self, mut commodity: Commodity, request: f64) -> u32 {
        if !commodity.fixed {
            commodity.class = self.pricer.class(commodity.ack_ratio);
            self.forest.class(&self.graph, commodity.ack_ratio);
            self.pricer
                .prepare(&self.graph, &self.cost, commodity.target);
        }
        let (source, class) = (commodity.source, commodity.class);
        let id = self.place_commodity(commodity, request);
        let next = self.origins.len();
        let origin = *self.origin_of.entry((source, class)).or_insert(next);
        if origin == next {
            self.origins.push(Origin {
                source,
                class,
                members: Vec::new(),
            });
        }
        self.origins[origin].members.push(id);
        id
    }

    fn place_commodity(&mut self, commodity: Commodity, request: f64) -> u32 {
        if let Some(id) = self.spare.pop() {
            self.master.set_request(id, request);
            self.master.groups[id as usize].active = true;
            self.master.groups[id as usize].key_value = request;
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
            self.origins[origin].members.retain(|&other| other != id);
        }
    }

    /// Commodities that are gone and out of the basis can be used again.
    fn collect_spare(&mut self) {
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
    fn forget_poor_paths(&mut self) {
        let count = self.master.groups.len();
        let paths = self.master.columns.len() - count;
        if paths < self.kept + 2 * count + 1000 {
            return;
        }
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
        let limit = 0.02 * self.master.big_m;
        self.master
            .purge(|c| fixed[groups[c as usize] as usize] || loss[c as usize] < limit);
        self.kept = self.master.columns.len() - count;
    }

    /// Adds a path unless the commodity has it; returns its column.
    pub fn add_path(&mut self, id: u32, path: &[u32]) -> u32 {
        let group = &self.master.groups[id as usize];
        let known = group.columns.iter().find(|&&c| self.master.path(c) == path);
        if let Some(&column) = known {
            return column;
        }
        let commodity = &self.commodities[id as usize];
        let cost = path.iter().map(|&arc| self.cost[arc as usize]).sum();
        let mut extra = Vec::new();
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

    fn all_usable(&self, column: u32) -> bool {
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

    fn update_lengths(&mut self) {
        self.pricer
            .update(&self.graph, &self.cost, &self.master.price, &self.usable);
    }

    /// Shortest path of a commodity under the present prices if it is shorter than `limit`.
    fn best_path(&mut self, id: usize, limit: f64, path: &mut Vec<u32>) -> Option<f64> {
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
    fn raise_m(&mut self, cost: f64, value: f64) {
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

    fn introduce_fixed(&mut self, id: u32) {
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
    fn prefer(&mut self, id: u32, column: u32) {
        let group = &self.master.groups[id as usize];
        let allowed = group.working.is_empty()
            && group.key != column
            && !self.master.columns[column as usize].banned;
        if allowed && self.master.reduced_profit(column) > 0.0 {
            self.master.set_key(column);
        }
    }

    /// Offers commodities whose path is gone the best one left, before the dual simplex looks for it.
    fn replace_gone(&mut self) {
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

    /// Solves to optimality from the present basis.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when rounding defeats it.
    pub fn optimise(&mut self) -> Result<(), Error> {
        self.replace_gone();
        self.master.estimate_scale();
        for _ in 0..40 {
            self.make_feasible()?;
            self.generate()?;
            let tolerance = self.feasibility();
            if self.master.restore_bounds() {
                self.master.compute_values();
            }
            if !self.accurate() || self.master.infeasibility() > tolerance {
                continue;
            }
            if !self.master.lower_scale() || self.master.infeasibility() <= self.feasibility() {
                self.collect_spare();
                self.forget_poor_paths();
                self.effort.pivots = self.master.pivots;
                self.effort.columns = self.master.columns.len();
                self.effort.saturated = self.master.tight.len();
                return Ok(());
            }
        }
        Err(self.not_solved("the basis does not settle"))
    }

    pub fn not_solved(&self, reason: &str) -> Error {
        Error::NotSolved {
            reason: reason.to_owned(),
            pivots: self.master.pivots,
        }
    }

    fn feasibility(&self) -> f64 {
        10.0 * self.master.tolerance()
    }

    /// Solves prices and rates anew and refactors when they have drifted.
    fn accurate(&mut self) -> bool {
        self.master.choose_largest_keys();
        let drift = self
            .master
            .compute_prices()
            .max(self.master.compute_values());
        drift <= 1e-9 || self.master.renew()
    }

    /// Dual simplex from the basis at hand; where that is too much work, the primal simplex from those
    /// of the last rates that fit at once.
    fn make_feasible(&mut self) -> Result<(), Error> {
        let tolerance = self.feasibility();
        let size = self.master.tight.len() + self.graph.arcs() + self.master.groups.len();
        let limit = 2000 + 4 * size;
        let hot = !self.master.tight.is_empty();
        let work = if hot {
            WORK * self.master.columns.len()
        } else {
            usize::MAX
        };
        if self.accurate() && self.master.dual_simplex(tolerance, limit, work) == DualEnd::Feasible
        {
            return Ok(());
        }
        self.effort.restarts += 1;
        let rest = self.master.keep_what_fits();
        self.improve(&rest)
    }

    /// Primal simplex with column generation, from a feasible basis.
    fn generate(&mut self) -> Result<(), Error> {
        let mut candidates = Vec::new();
        let mut exact = self.master.pivots;
        loop {
            let whole = self.price_some(&mut candidates);
            let before = self.master.pivots;
            self.improve(&candidates)?;
            if self.master.pivots > before || !whole {
                continue;
            }
            if self.master.pivots == exact {
                return Ok(());
            }
            // Prices are solved anew once, so that drift cannot end the search early.
            exact = self.master.pivots;
            self.accurate();
        }
    }

    fn gain_limit(&self) -> f64 {
        GAIN * self.master.big_m.max(1.0)
    }

    fn best_slack(&self) -> Option<(Enter, f64)> {
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
    fn price_some(&mut self, candidates: &mut Vec<u32>) -> bool {
        self.effort.passes += 1;
        self.update_lengths();
        let (cost, price) = (Some(&self.cost[..]), &self.master.price);
        self.forest.update(&self.graph, cost, price, &self.usable);
        let count = self.origins.len();
        let enough = BATCH.max(self.commodities.len() / 16);
        let mut gains: Vec<(f64, u32)> = Vec::new();
        let mut seen = 0;
        while seen < count && gains.len() < enough {
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
            let worth = commodity.value * self.master.big_m - sigma;
            if worth - limit > self.pricer.least(commodity.source, commodity.target) {
                open.push((id, worth));
            }
        }
        let mut path = Vec::new();
        if open.len() >= TREE {
            let (source, class) = (self.origins[at].source, self.origins[at].class);
            for (id, worth) in open {
                let commodity = &self.commodities[id as usize];
                let (target, limited) = (commodity.target, commodity.max_delay_s.is_some());
                let tree = self.forest.tree(&self.graph, source, class);
                let gain = worth - tree.distance[target as usize];
                if gain <= limit {
                    continue;
                }
                if limited {
                    self.search_one(id, worth, &mut path, gains);
                } else if tree.path_to(&self.graph, target, &mut path) {
                    self.offer(id, gain, &path, gains);
                }
            }
            return;
        }
        for (id, worth) in open {
            self.search_one(id, worth, &mut path, gains);
        }
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

    fn price_known(&self, id: usize, sigma: f64, gains: &mut Vec<(f64, u32)>) {
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

    /// Pivots among the candidates until none of them gains.
    fn improve(&mut self, candidates: &[u32]) -> Result<(), Error> {
        let tolerance = self.master.tolerance();
        let limit = self.gain_limit();
        let ceiling = self.master.pivots + 50_000 + 200 * (self.graph.arcs() + candidates.len());
        let mut stalled = 0;
        let none = [&[][..]];
        let windows: Vec<&[u32]> = match candidates {
            [] => none.to_vec(),
            some => some.chunks(WINDOW).collect(),
        };
        for window in windows {
            let mut open = window.to_vec();
            loop {
                let mut best = self.best_slack();
                let mut most = best.map_or(limit, |(_, gain)| gain);
                open.retain(|&c| {
                    if self.master.is_basic(c) {
                        return true;
                    }
                    let gain = self.master.reduced_profit(c);
                    if gain > most {
                        most = gain;
                        best = Some((Enter::Column(c), gain));
                    }
                    gain > limit
                });
                let Some((enter, gain)) = best else { break };
                match self.master.primal_step(enter, gain, tolerance) {
                    None => {
                        if let Enter::Column(c) = enter {
                            open.retain(|&other| other != c);
                        } else {
                            return Err(self.not_solved("a link's price has no bound"));
                        }
                    }
                    Some(theta) if theta <= tolerance => stalled += 1,
                    Some(_) => stalled = 0,
                }
                self.keep_accurate();
                if stalled > STALL {
                    stalled = 0;
                    self.master.perturb(1e4 * self.feasibility());
                }
                if self.master.pivots > ceiling {
                    return Err(self.not_solved("too many pivots between two pricing passes"));
                }
            }
        }
        Ok(())
    }

    fn keep_accurate(&mut self) {
        if self.master.pivots % 128 == 0 {
            self.accurate();
        }
    }
}
