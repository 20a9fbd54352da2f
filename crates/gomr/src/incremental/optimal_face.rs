//! All optima at once: which paths may carry something, and which bounds must be met, in any optimum.
//!
//! By complementary slackness the optimal rates are exactly those in which paths that
//! lose against their commodity's price carry nothing, arcs with a price are full, and commodities with a
//! price get all they ask for. Among these a caller may choose, for example the rates closest to the last.
//!
//! The prices are of two objectives: `M` times the first less the second, and the first alone. Either alone is not
//! enough: where a loss of the first is worth just `M` times its gain in the second, only the first's prices tell.

use crate::allocation::FlowId;
use crate::incremental::engine::Engine;
use crate::lp::master::Master;
use crate::pricing::optimal_paths;
use crate::problem::Error;

/// Prices and losses below this, relative to the weight of the first objective, count as zero.
const MIN_LOSS: f64 = 1e-10;

/// The prices of the first objective alone, and when they rule out that an optimum differs.
struct FirstObjectivePrices<'a> {
    master: &'a Master,
    price: Vec<f64>,
}

impl FirstObjectivePrices<'_> {
    fn is_priced(&self, arc: usize) -> bool {
        self.price[arc] > MIN_LOSS
    }

    /// What one more bit/s asked for would add.
    fn sigma(&self, group: usize) -> f64 {
        let key = self.master.groups[group].key;
        self.master.columns[key as usize].value - self.master.dot(&self.price, key)
    }

    /// Whether a rate on the column would cost the first objective something.
    fn loses(&self, column: u32) -> bool {
        let c = &self.master.columns[column as usize];
        c.value - self.master.dot(&self.price, column) - self.sigma(c.group as usize) < -MIN_LOSS
    }
}

/// A path that an optimum may use.
#[derive(Clone, Debug, PartialEq)]
pub struct FacePath {
    /// Arcs from source to destination.
    pub arcs: Vec<usize>,
    /// Load on each arc per bit/s of data, acknowledgements included.
    pub loads: Vec<(usize, f64)>,
}

/// Flows that share paths.
#[derive(Clone, Debug, PartialEq)]
pub struct FaceCommodity {
    /// Flows and the rate each asks for here, bit/s.
    pub members: Vec<(FlowId, f64)>,
    /// Whether all of them get all they ask for in every optimum.
    pub full: bool,
    /// The paths an optimum may use.
    pub paths: Vec<FacePath>,
}

/// The optimal face of the last stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptimalFace {
    /// Capacity of each arc (bit/s), and whether every optimum fills it.
    pub arcs: Vec<(f64, bool)>,
    /// What the optimum found leaves free of each arc (bit/s).
    pub free_bps: Vec<f64>,
    /// The commodities, those without a path left out.
    pub commodities: Vec<FaceCommodity>,
}

impl OptimalFace {
    /// Describes all optimal allocations; of a commodity that has very many equally good paths, 64 and those
    /// known already.
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn of(engine: &mut Engine) -> Result<Self, Error> {
        let flows: Vec<FlowId> = (0..engine.membership.flows.len()).collect();
        Self::of_flows(engine, &flows)
    }

    /// As [`OptimalFace::of`], with the commodities of some flows alone (numbers that are not there count as none).
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn of_flows(engine: &mut Engine, flows: &[FlowId]) -> Result<Self, Error> {
        engine.solve()?;
        let zero = MIN_LOSS * engine.answer().master.big_m.max(1.0);
        let entries = flows
            .iter()
            .filter_map(|&id| engine.membership.flows.get(id)?.as_ref());
        let shares = entries.flat_map(|entry| &entry.shares);
        let mut ids: Vec<u32> = shares.map(|share| share.commodity).collect();
        ids.sort_unstable();
        ids.dedup();
        optimal_paths::add(engine.answer_mut(), &ids, zero);
        let master = &engine.answer().master;
        let first = FirstObjectivePrices {
            master,
            price: engine.answer().first_prices(),
        };
        let full = |arc: usize| master.price[arc] > zero || first.is_priced(arc);
        let capacities = master.capacity.iter().enumerate();
        let mut face = Self {
            arcs: capacities.map(|(arc, &c)| (c, full(arc))).collect(),
            free_bps: master.slack.iter().map(|slack| slack.max(0.0)).collect(),
            commodities: Vec::new(),
        };
        for id in ids.into_iter().map(|id| id as usize) {
            let group = &master.groups[id];
            let free = |c: &&u32| {
                let lost = -master.reduced_profit(**c);
                let optimal = master.is_basic(**c) || (lost <= zero && !first.loses(**c));
                optimal && !master.columns[**c as usize].banned
            };
            let paths: Vec<FacePath> = group
                .columns
                .iter()
                .filter(free)
                .map(|&c| FacePath {
                    arcs: master.path(c).iter().map(|&arc| arc as usize).collect(),
                    loads: master
                        .entries(c)
                        .map(|(arc, load)| (arc as usize, load))
                        .collect(),
                })
                .collect();
            if paths.is_empty() {
                continue;
            }
            face.commodities.push(FaceCommodity {
                members: engine.asked(id),
                full: master.sigma(id as u32) > zero || first.sigma(id) > MIN_LOSS,
                paths,
            });
        }
        Ok(face)
    }
}
