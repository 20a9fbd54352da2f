//! The live engine: flows in, certified allocations out.

use std::collections::BTreeMap;

use super::membership::Membership;
use super::reported::Reported;
use crate::allocation::{FlowId, Summary};
use crate::certificate::audit::Cut;
use crate::certificate::duality::Proof;
use crate::halt::{Halt, HaltTest};
use crate::objectives::max_min::{self, Filling, FillingFlow};
use crate::objectives::{utilisation, Objective};
use crate::pricing::introduce;
use crate::problem::{check_amount, check_flow, Arc, Error, Flow, Problem};
use crate::solver::Solver;

/// The state after the last stage, with bounds of that stage's own.
#[derive(Clone, Debug)]
pub(crate) struct StageResult {
    pub(crate) solver: Solver,
    /// Rates of the flows where the stage fixed them.
    pub(crate) rates: BTreeMap<FlowId, f64>,
    /// Under `max_min`, what stopped the flows.
    pub(crate) cuts: Vec<Cut>,
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
    pub(crate) membership: Membership,
    pub(crate) solver: Solver,
    /// Where the answer is read from after objectives of several stages.
    pub(crate) staged: Option<Box<StageResult>>,
    /// Work of the further stages in the last solve.
    pub(crate) stage_work: u64,
    /// What [`Engine::changes`] reported of each flow.
    pub(crate) reported: Reported,
    /// Whether flows that share a commodity keep what was reported of them as far as they can.
    pub(crate) keeps_shares: bool,
    pub(crate) proof: Proof,
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
            membership: Membership::new(objective),
            solver: Solver::new(problem.graph(), capacity),
            staged: None,
            stage_work: 0,
            reported: Reported::default(),
            keeps_shares: false,
            proof: Proof::default(),
            solved: false,
        };
        for flow in &problem.flows {
            engine.membership.admit(&mut engine.solver, flow.clone());
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
            let fresh = std::mem::take(&mut self.membership.fresh);
            introduce::introduce(&mut self.solver, &fresh);
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
        let mut staged = match self.membership.objective {
            Objective::MaxMin | Objective::MinMaxUtilisation => Box::new(StageResult {
                solver: self.solver.clone(),
                rates: BTreeMap::new(),
                cuts: Vec::new(),
            }),
            _ => return Ok(()),
        };
        let outcome = match self.membership.objective {
            Objective::MaxMin => self.fill(&mut staged),
            _ => {
                staged.solver.run.stage = "utilisation";
                utilisation::spread(&mut staged.solver).map(|_| ())
            }
        };
        self.stage_work = staged.solver.master.work - self.solver.master.work;
        self.solver.master.work += self.stage_work;
        // What was reached by a halt is the answer until the next solve: levels one by one, but of utilisation nothing.
        let is_answer = outcome.is_ok() || self.membership.objective == Objective::MaxMin;
        self.staged = is_answer.then_some(staged);
        outcome
    }

    fn fill(&mut self, staged: &mut StageResult) -> Result<(), Error> {
        staged.solver.run.stage = "levels";
        let (ids, rising): (Vec<FlowId>, Vec<FillingFlow>) = self.rising().into_iter().unzip();
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

    fn rising(&self) -> Vec<(FlowId, FillingFlow)> {
        self.membership
            .present()
            .flat_map(|(id, entry)| {
                entry.shares.iter().map(move |share| {
                    let (commodity, request) = (share.commodity, share.request_bps);
                    (
                        id,
                        FillingFlow {
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
        let members = self.membership.members[commodity].flows.iter();
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

    /// Lets flows with the same ends keep what was reported of them as far as an optimum allows, instead of equal parts
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
        self.solver
            .keep_good_paths(self.solver.settings.pricing.kept_loss);
    }

    /// Searches for paths on this many threads (1 at first); the answer does not depend on it.
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
    pub fn effort(&self) -> crate::solver::Effort {
        self.solver.effort()
    }

    /// A flow arrives; returns its number.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field that is wrong.
    pub fn add_flow(&mut self, flow: Flow) -> Result<FlowId, Error> {
        check_flow(|| "flow".to_owned(), &flow, self.nodes, &self.arcs)?;
        self.solved = false;
        Ok(self.membership.admit(&mut self.solver, flow))
    }

    /// A flow leaves.
    ///
    /// # Errors
    /// [`Error::UnknownFlow`].
    pub fn remove_flow(&mut self, id: FlowId) -> Result<(), Error> {
        self.membership.entry(id)?;
        self.solved = false;
        self.membership.part(&mut self.solver, id);
        self.membership.flows[id] = None;
        self.reported.has_gone = true;
        Ok(())
    }

    /// A flow asks for another rate, bit/s.
    ///
    /// # Errors
    /// [`Error::UnknownFlow`], or [`Error::Invalid`] for a rate that is not finite or below zero.
    pub fn change_rate(&mut self, id: FlowId, rate_bps: f64) -> Result<(), Error> {
        self.membership.entry(id)?;
        check_amount(|| "rate_bps".to_owned(), rate_bps)?;
        self.solved = false;
        if let Some(entry) = &mut self.membership.flows[id] {
            entry.flow.rate_bps = rate_bps;
        }
        self.membership.rescale(&mut self.solver, id);
        Ok(())
    }

    /// Flows 0, 1, … ask for other rates, all at once: the next matrix of a series.
    ///
    /// # Errors
    /// As [`Engine::change_rate`]; the flows before the one that is wrong have their rates.
    pub fn change_rates(&mut self, rates_bps: &[f64]) -> Result<(), Error> {
        for (flow, &rate_bps) in rates_bps.iter().enumerate() {
            self.change_rate(flow, rate_bps)?;
        }
        self.solver.run.hot_tenths = self.solver.settings.simplex.hot_tenths_of_series;
        Ok(())
    }

    /// An arc goes down: it carries nothing until it is restored.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such arc.
    pub fn fail_link(&mut self, arc: usize) -> Result<(), Error> {
        self.check_arc(arc)?;
        self.down[arc] = true;
        self.apply_capacity(arc);
        Ok(())
    }

    /// An arc comes back with the capacity it last had.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such arc.
    pub fn restore_link(&mut self, arc: usize) -> Result<(), Error> {
        self.check_arc(arc)?;
        self.down[arc] = false;
        self.apply_capacity(arc);
        Ok(())
    }

    /// An arc gets another capacity, bit/s (kept for later while it is down).
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such arc or the capacity is not finite or below zero.
    pub fn set_capacity(&mut self, arc: usize, capacity_bps: f64) -> Result<(), Error> {
        self.check_arc(arc)?;
        check_amount(|| "capacity_bps".to_owned(), capacity_bps)?;
        self.arcs[arc].capacity_bps = capacity_bps;
        self.apply_capacity(arc);
        Ok(())
    }

    fn check_arc(&self, arc: usize) -> Result<(), Error> {
        if arc < self.arcs.len() {
            return Ok(());
        }
        Err(Error::Invalid {
            field: "arc".to_owned(),
            reason: format!("is {arc}: there are {} arcs", self.arcs.len()),
        })
    }
}
