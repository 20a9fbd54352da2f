//! Commodities with a common source, priced together by one shortest-path tree.
//!
//! What one of them must gain against is the worth of its present path. Prices of nearly all arcs are zero
//! for good, so the priced arcs of that path are kept beside: a few numbers in place of a walk along it.

use crate::graph::{Graph, NONE};
use crate::lp::master::Master;
use crate::pricing::tree::{Scratch, Tree};
use crate::pricing::{gain_limit, worth};
use crate::solver::{Commodity, Solver};

/// Priced arcs of a path that are kept; paths with more are walked.
const MAX_KEPT_ARCS: usize = 12;
const NO_ARC: u16 = u16::MAX;

/// A commodity as the pricing sees it, with the priced arcs of its key.
#[derive(Clone, Copy, Debug)]
struct PricedCommodity {
    id: u32,
    target: u32,
    /// Neither its paths nor their delay nor its acknowledgements are limited in any way.
    free: bool,
    value: f64,
    /// Length that a path of it has at least at any prices, 0 where that is not known.
    least: f64,
    key: u32,
    /// [`Master::epoch`] when the rest was made.
    epoch: u32,
    /// Profit of the key.
    profit: f64,
    arcs: [u16; MAX_KEPT_ARCS],
}

impl PricedCommodity {
    fn new(id: u32, commodity: &Commodity) -> Self {
        let limited = commodity.fixed || commodity.max_delay_s.is_some();
        Self {
            id,
            target: commodity.target,
            free: !limited && commodity.acks.is_empty(),
            value: commodity.value,
            least: 0.0,
            key: NONE,
            epoch: 0,
            profit: 0.0,
            arcs: [NO_ARC; MAX_KEPT_ARCS],
        }
    }

    /// The price of one unit of the commodity's request, as [`Master::sigma`].
    fn sigma(&mut self, master: &Master) -> f64 {
        let key = master.keys[self.id as usize];
        if (self.key, self.epoch) != (key, master.epoch) && !self.renew(master, key) {
            return master.sigma(self.id);
        }
        let mut sigma = self.profit;
        for &arc in self.arcs.iter().take_while(|&&arc| arc != NO_ARC) {
            sigma -= master.price[arc as usize];
        }
        sigma
    }

    /// Looks the key's priced arcs up; false where they cannot be kept.
    fn renew(&mut self, master: &Master, key: u32) -> bool {
        self.key = NONE;
        if !master.is_plain() || master.price.len() >= NO_ARC as usize {
            return false;
        }
        self.arcs = [NO_ARC; MAX_KEPT_ARCS];
        let rows = master.loaded(key).iter();
        let mut priced = rows.filter(|&&arc| master.priced[arc as usize]);
        for kept in &mut self.arcs {
            let Some(&arc) = priced.next() else { break };
            *kept = arc as u16;
        }
        if priced.next().is_some() {
            return false;
        }
        self.key = key;
        self.epoch = master.epoch;
        self.profit = master.columns[key as usize].profit;
        true
    }
}

/// Commodities priced together: same source, same arc lengths.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub source: u32,
    pub class: usize,
    members: Vec<PricedCommodity>,
    tree: Option<Tree>,
    open: Vec<(u32, f64)>,
}

/// What pricing has to offer.
pub(crate) enum CandidatePath {
    /// A known column gains so much.
    Known(f64, u32),
    /// The path of a commodity in its origin's tree gains so much.
    Path(f64, u32),
    /// A commodity that must be searched by itself, and the length from where on nothing gains.
    Search(u32, f64),
}

impl CandidatePath {
    fn gain(&self) -> f64 {
        match *self {
            Self::Known(gain, _) | Self::Path(gain, _) => gain,
            Self::Search(..) => f64::INFINITY,
        }
    }

    /// Keeps the `most` candidates that gain most, in their order.
    pub fn keep_best(candidates: &mut Vec<Self>, most: usize) {
        if candidates.len() <= most {
            return;
        }
        let mut gains: Vec<f64> = candidates.iter().map(Self::gain).collect();
        let (_, &mut least, _) = gains.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
        let has_better = gains.iter().any(|&gain| gain > least);
        candidates.retain(|candidate| match has_better {
            true => candidate.gain() > least,
            false => candidate.gain() == least,
        });
        candidates.truncate(most);
    }
}

