//! The largest factor by which all demands can be multiplied and still fit: the maximum concurrent flow
//! (F. Shahrokhi and D. W. Matula, J. ACM 37, 1990).
//!
//! It is one over the least utilisation `y` of the fullest arc that the demands can be routed with:
//!
//! ```text
//! min y   so that   Σ_T x_sT = 1 for each source s,   Σ_s,T load_e(T) x_sT ≤ y C_e for each arc e
//! ```
//!
//! For any prices `π ≥ 0` with `Σ_e π_e C_e = 1`, `y` is at least `Σ_k d_k dist_k(π)`: each look for better trees
//! proves a bound, and the search ends when the best of them is met.

use super::blocks::{Blocks, Worth, MAY_FILL};
use super::sources::{OnTree, Sources};
use super::sweeps::{self, Routed};
use crate::halt::{Halt, HaltTest};
use crate::problem::{Error, Problem};

/// Relative distance of the factor to its bound at which it is exact.
const EXACT: f64 = 1e-10;
/// Looks for better trees before the search is given up.
const MOST_PASSES: usize = 2000;
/// Weight of the best prices so far among those that trees are looked for with.
const STEADY: f64 = 0.5;
/// Below this the present prices alone count.
const LEAST_STEADY: f64 = 0.05;
/// Every arc has at least this price, so that what is free is not wasted.
const LEAST_PRICE: f64 = 1e-15;
/// Units that the fullest arc holds at first, at least: the optimum must be above one.
const FEWEST_UNITS: f64 = 100.0;
/// Every tree serves its source.
const WORTH: Worth = Worth {
    value: 1.0,
    cost: 0.0,
};
const STAGE: &str = "concurrent flow";

/// How far demands can be scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Concurrent {
    /// All demands times this fit.
    pub factor: f64,
    /// No larger factor fits; proved by prices.
    pub upper_bound: f64,
}

impl Concurrent {
    fn exactly(factor: f64) -> Self {
        Self {
            factor,
            upper_bound: factor,
        }
    }
}

/// Returns the largest factor by which all demands can be multiplied; `None` where demands have limits on
/// their paths, so that those of one source cannot be routed together, or where their rates and capacities are
/// of sizes so different that rounding defeats it. It is infinite where nothing is asked for, and 0 where a
/// demand has no path.
///
/// # Errors
/// [`Error::Invalid`] and [`Error::Halted`].
pub fn max_concurrent(
    problem: &Problem,
    threads: usize,
    halt: Option<HaltTest>,
) -> Result<Option<Concurrent>, Error> {
    problem.validate()?;
    let cost = vec![1.0; problem.arcs.len()];
    let Some(mut sources) = Sources::new(problem, cost, threads) else {
        return Ok(None);
    };
    if sources.all.is_empty() {
        return Ok(Some(Concurrent::exactly(f64::INFINITY)));
    }
    sources.set_lengths(&vec![0.0; problem.arcs.len()], 1.0);
    let trees = sources.route_all(f64::INFINITY);
    if trees.iter().any(|tree| !tree.left_out.is_empty()) {
        return Ok(Some(Concurrent::exactly(0.0)));
    }
    let halt = Halt(halt);
    let Some(routed) = sweeps::spread(&mut sources, &trees, &halt) else {
        return Err(Error::Halted {
            stage: STAGE,
            effort: crate::Effort::default(),
        });
    };
    match Search::new(sources, routed, halt).run() {
        Err(Error::NotSolved { .. }) => Ok(None),
        ended => ended.map(Some),
    }
}

/// Loads are in such a unit that `y` is near the number of sources, so that what each of them gains is well
/// above rounding.
struct Search {
    blocks: Blocks,
    /// Worth of routing a source: more than it costs on the routing that all begins with.
    big_m: f64,
    unit: f64,
    /// The best prices so far and what they prove of the utilisation.
    center: Vec<f64>,
    bound: f64,
}

impl Search {
    fn new(sources: Sources, routed: Routed, halt: Halt) -> Self {
        // The first unit of each arc's capacity is there, the others are relief.
        let count = (sources.all.len() as f64).max(FEWEST_UNITS);
        let unit = routed.fullest / (1.0 + count);
        let loads = routed.loads.iter().flatten().map(|&(_, load)| load / unit);
        let big_m = 1.0 + 2.0 * loads.fold(0.0, f64::max);
        let start = routed.loads.into_iter().map(|loads| (loads, WORTH));
        let mut blocks = Blocks::new(sources, start.collect(), unit, Some(count), halt);
        blocks.give_rows(&routed.utilisation, MAY_FILL * routed.fullest);
        blocks.build(big_m, STAGE);
        Self {
            blocks,
            big_m,
            unit,
            center: routed.prices,
            bound: 0.0,
        }
    }

    fn run(mut self) -> Result<Concurrent, Error> {
        let mut steady = 1.0;
        for _ in 0..MOST_PASSES {
            self.blocks.solve()?;
            let level = (1.0 + self.blocks.relief()) * self.unit;
            let utilisation = self.blocks.utilisation();
            if self.blocks.misses_row(&utilisation, level) {
                self.blocks.give_rows(&utilisation, MAY_FILL * level);
                self.blocks.build(self.big_m, STAGE);
                continue;
            }
            let gains = self.look(steady);
            if self.bound > level * (1.0 + EXACT) {
                break;
            }
            if self.bound >= level * (1.0 - EXACT) {
                return Ok(Concurrent {
                    factor: 1.0 / level,
                    upper_bound: 1.0 / self.bound.min(level),
                });
            }
            steady = next_steadiness(steady, gains);
        }
        Err(self.blocks.solver.not_solved("the factor does not settle"))
    }

    /// Looks for better trees under a mixture of the best prices so far and the present ones; returns how
    /// many there are.
    fn look(&mut self, steady: f64) -> usize {
        let prices = self.blocks.by_arc(&self.blocks.solver.master.price);
        let sum: f64 = prices.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let mixed = |(center, price): (&f64, &f64)| {
            (steady * center + (1.0 - steady) * price / sum).max(LEAST_PRICE)
        };
        let mixed: Vec<f64> = self.center.iter().zip(&prices).map(mixed).collect();
        let sources = &mut self.blocks.sources;
        sources.set_lengths(&mixed, 0.0);
        let usable = mixed
            .iter()
            .zip(&sources.capacity)
            .filter(|(_, &c)| c > 0.0);
        let sum: f64 = usable.map(|(price, _)| price).sum();
        let trees = sources.route_all(f64::INFINITY);
        let bound = trees.iter().map(|tree| tree.length_bps).sum::<f64>() / sum;
        let gains = self.take(trees, steady == 1.0);
        if bound > self.bound {
            self.bound = bound;
            self.center = mixed;
        }
        gains
    }

    /// Adds the trees that gain something, or all of them; returns how many.
    fn take(&mut self, trees: Vec<OnTree>, all: bool) -> usize {
        let limit = self.blocks.solver.gain_limit();
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

/// How much the best prices so far count in the next look, after one that brought so many trees.
pub(super) fn next_steadiness(steady: f64, gains: usize) -> f64 {
    match gains {
        _ if steady == 1.0 => STEADY,
        0 if steady > LEAST_STEADY => 0.5 * steady,
        0 => 0.0,
        _ => steady,
    }
}
