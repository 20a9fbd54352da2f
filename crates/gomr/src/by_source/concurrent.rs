//! The largest factor by which all demands can be multiplied without more than a given load: at a load of 1 all
//! still fits, the maximum concurrent flow (F. Shahrokhi and D. W. Matula, J. ACM 37, 1990); at a load `L` above 1
//! a share of `1/L` does.
//!
//! It is one over the least utilisation `y` of the fullest arc that such a share can be routed with, where trees may
//! leave demands out:
//!
//! ```text
//! min y   so that   Σ_T x_sT = 1 for each source s,   Σ_s,T load_e(T) x_sT ≤ y C_e for each arc e,
//!                   Σ_s,T left_out(T) x_sT ≤ (1 − 1/L) Σ_k d_k
//! ```
//!
//! For any prices `π ≥ 0` with `Σ_e π_e C_e = 1` and `λ ≥ 0` of what is left out, `y` is at least
//! `Σ_k d_k min(dist_k(π), λ) − λ (1 − 1/L) Σ_k d_k`: each look for better trees proves a bound, and the search
//! ends when the best of them is met.

use super::by_demand;
use super::source_master::{Coefficients, Scaling, SourceMaster, ROW_UTILISATION};
use super::sources::{Sources, TreeRouting};
use super::sweeps::{self, StartRouting, SweepObjective};
use crate::halt::{Halt, HaltTest};
use crate::objectives::concurrent::largest_factor;
use crate::pricing;
use crate::problem::{Error, Problem};

/// Relative distance of the factor to its bound at which it is exact.
const FACTOR_GAP: f64 = 1e-10;
/// Looks for better trees before the search is given up.
const MAX_FACTOR_PASSES: usize = 2000;
/// What a search may take.
#[derive(Clone, Copy)]
struct SearchLimits {
    /// Pivots, of all programmes together, after which the factor so far is the answer: minutes on networks of a thousand
    /// links.
    pivots: usize,
    /// Work on raising few demands together by their paths, after which they are routed by source: about a second.
    rise_work: u64,
}
const LIMITS: SearchLimits = SearchLimits {
    pivots: 1_000_000,
    rise_work: 1_000_000_000,
};
/// Relative gap of balanced rates at which the programme begins.
const BALANCE_GAP: f64 = 1e-4;
/// Weight of the best prices so far among those that trees are looked for with.
const CENTER_WEIGHT: f64 = 0.5;
/// Below this the present prices alone count.
const MIN_CENTER_WEIGHT: f64 = 0.05;
/// Every arc has at least this price, so that what is free is not wasted.
const MIN_PRICE: f64 = 1e-15;
/// Units that the fullest arc holds at first, at least: the optimum must be above one.
const MIN_UNITS: f64 = 100.0;
/// Every tree settles its source.
const WORTH: Coefficients = Coefficients {
    value: 1.0,
    cost: 0.0,
};
const FACTOR_STAGE: &str = "concurrent flow";

/// How far demands can be scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrentFlow {
    /// All demands times this have no more than the load.
    pub factor: f64,
    /// No larger factor is right; proved by prices.
    pub upper_bound: f64,
    /// Whether the factor is the largest; false where the time was up, or the pivots that a search may take.
    pub complete: bool,
}

impl ConcurrentFlow {
    pub(crate) fn exactly(factor: f64) -> Self {
        Self {
            factor,
            upper_bound: factor,
            complete: true,
        }
    }

    /// What this search and another one know together.
    fn combined_with(self, other: Option<Self>) -> Self {
        let Some(other) = other else {
            return self;
        };
        Self {
            factor: self.factor.max(other.factor),
            upper_bound: self.upper_bound.min(other.upper_bound),
            complete: self.complete,
        }
    }
}

/// Returns the largest factor by which all demands can be multiplied so that their load is not above `load`;
/// `None` where demands have limits on their paths, so that those of one source cannot be routed together, or
/// where their rates and capacities are of sizes so different that rounding defeats it. It is infinite where
/// nothing is asked for, and 0 where demands without a path are too large a part.
///
/// # Errors
/// [`Error::Invalid`].
pub fn max_concurrent(
    problem: &Problem,
    load: f64,
    threads: usize,
    halt: Option<HaltTest>,
) -> Result<Option<ConcurrentFlow>, Error> {
    search_within(problem, load, threads, halt, LIMITS)
}

