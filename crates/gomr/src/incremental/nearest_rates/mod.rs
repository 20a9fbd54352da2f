//! The rates nearest to given ones within linear limits, by a dual simplex with bounded variables.
//!
//! Minimise the sum of `up_w` and `down_w`, each times its cost, subject to `least ≤ A x ≤ most` and
//! `x_w = base_w + up_w − down_w ≥ 0`. With `up = down = 0` nothing costs anything and no reduced cost is negative:
//! from there each pivot brings one broken limit back to its bound, so the work grows with what is broken and not
//! with how many rates there are. Bounds that become tighter leave the reduced costs as they are: the search goes on
//! from the last basis.
//!
//! The rows that are at a bound and the variables between theirs make the working basis ([`crate::lp::inverse`]); every other row
//! has its own activity as the basic variable.

mod pivot;
mod state;
mod values;

use std::ops::Range;

use crate::graph::NONE;
use crate::halt::Halt;
use crate::lp::sparse::SparseVector;
use state::BasisState;

/// Costs differ by up to this share, so that hardly any two ways out cost the same.
const COST_PERTURBATION: f64 = 1e-6;
/// Pivots between two looks at how far costs and values have drifted.
const PIVOTS_PER_RENEWAL: usize = 50;
/// Pivots for each row and rate before the search is given up.
const PIVOTS_PER_VARIABLE: usize = 20;

/// A rate that may change.
#[derive(Clone, Debug)]
pub(crate) struct RateVariable {
    /// What it should stay at.
    pub base: f64,
    /// Cost of a unit more.
    pub up: f64,
    /// Cost of a unit less.
    pub down: f64,
    /// The rows that it counts in, and how much.
    pub entries: Vec<(u32, f64)>,
    /// By how much it may be beyond its bounds.
    pub tolerance: f64,
}

/// Bounds of a sum of rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub least: f64,
    pub most: f64,
    /// By how much it may be beyond them.
    pub tolerance: f64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchOutcome {
    /// All limits are kept, at least cost.
    Optimal,
    /// No rates keep all limits.
    Infeasible,
    /// Rounding defeated it.
    Stuck,
    /// It was told to stop.
    Halted,
    /// It would have cost more than it may.
    Costly,
}

/// The rates and their limits, with the search for the nearest ones.
///
/// The variables of rate `w` are `2w`, by which it is more than its base, and `2w + 1`, by which it is less.
#[derive(Debug)]
pub(crate) struct NearestRates {
    rates: Vec<RateVariable>,
    limits: Vec<Bounds>,
    by_row: Vec<Vec<(u32, f64)>>,
    halt: Halt,
    state: BasisState,
    pivots: usize,
    /// Work done, in steps of about a nanosecond, and where the search ends for it.
    pub work: u64,
    pub most_work: u64,
    /// The pivot row: change of the leaving variable per unit of each rate.
    row: SparseVector,
    /// Change of each row's activity per unit of what enters.
    load: SparseVector,
}

fn sign(variable: u32) -> f64 {
    match variable % 2 {
        0 => 1.0,
        _ => -1.0,
    }
}

impl NearestRates {
    pub fn new(rates: Vec<RateVariable>, limits: Vec<Bounds>, halt: Halt) -> Self {
        let mut by_row = vec![Vec::new(); limits.len()];
        for (w, rate) in rates.iter().enumerate() {
            for &(row, load) in &rate.entries {
                by_row[row as usize].push((w as u32, load));
            }
        }
        let variables = 2 * rates.len();
        let most = |v: usize| match v % 2 {
            0 => f64::INFINITY,
            _ => rates[v / 2].base,
        };
        let state = BasisState {
            place: vec![NONE; variables],
            most: (0..variables).map(most).collect(),
            at_most: vec![false; variables],
            tight_at: vec![NONE; limits.len()],
            row_at_most: vec![false; limits.len()],
            price: vec![0.0; limits.len()],
            activity: vec![0.0; limits.len()],
            ..BasisState::default()
        };
        let (mut row, mut load) = (SparseVector::default(), SparseVector::default());
        row.resize(rates.len());
        load.resize(limits.len());
        let mut nearest = Self {
            rates,
            limits,
            by_row,
            halt,
            state,
            pivots: 0,
            work: 0,
            most_work: u64::MAX,
            row,
            load,
        };
        nearest.compute_costs();
        nearest.compute_values();
        nearest
    }

    /// A rate as the last search left it.
    pub fn rate(&self, w: usize) -> f64 {
        let value = |v: usize| match self.state.place[v] {
            NONE if self.state.at_most[v] => self.state.most[v],
            NONE => 0.0,
            at => self.state.x[at as usize],
        };
        self.rates[w].base + value(2 * w) - value(2 * w + 1)
    }

    /// By how much the rates from `first` up to `end` have changed together.
    pub fn moved(&self, rates: Range<usize>) -> f64 {
        rates
            .map(|w| (self.rate(w) - self.rates[w].base).abs())
            .sum()
    }

    /// The largest tolerance of some rates.
    pub fn tolerance(&self, rates: Range<usize>) -> f64 {
        let rates = self.rates[rates].iter();
        rates.map(|rate| rate.tolerance).fold(0.0, f64::max)
    }

    /// Looks for the nearest rates from the last basis on.
    pub fn search(&mut self) -> SearchOutcome {
        let most_pivots =
            self.pivots + 200 + PIVOTS_PER_VARIABLE * (self.limits.len() + self.rates.len());
        while self.pivots < most_pivots {
            if self.work > self.most_work {
                return SearchOutcome::Costly;
            }
            if self.pivots % 32 == 0 && self.halt.now() {
                return SearchOutcome::Halted;
            }
            let Some(leave) = self.leaving() else {
                if self.state.settled {
                    return SearchOutcome::Optimal;
                }
                if !self.settle() {
                    return SearchOutcome::Stuck;
                }
                continue;
            };
            let rows = self.pivot_row(leave.basic);
            let Some(enter) = self.entering(leave, &rows) else {
                if self.state.settled {
                    return SearchOutcome::Infeasible;
                }
                if !self.settle() {
                    return SearchOutcome::Stuck;
                }
                continue;
            };
            self.pivot(leave, enter, &rows);
            if self.pivots % PIVOTS_PER_RENEWAL == 0 && !self.settle() {
                return SearchOutcome::Stuck;
            }
        }
        SearchOutcome::Stuck
    }

    /// Holds rates at their base and searches on; where that breaks a limit for good, they are as before again.
    pub fn hold(&mut self, held: impl Iterator<Item = usize>) -> SearchOutcome {
        let before = self.state.clone();
        for w in held {
            for v in [2 * w, 2 * w + 1] {
                self.state.most[v] = 0.0;
                self.state.at_most[v] = false;
            }
        }
        self.compute_values();
        let end = self.search();
        if end != SearchOutcome::Optimal {
            self.state = before;
        }
        end
    }

    /// Cost of a variable.
    fn cost(&self, v: u32) -> f64 {
        let rate = &self.rates[v as usize / 2];
        let cost = if v % 2 == 0 { rate.up } else { rate.down };
        // Weyl's sequence: the same at each run, and hardly two sums alike.
        let part = (f64::from(v) * 0.618_033_988_749_894_9).fract();
        cost + COST_PERTURBATION * (1.0 + part)
    }

    /// The bound that a row is at.
    fn bound(&self, row: usize) -> f64 {
        match self.state.row_at_most[row] {
            true => self.limits[row].most,
            false => self.limits[row].least,
        }
    }
}