/// Offers the known columns of a commodity that gain.
fn offer_known(solver: &Solver, id: u32, sigma: f64, candidates: &mut Vec<CandidatePath>) {
    let master = &solver.master;
    for &c in &master.groups[id as usize].columns {
        let column = &master.columns[c as usize];
        if column.banned || master.is_basic(c) {
            continue;
        }
        let gain = column.profit - master.dot(&master.price, c) - sigma;
        if gain > gain_limit(solver) {
            candidates.push(CandidatePath::Known(gain, c));
        }
    }
}

impl Origin {
    pub fn new(source: u32, class: usize) -> Self {
        Self {
            source,
            class,
            members: Vec::new(),
            tree: None,
            open: Vec::new(),
        }
    }

    pub fn add(&mut self, id: u32, commodity: &Commodity) {
        self.members.push(PricedCommodity::new(id, commodity));
    }

    pub fn remove(&mut self, id: u32) {
        self.members.retain(|member| member.id != id);
    }

    /// Number of its commodities.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The tree under the smoothed lengths.
    fn tree(&mut self, solver: &Solver, scratch: &mut Scratch) -> &mut Tree {
        let graph = &solver.graph;
        let new = || Tree::new(self.source, graph.nodes);
        let tree = self.tree.get_or_insert_with(new);
        tree.follow(graph, &solver.pricing.smooth_lengths, self.class, scratch);
        tree
    }

    /// Takes distances in the tree, if it is one for these lengths, as the least that there can be.
    pub fn note_least(&mut self, version: u32) {
        let tree = self.tree.as_ref();
        let Some(tree) = tree.filter(|tree| tree.version == version) else {
            return;
        };
        for member in &mut self.members {
            member.least = tree.distance[member.target as usize];
        }
    }

    /// Makes the tree one for other lengths than the smoothed ones.
    pub fn measure(&mut self, graph: &Graph, length: &[f64], scratch: &mut Scratch) {
        let new = || Tree::new(self.source, graph.nodes);
        let tree = self.tree.get_or_insert_with(new);
        tree.update(graph, length, scratch);
    }

    /// Distance of a node in the tree.
    pub fn distance(&self, node: u32) -> f64 {
        let tree = self.tree.as_ref();
        tree.map_or(f64::INFINITY, |tree| tree.distance[node as usize])
    }

    /// The commodities, their targets and the distances of these in the tree.
    pub fn distances(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        let of = |member: &PricedCommodity| self.distance(member.target);
        self.members
            .iter()
            .map(move |member| (member.id, member.target, of(member)))
    }

    /// Writes the tree's path to a node into `path`; false where there is none.
    pub fn path_to(&self, graph: &Graph, node: u32, path: &mut Vec<u32>) -> bool {
        let tree = self.tree.as_ref();
        tree.is_some_and(|tree| tree.path_to(graph, node, path))
    }

    /// Collects the shortest paths of the members that have no path yet; `Search` for those with limits.
    pub fn introduce(
        &mut self,
        solver: &Solver,
        scratch: &mut Scratch,
        candidates: &mut Vec<CandidatePath>,
    ) {
        let is_new = |id: &u32| {
            solver.master.groups[*id as usize].columns.is_empty()
                && !solver.pool.commodities[*id as usize].fixed
        };
        let ids = self.members.iter().map(|member| member.id);
        let fresh: Vec<u32> = ids.filter(is_new).collect();
        if fresh.len() < solver.settings.pricing.tree_members {
            candidates.extend(
                fresh
                    .iter()
                    .map(|&id| CandidatePath::Search(id, f64::INFINITY)),
            );
            return;
        }
        let tree = self.tree(solver, scratch);
        for id in fresh {
            let commodity = &solver.pool.commodities[id as usize];
            if commodity.max_delay_s.is_some() {
                candidates.push(CandidatePath::Search(id, f64::INFINITY));
            } else if tree.distance[commodity.target as usize].is_finite() {
                candidates.push(CandidatePath::Path(f64::INFINITY, id));
            }
        }
    }

