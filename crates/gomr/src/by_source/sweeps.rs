//! A good routing to begin with: sources routed again one after another under prices that grow exponentially
//! with the utilisation of each arc (after N. Garg and J. Könemann, SIAM J. Computing 37, 2007).
//!
//! Where rate is left out, what a full arc costs is learned from sweep to sweep (the exponential method of multipliers;
//! P. Tseng and D. Bertsekas, Math. Programming 60, 1993), so that prices need not be steep.

use super::sources::{SourceLoads, Sources, TreeRouting};
use crate::halt::Halt;

/// Sweeps over all sources, and how often sources are routed at least.
const MIN_SWEEPS: usize = 24;
const MIN_ROUTED: usize = 400;
/// Most sweeps where sources have few demands, each of which is to be spread over many paths, and the arcs that all of
/// them may look at: about a second.
const MAX_SWEEPS: usize = 1000;
const MAX_ARCS_LOOKED_AT: usize = 120_000_000;
/// How steeply prices grow with the utilisation over the largest one, in the first sweep and the last.
const PRICE_SLOPES: (f64, f64) = (20.0, 400.0);
/// The last slope where full arcs have prices of their own, how many times as many sweeps there are then, one in how many of
/// these comes before prices are learned, and the least part of a price that stays.
const LEARNING_SLOPE: f64 = 60.0;
const LEARNING_TIMES: usize = 2;
const BEFORE_LEARNING: usize = 6;
const MIN_LEARNED: f64 = 1e-9;
/// Most that a price is above that of a full arc, as a power of e.
const MAX_PRICE_EXPONENT: f64 = 30.0;
/// Least part of a source that is kept on a tree.
const MIN_TREE_SHARE: f64 = 1e-3;
/// Sources between two looks at the clock and at all prices.
pub(super) const SOURCES_PER_LOOK: usize = 16;

/// What the sweeps are to come near to.
#[derive(Clone, Copy, Debug)]
pub(super) enum SweepObjective {
    /// All is served, and the fullest arc is as empty as can be.
    LeastFullest,
    /// A bit/s is worth so much, less the cost of its path, and no arc is more than full.
    MostWorth { big_m: f64 },
}

/// Where the sweeps ended.
pub(super) struct StartRouting {
    pub sources: Vec<SourceRouting>,
    /// Of each arc, and the largest.
    pub utilisation: Vec<f64>,
    pub fullest: f64,
    /// Price of each arc's capacity, all above 0. Their sum is 1 where the fullest arc is to be as empty as can be.
    pub prices: Vec<f64>,
    /// What a bit/s is worth under these prices: infinite where all are served.
    pub worth: f64,
    /// Utilisation of the fullest arc that is enough, and what prices prove of it.
    pub level: f64,
    pub bound: f64,
}

/// What is routed of a source: a mixture of trees.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceRouting {
    pub loads: SourceLoads,
    pub rate_bps: f64,
    pub left_out_bps: f64,
    pub cost_bps: f64,
    /// The trees, without their loads, and the part that each has; parts too small to count are left out.
    pub trees: Vec<(TreeRouting, f64)>,
}

/// Spreads the load of all sources from the trees that are given, until the time is up.
pub(super) fn spread(
    sources: &mut Sources,
    trees: &[TreeRouting],
    aim: SweepObjective,
    halt: &Halt,
) -> StartRouting {
    let mut state = SweepState::new(sources, trees, aim);
    let mut sweeps = sweeps(sources, trees.len().max(1));
    let (mut steeper, mut last_slope) = (sweeps, PRICE_SLOPES.1.max(sweeps as f64));
    if state.full.is_some() {
        sweeps *= LEARNING_TIMES;
        (steeper, last_slope) = (sweeps / BEFORE_LEARNING, LEARNING_SLOPE);
    }
    'sweeps: for sweep in 0..sweeps {
        let part = (sweep as f64 / (steeper - 1) as f64).min(1.0);
        state.slope = PRICE_SLOPES.0 * (last_slope / PRICE_SLOPES.0).powf(part);
        for place in 0..trees.len() {
            if place % SOURCES_PER_LOOK == 0 {
                if halt.now() {
                    break 'sweeps;
                }
                state.price_all();
            }
            sources.set_lengths(&state.prices, state.cost);
            let tree = sources.route_one(place, state.worth);
            state.shift(place, &tree);
        }
        if state.full.is_some() && sweep >= steeper {
            state.learn_prices();
        }
    }
    state.price_all();
    state.end()
}

