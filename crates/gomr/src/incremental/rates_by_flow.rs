//! Reading the answer: each flow's paths and rates, totals and the proof.

use super::best_so_far;
use super::engine::Engine;
use super::membership::FlowRecord;
use crate::allocation::{
    is_same_rate, Allocation, Certificate, Changes, FlowAllocation, FlowId, PathRate, Summary,
};
use crate::certificate::audit::{Cut, PathRates};
use crate::objectives;
use crate::problem::Error;

impl Engine {
    pub(crate) fn summary(&self) -> Summary {
        let answer = self.answer();
        let master = &answer.master;
        let flows = || self.membership.present().map(|(_, entry)| &entry.flow);
        let at_home = flows().filter(|flow| flow.source == flow.destination);
        let local: f64 = at_home.map(|flow| flow.rate_bps).sum();
        let mut summary = Summary {
            admitted_bps: local,
            requested_bps: flows().map(|flow| flow.rate_bps).sum(),
            effort: self.solver.effort(),
            ..Summary::default()
        };
        let mut load = vec![0.0; self.arcs.len()];
        let mut violation = 0.0f64;
        for (id, group) in master.groups.iter().enumerate().filter(|(_, g)| g.active) {
            summary.admitted_bps += answer.served(id);
            let mut total = 0.0;
            for (column, rate) in master.used_paths(group) {
                total += rate;
                summary.cost_bps_s += rate * answer.graph.path_delay(master.path(column));
                for (row, factor) in master.entries(column) {
                    load[row as usize] += factor * rate;
                }
            }
            violation = violation.max(total - group.request);
        }
        for (&load, &capacity) in load.iter().zip(&self.solver.master.capacity) {
            violation = violation.max(load - capacity);
            if capacity > 0.0 {
                summary.max_utilisation = summary.max_utilisation.max(load / capacity);
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

    /// Solves and returns the flows that are not as the last call left them.
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn changes(&mut self) -> Result<Changes, Error> {
        let summary = self.solve()?;
        let flows = self.allocations_of(&self.perhaps_changed());
        Ok(Changes {
            flows: self.report(flows),
            summary,
        })
    }

    /// The best rates known, within all limits, and the flows that are not as the last call left them: for use
    /// after a solve that was halted. Known are what was reported last and what the simplex has by now; the next
    /// solve goes on.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when a path does not lead where its flow goes.
    pub fn changes_so_far(&mut self) -> Result<Changes, Error> {
        best_so_far::changes(self)
    }

    /// Takes other rates of a flow as reported, bit/s on each path: those that it really has.
    ///
    /// # Errors
    /// [`Error::UnknownFlow`].
    pub fn set_reported(
        &mut self,
        flow: FlowId,
        rates: Vec<(Vec<usize>, f64)>,
    ) -> Result<(), Error> {
        self.membership.entry(flow)?;
        let path = |(arcs, rate_bps): (Vec<usize>, f64)| PathRate {
            delay_s: arcs.iter().map(|&arc| self.arcs[arc].delay_s).sum(),
            arcs,
            rate_bps,
        };
        let mut reported = FlowAllocation {
            flow,
            rate_bps: 0.0,
            paths: rates.into_iter().map(path).collect(),
        };
        objectives::tidy(&mut reported);
        self.reported.set(reported);
        Ok(())
    }

    /// Records flows as reported; returns those that differ from what was reported before.
    pub(crate) fn report(&mut self, flows: Vec<FlowAllocation>) -> Vec<FlowAllocation> {
        let present = &self.membership.flows;
        self.reported.update(flows, |flow| present[flow].is_some())
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
    pub fn path_rates(&mut self) -> Result<PathRates, Error> {
        self.solve()?;
        Ok(self.path_rates_so_far())
    }

    /// What the simplex has at the moment, in flat arrays: the optimum after a solve. After one that was
    /// halted, rates that need not keep every limit; [`PathRates::fit`] makes them.
    #[must_use]
    pub fn path_rates_so_far(&self) -> PathRates {
        let mut answer = PathRates {
            start: vec![0],
            ..PathRates::default()
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

    pub(crate) fn flow_allocations(&self) -> Vec<FlowAllocation> {
        let all: Vec<FlowId> = self.membership.present().map(|(id, _)| id).collect();
        self.allocations_of(&all)
    }

    /// What some flows got, in the order given; those that share a commodity with one of them must be given too.
    pub(crate) fn allocations_of(&self, ids: &[FlowId]) -> Vec<FlowAllocation> {
        let mut flows: Vec<FlowAllocation> = Vec::with_capacity(ids.len());
        let mut place = vec![usize::MAX; self.membership.flows.len()];
        let mut commodities: Vec<u32> = Vec::new();
        for &id in ids {
            if let Some(entry) = &self.membership.flows[id] {
                place[id] = flows.len();
                flows.push(objectives::start_of(id, &entry.flow));
                commodities.extend(entry.shares.iter().map(|share| share.commodity));
            }
        }
        commodities.sort_unstable();
        commodities.dedup();
        let mut kept = match self.keeps_shares {
            true => UnassignedRates::new(&self.reported.flows),
            false => UnassignedRates::default(),
        };
        for commodity in commodities {
            self.share_out(commodity as usize, &place, &mut flows, &mut kept);
        }
        for flow in &mut flows {
            objectives::tidy(flow);
        }
        flows
    }

    /// The flows that may have got something else than they were reported. Most flows of a large network have one path
    /// alone and keep it, which shows without putting their answer together.
    pub(crate) fn perhaps_changed(&self) -> Vec<FlowId> {
        let may_skip = self.staged.is_none() && !self.keeps_shares;
        let mut reported = self.reported.flows.iter().peekable();
        let mut perhaps = Vec::new();
        for (id, entry) in self.membership.present() {
            while reported.next_if(|old| old.flow < id).is_some() {}
            let old = reported.next_if(|old| old.flow == id);
            if !(may_skip && old.is_some_and(|old| self.is_as_reported(entry, old))) {
                perhaps.push(id);
            }
        }
        perhaps
    }

    /// Whether a flow that is alone in its one commodity has the one path that it was reported, or nothing as before.
    fn is_as_reported(&self, entry: &FlowRecord, reported: &FlowAllocation) -> bool {
        let [share] = entry.shares[..] else {
            return false;
        };
        if self.membership.members[share.commodity as usize]
            .flows
            .len()
            != 1
        {
            return false;
        }
        let master = &self.solver.master;
        let mut used = master.used_paths(&master.groups[share.commodity as usize]);
        match (&reported.paths[..], used.next(), used.next()) {
            ([], None, _) => true,
            ([known], Some((column, rate)), None) => {
                let path = master.path(column).iter().map(|&arc| arc as usize);
                is_same_rate(known.rate_bps, rate.min(share.request_bps))
                    && path.eq(known.arcs.iter().copied())
            }
            _ => false,
        }
    }

    /// Shares a commodity's paths among its members: each gets the same part of its request, taken
    /// from the paths by delay, so that few flows are split. Where shares are kept, flows have first what they
    /// were reported, as far as the paths still carry it.
    fn share_out(
        &self,
        commodity: usize,
        place: &[usize],
        flows: &mut [FlowAllocation],
        kept: &mut UnassignedRates<'_>,
    ) {
        let master = &self.answer().master;
        let group = &master.groups[commodity];
        let members = &self.membership.members[commodity].flows;
        if !group.active || group.request <= 0.0 || members.is_empty() {
            return;
        }
        let delay_s = |column| self.solver.graph.path_delay(master.path(column));
        let used = master.used_paths(group);
        let mut paths: Vec<(f64, u32, f64)> = used.map(|(c, rate)| (delay_s(c), c, rate)).collect();
        paths.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let served: f64 = paths.iter().map(|p| p.2).sum();
        let asked: f64 = members.iter().map(|m| m.1).sum();
        let part = match self.keeps_shares {
            true => 1.0,
            false => (served / asked).min(1.0),
        };
        let fixed = self.staged.as_ref().map(|staged| &staged.rates);
        let wanted = |flow, request: f64| {
            let fixed = fixed.and_then(|rates| rates.get(&flow));
            fixed.copied().unwrap_or(request * part)
        };
        let mut push = |flow: FlowId, (delay_s, column, rate_bps): (f64, u32, f64)| {
            let arcs = master.path(column).iter();
            flows[place[flow]].paths.push(PathRate {
                arcs: arcs.map(|&arc| arc as usize).collect(),
                rate_bps,
                delay_s,
            });
        };
        let mut want: Vec<f64> = members.iter().map(|m| wanted(m.0, m.1)).collect();
        let sharing = if self.keeps_shares { members.len() } else { 0 };
        for (&(flow, _), want) in members.iter().zip(&mut want).take(sharing) {
            for (delay_s, column, rate) in &mut paths {
                let rate_bps = kept.take(flow, master.path(*column), rate.min(*want));
                if rate_bps > 0.0 {
                    *want -= rate_bps;
                    *rate -= rate_bps;
                    push(flow, (*delay_s, *column, rate_bps));
                }
            }
        }
        let mut left = paths.iter().copied();
        let mut now = left.next();
        for (&(flow, request), mut want) in members.iter().zip(want) {
            let noise = 1e-12 * wanted(flow, request).min(served);
            while let Some((delay_s, column, rate)) = now.filter(|_| want > noise) {
                let rate_bps = rate.min(want);
                want -= rate_bps;
                if rate_bps > noise {
                    push(flow, (delay_s, column, rate_bps));
                }
                let rest = rate - rate_bps;
                now = match rest > 1e-12 * rate {
                    true => Some((delay_s, column, rest)),
                    false => left.next(),
                };
            }
        }
    }
}

/// What flows were reported and have not got again yet: rates of their paths.
#[derive(Default)]
struct UnassignedRates<'a> {
    reported: &'a [FlowAllocation],
    left_bps: Vec<Vec<f64>>,
}

impl<'a> UnassignedRates<'a> {
    fn new(reported: &'a [FlowAllocation]) -> Self {
        let rates = |flow: &FlowAllocation| flow.paths.iter().map(|path| path.rate_bps).collect();
        Self {
            reported,
            left_bps: reported.iter().map(rates).collect(),
        }
    }

    /// Takes at most so much of what a flow was reported on a path.
    fn take(&mut self, flow: FlowId, path: &[u32], most_bps: f64) -> f64 {
        let Ok(at) = self
            .reported
            .binary_search_by_key(&flow, |reported| reported.flow)
        else {
            return 0.0;
        };
        let is_same = |known: &PathRate| {
            let arcs = path.iter().map(|&arc| arc as usize);
            known.arcs.len() == path.len() && known.arcs.iter().copied().eq(arcs)
        };
        let Some(place) = self.reported[at].paths.iter().position(is_same) else {
            return 0.0;
        };
        let left_bps = &mut self.left_bps[at][place];
        let taken_bps = left_bps.min(most_bps).max(0.0);
        *left_bps -= taken_bps;
        taken_bps
    }
}