    /// Collects what gains: by one tree when several commodities may, otherwise by searches.
    pub fn price(
        &mut self,
        solver: &Solver,
        scratch: &mut Scratch,
        candidates: &mut Vec<CandidatePath>,
    ) {
        let is_crowd = self.members.len() >= solver.settings.pricing.crowded_origin;
        let distance = is_crowd.then(|| std::mem::take(&mut self.tree(solver, scratch).distance));
        self.list_open(solver, distance.as_deref(), candidates);
        if let (Some(tree), Some(distance)) = (&mut self.tree, distance) {
            tree.distance = distance;
        }
        let open = std::mem::take(&mut self.open);
        if open.len() >= solver.settings.pricing.tree_members || is_crowd {
            self.price_by_tree(&open, solver, scratch, candidates);
        } else {
            candidates.extend(
                open.iter()
                    .map(|&(id, worth)| CandidatePath::Search(id, worth)),
            );
        }
        self.open = open;
    }

    /// Lists the commodities that pay more than the least length a path of theirs can have, or than its `distance`
    /// where that is known, and what they pay; candidates what is known without a search.
    pub fn list_open(
        &mut self,
        solver: &Solver,
        distance: Option<&[f64]>,
        candidates: &mut Vec<CandidatePath>,
    ) -> &[(u32, f64)] {
        let limit = gain_limit(solver);
        self.open.clear();
        for member in &mut self.members {
            let sigma = member.sigma(&solver.master);
            if -sigma > limit {
                let unserved = solver.master.groups[member.id as usize].unserved;
                let banned = solver.master.columns[unserved as usize].banned;
                if !banned && !solver.master.is_basic(unserved) {
                    candidates.push(CandidatePath::Known(-sigma, unserved));
                }
            }
            if !member.free && solver.pool.commodities[member.id as usize].fixed {
                offer_known(solver, member.id, sigma, candidates);
                continue;
            }
            let worth = match member.free {
                true => member.value * solver.master.big_m - sigma,
                false => worth(solver, member.id, sigma),
            };
            let least = match distance {
                Some(distance) => distance[member.target as usize],
                None => {
                    let prepared = solver.pricing.search.least(self.source, member.target);
                    member.least.max(prepared)
                }
            };
            if worth - limit > least {
                self.open.push((member.id, worth));
            }
        }
        &self.open
    }

    fn price_by_tree(
        &mut self,
        open: &[(u32, f64)],
        solver: &Solver,
        scratch: &mut Scratch,
        candidates: &mut Vec<CandidatePath>,
    ) {
        let (class, limit) = (self.class, gain_limit(solver));
        self.tree(solver, scratch);
        let Some(tree) = &self.tree else { return };
        let length = solver.pricing.search.length(class);
        tree.begin_measuring(scratch);
        for &(id, worth) in open {
            let commodity = &solver.pool.commodities[id as usize];
            if worth - tree.distance[commodity.target as usize] <= limit {
                continue;
            }
            if commodity.max_delay_s.is_some() {
                candidates.push(CandidatePath::Search(id, worth));
                continue;
            }
            let target = commodity.target;
            if !tree.distance[target as usize].is_finite() {
                continue;
            }
            let gain = worth - tree.measure(&solver.graph, length, target, scratch);
            if gain > limit {
                candidates.push(CandidatePath::Path(gain, id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CandidatePath;

    #[test]
    fn some_of_the_candidates_that_gain_alike_are_kept() {
        let mut candidates: Vec<_> = (0..9).map(|id| CandidatePath::Known(1.0, id)).collect();
        CandidatePath::keep_best(&mut candidates, 4);
        assert_eq!(candidates.len(), 4);
        candidates.push(CandidatePath::Search(9, 1.0));
        CandidatePath::keep_best(&mut candidates, 4);
        assert_eq!(candidates.len(), 1);
    }
}