fn sweeps(sources: &Sources, routed: usize) -> usize {
    let least = MIN_SWEEPS.max(MIN_ROUTED / routed);
    match sources.have_few_demands() {
        true => MAX_SWEEPS
            .min(MAX_ARCS_LOOKED_AT / (routed * sources.graph.arcs()))
            .max(least),
        false => least,
    }
}

fn without_loads(tree: &TreeRouting) -> TreeRouting {
    TreeRouting {
        loads: SourceLoads::new(),
        ..tree.clone()
    }
}

struct SweepState {
    /// Loads of each source on all arcs, and what they serve.
    mixed: Vec<(Vec<f64>, SourceRouting)>,
    utilisation: Vec<f64>,
    prices: Vec<f64>,
    /// Price of each arc's capacity where it is as full as it may be, and the largest that this can be: no path over an arc that
    /// costs more than what is served is worth carries anything.
    full_prices: Vec<f64>,
    most_prices: Vec<f64>,
    /// The utilisation that is full; `None` where that is the largest one.
    full: Option<f64>,
    worth: f64,
    /// What the cost of an arc counts in its length.
    cost: f64,
    slope: f64,
}

impl SweepState {
    fn new(sources: &Sources, trees: &[TreeRouting], aim: SweepObjective) -> Self {
        let mut utilisation = vec![0.0; sources.graph.arcs()];
        for &(arc, load) in trees.iter().flat_map(|tree| &tree.loads) {
            utilisation[arc as usize] += load;
        }
        let fullest = utilisation.iter().copied().fold(0.0, f64::max);
        let (full, worth, cost) = match aim {
            SweepObjective::LeastFullest => (None, f64::INFINITY, 0.0),
            SweepObjective::MostWorth { big_m } => (Some(1.0), big_m, 1.0),
        };
        let part = full.map_or(1.0, |full| (full / fullest).min(1.0));
        utilisation.iter_mut().for_each(|used| *used *= part);
        let begin = |tree: &TreeRouting| {
            let mut own = vec![0.0; sources.graph.arcs()];
            for &(arc, load) in &tree.loads {
                own[arc as usize] = part * load;
            }
            let share = SourceRouting {
                loads: SourceLoads::new(),
                rate_bps: part * tree.rate_bps,
                left_out_bps: tree.left_out_bps + (1.0 - part) * tree.rate_bps,
                cost_bps: part * tree.cost_bps,
                trees: vec![(without_loads(tree), part)],
            };
            (own, share)
        };
        let full_price = |bps: &f64| full.map_or(1.0, |_| worth * bps);
        let full_prices: Vec<f64> = sources.capacity.iter().map(full_price).collect();
        Self {
            mixed: trees.iter().map(begin).collect(),
            prices: vec![0.0; utilisation.len()],
            utilisation,
            most_prices: full_prices.clone(),
            full_prices,
            full,
            worth,
            cost,
            slope: PRICE_SLOPES.0,
        }
    }

    fn fullest(&self) -> f64 {
        self.utilisation.iter().copied().fold(0.0, f64::max)
    }

    fn full(&self) -> f64 {
        self.full.unwrap_or_else(|| self.fullest())
    }

