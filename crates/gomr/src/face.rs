//! All optima at once: which paths may carry something, and which bounds must be met, in any optimum.
//!
//! By complementary slackness the optimal rates are exactly those in which paths that
//! lose against their commodity's price carry nothing, arcs with a price are full, and commodities with a
//! price get all they ask for. Among these a caller may choose, for example the rates closest to the last.

use crate::allocation::FlowId;
use crate::engine::Engine;
use crate::problem::Error;

/// Prices and losses below this, relative to the weight of the first objective, count as zero.
const ZERO: f64 = 1e-10;

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
pub struct Face {
    /// Capacity of each arc (bit/s), and whether every optimum fills it.
    pub arcs: Vec<(f64, bool)>,
    /// The commodities, those without a path left out.
    pub commodities: Vec<FaceCommodity>,
}

impl Engine {
    /// Describes all optimal allocations; of a commodity that has very many equally good paths, 64 and those
    /// known already.
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn face(&mut self) -> Result<Face, Error> {
        self.solve()?;
        let zero = ZERO * self.answer().master.big_m.max(1.0);
        self.answer_mut().add_tight_paths(zero);
        let master = &self.answer().master;
        let capacities = master.capacity.iter().zip(&master.price);
        let mut face = Face {
            arcs: capacities.map(|(&c, &price)| (c, price > zero)).collect(),
            commodities: Vec::new(),
        };
        for (id, group) in master.groups.iter().enumerate() {
            if !group.active {
                continue;
            }
            let free = |c: &&u32| {
                let lost = -master.reduced_profit(**c);
                !master.columns[**c as usize].banned && (master.is_basic(**c) || lost <= zero)
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
                members: self.asked(id),
                full: master.sigma(id as u32) > zero,
                paths,
            });
        }
        Ok(face)
    }
}
