//! Column generation: the optimum over all paths, from whatever basis is at hand.
//!
//! A solver is a restricted master programme, a pool of columns, their pricing and settings. Lexicographic optimum in
//! one linear programme: a path is worth `M·value − cost` with `M` at least three times the longest shortest path. No
//! general bound on `M` is known, so each optimum is checked: the basis is priced once more for the first objective
//! alone ([`crate::certificate::duality`]), and `M` is raised if a path could still gain.

mod entering;
pub(crate) mod pool;

use crate::certificate::distances::Distances;
use crate::graph::Graph;
use crate::incremental::eviction;
use crate::lp::dual::{self, DualOutcome, PIVOTS_PER_LOOK};
use crate::lp::master::{EnteringVariable, Master};
use crate::lp::{bounds, primal, rise, sizes};
use crate::pricing::introduce;
use crate::pricing::{self, Pricing};
use crate::problem::Error;
use crate::settings::Settings;
use crate::start::{balanced, crash, least_cost};
use entering::EnteringCandidate;
use pool::ColumnPool;
pub(crate) use pool::Commodity;

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
    pub pool: ColumnPool,
    pub pricing: Pricing,
    pub settings: Settings,
    /// Distances at the prices of the certificate.
    pub proof: Distances,
    pub run: RunState,
}

/// How far a solve has come, and what the last ones took.
#[derive(Clone, Debug)]
pub(crate) struct RunState {
    /// What it solves for, for errors.
    pub stage: &'static str,
    pub effort: Effort,
    /// Reduced profit, in units of `M`, below which a path does not enter.
    pub least_gain: f64,
    /// Whether solves from scratch begin with balanced rates.
    pub is_balanced: bool,
    /// Pivots from which on this solve, which did not begin so, does it after all, where nearly all is served.
    pub balance_from: usize,
    /// Prices of the last optimum; empty before the first.
    pub last_prices: Vec<f64>,
    /// Work of a solve from scratch with the known paths, as the last ones were; 0 before the first, or where no solve is
    /// to be given up.
    pub cold_work: u64,
    /// Work of the first solve.
    pub fresh_work: u64,
    /// Tenths of it that the next solve may take from the last basis.
    pub hot_tenths: u64,
    /// Work at which requests that are raised together stop short of what fits.
    pub rise_until: u64,
    /// Pivots after which prices and rates were last recomputed.
    pub accurate_at: usize,
    /// Pivots without progress, less those with it, since the solve began or bounds were last perturbed.
    pub stalled: usize,
    /// Number of pivots from which on Bland's rule chooses.
    pub bland_from: usize,
}

impl RunState {
    fn new(settings: &Settings) -> Self {
        Self {
            stage: "throughput",
            effort: Effort::default(),
            least_gain: settings.simplex.least_gain,
            is_balanced: false,
            balance_from: usize::MAX,
            last_prices: Vec::new(),
            cold_work: 0,
            fresh_work: 0,
            rise_until: u64::MAX,
            hot_tenths: settings.simplex.hot_tenths,
            accurate_at: usize::MAX,
            stalled: 0,
            bland_from: usize::MAX,
        }
    }
}

impl Solver {
    pub fn new(graph: Graph, capacity: Vec<f64>) -> Self {
        let settings = Settings::default();
        Self {
            pricing: Pricing::new(&graph, &capacity),
            master: Master::new(capacity, 1.0),
            pool: ColumnPool::default(),
            proof: Distances::default(),
            run: RunState::new(&settings),
            settings,
            graph,
        }
    }

