//! Admits as much as possible, then by the least rate-weighted delay, with the demands of a source together.
//!
//! A tree serves those of its source's demands that are worth more than their path costs.

use super::concurrent::next_steadiness;
use super::source_master::{Coefficients, Scaling, SourceMaster, ROW_UTILISATION};
use super::sources::{Sources, TreeRouting};
use super::sweeps::{self, SourceRouting, StartRouting, SweepObjective};
use crate::certificate::audit::PathRates;
use crate::graph::NONE;
use crate::halt::{Halt, HaltTest};
use crate::pricing;
use crate::problem::{Error, Problem};

/// Distance of the value to its bound, relative to the cost, at which it is exact.
const VALUE_GAP: f64 = 1e-10;
/// Relative gap of the first objective above which its weight is raised.
const FIRST_OBJECTIVE_GAP: f64 = 1e-11;
/// Looks for better trees before the search is given up.
const MAX_THROUGHPUT_PASSES: usize = 5000;
/// What is taken off the worth of the routing that all begins with, so that no optimum holds it.
const START_DISCOUNT: f64 = 0.05;
/// Share of every capacity that it may take.
const START_UTILISATION: f64 = 0.999;
const THROUGHPUT_STAGE: &str = "throughput";

/// Paths and rates of all demands.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The paths of each flow; rates may be over limits by rounding, and where it is not `complete` by more.
    pub answer: PathRates,
    /// Price of each arc for the first objective, which proves the answer.
    pub prices: Vec<f64>,
    /// Whether it is the optimum; false where the time was up.
    pub complete: bool,
}

