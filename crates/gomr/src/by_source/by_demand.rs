//! Rates near the optimum, demand by demand ([`crate::start::balance`]): the fullest arc is as empty as can be, to a part in ten
//! thousand.
//!
//! Capacities are a level `y` of what they are, and a bit/s that is not served costs 1. What prices prove of the level is the next one,
//! which is Newton's method from below (W. Dinkelbach, Management Science 13, 1967), in each step of which prices stay.

use super::sources::Sources;
use super::sweeps::StartRouting;
use crate::halt::Halt;
use crate::start::balance::{Balance, Penalty};

/// Prices are below 1.
const PENALTY: Penalty = Penalty {
    first: 0.04,
    least: 0.0125,
    most: 50.0,
    least_saving: 1e-11,
    settling_rounds: 1,
};
/// Cost of an arc, so that paths over free ones do not wander.
const ARC_COST: f64 = 1e-6;
/// Part by which the level is above what is proven, so that what all sources leave out can be less than it may be.
const LEVEL_MARGIN: f64 = 6e-5;
const MAX_DEMAND_SWEEPS: usize = 240;
const SWEEPS_PER_LOOK: usize = 4;
/// Weight of earlier sweeps in the mean of loads, which is that of a routing too, without what moves to and fro.
const MEAN_WEIGHT: f64 = 0.8;
/// Halvings of what is known of a level.
const BISECTION_STEPS: usize = 60;

struct BalancedFactor {
    balance: Balance,
    left_out_bps: f64,
    /// Mean loads, and mean rate that is not served, bit/s.
    mean_loads: Vec<f64>,
    mean_unserved_bps: f64,
    level: f64,
    bound: f64,
    /// Prices of whole capacities that prove the bound, and of a bit/s that is left out.
    prices: Vec<f64>,
    worth: f64,
}

/// Routes all demands but such a rate, bit/s, until the fullest arc is proven to be as empty as can be but for `gap`, or the
/// time is up. Sources have no ACK ratio.
pub(super) fn balance(
    sources: &mut Sources,
    left_out_bps: f64,
    gap: f64,
    halt: &Halt,
) -> StartRouting {
    let mut search = BalancedFactor::new(sources, left_out_bps);
    for sweep in 0..MAX_DEMAND_SWEEPS {
        if !sources.visit_all(&mut search.balance, halt) {
            break;
        }
        search.balance.end_sweep(sweep == 0);
        search.smooth(if sweep < SWEEPS_PER_LOOK {
            0.0
        } else {
            MEAN_WEIGHT
        });
        if sweep % SWEEPS_PER_LOOK == SWEEPS_PER_LOOK - 1 {
            search.look(sources);
            if search.bound >= search.level * (1.0 - gap) {
                break;
            }
        }
    }
    search.look(sources);
    search.end(sources)
}

impl BalancedFactor {
    /// Begins with nothing routed, at what equal prices prove.
    fn new(sources: &mut Sources, left_out_bps: f64) -> Self {
        let (bound, prices, worth) = by_equal_prices(sources, left_out_bps);
        let requests = sources.all.iter().flat_map(|source| &source.demands);
        let capacity = sources.capacity.iter().map(|capacity| bound * capacity);
        Self {
            balance: Balance::new(
                &vec![ARC_COST; sources.capacity.len()],
                &capacity.collect::<Vec<f64>>(),
                PENALTY,
                requests.map(|demand| (demand.rate_bps, 1.0)),
            ),
            left_out_bps,
            mean_loads: vec![0.0; sources.capacity.len()],
            mean_unserved_bps: sources.rate_bps(),
            level: f64::INFINITY,
            bound,
            prices,
            worth,
        }
    }