    fn price_all(&mut self) {
        let full = self.full();
        let arcs = self.utilisation.iter().zip(&self.full_prices);
        for (price, (&used, at_full)) in self.prices.iter_mut().zip(arcs) {
            let above = self.slope * (used / full - 1.0);
            *price = at_full * above.min(MAX_PRICE_EXPONENT).exp().max(1e-12);
        }
        if self.full.is_none() {
            let sum: f64 = self.prices.iter().sum();
            self.prices.iter_mut().for_each(|price| *price /= sum);
        }
    }

    /// Takes the present prices for those of full arcs.
    fn learn_prices(&mut self) {
        self.price_all();
        let prices = self.prices.iter().zip(&self.most_prices);
        for (at_full, (&price, &most)) in self.full_prices.iter_mut().zip(prices) {
            *at_full = price.clamp(MIN_LEARNED * most, most);
        }
    }

    /// Moves a part of a source's load onto a tree: the step that Newton's method takes on the sum of the
    /// prices, less what is served is worth, as far as no price changes by more than a factor of e.
    fn shift(&mut self, place: usize, tree: &TreeRouting) {
        let full = self.full();
        let (own, share) = &self.mixed[place];
        let mut change: Vec<f64> = own.iter().map(|load| -load).collect();
        for &(arc, load) in &tree.loads {
            change[arc as usize] += load;
        }
        let (mut first, mut second) = (0.0, 0.0);
        for (&price, &change) in self.prices.iter().zip(&change) {
            first += price * change;
            second += price * change * change;
        }
        first += self.cost * (tree.cost_bps - share.cost_bps);
        if self.worth.is_finite() {
            first += self.worth * (tree.left_out_bps - share.left_out_bps);
        }
        if first >= 0.0 {
            return;
        }
        let largest = change.iter().fold(0.0f64, |most, one| most.max(one.abs()));
        let step = (-first / second).min(1.0 / largest) * full / self.slope;
        let step = step.min(1.0);
        self.mix(place, tree, step);
        for (price, &change) in self.prices.iter_mut().zip(&change) {
            if change != 0.0 {
                *price *= (self.slope * step * change / full).exp();
            }
        }
    }

    /// Moves a part of a source onto a tree.
    fn mix(&mut self, place: usize, tree: &TreeRouting, step: f64) {
        let (own, share) = &mut self.mixed[place];
        for (load, used) in own.iter_mut().zip(&mut self.utilisation) {
            *used -= step * *load;
            *load *= 1.0 - step;
        }
        for &(arc, load) in &tree.loads {
            own[arc as usize] += step * load;
            self.utilisation[arc as usize] += step * load;
        }
        let mix = |own: &mut f64, other: f64| *own += step * (other - *own);
        mix(&mut share.rate_bps, tree.rate_bps);
        mix(&mut share.left_out_bps, tree.left_out_bps);
        mix(&mut share.cost_bps, tree.cost_bps);
        share
            .trees
            .iter_mut()
            .for_each(|(_, part)| *part *= 1.0 - step);
        share.trees.retain(|&(_, part)| part > MIN_TREE_SHARE);
        let is_same = |(known, _): &&mut (TreeRouting, f64)| {
            known.parents == tree.parents && known.left_out == tree.left_out
        };
        match share.trees.iter_mut().find(is_same) {
            Some((_, part)) => *part += step,
            None => share.trees.push((without_loads(tree), step)),
        }
    }

    fn end(self) -> StartRouting {
        let sparse = |(own, share): (Vec<f64>, SourceRouting)| {
            let arcs = own.iter().enumerate().filter(|(_, &load)| load > 0.0);
            SourceRouting {
                loads: arcs.map(|(arc, &load)| (arc as u32, load)).collect(),
                ..share
            }
        };
        StartRouting {
            level: self.fullest(),
            bound: 0.0,
            fullest: self.fullest(),
            sources: self.mixed.into_iter().map(sparse).collect(),
            utilisation: self.utilisation,
            prices: self.prices,
            worth: self.worth,
        }
    }
}
