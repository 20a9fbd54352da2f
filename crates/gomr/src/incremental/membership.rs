//! Flows as members of commodities: flows that are the same for the optimum are routed together.

use std::collections::BTreeMap;

use crate::allocation::FlowId;
use crate::objectives::Objective;
use crate::problem::{Error, Flow};
use crate::solver::{Commodity, Solver};

/// What makes two flows one commodity.
pub(crate) type CommodityKey = (u32, u32, u64, u64, u64);

/// A flow's part in a commodity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommodityShare {
    pub commodity: u32,
    pub request_bps: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct FlowRecord {
    pub flow: Flow,
    pub shares: Vec<CommodityShare>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CommodityMembers {
    pub(crate) key: Option<CommodityKey>,
    /// Flow and requested rate, in order of arrival.
    pub(crate) flows: Vec<(FlowId, f64)>,
}

/// All flows, and the commodities that they make.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub objective: Objective,
    /// By their numbers.
    pub flows: Vec<Option<FlowRecord>>,
    commodities: BTreeMap<CommodityKey, u32>,
    /// Of each commodity.
    pub members: Vec<CommodityMembers>,
    /// The commodities that came since the last solve.
    pub fresh: Vec<u32>,
}

impl Membership {
    pub fn new(objective: Objective) -> Self {
        Self {
            objective,
            flows: Vec::new(),
            commodities: BTreeMap::new(),
            members: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Checks that the flow is there.
    pub fn entry(&self, id: FlowId) -> Result<&FlowRecord, Error> {
        let entry = self.flows.get(id).and_then(Option::as_ref);
        entry.ok_or(Error::UnknownFlow { flow: id })
    }

    /// The flows that are there, with their numbers.
    pub fn present(&self) -> impl Iterator<Item = (FlowId, &FlowRecord)> {
        let entries = self.flows.iter().enumerate();
        entries.filter_map(|(id, entry)| entry.as_ref().map(|entry| (id, entry)))
    }

    /// Admits a checked flow.
    pub fn admit(&mut self, solver: &mut Solver, flow: Flow) -> FlowId {
        let id = self.flows.len();
        self.flows.push(Some(FlowRecord {
            flow,
            shares: Vec::new(),
        }));
        self.join(solver, id);
        id
    }

    /// Makes the flow a member of its commodities.
    pub fn join(&mut self, solver: &mut Solver, id: FlowId) {
        let Some(entry) = &self.flows[id] else { return };
        let flow = entry.flow.clone();
        if flow.source == flow.destination {
            return;
        }
        let mut shares = Vec::new();
        for (value, request_bps) in self.objective.parts(&flow) {
            let commodity = self.commodity(solver, &flow, value);
            self.members[commodity as usize]
                .flows
                .push((id, request_bps));
            self.total(solver, commodity);
            shares.push(CommodityShare {
                commodity,
                request_bps,
            });
        }
        if let Some(entry) = &mut self.flows[id] {
            entry.shares = shares;
        }
    }

    /// Takes the flow out of its commodities.
    pub fn part(&mut self, solver: &mut Solver, id: FlowId) {
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
                solver.remove_commodity(share.commodity);
            } else {
                self.total(solver, share.commodity);
            }
        }
    }

    /// Sets the commodity's request to the sum of its members'.
    fn total(&mut self, solver: &mut Solver, commodity: u32) {
        let request = self.members[commodity as usize]
            .flows
            .iter()
            .map(|m| m.1)
            .sum();
        solver.master.set_request(commodity, request);
    }

    fn commodity(&mut self, solver: &mut Solver, flow: &Flow, value: f64) -> u32 {
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
        let commodity = solver.add_commodity(spec, 0.0);
        self.members.resize(
            self.members.len().max(commodity as usize + 1),
            CommodityMembers::default(),
        );
        self.members[commodity as usize] = CommodityMembers::default();
        if let Some(paths) = &flow.fixed_paths {
            Self::add_fixed(solver, commodity, flow, paths);
        }
        if shared {
            self.commodities.insert(key, commodity);
            self.members[commodity as usize].key = Some(key);
        }
        self.fresh.push(commodity);
        commodity
    }

    fn add_fixed(solver: &mut Solver, commodity: u32, flow: &Flow, paths: &[Vec<usize>]) {
        for path in paths {
            let arcs: Vec<u32> = path.iter().map(|&arc| arc as u32).collect();
            let limit = flow.max_delay_s.unwrap_or(f64::INFINITY);
            if solver.graph.path_delay(&arcs) <= limit * (1.0 + 1e-12) {
                solver.add_path(commodity, &arcs);
            }
        }
    }

    /// Brings the flow's shares in line with its rate.
    pub fn rescale(&mut self, solver: &mut Solver, id: FlowId) {
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
            self.total(solver, share.commodity);
        }
        if let Some(entry) = &mut self.flows[id] {
            entry.shares = shares;
        }
    }
}