fn search_within(
    problem: &Problem,
    load: f64,
    threads: usize,
    halt: Option<HaltTest>,
    limits: SearchLimits,
) -> Result<Option<ConcurrentFlow>, Error> {
    problem.validate()?;
    let cost = vec![1.0; problem.arcs.len()];
    let Some(mut sources) = Sources::new(problem, cost, threads) else {
        return Ok(None);
    };
    if sources.all.is_empty() {
        return Ok(Some(ConcurrentFlow::exactly(f64::INFINITY)));
    }
    let mut risen = None;
    if load == 1.0 && sources.have_few_demands() {
        risen = largest_factor(problem, threads, halt.clone(), limits.rise_work);
        if risen.as_ref().is_some_and(|risen| risen.complete) {
            return Ok(risen);
        }
    }
    sources.set_lengths(&vec![0.0; problem.arcs.len()], 1.0);
    sources.route_all(f64::INFINITY);
    let mut most_left_out_bps = (1.0 - 1.0 / load) * sources.rate_bps();
    most_left_out_bps -= sources.drop_pathless();
    if most_left_out_bps < 0.0 {
        return Ok(Some(ConcurrentFlow::exactly(0.0)));
    }
    let trees = sources.route_all(f64::INFINITY);
    let halt = Halt(halt);
    let by_trees = load == 1.0 || sources.have_acks();
    let routed = match by_trees {
        true => spread_over_trees(&mut sources, &trees, most_left_out_bps, &halt),
        false => by_demand::balance(&mut sources, most_left_out_bps, BALANCE_GAP, &halt),
    };
    let found = FactorSearch::new(sources, routed, most_left_out_bps, halt).run(limits.pivots);
    match found {
        Err(Error::NotSolved { .. }) => Ok(None),
        found => found.map(|found| Some(found.combined_with(risen))),
    }
}

/// All of the demands, spread over trees, and what its prices prove where such a rate may be left out, bit/s.
fn spread_over_trees(
    sources: &mut Sources,
    trees: &[TreeRouting],
    left_out_bps: f64,
    halt: &Halt,
) -> StartRouting {
    let (least, ..) = by_demand::by_equal_prices(sources, left_out_bps);
    let mut routed = sweeps::spread(sources, trees, SweepObjective::LeastFullest, halt);
    let (bound, worth) = sources.proven(&routed.prices, left_out_bps);
    (routed.bound, routed.worth) = (bound.max(least), worth);
    routed
}

/// Prices of whole capacities, and of a bit/s that is left out.
#[derive(Clone, Debug)]
struct CutPrices {
    arcs: Vec<f64>,
    left_out: f64,
}

/// Loads are in such a unit that `y` is near the number of sources, so that what each of them gains is well
/// above rounding.
struct FactorSearch {
    blocks: SourceMaster,
    /// Worth of routing a source: more than it costs on the routing that all begins with.
    big_m: f64,
    unit: f64,
    /// Rate that may be left out, bit/s.
    most_left_out_bps: f64,
    /// Utilisation of the fullest arc.
    level: f64,
    /// The best prices so far and what they prove of the utilisation.
    center: CutPrices,
    bound: f64,
    /// Pivots so far.
    pivots: usize,
}

impl FactorSearch {
    fn new(mut sources: Sources, routed: StartRouting, most_left_out_bps: f64, halt: Halt) -> Self {
        // The first unit of each arc's capacity is there, the others are relief.
        let count = (sources.all.len() as f64).max(MIN_UNITS);
        let unit = routed.fullest / (1.0 + count);
        // Of whole trees too, since the routing that all begins with may leave much of a source out.
        sources.set_lengths(&routed.prices, 0.0);
        let whole = sources.route_all(f64::INFINITY);
        let began = routed.sources.iter().flat_map(|share| &share.loads);
        let loads = whole.iter().flat_map(|tree| &tree.loads).chain(began);
        let largest = loads.fold(0.0f64, |most, &(_, load)| most.max(load / unit));
        let big_m = 1.0 + 2.0 * largest;
        let units = Scaling {
            sources: vec![1.0; sources.all.len()],
            arcs: vec![1.0 / unit; sources.graph.arcs()],
            most: unit,
        };
        let start = routed.sources.into_iter().map(|share| (share, WORTH));
        let mut blocks = SourceMaster::new(sources, start.collect(), units, Some(count), halt);
        if most_left_out_bps > 0.0 {
            blocks.limit_left_out(most_left_out_bps);
        }
        blocks.give_rows(&routed.utilisation, ROW_UTILISATION * routed.fullest);
        blocks.build(big_m, FACTOR_STAGE);
        blocks.add_first_trees(|_| WORTH);
        Self {
            blocks,
            big_m,
            unit,
            most_left_out_bps,
            level: routed.level,
            center: CutPrices {
                arcs: routed.prices,
                left_out: routed.worth,
            },
            bound: routed.bound,
            pivots: 0,
        }
    }