    /// Prices on this many threads, at least one; what is found does not depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.pricing.set_threads(threads);
    }

    /// Solves to optimality from the present basis; where `hot`, from scratch once that has taken too long.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when rounding defeats it.
    pub fn optimise(&mut self, hot: bool) -> Result<(), Error> {
        self.master.estimate_scale();
        sizes::measure(&mut self.master, 0.0);
        self.run.bland_from = self.master.pivots + self.settings.simplex.patience * self.size();
        balanced::begin_pivots(self);
        let mut before = self.master.work;
        let hot_tenths =
            std::mem::replace(&mut self.run.hot_tenths, self.settings.simplex.hot_tenths);
        let mut hot_until = match self.run.cold_work {
            cold if hot && cold > 0 => before + hot_tenths * cold / 10,
            _ => u64::MAX,
        };
        for round in 0..self.settings.simplex.rounds {
            self.check_halt()?;
            if round >= self.settings.simplex.strict_rounds {
                // Rounding of the largest rates is more than the smallest ones allow.
                sizes::measure(
                    &mut self.master,
                    self.settings
                        .simplex
                        .coarsening
                        .powi((round - self.settings.simplex.strict_rounds) as i32)
                        * self.settings.simplex.finest_size,
                );
            }
            let restarts = self.run.effort.restarts;
            let so_far = self.master.work;
            self.make_feasible(hot_until)?;
            if self.run.effort.restarts > restarts {
                (before, hot_until) = (so_far, u64::MAX);
            }
            if !self.generate(hot_until)? {
                (before, hot_until) = (self.master.work, u64::MAX);
                self.restart()?;
                self.generate(hot_until)?;
            }
            let tolerance = self.feasibility();
            let settled = self.run.accurate_at == self.master.pivots;
            let perturbed = bounds::restore_bounds(&mut self.master);
            if perturbed {
                self.master.compute_values();
            }
            if ((perturbed || !settled) && !self.accurate())
                || self.master.infeasibility() > tolerance
            {
                continue;
            }
            if !self.master.lower_scale() || self.master.infeasibility() <= self.feasibility() {
                self.run.last_prices.clone_from(&self.master.price);
                if hot_until == u64::MAX
                    && hot
                    && self.run.least_gain < self.settings.simplex.least_gain_first_only
                {
                    let work = self.master.work - before;
                    match self.run.cold_work {
                        0 => (self.run.cold_work, self.run.fresh_work) = (work, work),
                        known => self.run.cold_work = (known + work) / 2,
                    }
                }
                bounds::forget_failed(&mut self.master);
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
        self.run
            .fresh_work
            .clamp(self.run.cold_work, 2 * self.run.cold_work)
    }

    /// Solves for the first objective alone from now on: costs decide between paths, but nothing is done for them.
    pub fn ask_for_first_only(&mut self) {
        self.run.least_gain = self.settings.simplex.least_gain_first_only;
        self.run.cold_work = 0;
    }

    /// # Errors
    /// [`Error::Halted`] when the time is up.
    pub fn check_halt(&self) -> Result<(), Error> {
        if self.master.halt.now() {
            return Err(Error::Halted {
                stage: self.run.stage,
                effort: self.effort(),
            });
        }
        Ok(())
    }

    pub fn not_solved(&self, reason: &str) -> Error {
        Error::NotSolved {
            reason: reason.to_owned(),
            stage: self.run.stage,
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
            ..self.run.effort
        }
    }

    pub(crate) fn feasibility(&self) -> f64 {
        10.0 * self.master.tolerance()
    }

    /// Recomputes prices and rates, and refactors when they have drifted.
    pub(crate) fn accurate(&mut self) -> bool {
        bounds::choose_largest_keys(&mut self.master);
        let drift = self
            .master
            .compute_prices()
            .max(self.master.compute_values());
        self.run.accurate_at = self.master.pivots;
        drift <= 1e-9 || self.master.renew()
    }

    /// Dual simplex from the basis at hand; where there is none yet or that is too much work, the primal
    /// simplex from what fits at once.
    pub(crate) fn make_feasible(&mut self, hot_until: u64) -> Result<(), Error> {
        let tolerance = self.feasibility();
        if self.master.pivots == 0 {
            self.accurate();
            if self.master.infeasibility() <= tolerance {
                return Ok(());
            }
            balanced::choose_start(self);
            let rest = self.first_basis();
            return self.improve(&rest);
        }
        if eviction::evict(self, hot_until)? {
            return Ok(());
        }
        introduce::replace_gone(self);
        let size = self.master.tight.len() + self.graph.arcs() + self.master.groups.len();
        let limit = 2000 + 4 * size;
        let until = hot_until.min(self.master.work.saturating_add(self.most_dual_work()));
        if self.accurate()
            && dual::run(&mut self.master, tolerance, limit, until) == DualOutcome::Feasible
        {
            return Ok(());
        }
        self.check_halt()?;
        self.restart()
    }

    /// What the dual simplex may cost where nothing is known of a solve from scratch.
    pub(crate) fn most_dual_work(&self) -> u64 {
        match self.master.tight.is_empty() {
            true => u64::MAX,
            false => self.settings.simplex.dual_work * self.master.columns.len() as u64,
        }
    }

    /// From what fits at once, as if nothing had been solved yet but for the paths that are known.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.run.effort.restarts += 1;
        let rest = self.first_basis();
        self.improve(&rest)
    }

    /// A feasible basis that does not come from another one, and known columns to look at first.
    pub(crate) fn first_basis(&mut self) -> Vec<u32> {
        let start = least_cost::start_single(self).or_else(|| balanced::start_balanced(self));
        start.unwrap_or_else(|| crash::crash(self))
    }

    /// Primal simplex with column generation, from a feasible basis; false when work passed `until`.
    pub(crate) fn generate(&mut self, until: u64) -> Result<bool, Error> {
        self.pricing.smooth_price.clear();
        let center = match self.pricing.smoothing > 0.0 && !self.run.last_prices.is_empty() {
            true => &self.run.last_prices,
            false => &self.master.price,
        };
        self.pricing.smooth_price.extend_from_slice(center);
        let mut candidates = Vec::new();
        let mut exact = self.master.pivots;
        loop {
            self.check_halt()?;
            if self.master.work > until || balanced::balances_after_all(self) {
                return Ok(false);
            }
            let whole = pricing::pass(self, &mut candidates);
            let before = self.master.pivots;
            self.improve(&candidates)?;
            if rise::is_full(&self.master) {
                return Ok(true);
            }
            if self.master.pivots > before || !whole {
                continue;
            }
            if self.pricing.smoothing > 0.0 {
                // Nothing gains that is short on average: on to what is short now, step by step.
                self.pricing.smoothing =
                    match self.pricing.smoothing > self.settings.pricing.least_smoothing {
                        true => 0.5 * self.pricing.smoothing,
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
    pub(crate) fn size(&self) -> usize {
        200 + self.graph.arcs() + self.master.groups.len()
    }

    /// Whether there are many commodities for each link.
    pub(crate) fn is_crowded(&self) -> bool {
        self.master.groups.len() > self.settings.pricing.crowd_per_arc * self.graph.arcs()
    }

    /// Pivots among the candidates until none of them gains.
    pub(crate) fn improve(&mut self, candidates: &[u32]) -> Result<(), Error> {
        let tolerance = self.master.tolerance();
        let ceiling = self
            .run
            .bland_from
            .saturating_add(self.settings.simplex.most_pivots * self.size());
        let none = [&[][..]];
        let windows: Vec<&[u32]> = match candidates {
            [] => none.to_vec(),
            some => some.chunks(self.settings.simplex.window).collect(),
        };
        for window in windows {
            self.master.weights.reset();
            let candidate = |&column: &u32| EnteringCandidate {
                column,
                gain: f64::INFINITY,
            };
            let mut open: Vec<EnteringCandidate> = window.iter().map(candidate).collect();
            loop {
                let by_bland = self.master.pivots >= self.run.bland_from;
                let Some((enter, gain)) = entering::entering(self, &mut open, by_bland) else {
                    break;
                };
                match primal::step(&mut self.master, enter, gain, tolerance, by_bland) {
                    None => {
                        if enter == EnteringVariable::Column(self.master.rise_column) {
                            return Err(self.not_solved("a level has no bound"));
                        }
                        if let EnteringVariable::Column(c) = enter {
                            open.retain(|other| other.column != c);
                        } else {
                            return Err(self.not_solved("a link's price has no bound"));
                        }
                    }
                    Some(theta) if theta <= tolerance => self.run.stalled += 1,
                    Some(_) => self.run.stalled = self.run.stalled.saturating_sub(1),
                }
                if rise::is_full(&self.master) {
                    return Ok(());
                }
                self.keep_accurate();
                if self.master.pivots % PIVOTS_PER_LOOK == 0 {
                    self.check_halt()?;
                }
                if self.run.stalled > self.settings.simplex.stall && !by_bland {
                    self.run.stalled = 0;
                    let size = 1e4 * self.feasibility();
                    bounds::perturb(&mut self.master, size);
                }
                if self.master.pivots > ceiling {
                    return Err(self.not_solved("too many pivots"));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn keep_accurate(&mut self) {
        if self.master.pivots % (128 + self.master.groups.len() / 8) == 0 {
            self.accurate();
        }
    }
}
