//! The live engine: flows in, certified allocations out.

use std::collections::BTreeMap;

use crate::allocation::{Allocation, Certificate, FlowAllocation, FlowId, PathRate, Summary};
use crate::audit::{Answer, Cut};
use crate::certify::Proof;
use crate::colgen::{Commodity, Solver};
use crate::halt::{Halt, HaltTest};
use crate::objectives::max_min::{self, Rising};
use crate::objectives::{self, utilisation, Objective};
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
    commodities: BTreeMap<Key, u32>,
    members: Vec<Members>,
    fresh: Vec<u32>,
    /// What [`Engine::changes`] told of each flow.
    pub(crate) told: Vec<FlowAllocation>,
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
            commodities: BTreeMap::new(),
            members: Vec::new(),
            fresh: Vec::new(),
            told: Vec::new(),
            proof: Proof::default(),
            solved: false,
        };
        for flow in &problem.flows {
            engine.admit(flow.clone());
        }
        Ok(engine)
    }

    /// Takes a checked flow in.
    pub(crate) fn admit(&mut self, flow: Flow) -> FlowId {
        let id = self.flows.len();
        self.flows.push(Some(Entry {
            flow,
            shares: Vec::new(),
        }));
        self.join(id);
        id
    }

    /// Makes the flow a member of its commodities.
    pub(crate) fn join(&mut self, id: FlowId) {
        self.solved = false;
        let Some(entry) = &self.flows[id] else { return };
        let flow = entry.flow.clone();
        if flow.source == flow.destination {
            return;
        }
        let mut shares = Vec::new();
        for (value, request_bps) in self.objective.parts(&flow) {
            let commodity = self.commodity(&flow, value);
            self.members[commodity as usize]
                .flows
                .push((id, request_bps));
            self.total(commodity);
            shares.push(Share {
                commodity,
                request_bps,
            });
        }
        if let Some(entry) = &mut self.flows[id] {
            entry.shares = shares;
        }
    }

    /// Takes the flow out of its commodities.
    pub(crate) fn part(&mut self, id: FlowId) {
        self.solved = false;
        let Some(entry) = &mut self.flows[id] else {
            return;
        };
        for share in std::mem::take(&mut entry.shares) {
            let members = &mut self.members[share.commodity as usize];
            members.flows.retain(|&(other, _)| other != id);
            if members.flows.is_empty() {
                if let Some(key) = members.key.take() {
                    self.commodities.remove(&key);
                }
                self.fresh.retain(|&c| c != share.commodity);
                self.solver.remove_commodity(share.commodity);
            } else {
                self.total(share.commodity);
            }
        }
    }

    /// Sets the commodity's request to the sum of its members'.
    fn total(&mut self, commodity: u32) {
        let request = self.members[commodity as usize]
            .flows
            .iter()
            .map(|m| m.1)
            .sum();
        self.solver.master.set_request(commodity, request);
    }

    fn commodity(&mut self, flow: &Flow, value: f64) -> u32 {
        let key = (
            flow.source as u32,
            flow.destination as u32,
            flow.ack_ratio.to_bits(),
            flow.max_delay_s.map_or(u64::MAX, f64::to_bits),
            value.to_bits(),
        );
        let shared = flow.fixed_paths.is_none() && flow.ack_path.is_none();
        if shared {
            if let Some(&known) = self.commodities.get(&key) {
                return known;
            }
        }
        let spec = Commodity {
            source: key.0,
            target: key.1,
            value,
            ack_ratio: if flow.ack_path.is_none() {
                flow.ack_ratio
            } else {
                0.0
            },
            // Acknowledgements without load may take a way that carries nothing.
            acks: flow
                .ack_path
                .iter()
                .flatten()
                .filter(|_| flow.ack_ratio > 0.0)
                .map(|&arc| (arc as u32, flow.ack_ratio))
                .collect(),
            max_delay_s: flow.max_delay_s,
            fixed: flow.fixed_paths.is_some(),
            class: 0,
        };
        let commodity = self.solver.add_commodity(spec, 0.0);
        self.members.resize(
            self.members.len().max(commodity as usize + 1),
            Members::default(),
        );
        self.members[commodity as usize] = Members::default();
        if let Some(paths) = &flow.fixed_paths {
            self.add_fixed(commodity, flow, paths);
        }
        if shared {
            self.commodities.insert(key, commodity);
            self.members[commodity as usize].key = Some(key);
        }
        self.fresh.push(commodity);
        commodity
    }

    fn add_fixed(&mut self, commodity: u32, flow: &Flow, paths: &[Vec<usize>]) {
        for path in paths {
            let arcs: Vec<u32> = path.iter().map(|&arc| arc as u32).collect();
            let limit = flow.max_delay_s.unwrap_or(f64::INFINITY);
            if self.solver.graph.path_delay(&arcs) <= limit * (1.0 + 1e-12) {
                self.solver.add_path(commodity, &arcs);
            }
        }
    }

    /// Brings the flow's shares in line with its rate.
    pub(crate) fn rescale(&mut self, id: FlowId) {
        self.solved = false;
        let Some(entry) = &mut self.flows[id] else {
            return;
        };
        let parts = self.objective.parts(&entry.flow);
        let mut shares = std::mem::take(&mut entry.shares);
        for (share, (_, request_bps)) in shares.iter_mut().zip(parts) {
            share.request_bps = request_bps;
            let members = &mut self.members[share.commodity as usize].flows;
            for member in members.iter_mut().filter(|m| m.0 == id) {
                member.1 = request_bps;
            }
            self.total(share.commodity);
        }
        if let Some(entry) = &mut self.flows[id] {
            entry.shares = shares;
        }
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
        let (mut rates, mut cuts) = (BTreeMap::new(), Vec::new());
        let mut solver = match self.objective {
            Objective::MaxMin | Objective::MinMaxUtilisation => self.solver.clone(),
            _ => return Ok(()),
        };
        if self.objective == Objective::MaxMin {
            solver.stage = "levels";
            let (ids, rising): (Vec<FlowId>, Vec<Rising>) = self.rising().into_iter().unzip();
            let filled = max_min::fill(&mut solver, &rising)?;
            self.proof = filled.proof;
            cuts = filled.cuts;
            for cut in &mut cuts {
                let stopped = cut.stopped.iter_mut();
                stopped.for_each(|place| *place = ids[*place as usize] as u32);
            }
            rates = ids.into_iter().zip(filled.rates).collect();
        } else {
            solver.stage = "utilisation";
            utilisation::spread(&mut solver)?;
        }
        self.staged = Some(Box::new(Staged {
            solver,
            rates,
            cuts,
        }));
        Ok(())
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

    fn summary(&self) -> Summary {
        let answer = self.answer();
        let mut summary = Summary {
            effort: self.solver.effort(),
            ..Summary::default()
        };
        let mut load = vec![0.0; self.arcs.len()];
        let master = &answer.master;
        let mut local = 0.0;
        for entry in self.flows.iter().flatten() {
            summary.requested_bps += entry.flow.rate_bps;
            if entry.flow.source == entry.flow.destination {
                local += entry.flow.rate_bps;
            }
        }
        summary.admitted_bps = local;
        let mut violation = 0.0f64;
        for (id, group) in master.groups.iter().enumerate().filter(|(_, g)| g.active) {
            let served = answer.served(id);
            summary.admitted_bps += served;
            let mut total = 0.0;
            for &c in [&group.key].into_iter().chain(&group.working) {
                let rate = master.rate(c).max(0.0);
                if c == group.unserved || rate == 0.0 {
                    continue;
                }
                total += rate;
                summary.cost_bps_s += rate * answer.graph.path_delay(master.path(c));
                for (row, factor) in master.entries(c) {
                    load[row as usize] += factor * rate;
                }
            }
            violation = violation.max(total - group.request);
        }
        for (e, &load) in load.iter().enumerate() {
            let capacity = self.solver.master.capacity[e];
            violation = violation.max(load - capacity);
            if capacity > 0.0 {
                summary.max_utilisation = f64::max(summary.max_utilisation, load / capacity);
            }
        }
        summary.certificate = Certificate {
            upper_bound: self.proof.bound + local,
            value: self.proof.value + local,
            gap: self.proof.gap(),
            max_violation_bps: violation,
        };
        summary
    }

    /// Paths and rates of all flows at the optimum.
    ///
    /// # Errors
    /// As [`Engine::solve`], which it calls when events came since.
    pub fn allocation(&mut self) -> Result<Allocation, Error> {
        let summary = self.solve()?;
        Ok(Allocation {
            flows: self.flow_allocations(),
            summary,
        })
    }

    /// The answer of the optimum in flat arrays, flow by flow in the order of their numbers.
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn answer_arrays(&mut self) -> Result<Answer, Error> {
        self.solve()?;
        Ok(self.answer_so_far())
    }

    /// What the simplex has at the moment, in flat arrays: the optimum after a solve. After one that was
    /// halted, rates that need not keep every limit; [`Answer::fit`] makes them.
    #[must_use]
    pub fn answer_so_far(&self) -> Answer {
        let mut answer = Answer {
            start: vec![0],
            ..Answer::default()
        };
        for flow in self.flow_allocations() {
            for path in flow.paths {
                answer.flow.push(flow.flow as u32);
                answer.rate_bps.push(path.rate_bps);
                answer.arcs.extend(path.arcs.iter().map(|&arc| arc as u32));
                answer.start.push(answer.arcs.len() as u32);
            }
        }
        answer
    }

    /// What proves the answer: a price for each arc, and under `max_min` the cuts that stopped the flows.
    #[must_use]
    pub fn prices_so_far(&self) -> (Vec<f64>, Vec<Cut>) {
        let cuts = self.staged.as_ref().map(|staged| staged.cuts.clone());
        (self.solver.first_prices(), cuts.unwrap_or_default())
    }

    fn flow_allocations(&self) -> Vec<FlowAllocation> {
        let mut flows: Vec<FlowAllocation> = Vec::new();
        let mut place = vec![usize::MAX; self.flows.len()];
        for (id, entry) in self.flows.iter().enumerate() {
            if let Some(entry) = entry {
                place[id] = flows.len();
                flows.push(objectives::start_of(id, &entry.flow));
            }
        }
        for commodity in 0..self.members.len() {
            self.share_out(commodity, &place, &mut flows);
        }
        for flow in &mut flows {
            objectives::tidy(flow);
        }
        flows
    }

    /// Shares a commodity's paths among its members: each gets the same part of its request, taken
    /// from the paths by delay, so that few flows are split.
    fn share_out(&self, commodity: usize, place: &[usize], flows: &mut [FlowAllocation]) {
        let master = &self.answer().master;
        let group = &master.groups[commodity];
        let members = &self.members[commodity].flows;
        if !group.active || group.request <= 0.0 || members.is_empty() {
            return;
        }
        let mut paths: Vec<(f64, u32, f64)> = [&group.key]
            .into_iter()
            .chain(&group.working)
            .filter(|&&c| c != group.unserved && master.rate(c) > 0.0)
            .map(|&c| {
                (
                    self.solver.graph.path_delay(master.path(c)),
                    c,
                    master.rate(c),
                )
            })
            .collect();
        paths.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let served: f64 = paths.iter().map(|p| p.2).sum();
        let asked: f64 = members.iter().map(|m| m.1).sum();
        let part = (served / asked).min(1.0);
        let mut left = paths.iter().copied();
        let mut now = left.next();
        for &(flow, request) in members {
            let fixed = self
                .staged
                .as_ref()
                .and_then(|staged| staged.rates.get(&flow));
            let mut want = fixed.copied().unwrap_or(request * part);
            let noise = 1e-12 * want;
            while let Some((delay_s, column, rate)) = now {
                if want <= noise {
                    break;
                }
                let rate_bps = rate.min(want);
                want -= rate_bps;
                let arcs = master
                    .path(column)
                    .iter()
                    .map(|&arc| arc as usize)
                    .collect();
                flows[place[flow]].paths.push(PathRate {
                    arcs,
                    rate_bps,
                    delay_s,
                });
                let rest = rate - rate_bps;
                now = if rest > 1e-12 * rate {
                    Some((delay_s, column, rest))
                } else {
                    left.next()
                };
            }
        }
    }

    /// Checks that the flow is there.
    pub(crate) fn entry(&self, id: FlowId) -> Result<&Entry, Error> {
        self.flows
            .get(id)
            .and_then(Option::as_ref)
            .ok_or(Error::UnknownFlow { flow: id })
    }
}