    /// Finds what the present prices and rates prove, and the level that all is brought to next.
    fn look(&mut self, sources: &mut Sources) {
        self.balance.forget_gone();
        let prices = self.balance.prices().into_iter().zip(&sources.capacity);
        let prices: Vec<f64> = prices.map(|(price, capacity)| price * capacity).collect();
        let (bound, worth) = sources.proven(&prices, self.left_out_bps);
        if bound > self.bound {
            let sum: f64 = prices.iter().sum();
            self.prices = prices.into_iter().map(|price| price / sum).collect();
            (self.bound, self.worth) = (bound, worth / sum);
        }
        let unserved_bps = self.balance.unserved();
        let mut loads: Vec<f64> = self.balance.loads().collect();
        if unserved_bps > self.left_out_bps {
            let part = 1.0 - self.left_out_bps / unserved_bps;
            let splits = &self.balance.splits;
            let more = sources.loads_of(|id| part * splits[id].unserved);
            loads
                .iter_mut()
                .zip(more)
                .for_each(|(load, more)| *load += more);
        }
        let spare_bps = (self.left_out_bps - unserved_bps).max(0.0);
        self.level = self
            .level
            .min(least_level(&loads, &sources.capacity, spare_bps));
        let spare_bps = self.left_out_bps - self.mean_unserved_bps;
        if spare_bps >= 0.0 {
            let level = least_level(&self.mean_loads, &sources.capacity, spare_bps);
            self.level = self.level.min(level);
        }
        let next = self.bound * (1.0 + LEVEL_MARGIN);
        self.balance
            .set_capacities(sources.capacity.iter().map(|capacity| next * capacity));
    }

    fn smooth(&mut self, smoothing: f64) {
        let mix = |mean: &mut f64, now: f64| *mean += (1.0 - smoothing) * (now - *mean);
        let loads = self.balance.loads();
        self.mean_loads
            .iter_mut()
            .zip(loads)
            .for_each(|(mean, now)| mix(mean, now));
        mix(&mut self.mean_unserved_bps, self.balance.unserved());
    }

    /// What is routed, with all that has to be; trees must be measured.
    fn end(mut self, sources: &mut Sources) -> StartRouting {
        sources.serve_rest(&mut self.balance, self.left_out_bps);
        let shares = sources.shares_of(&self.balance);
        let arcs = self.balance.loads().zip(&sources.capacity);
        let utilisation: Vec<f64> = arcs
            .map(|(load, &capacity)| if load > 0.0 { load / capacity } else { 0.0 })
            .collect();
        StartRouting {
            sources: shares,
            fullest: utilisation.iter().copied().fold(0.0, f64::max),
            utilisation,
            prices: self.prices,
            worth: self.worth,
            level: self.level,
            bound: self.bound,
        }
    }
}

/// The least level at which it is enough to take such a rate off the arcs that are fuller, bit/s.
fn least_level(loads: &[f64], capacity: &[f64], spare_bps: f64) -> f64 {
    let arcs = || loads.iter().zip(capacity).filter(|(&load, _)| load > 0.0);
    let over_bps = |level: f64| -> f64 {
        let over = arcs().map(|(load, capacity)| (load - level * capacity).max(0.0));
        over.sum()
    };
    let (mut below, mut level) = (
        0.0,
        arcs()
            .map(|(load, capacity)| load / capacity)
            .fold(0.0, f64::max),
    );
    for _ in 0..BISECTION_STEPS {
        let middle = 0.5 * (below + level);
        match over_bps(middle) <= spare_bps {
            true => level = middle,
            false => below = middle,
        }
    }
    level
}

/// What prices prove that are the same for all arcs, or for all capacity: the better of these, the prices, whose sum is 1, and
/// that of a bit/s which is left out.
pub(super) fn by_equal_prices(sources: &mut Sources, left_out_bps: f64) -> (f64, Vec<f64>, f64) {
    let whole = |&capacity: &f64| f64::from(u8::from(capacity > 0.0));
    let each: Vec<f64> = sources.capacity.iter().map(whole).collect();
    let mut best = (0.0, Vec::new(), 0.0);
    for prices in [each, sources.capacity.clone()] {
        let sum: f64 = prices.iter().sum();
        let prices: Vec<f64> = prices.into_iter().map(|price| price / sum).collect();
        let (bound, worth) = sources.proven(&prices, left_out_bps);
        if bound >= best.0 {
            best = (bound, prices, worth);
        }
    }
    best
}
