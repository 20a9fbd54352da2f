//! Column generation: the optimum over all paths, from whatever basis is at hand.
//!
//! Lexicographic optimum in one linear programme: a path is worth `M·value − cost` with `M` at least
//! three times the longest shortest path. No general bound on `M` is known, so each optimum is checked:
//! the basis is priced once more for the first objective alone ([`crate::certify`]), and `M` is raised
//! if a path could still gain.

mod balance;
mod bypasses;
mod costs;
mod crash;
mod entering;
mod eviction;
mod offers;
mod origin;
mod pool;
mod rising;
mod single;
mod vertex;

use std::collections::BTreeMap;

use crate::dual::{DualEnd, HALT};
use crate::forest::Forest;
use crate::graph::Graph;
use crate::master::{Enter, Master};
use crate::pricing::{Lengths, Pricer};
use crate::problem::Error;
use crate::tolls::{Reach, Tolls};
use crate::tree::Scratch;
use entering::Candidate;
use origin::Origin;
pub(crate) use pool::KEPT_LOSS;

/// Relative gain below which a path is not worth entering.
pub(crate) const GAIN: f64 = 1e-11;
/// The same where costs do not matter: what gains less hardly ever admits more, and the proof shows where it does.
const COARSE_GAIN: f64 = 0.1;
/// Candidates looked at for each pivot.
const WINDOW: usize = 256;
/// Commodities a link that make a crowd: prices move little with each of them, so earlier prices weigh more.
const CROWD: usize = 16;
/// Work per known path that the dual simplex may cost.
const DUAL_WORK: u64 = 6000;
/// Rounds of both simplexes, each from where the last one left the true bounds, before a solve is given up.
const ROUNDS: usize = 40;
/// Rounds in which the tolerance of each variable is as small as its size asks for; from then on what is less than
/// `FINEST` of the largest counts as that much, and `COARSER` times as much with each round.
const STRICT_ROUNDS: usize = 10;
const FINEST: f64 = 1e-12;
const COARSER: f64 = 10.0;
/// A solve from the last basis may cost so many tenths of one from scratch before it is given up for that.
const HOT_PARTS: u64 = 2;
/// Fewest candidates that end a pricing pass early.
const BATCH: usize = 16;
/// Weight of the earlier prices among those that pricing passes far from the optimum look at.
const SMOOTHING: f64 = 0.9;
const CROWD_SMOOTHING: f64 = 0.97;
/// Below this the present prices alone count.
const LEAST_SMOOTHING: f64 = 0.2;
/// Pivots without progress before the bounds are perturbed.
const STALL: usize = 200;
/// Pivots for each link and commodity before a solve goes on by Bland's rule, which cannot cycle.
const PATIENCE: usize = 100;
/// And before it is given up.
const MOST_PIVOTS: usize = 1000;

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
    /// Neither its paths nor their delay nor its acknowledgements are limited in any way, and these load nothing.
    fn is_free(&self) -> bool {
        let is_limited = self.fixed || self.max_delay_s.is_some();
        !is_limited && self.acks.is_empty() && self.ack_ratio == 0.0
    }
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
    /// All of it in steps of about a nanosecond, as counted: the same on every machine.
    pub work: u64,
}