    fn run(mut self, most_pivots: usize) -> Result<ConcurrentFlow, Error> {
        let complete = match self.settle(most_pivots) {
            Ok(is_settled) => is_settled,
            Err(Error::Halted { .. }) => false,
            Err(error) => return Err(error),
        };
        Ok(ConcurrentFlow {
            factor: 1.0 / self.level,
            upper_bound: 1.0 / self.bound.min(self.level),
            complete,
        })
    }

    /// Searches to the optimum; false where that takes too many pivots.
    fn settle(&mut self, most_pivots: usize) -> Result<bool, Error> {
        let mut steady = 1.0;
        for _ in 0..MAX_FACTOR_PASSES {
            let before = self.blocks.solver.master.pivots;
            self.blocks.solve()?;
            self.pivots += self.blocks.solver.master.pivots - before;
            let level = (1.0 + self.blocks.relief()) * self.unit;
            let utilisation = self.blocks.utilisation_without_rows();
            if self.blocks.misses_row(&utilisation, level) {
                self.blocks.give_rows(&utilisation, ROW_UTILISATION * level);
                self.blocks.build(self.big_m, FACTOR_STAGE);
                continue;
            }
            self.level = level;
            let gains = self.look(steady);
            if self.bound > level * (1.0 + FACTOR_GAP) {
                break;
            }
            if self.bound >= level * (1.0 - FACTOR_GAP) {
                return Ok(true);
            }
            if self.pivots > most_pivots {
                return Ok(false);
            }
            steady = next_steadiness(steady, gains);
        }
        Err(self.blocks.solver.not_solved("the factor does not settle"))
    }

    /// The prices of the programme, brought to a sum of 1 over the arcs.
    fn prices(&self) -> CutPrices {
        let arcs = self.blocks.by_arc(&self.blocks.solver.master.price);
        let sum: f64 = arcs.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let left_out = match self.most_left_out_bps > 0.0 {
            true => self.blocks.left_out_price() / sum,
            false => f64::INFINITY,
        };
        CutPrices {
            arcs: arcs.into_iter().map(|price| price / sum).collect(),
            left_out,
        }
    }

    /// Looks for better trees under a mixture of the best prices so far and the present ones; returns how
    /// many there are.
    fn look(&mut self, steady: f64) -> usize {
        let prices = self.prices();
        let mix = |center: f64, price: f64| match steady {
            1.0 => center,
            _ => steady * center + (1.0 - steady) * price,
        };
        let arcs = self.center.arcs.iter().zip(&prices.arcs);
        let mixed = CutPrices {
            arcs: arcs.map(|(&a, &b)| mix(a, b).max(MIN_PRICE)).collect(),
            left_out: mix(self.center.left_out, prices.left_out),
        };
        let sources = &mut self.blocks.sources;
        sources.set_lengths(&mixed.arcs, 0.0);
        let priced = mixed.arcs.iter().zip(&sources.capacity);
        let usable = priced.filter(|(_, &capacity)| capacity > 0.0);
        let sum: f64 = usable.map(|(price, _)| price).sum();
        let trees = sources.route_all(mixed.left_out);
        let mut paid: f64 = trees.iter().map(|tree| tree.length_bps).sum();
        if self.most_left_out_bps > 0.0 {
            let left_out_bps: f64 = trees.iter().map(|tree| tree.left_out_bps).sum();
            paid += mixed.left_out * (left_out_bps - self.most_left_out_bps);
        }
        let bound = paid / sum;
        let gains = self.take(trees, steady == 1.0);
        if bound > self.bound {
            self.bound = bound;
            self.center = mixed;
        }
        gains
    }

    /// Adds the trees that gain something, or all of them; returns how many.
    fn take(&mut self, trees: Vec<TreeRouting>, all: bool) -> usize {
        let limit = pricing::gain_limit(&self.blocks.solver);
        let mut gains = 0;
        for tree in trees {
            if all || self.blocks.gain(&tree, WORTH) > limit {
                self.blocks.add_tree(tree, WORTH);
                gains += 1;
            }
        }
        gains
    }
}

