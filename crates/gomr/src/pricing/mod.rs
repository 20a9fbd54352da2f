//! Pricing: the paths that are worth entering under the present prices.
//!
//! A path of commodity `k` gains `M·v_k − σ_k − Σ_{e∈p} (cost_e + π_e + ack·π_rev(e))`, so the best one is a shortest path
//! ([`PathPricing`]), looked for in three ways: in the tree of its source, over the few arcs that have a price, or, within
//! a delay limit or for a commodity alone, by a search of its own.

pub(crate) mod by_priced_arcs;
pub(crate) mod by_trees;
pub(crate) mod constrained;
pub(crate) mod detours;
pub(crate) mod introduce;
pub(crate) mod lengths;
pub(crate) mod optimal_paths;
pub(crate) mod origin;
pub(crate) mod point_to_point;
pub(crate) mod priced_arcs;
pub(crate) mod tree;

use crate::graph::Graph;
use crate::settings::Settings;
use crate::solver::{Commodity, Solver};
use by_priced_arcs::PricedArcPaths;
use by_trees::ShortestPathTrees;
use lengths::Lengths;
use origin::CandidatePath;
use point_to_point::PointToPoint;

/// A way to find shortest paths.
pub(crate) trait PathPricing {
    /// Writes the shortest path of a commodity if it is shorter than `limit`; returns its length.
    fn shortest(
        &mut self,
        graph: &Graph,
        commodity: &Commodity,
        limit: f64,
        path: &mut Vec<u32>,
    ) -> Option<f64>;
}

/// Arc lengths, and what is known of the paths under them.
#[derive(Clone, Debug)]
pub(crate) struct Pricing {
    /// Cost of each arc in the second objective: its delay over the longest arc's, 1 if all have none.
    pub cost: Vec<f64>,
    /// Whether the arc has a capacity.
    pub usable: Vec<bool>,
    /// The prices of the last passes, the older the less they count, and how much less from one to the next.
    pub smooth_price: Vec<f64>,
    pub smooth_lengths: Lengths,
    pub smoothing: f64,
    pub trees: ShortestPathTrees,
    pub priced: PricedArcPaths,
    /// At the present prices.
    pub search: PointToPoint,
    /// The origin that the next pass begins with.
    cursor: usize,
}

impl Pricing {
    pub fn new(graph: &Graph, capacity: &[f64]) -> Self {
        let longest = graph.delay_s.iter().copied().fold(0.0, f64::max);
        let cost = |delay_s: &f64| match longest > 0.0 {
            true => delay_s / longest,
            false => 1.0,
        };
        let cost: Vec<f64> = graph.delay_s.iter().map(cost).collect();
        Self {
            search: PointToPoint::new(graph.nodes, cost.clone()),
            cost,
            usable: capacity.iter().map(|&c| c > 0.0).collect(),
            smooth_price: Vec::new(),
            smooth_lengths: Lengths::default(),
            smoothing: 0.0,
            trees: ShortestPathTrees::default(),
            priced: PricedArcPaths::default(),
            cursor: 0,
        }
    }

    /// Searches on this many threads, at least one; what is found does not depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.trees.set_threads(threads);
    }
}

pub(crate) fn update_lengths(solver: &mut Solver) {
    solver.pricing.search.update(
        &solver.graph,
        &solver.pricing.cost,
        &solver.master.price,
        &solver.pricing.usable,
    );
}

/// Shortest path of a commodity under the present prices if it is shorter than `limit`.
pub(crate) fn best_path(
    solver: &mut Solver,
    id: u32,
    limit: f64,
    path: &mut Vec<u32>,
) -> Option<f64> {
    let commodity = &solver.pool.commodities[id as usize];
    let search = &mut solver.pricing.search;
    search.shortest(&solver.graph, commodity, limit, path)
}

pub(crate) fn gain_limit(solver: &Solver) -> f64 {
    solver.run.least_gain * solver.master.big_m.max(1.0)
}

/// Length that a path of a commodity with the price `sigma` may have without a loss.
pub(crate) fn worth(solver: &Solver, id: u32, sigma: f64) -> f64 {
    let value = solver.pool.commodities[id as usize].value;
    let acks = solver.pool.commodities[id as usize].acks.iter();
    let price = acks.map(|&(arc, load)| match solver.pricing.usable[arc as usize] {
        true => load * solver.master.price[arc as usize].max(0.0),
        false => f64::INFINITY,
    });
    value * solver.master.big_m - sigma - price.sum::<f64>()
}

/// Collects columns worth entering, best first, origin after origin from where the last call
/// stopped; returns whether it saw all of them.
///
/// Far from the optimum prices jump from basis to basis. Paths that are short under the prices of the
/// last passes together last longer (P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear
/// mixed-integer programming", Int. Trans. Operational Research 4, 1997); each is offered only if it
/// gains under the present prices.
pub(crate) fn pass(solver: &mut Solver, candidates: &mut Vec<u32>) -> bool {
    solver.run.effort.passes += 1;
    update_lengths(solver);
    let kept = solver.pricing.smoothing;
    for (smooth, &price) in solver
        .pricing
        .smooth_price
        .iter_mut()
        .zip(&solver.master.price)
    {
        *smooth = kept * *smooth + (1.0 - kept) * price.max(0.0);
    }
    solver.pricing.smooth_lengths.update(
        &solver.graph,
        &solver.pricing.cost,
        &solver.pricing.smooth_price,
        &solver.pricing.usable,
    );
    let Settings { pricing: most, .. } = &solver.settings;
    let enough = (solver.pool.commodities.len() / most.commodities_per_candidate)
        .clamp(most.least_batch, most.most_batch);
    let mut gains: Vec<(f64, u32)> = Vec::new();
    let whole = match by_priced_arcs::are_worthwhile(solver) {
        true => by_priced_arcs::collect(solver, enough, &mut gains),
        false => by_trees::collect(solver, enough, &mut gains),
    };
    gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    candidates.clear();
    candidates.extend(gains.iter().map(|&(_, column)| column));
    whole
}

/// Makes columns of candidates, their paths found in one `way`, and keeps those that gain under the present prices.
pub(crate) fn take<P: PathPricing>(
    solver: &mut Solver,
    candidates: &mut Vec<CandidatePath>,
    gains: &mut Vec<(f64, u32)>,
    way: impl Fn(&mut Pricing) -> &mut P,
) {
    let limit = gain_limit(solver);
    let mut path = Vec::new();
    for candidate in candidates.drain(..) {
        let (id, found) = match candidate {
            CandidatePath::Known(gain, column) => {
                gains.push((gain, column));
                continue;
            }
            CandidatePath::Path(_, id) => {
                let commodity = &solver.pool.commodities[id as usize];
                let way = way(&mut solver.pricing);
                let found = way.shortest(&solver.graph, commodity, f64::INFINITY, &mut path);
                (id, found)
            }
            CandidatePath::Search(id, worth) => {
                (id, best_path(solver, id, worth - limit, &mut path))
            }
        };
        if found.is_none() {
            continue;
        }
        let column = solver.add_path(id, &path);
        let gain = solver.master.reduced_profit(column);
        if gain > limit && !solver.master.is_basic(column) {
            gains.push((gain, column));
        }
    }
}
