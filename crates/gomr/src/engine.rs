//! The live engine: flows in, certified allocations out.

mod answering;
mod membership;

use std::collections::BTreeMap;

use crate::allocation::{FlowAllocation, FlowId, Summary};
use crate::audit::Cut;
use crate::certify::Proof;
use crate::colgen::{Solver, KEPT_LOSS};
use crate::halt::{Halt, HaltTest};
use crate::objectives::max_min::{self, Filling, Rising};
use crate::objectives::{utilisation, Objective};
use crate::problem::{Arc, Error, Flow, Problem};

/// What makes two flows one commodity.
type Key = (u32, u32, u64, u64, u64);

/// A flow's part in a commodity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub commodity: u32,
    pub request_bps: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub flow: Flow,
    pub shares: Vec<Share>,
}

/// The state after the last stage, with bounds of that stage's own.
#[derive(Clone, Debug)]
struct Staged {
    solver: Solver,
    /// Rates of the flows where the stage fixed them.
    rates: BTreeMap<FlowId, f64>,
    /// Under `max_min`, what stopped the flows.
    cuts: Vec<Cut>,
}

#[derive(Clone, Debug, Default)]
struct Members {
    key: Option<Key>,
    /// Flow and requested rate, in order of arrival.
    flows: Vec<(FlowId, f64)>,
}

/// A network with its flows, kept at the optimum through events.
///
/// After any number of events, [`Engine::solve`] starts from the last optimal basis; the result has the
/// objective values of a solve from scratch.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) nodes: usize,
    pub(crate) arcs: Vec<Arc>,
    pub(crate) down: Vec<bool>,
    pub(crate) objective: Objective,
    pub(crate) flows: Vec<Option<Entry>>,
    pub(crate) solver: Solver,
    /// Where the answer is read from after objectives of several stages.
    staged: Option<Box<Staged>>,
    /// Work of the further stages in the last solve.
    pub(crate) stage_work: u64,
    commodities: BTreeMap<Key, u32>,
    members: Vec<Members>,
    fresh: Vec<u32>,
    /// What [`Engine::changes`] told of each flow.
    pub(crate) told: Vec<FlowAllocation>,
    /// Whether flows among those told are gone.
    pub(crate) told_gone: bool,
    /// Whether flows that share a commodity keep what they were told as far as they can.
    keeps_shares: bool,
    proof: Proof,
    pub(crate) solved: bool,
}

impl Engine {
    /// Takes a problem in; flow `i` of the problem gets the number `i`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field that is wrong.
    pub fn new(problem: &Problem, objective: Objective) -> Result<Self, Error> {
        problem.validate()?;
        let capacity = problem.arcs.iter().map(|a| a.capacity_bps).collect();
        let mut engine = Self {
            nodes: problem.nodes,
            arcs: problem.arcs.clone(),
            down: vec![false; problem.arcs.len()],
            objective,
            flows: Vec::new(),
            solver: Solver::new(problem.graph(), capacity),
            staged: None,
            stage_work: 0,
            commodities: BTreeMap::new(),
            members: Vec::new(),
            fresh: Vec::new(),
            told: Vec::new(),
            told_gone: false,
            keeps_shares: false,
            proof: Proof::default(),
            solved: false,
        };
        for flow in &problem.flows {
            engine.admit(flow.clone());
        }
        Ok(engine)
    }

    pub(crate) fn apply_capacity(&mut self, arc: usize) {
        let capacity = if self.down[arc] {
            0.0
        } else {
            self.arcs[arc].capacity_bps
        };
        self.solved = false;
        self.solver.set_capacity(arc as u32, capacity);
    }

    /// Solves to the certified optimum, from the last basis if there is one.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when rounding defeats the simplex; no partial answer is kept.
    pub fn solve(&mut self) -> Result<Summary, Error> {
        if !self.solved {
            let fresh = std::mem::take(&mut self.fresh);
            self.solver.introduce(&fresh);
            self.staged = None;
            self.proof = self.solver.solve()?;
            self.run_stages()?;
            self.solved = true;
        }
        Ok(self.summary())
    }