/// How much the best prices so far count in the next look, after one that brought this many trees.
pub(super) fn next_steadiness(steady: f64, gains: usize) -> f64 {
    match gains {
        _ if steady == 1.0 => CENTER_WEIGHT,
        0 if steady > MIN_CENTER_WEIGHT => 0.5 * steady,
        0 => 0.0,
        _ => steady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arc, Flow};

    /// A ring with chords, where each node asks for something at every other.
    fn ring(nodes: usize) -> Problem {
        let links = (0..nodes).flat_map(|a| [(a, (a + 1) % nodes), (a, (a * a + 2) % nodes)]);
        let links = links.filter(|(a, b)| a != b);
        let arc = |(tail, head)| Arc::new(tail, head, 1.0 + ((3 * tail + head) % 5) as f64, 1.0);
        let pairs = (0..nodes).flat_map(|s| (0..nodes).map(move |t| (s, t)));
        let flow = |(s, t)| Flow::new(s, t, 0.1 + ((s * t + t) % 7) as f64);
        Problem {
            nodes,
            arcs: links
                .flat_map(|(a, b)| [arc((a, b)), arc((b, a))])
                .collect(),
            flows: pairs.filter(|(s, t)| s != t).map(flow).collect(),
        }
    }

    #[test]
    fn an_overload_three_times_over_ends_with_a_proven_factor() {
        let problem = ring(14);
        let largest = max_concurrent(&problem, 3.0, 1, None);
        let largest = largest.expect("solves").expect("plain demands");
        assert!(largest.complete);
        let limits = SearchLimits {
            pivots: 0,
            ..LIMITS
        };
        let short = search_within(&problem, 3.0, 1, None, limits);
        let short = short.expect("solves").expect("plain demands");
        assert!(!short.complete);
        assert!(short.factor <= largest.factor * (1.0 + 1e-9));
        assert!(short.upper_bound >= largest.factor * (1.0 - 1e-9));
        assert!(short.factor > 0.0 && short.upper_bound.is_finite());
    }

    /// A hypercube of equal links, where each node sends to one that is far.
    fn hypercube(dimensions: usize) -> Problem {
        let nodes = 1 << dimensions;
        let links = (0..nodes).flat_map(|a| (0..dimensions).map(move |bit| (a, a ^ (1 << bit))));
        let arc = |(tail, head)| Arc::new(tail, head, 10.0, 1.0);
        let flow = |a: usize| Flow::new(a, (5 * a + 3) % nodes, 4.0);
        Problem {
            nodes,
            arcs: links.map(arc).collect(),
            flows: (0..nodes)
                .filter(|a| (5 * a + 3) % nodes != *a)
                .map(flow)
                .collect(),
        }
    }

    /// Raised together by their paths, and after no work at all by source.
    fn both_ways() -> [SearchLimits; 2] {
        [1, u64::MAX].map(|rise_work| SearchLimits {
            rise_work,
            ..LIMITS
        })
    }

    #[test]
    fn the_factor_by_source_is_the_one_that_raising_reaches() {
        for dimensions in 2..6 {
            let problem = hypercube(dimensions);
            let factors = both_ways().map(|limits| {
                let found = search_within(&problem, 1.0, 1, None, limits).expect("valid");
                let found = found.expect("no rounding");
                assert!(found.complete, "{dimensions}");
                found.factor
            });
            let apart = (factors[0] - factors[1]).abs();
            assert!(apart <= 1e-8 * factors[0], "{dimensions}: {apart}");
        }
    }

    #[test]
    fn at_every_halt_the_factor_is_bounded() {
        let problem = hypercube(4);
        let largest = max_concurrent(&problem, 1.0, 1, None).expect("valid");
        let largest = largest.expect("no rounding");
        for limits in both_ways() {
            for looks in (0..200).step_by(9) {
                let left = std::sync::atomic::AtomicUsize::new(looks);
                let halt: HaltTest = std::sync::Arc::new(move || {
                    let order = std::sync::atomic::Ordering::Relaxed;
                    left.fetch_update(order, order, |n| n.checked_sub(1))
                        .is_err()
                });
                let found = search_within(&problem, 1.0, 1, Some(halt), limits);
                let found = found.expect("valid").expect("no rounding");
                assert!(found.factor <= largest.factor * (1.0 + 1e-9));
                assert!(found.upper_bound >= largest.factor * (1.0 - 1e-9));
            }
        }
    }
}
