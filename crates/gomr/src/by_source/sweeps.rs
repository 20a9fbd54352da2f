//! A good routing to begin with: sources routed again one after another under prices that grow exponentially
//! with the utilisation of each arc (after N. Garg and J. Könemann, SIAM J. Computing 37, 2007).

use super::sources::{OnTree, SourceLoads, Sources};
use crate::halt::Halt;

/// Sweeps over all sources, and how often sources are routed at least.
const LEAST_SWEEPS: usize = 24;
const FEWEST_ROUTED: usize = 400;
/// Most sweeps where sources have few demands, each of which is to be spread over many paths, and the arcs that all of
/// them may look at: about a second.
const MOST_SWEEPS: usize = 1000;
const MOST_ARCS_LOOKED_AT: usize = 120_000_000;
/// How steeply prices grow with the utilisation over the largest one, in the first sweep and the last.
const SLOPES: (f64, f64) = (20.0, 400.0);
/// Sources between two looks at the clock and at all prices.
const SOURCES_PER_LOOK: usize = 16;

/// Where the sweeps ended.
pub(super) struct Routed {
    /// Loads of each source, a mixture of trees.
    pub loads: Vec<SourceLoads>,
    /// Of each arc, and the largest.
    pub utilisation: Vec<f64>,
    pub fullest: f64,
    /// Price of each arc's capacity, all above 0; their sum is 1.
    pub prices: Vec<f64>,
}

/// Spreads the load of all sources from the trees that are given; `None` when the time is up.
pub(super) fn spread(sources: &mut Sources, trees: &[OnTree], halt: &Halt) -> Option<Routed> {
    let arcs = sources.graph.arcs();
    let mut state = SweepState {
        utilisation: vec![0.0; arcs],
        prices: vec![0.0; arcs],
        slope: SLOPES.0,
    };
    let mut mixed: Vec<Vec<f64>> = Vec::new();
    for tree in trees {
        let mut own = vec![0.0; arcs];
        for &(arc, load) in &tree.loads {
            own[arc as usize] = load;
            state.utilisation[arc as usize] += load;
        }
        mixed.push(own);
    }
    let sweeps = sweeps(sources, trees.len().max(1));
    let last_slope = SLOPES.1.max(sweeps as f64);
    for sweep in 0..sweeps {
        let part = sweep as f64 / (sweeps - 1) as f64;
        state.slope = SLOPES.0 * (last_slope / SLOPES.0).powf(part);
        for (place, own) in mixed.iter_mut().enumerate() {
            if place % SOURCES_PER_LOOK == 0 {
                if halt.now() {
                    return None;
                }
                state.price_all();
            }
            sources.set_lengths(&state.prices, 0.0);
            let tree = sources.route_one(place, f64::INFINITY);
            state.shift(own, &tree.loads);
        }
    }
    state.price_all();
    Some(Routed {
        loads: mixed.iter().map(|own| sparse(own)).collect(),
        fullest: state.fullest(),
        utilisation: state.utilisation,
        prices: state.prices,
    })
}

fn sweeps(sources: &Sources, routed: usize) -> usize {
    let least = LEAST_SWEEPS.max(FEWEST_ROUTED / routed);
    match sources.have_few_demands() {
        true => MOST_SWEEPS
            .min(MOST_ARCS_LOOKED_AT / (routed * sources.graph.arcs()))
            .max(least),
        false => least,
    }
}

fn sparse(own: &[f64]) -> SourceLoads {
    let arcs = own.iter().enumerate().filter(|(_, &load)| load > 0.0);
    arcs.map(|(arc, &load)| (arc as u32, load)).collect()
}

struct SweepState {
    utilisation: Vec<f64>,
    prices: Vec<f64>,
    slope: f64,
}

impl SweepState {
    fn fullest(&self) -> f64 {
        self.utilisation.iter().copied().fold(0.0, f64::max)
    }

    fn price_all(&mut self) {
        let most = self.fullest();
        let mut sum = 0.0;
        for (price, &used) in self.prices.iter_mut().zip(&self.utilisation) {
            *price = (self.slope * (used / most - 1.0)).exp().max(1e-12);
            sum += *price;
        }
        self.prices.iter_mut().for_each(|price| *price /= sum);
    }

    /// Moves a part of a source's load onto a tree: the step that Newton's method takes on the sum of the
    /// prices, as far as no price changes by more than a factor of e.
    fn shift(&mut self, own: &mut [f64], loads: &SourceLoads) {
        let mut change: Vec<f64> = own.iter().map(|load| -load).collect();
        for &(arc, load) in loads {
            change[arc as usize] += load;
        }
        let (mut first, mut second) = (0.0, 0.0);
        for (&price, &change) in self.prices.iter().zip(&change) {
            first += price * change;
            second += price * change * change;
        }
        if first >= 0.0 || second == 0.0 {
            return;
        }
        let most = self.fullest();
        let largest = change.iter().fold(0.0f64, |most, one| most.max(one.abs()));
        let step = (-first / second).min(1.0 / largest) * most / self.slope;
        let step = step.min(1.0);
        for (arc, &change) in change.iter().enumerate() {
            if change != 0.0 {
                own[arc] = (own[arc] + step * change).max(0.0);
                self.utilisation[arc] += step * change;
                self.prices[arc] *= (self.slope * step * change / most).exp();
            }
        }
    }
}