/// A live linear programme over one network.
#[derive(Clone, Debug)]
pub(crate) struct Solver {
    pub graph: Graph,
    pub master: Master,
    pub commodities: Vec<Commodity>,
    pub pricer: Pricer,
    origins: Vec<Origin>,
    origin_of: BTreeMap<(u32, usize), usize>,
    pub proof: Forest,
    /// Cost of each arc in the second objective: its delay over the longest arc's, 1 if all have none.
    pub cost: Vec<f64>,
    pub usable: Vec<bool>,
    /// Relative gain below which a path is not worth entering.
    pub gain: f64,
    /// What it solves for, for errors.
    pub stage: &'static str,
    effort: Effort,
    /// The prices of the last passes, the older the less they count, and how much less from one to the next.
    smooth: Vec<f64>,
    smooth_lengths: Lengths,
    smoothing: f64,
    /// The ways around arcs with a price, for each class of lengths.
    tolls: Vec<Tolls>,
    reach: Reach,
    /// Fewest nodes for which that is worthwhile.
    pub toll_nodes: usize,
    /// Working memory of the trees, for each thread.
    scratch: Vec<Scratch>,
    /// Whether solves from scratch begin with balanced rates.
    is_balanced: bool,
    /// Fewest commodities for which that is worthwhile.
    pub least_balanced: usize,
    /// Pivots from which on this solve, which did not begin so, does it after all, where nearly all is served.
    balance_from: usize,
    spare: Vec<u32>,
    cursor: usize,
    kept: usize,
    /// Prices of the last optimum; empty before the first.
    last_prices: Vec<f64>,
    /// Work of a solve from scratch with the known paths, as the last ones were; 0 before the first, or where no solve is to be given up.
    cold_work: u64,
    /// Work of the first solve.
    fresh_work: u64,
    /// Pivots after which prices and rates were last recomputed.
    accurate_at: usize,
    /// Pivots without progress, less those with it, since the solve began or bounds were last perturbed.
    stalled: usize,
    /// Pivots for each link and commodity that a solve may make before Bland's rule chooses.
    pub patience: usize,
    /// Number of pivots from which on Bland's rule chooses.
    bland_from: usize,
}

impl Solver {
    pub fn new(graph: Graph, capacity: Vec<f64>) -> Self {
        let longest = graph.delay_s.iter().copied().fold(0.0, f64::max);
        let cost = |delay_s: &f64| {
            if longest > 0.0 {
                delay_s / longest
            } else {
                1.0
            }
        };
        let cost: Vec<f64> = graph.delay_s.iter().map(cost).collect();
        Self {
            pricer: Pricer::new(graph.nodes, cost.clone()),
            cost,
            smooth: Vec::new(),
            smooth_lengths: Lengths::default(),
            tolls: Vec::new(),
            reach: Reach::default(),
            toll_nodes: bypasses::LEAST_NODES,
            scratch: vec![Scratch::default()],
            smoothing: 0.0,
            gain: GAIN,
            usable: capacity.iter().map(|&c| c > 0.0).collect(),
            master: Master::new(capacity, 1.0),
            commodities: Vec::new(),
            origins: Vec::new(),
            origin_of: BTreeMap::new(),
            proof: Forest::default(),
            stage: "throughput",
            effort: Effort::default(),
            is_balanced: false,
            least_balanced: vertex::LEAST_COMMODITIES,
            balance_from: usize::MAX,
            spare: Vec::new(),
            cursor: 0,
            kept: 0,
            last_prices: Vec::new(),
            cold_work: 0,
            fresh_work: 0,
            accurate_at: usize::MAX,
            stalled: 0,
            patience: PATIENCE,
            bland_from: usize::MAX,
            graph,
        }
    }