    /// The further stages of an objective work on a copy, so that the next event finds the first one's
    /// basis.
    fn run_stages(&mut self) -> Result<(), Error> {
        let mut staged = match self.objective {
            Objective::MaxMin | Objective::MinMaxUtilisation => Box::new(Staged {
                solver: self.solver.clone(),
                rates: BTreeMap::new(),
                cuts: Vec::new(),
            }),
            _ => return Ok(()),
        };
        let outcome = match self.objective {
            Objective::MaxMin => self.fill(&mut staged),
            _ => {
                staged.solver.stage = "utilisation";
                utilisation::spread(&mut staged.solver).map(|_| ())
            }
        };
        self.stage_work = staged.solver.master.work - self.solver.master.work;
        self.solver.master.work += self.stage_work;
        // What was reached by a halt is the answer until the next solve.
        self.staged = Some(staged);
        outcome
    }

    fn fill(&mut self, staged: &mut Staged) -> Result<(), Error> {
        staged.solver.stage = "levels";
        let (ids, rising): (Vec<FlowId>, Vec<Rising>) = self.rising().into_iter().unzip();
        let mut filling = Filling::default();
        let outcome = max_min::fill(&mut staged.solver, &rising, &mut filling);
        for cut in &mut filling.cuts {
            let stopped = cut.stopped.iter_mut();
            stopped.for_each(|place| *place = ids[*place as usize] as u32);
        }
        if outcome.is_ok() {
            self.proof = filling.proof;
        }
        let settled = ids.into_iter().zip(filling.rates);
        staged.rates = settled
            .filter_map(|(id, rate)| rate.map(|rate| (id, rate)))
            .collect();
        staged.cuts = filling.cuts;
        outcome
    }

    fn rising(&self) -> Vec<(FlowId, Rising)> {
        let entries = self.flows.iter().enumerate();
        let parts = entries.filter_map(|(id, entry)| entry.as_ref().map(|entry| (id, entry)));
        parts
            .flat_map(|(id, entry)| {
                entry.shares.iter().map(move |share| {
                    let (commodity, request) = (share.commodity, share.request_bps);
                    (
                        id,
                        Rising {
                            commodity,
                            request,
                            weight: entry.flow.weight,
                        },
                    )
                })
            })
            .collect()
    }

    /// The flows of a commodity and what each asks for, as the last stage has it.
    pub(crate) fn asked(&self, commodity: usize) -> Vec<(FlowId, f64)> {
        let staged = self.staged.as_ref();
        let members = self.members[commodity].flows.iter();
        members
            .map(|&(id, asked)| {
                let fixed = staged.and_then(|staged| staged.rates.get(&id));
                (id, fixed.copied().unwrap_or(asked))
            })
            .collect()
    }

    pub(crate) fn answer(&self) -> &Solver {
        self.staged
            .as_ref()
            .map_or(&self.solver, |staged| &staged.solver)
    }

    pub(crate) fn answer_mut(&mut self) -> &mut Solver {
        match &mut self.staged {
            Some(staged) => &mut staged.solver,
            None => &mut self.solver,
        }
    }

    /// Ends every solve that finds `halt` true at its next look; `None` lets them run to their end.
    pub fn set_halt(&mut self, halt: Option<HaltTest>) {
        self.solver.master.halt = Halt(halt);
    }

    /// Lets flows with the same ends keep what they were told as far as an optimum allows, instead of equal parts
    /// of what they ask for.
    pub fn keep_shares(&mut self) {
        self.keeps_shares = true;
    }

    /// From the next event on solves for the first objective alone: of its optima any is found, whatever the delays.
    pub fn ignore_delays(&mut self) {
        self.solver.ask_for_first_only();
    }

    /// Forgets all known paths that are far from optimal, so that a copy and the next event cost less.
    pub fn forget_poor_paths(&mut self) {
        self.solver.keep_good_paths(KEPT_LOSS);
    }

    /// Searches for paths on so many threads (1 at first); the answer does not depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.solver.set_threads(threads);
    }

    /// Price of each arc for the first objective: what one more bit/s of it would add.
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn prices(&mut self) -> Result<Vec<f64>, Error> {
        self.solve()?;
        Ok(self.solver.first_prices())
    }

    /// Work done so far.
    #[must_use]
    pub fn effort(&self) -> crate::colgen::Effort {
        self.solver.effort()
    }

    /// Checks that the flow is there.
    pub(crate) fn entry(&self, id: FlowId) -> Result<&Entry, Error> {
        self.flows
            .get(id)
            .and_then(Option::as_ref)
            .ok_or(Error::UnknownFlow { flow: id })
    }
}
