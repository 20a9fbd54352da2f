//! What was reported of each flow: events answer with what differs from it.

use crate::allocation::{FlowAllocation, FlowId};

/// The flows as last reported, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    pub flows: Vec<FlowAllocation>,
    /// Whether flows among them are gone.
    pub has_gone: bool,
}

impl Reported {
    pub fn of(&self, flow: FlowId) -> Option<&FlowAllocation> {
        let at = self.flows.binary_search_by_key(&flow, |known| known.flow);
        at.ok().map(|at| &self.flows[at])
    }

    /// Replaces what was reported of one flow.
    pub fn set(&mut self, flow: FlowAllocation) {
        match self
            .flows
            .binary_search_by_key(&flow.flow, |known| known.flow)
        {
            Ok(at) => self.flows[at] = flow,
            Err(at) => self.flows.insert(at, flow),
        }
    }

    /// Records these; returns those that differ from what was reported before. Flows that are not given are as they were
    /// reported, or not `present`.
    pub fn update(
        &mut self,
        flows: Vec<FlowAllocation>,
        present: impl Fn(FlowId) -> bool,
    ) -> Vec<FlowAllocation> {
        if std::mem::take(&mut self.has_gone) {
            self.flows.retain(|known| present(known.flow));
        }
        let mut added = Vec::new();
        let mut changed = Vec::new();
        for flow in flows {
            match self
                .flows
                .binary_search_by_key(&flow.flow, |known| known.flow)
            {
                Ok(at) if self.flows[at].is_same(&flow) => {}
                Ok(at) => {
                    self.flows[at] = flow.clone();
                    changed.push(flow);
                }
                Err(_) => {
                    added.push(flow.clone());
                    changed.push(flow);
                }
            }
        }
        if !added.is_empty() {
            self.flows.append(&mut added);
            self.flows.sort_unstable_by_key(|known| known.flow);
        }
        changed
    }
}