/// Routes demands without limits on their paths as `max_throughput_min_delay`; `None` where one has limits, or
/// where rates and capacities are of sizes so different that rounding defeats it.
///
/// # Errors
/// [`Error::Invalid`].
pub fn route_by_source(
    problem: &Problem,
    threads: usize,
    halt: Option<HaltTest>,
) -> Result<Option<Routing>, Error> {
    problem.validate()?;
    let longest = problem
        .arcs
        .iter()
        .map(|arc| arc.delay_s)
        .fold(0.0, f64::max);
    let cost = |delay_s: f64| {
        if longest > 0.0 {
            delay_s / longest
        } else {
            1.0
        }
    };
    let cost = problem.arcs.iter().map(|arc| cost(arc.delay_s)).collect();
    let Some(mut sources) = Sources::new(problem, cost, threads) else {
        return Ok(None);
    };
    let free = vec![0.0; problem.arcs.len()];
    sources.set_lengths(&free, 1.0);
    let trees = sources.route_all(f64::INFINITY);
    let halt = Halt(halt);
    let big_m = 4.0 * sources.longest().max(1.0);
    if trees.iter().all(|tree| tree.loads.is_empty()) {
        // Nothing that is asked for has a way to go.
        return Ok(Some(routing(problem, &sources, &[], free, true)));
    }
    let aim = SweepObjective::MostWorth { big_m };
    let routed = sweeps::spread(&mut sources, &trees, aim, &halt);
    let mut search = ThroughputSearch::new(sources, trees, routed, big_m, halt);
    let complete = match search.run() {
        Ok(()) => true,
        Err(Error::Halted { .. }) => false,
        Err(Error::NotSolved { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let prices = search.proving_prices();
    let blocks = &search.blocks;
    let used: Vec<_> = (0..blocks.sources.all.len())
        .map(|place| blocks.trees_of(place))
        .collect();
    Ok(Some(routing(
        problem,
        &blocks.sources,
        &used,
        prices,
        complete,
    )))
}

struct ThroughputSearch {
    blocks: SourceMaster,
    big_m: f64,
    /// Rate that counts as a value of 1: a source's share of all.
    unit_bps: f64,
    /// The best prices so far and what they prove.
    center: Vec<f64>,
    bound: f64,
}

impl ThroughputSearch {
    /// Starts from the shortest trees, and as they were spread.
    fn new(
        sources: Sources,
        trees: Vec<TreeRouting>,
        routed: StartRouting,
        big_m: f64,
        halt: Halt,
    ) -> Self {
        let unit_bps = sources.rate_bps() / sources.all.len() as f64;
        let part = (START_UTILISATION / routed.fullest).min(1.0);
        let start_column = |mut share: SourceRouting| {
            share.loads.iter_mut().for_each(|(_, load)| *load *= part);
            share.trees.iter_mut().for_each(|(_, own)| *own *= part);
            let worth = Coefficients {
                value: (1.0 - START_DISCOUNT) * part * share.rate_bps / unit_bps,
                cost: share.cost_bps / unit_bps,
            };
            (share, worth)
        };
        let start = routed.sources.into_iter().map(start_column);
        let mut shortest = vec![0.0; sources.graph.arcs()];
        for &(arc, load) in trees.iter().flat_map(|tree| &tree.loads) {
            shortest[arc as usize] += load;
        }
        let center = routed.prices.iter().map(|price| price / unit_bps).collect();
        let rate = |tree: &TreeRouting| match tree.rate_bps > 0.0 {
            true => tree.rate_bps / unit_bps,
            false => 1.0,
        };
        let units = Scaling {
            sources: trees.iter().map(rate).collect(),
            arcs: sources.capacity.iter().map(|bps| bps / unit_bps).collect(),
            most: 1.0,
        };
        let mut blocks = SourceMaster::new(sources, start.collect(), units, None, halt);
        blocks.give_rows(&shortest, ROW_UTILISATION);
        blocks.give_rows(&routed.utilisation, ROW_UTILISATION);
        blocks.build(big_m, THROUGHPUT_STAGE);
        let mut search = Self {
            blocks,
            big_m,
            unit_bps,
            center,
            bound: f64::INFINITY,
        };
        search
            .blocks
            .add_first_trees(|tree| tree_worth(tree, unit_bps));
        for tree in trees {
            let worth = tree_worth(&tree, unit_bps);
            search.blocks.add_tree(tree, worth);
        }
        search
    }

    fn run(&mut self) -> Result<(), Error> {
        let mut steady = 1.0;
        for _ in 0..MAX_THROUGHPUT_PASSES {
            self.blocks.solve()?;
            let utilisation = self.blocks.utilisation_without_rows();
            if self.blocks.misses_row(&utilisation, 1.0) {
                self.blocks.give_rows(&utilisation, ROW_UTILISATION);
                self.blocks.build(self.big_m, THROUGHPUT_STAGE);
                continue;
            }
            let gains = self.look(steady);
            let totals = self.blocks.totals();
            let short = self.bound - (self.big_m * totals.value - totals.cost);
            if short > VALUE_GAP * totals.cost && (gains > 0 || steady > 0.0) {
                steady = next_steadiness(steady, gains);
                continue;
            }
            if self.first_gap() <= FIRST_OBJECTIVE_GAP {
                return Ok(());
            }
            self.big_m *= 4.0;
            self.blocks.solver.master.set_big_m(self.big_m);
            (self.bound, steady) = (f64::INFINITY, 1.0);
        }
        Err(self.blocks.solver.not_solved("the trees do not settle"))
    }

    /// Looks for better trees under a mixture of the best prices so far and the present ones; returns how
    /// many there are.
    fn look(&mut self, steady: f64) -> usize {
        let prices = self.blocks.by_arc(&self.blocks.solver.master.price);
        let mix = |(center, price): (&f64, &f64)| steady * center + (1.0 - steady) * price;
        let mixed: Vec<f64> = self.center.iter().zip(&prices).map(mix).collect();
        let (bound, trees) = self.trees(&mixed, self.big_m, 1.0);
        let limit = pricing::gain_limit(&self.blocks.solver);
        let mut gains = 0;
        for tree in trees {
            let worth = tree_worth(&tree, self.unit_bps);
            if self.blocks.gain(&tree, worth) > limit {
                self.blocks.add_tree(tree, worth);
                gains += 1;
            }
        }
        if bound < self.bound {
            self.bound = bound;
            self.center = mixed;
        }
        gains
    }

    /// The best trees under prices where a unit of value is worth so much, and the bound that they prove.
    fn trees(&mut self, prices: &[f64], worth: f64, cost: f64) -> (f64, Vec<TreeRouting>) {
        let lengths: Vec<f64> = prices.iter().map(|price| price * self.unit_bps).collect();
        self.blocks.sources.set_lengths(&lengths, cost);
        let trees = self.blocks.sources.route_all(worth);
        let gained = |tree: &TreeRouting| (worth * tree.rate_bps - tree.length_bps) / self.unit_bps;
        let bound = trees.iter().map(gained).sum::<f64>() + prices.iter().sum::<f64>();
        (bound, trees)
    }

    /// Gap of the first objective, by prices for it alone.
    fn first_gap(&mut self) -> f64 {
        let prices = self.blocks.by_arc(&self.blocks.solver.first_prices());
        let (bound, _) = self.trees(&prices, 1.0, 0.0);
        1.0 - self.blocks.totals().value / bound
    }

    /// Price of a bit/s of each arc for the first objective: of the present prices, the best so far and their mean, those that
    /// prove most.
    fn proving_prices(&mut self) -> Vec<f64> {
        let present = self.blocks.by_arc(&self.blocks.solver.first_prices());
        let best = self.center.iter().map(|price| price / self.big_m);
        let pairs = present.into_iter().zip(best);
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let mixed = |part: f64| -> Vec<f64> {
            let mix = |&(one, other): &(f64, f64)| part * one + (1.0 - part) * other;
            pairs.iter().map(mix).collect()
        };
        let mut proven = (f64::INFINITY, Vec::new());
        for prices in [1.0, 0.5, 0.0].map(mixed) {
            let (bound, _) = self.trees(&prices, 1.0, 0.0);
            if bound <= proven.0 {
                proven = (bound, prices);
            }
        }
        let prices = proven.1;
        let per_bps = prices.iter().zip(&self.blocks.sources.capacity);
        per_bps
            .map(|(&price, &capacity)| match price > 0.0 {
                true => price * self.unit_bps / capacity,
                false => 0.0,
            })
            .collect()
    }
}

fn tree_worth(tree: &TreeRouting, unit_bps: f64) -> Coefficients {
    Coefficients {
        value: tree.rate_bps / unit_bps,
        cost: tree.cost_bps / unit_bps,
    }
}

/// Reads the paths of all flows off the trees of their sources.
fn routing(
    problem: &Problem,
    sources: &Sources,
    used: &[Vec<(&TreeRouting, f64)>],
    prices: Vec<f64>,
    complete: bool,
) -> Routing {
    let mut place = vec![(NONE, NONE); problem.flows.len()];
    for (source, trees) in sources.all.iter().enumerate() {
        if !trees.demands.is_empty() {
            for (at, demand) in trees.demands.iter().enumerate() {
                place[demand.flow as usize] = (source as u32, at as u32);
            }
        }
    }
    let mut answer = PathRates {
        start: vec![0],
        ..PathRates::default()
    };
    let mut paths: Vec<(Vec<u32>, f64)> = Vec::new();
    for (number, (flow, &(source, at))) in problem.flows.iter().zip(&place).enumerate() {
        paths.clear();
        if flow.source == flow.destination && flow.rate_bps > 0.0 {
            paths.push((Vec::new(), flow.rate_bps));
        }
        let trees = used.get(source as usize).map_or(&[][..], Vec::as_slice);
        for (tree, share) in trees {
            if tree.left_out.binary_search(&at).is_err() {
                add_path(
                    &mut paths,
                    sources,
                    tree,
                    flow.destination,
                    share * flow.rate_bps,
                );
            }
        }
        for (path, rate_bps) in &paths {
            answer.flow.push(number as u32);
            answer.rate_bps.push(*rate_bps);
            answer.arcs.extend_from_slice(path);
            answer.start.push(answer.arcs.len() as u32);
        }
    }
    Routing {
        answer,
        prices,
        complete,
    }
}

/// Adds a path to a node in a tree, or its rate to the same path.
fn add_path(
    paths: &mut Vec<(Vec<u32>, f64)>,
    sources: &Sources,
    tree: &TreeRouting,
    node: usize,
    rate_bps: f64,
) {
    let mut path = Vec::new();
    let mut at = node;
    while tree.parents[at] != NONE {
        path.push(tree.parents[at]);
        at = sources.graph.tail[tree.parents[at] as usize] as usize;
    }
    path.reverse();
    match paths.iter_mut().find(|(known, _)| *known == path) {
        Some((_, rate)) => *rate += rate_bps,
        None => paths.push((path, rate_bps)),
    }
}