    /// Prices on so many threads, at least one; what is found does not depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.scratch.resize(threads.max(1), Scratch::default());
    }

    /// Solves to optimality from the present basis; where `hot`, from scratch once that has taken too long.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when rounding defeats it.
    pub fn optimise(&mut self, hot: bool) -> Result<(), Error> {
        self.master.estimate_scale();
        self.master.measure_sizes(0.0);
        self.bland_from = self.master.pivots + self.patience * self.size();
        self.begin_pivots();
        let mut before = self.master.work;
        let mut hot_until = match self.cold_work {
            cold if hot && cold > 0 => before + HOT_PARTS * cold / 10,
            _ => u64::MAX,
        };
        for round in 0..ROUNDS {
            self.check_halt()?;
            if round >= STRICT_ROUNDS {
                // Rounding of the largest rates is more than the smallest ones allow.
                self.master
                    .measure_sizes(COARSER.powi((round - STRICT_ROUNDS) as i32) * FINEST);
            }
            let restarts = self.effort.restarts;
            let so_far = self.master.work;
            self.make_feasible(hot_until)?;
            if self.effort.restarts > restarts {
                (before, hot_until) = (so_far, u64::MAX);
            }
            if !self.generate(hot_until)? {
                (before, hot_until) = (self.master.work, u64::MAX);
                self.restart()?;
                self.generate(hot_until)?;
            }
            let tolerance = self.feasibility();
            let settled = self.accurate_at == self.master.pivots;
            let perturbed = self.master.restore_bounds();
            if perturbed {
                self.master.compute_values();
            }
            if ((perturbed || !settled) && !self.accurate())
                || self.master.infeasibility() > tolerance
            {
                continue;
            }
            if !self.master.lower_scale() || self.master.infeasibility() <= self.feasibility() {
                self.last_prices.clone_from(&self.master.price);
                if hot_until == u64::MAX && hot && self.gain < COARSE_GAIN {
                    let work = self.master.work - before;
                    match self.cold_work {
                        0 => (self.cold_work, self.fresh_work) = (work, work),
                        known => self.cold_work = (known + work) / 2,
                    }
                }
                self.master.forget_loans();
                self.collect_spare();
                self.forget_poor_paths();
                return Ok(());
            }
        }
        Err(self.not_solved("the basis does not settle"))
    }

    /// Work that a solve would take that knows no paths: the first one's, as far as the last ones do not tell otherwise;
    /// 0 where there was none.
    pub fn fresh_work(&self) -> u64 {
        self.fresh_work.clamp(self.cold_work, 2 * self.cold_work)
    }

    /// Solves for the first objective alone from now on: costs decide between paths, but nothing is done for them.
    pub fn ask_for_first_only(&mut self) {
        self.gain = COARSE_GAIN;
        self.cold_work = 0;
    }

    /// # Errors
    /// [`Error::Halted`] when the time is up.
    pub fn check_halt(&self) -> Result<(), Error> {
        if self.master.halt.now() {
            return Err(Error::Halted {
                stage: self.stage,
                effort: self.effort(),
            });
        }
        Ok(())
    }

    pub fn not_solved(&self, reason: &str) -> Error {
        Error::NotSolved {
            reason: reason.to_owned(),
            stage: self.stage,
            effort: self.effort(),
        }
    }

    /// The work done so far.
    pub fn effort(&self) -> Effort {
        Effort {
            pivots: self.master.pivots,
            columns: self.master.columns.len() - self.master.groups.len(),
            saturated: self.master.tight.len(),
            work: self.master.work,
            ..self.effort
        }
    }

    fn feasibility(&self) -> f64 {
        10.0 * self.master.tolerance()
    }

    /// Recomputes prices and rates, and refactors when they have drifted.
    fn accurate(&mut self) -> bool {
        self.master.choose_largest_keys();
        let drift = self
            .master
            .compute_prices()
            .max(self.master.compute_values());
        self.accurate_at = self.master.pivots;
        drift <= 1e-9 || self.master.renew()
    }

    /// Dual simplex from the basis at hand; where there is none yet or that is too much work, the primal
    /// simplex from what fits at once.
    fn make_feasible(&mut self, hot_until: u64) -> Result<(), Error> {
        let tolerance = self.feasibility();
        if self.master.pivots == 0 {
            self.accurate();
            if self.master.infeasibility() <= tolerance {
                return Ok(());
            }
            self.choose_start();
            let rest = self.first_basis();
            return self.improve(&rest);
        }
        if self.evict(hot_until)? {
            return Ok(());
        }
        self.replace_gone();
        let size = self.master.tight.len() + self.graph.arcs() + self.master.groups.len();
        let limit = 2000 + 4 * size;
        let until = hot_until.min(self.master.work.saturating_add(self.most_dual_work()));
        if self.accurate() && self.master.dual_simplex(tolerance, limit, until) == DualEnd::Feasible
        {
            return Ok(());
        }
        self.check_halt()?;
        self.restart()
    }

    /// What the dual simplex may cost where nothing is known of a solve from scratch.
    fn most_dual_work(&self) -> u64 {
        match self.master.tight.is_empty() {
            true => u64::MAX,
            false => DUAL_WORK * self.master.columns.len() as u64,
        }
    }

    /// From what fits at once, as if nothing had been solved yet but for the paths that are known.
    fn restart(&mut self) -> Result<(), Error> {
        self.effort.restarts += 1;
        let rest = self.first_basis();
        self.improve(&rest)
    }

    /// A feasible basis that does not come from another one, and known columns to look at first.
    fn first_basis(&mut self) -> Vec<u32> {
        let start = self.start_single().or_else(|| self.start_balanced());
        start.unwrap_or_else(|| self.crash())
    }

    /// Primal simplex with column generation, from a feasible basis; false when work passed `until`.
    fn generate(&mut self, until: u64) -> Result<bool, Error> {
        self.smooth.clear();
        let center = match self.smoothing > 0.0 && !self.last_prices.is_empty() {
            true => &self.last_prices,
            false => &self.master.price,
        };
        self.smooth.extend_from_slice(center);
        let mut candidates = Vec::new();
        let mut exact = self.master.pivots;
        loop {
            self.check_halt()?;
            if self.master.work > until || self.balances_after_all() {
                return Ok(false);
            }
            let whole = self.price_some(&mut candidates);
            let before = self.master.pivots;
            self.improve(&candidates)?;
            if self.master.is_level_full() {
                return Ok(true);
            }
            if self.master.pivots > before || !whole {
                continue;
            }
            if self.smoothing > 0.0 {
                // Nothing gains that is short on average: on to what is short now, step by step.
                self.smoothing = match self.smoothing > LEAST_SMOOTHING {
                    true => 0.5 * self.smoothing,
                    false => 0.0,
                };
                continue;
            }
            if self.master.pivots == exact {
                return Ok(true);
            }
            // Prices are recomputed once, so that drift cannot end the search early.
            exact = self.master.pivots;
            self.accurate();
        }
    }

    /// Links and commodities, or as many as make a small problem.
    fn size(&self) -> usize {
        200 + self.graph.arcs() + self.master.groups.len()
    }

    /// Whether there are many commodities for each link.
    fn is_crowded(&self) -> bool {
        self.master.groups.len() > CROWD * self.graph.arcs()
    }

    /// Pivots among the candidates until none of them gains.
    fn improve(&mut self, candidates: &[u32]) -> Result<(), Error> {
        let tolerance = self.master.tolerance();
        let ceiling = self.bland_from.saturating_add(MOST_PIVOTS * self.size());
        let none = [&[][..]];
        let windows: Vec<&[u32]> = match candidates {
            [] => none.to_vec(),
            some => some.chunks(WINDOW).collect(),
        };
        for window in windows {
            self.master.weights.reset();
            let candidate = |&column: &u32| Candidate {
                column,
                gain: f64::INFINITY,
            };
            let mut open: Vec<Candidate> = window.iter().map(candidate).collect();
            loop {
                let by_bland = self.master.pivots >= self.bland_from;
                let Some((enter, gain)) = self.entering(&mut open, by_bland) else {
                    break;
                };
                match self.master.primal_step(enter, gain, tolerance, by_bland) {
                    None => {
                        if enter == Enter::Column(self.master.level_column) {
                            return Err(self.not_solved("a level has no bound"));
                        }
                        if let Enter::Column(c) = enter {
                            open.retain(|other| other.column != c);
                        } else {
                            return Err(self.not_solved("a link's price has no bound"));
                        }
                    }
                    Some(theta) if theta <= tolerance => self.stalled += 1,
                    Some(_) => self.stalled = self.stalled.saturating_sub(1),
                }
                if self.master.is_level_full() {
                    return Ok(());
                }
                self.keep_accurate();
                if self.master.pivots % HALT == 0 {
                    self.check_halt()?;
                }
                if self.stalled > STALL && !by_bland {
                    self.stalled = 0;
                    self.master.perturb(1e4 * self.feasibility());
                }
                if self.master.pivots > ceiling {
                    return Err(self.not_solved("too many pivots"));
                }
            }
        }
        Ok(())
    }

    fn keep_accurate(&mut self) {
        if self.master.pivots % (128 + self.master.groups.len() / 8) == 0 {
            self.accurate();
        }
    }
}
