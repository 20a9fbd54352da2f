//! Flows as members of commodities: flows that are the same for the optimum are routed together.

use super::{Engine, Entry, Members, Share};
use crate::allocation::FlowId;
use crate::colgen::Commodity;
use crate::problem::Flow;

impl Engine {
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
}
