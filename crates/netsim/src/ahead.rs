//! What the next events need, fetched before the first of them is handled.
//!
//! With thousands of flows each event finds its link, packet, endpoint and flow in memory alone, one by the other. What many events need
//! is fetched at once here: all links, then all packets, then all endpoints.

use crate::flow::{Carrier, Flow};
use crate::hosts::Side;
use crate::link::InFlight;
use crate::packet::Content;
use crate::prefetch::prefetch;
use crate::queue::EventTarget;
use crate::simulation::Simulation;
use crate::switch::Step;
use crate::time::Nanos;

/// What has been fetched for an event at some time, which leads to what is to be fetched next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fetched {
    /// A packet that arrives, and its next step.
    Packet(InFlight),
    /// A flow, whose application writes.
    Flow(u32),
    /// An endpoint that a timer, a write or a packet is for.
    Endpoint(u32, Nanos),
    /// And its flow, the route of what it sends, and what is under way.
    Route(u32, Nanos),
    /// And the link that it sends on, and which writes are to be read.
    Link(u32, Nanos),
    /// All.
    All,
}

const STAGES: usize = 5;

impl Simulation {
    /// Fetch what the events of the present bucket need, if it has just begun.
    #[inline]
    pub(crate) fn fetch_ahead(&mut self) {
        if self.queue.take_opened() {
            let mut ahead = std::mem::take(&mut self.ahead);
            self.fetch_first(&mut ahead);
            for _ in 0..STAGES {
                for fetched in &mut ahead {
                    *fetched = self.fetch_next(*fetched);
                }
            }
            self.ahead = ahead;
        }
    }

    /// Fetch the targets of the events, and of links all packets that arrive in time.
    fn fetch_first(&self, ahead: &mut Vec<Fetched>) {
        ahead.clear();
        for event in self.queue.near() {
            match event.target() {
                EventTarget::Link(link) => self.links[link as usize].prefetch_arrival(),
                EventTarget::Timer(endpoint) => {
                    prefetch(self.hosts.get(endpoint));
                    ahead.push(Fetched::Endpoint(endpoint, event.time()));
                }
                EventTarget::Source(flow) => {
                    prefetch(&self.flows[flow as usize]);
                    ahead.push(Fetched::Flow(flow));
                }
                EventTarget::Schedule(_) | EventTarget::Medium(_) | EventTarget::Flow(_) => {}
            }
        }
        let horizon = self.queue.horizon();
        for event in self.queue.near() {
            if let EventTarget::Link(link) = event.target() {
                for packet in self.links[link as usize].arriving(horizon) {
                    self.switches.prefetch(packet.cursor);
                    prefetch(self.packets.get(packet.packet));
                    ahead.push(Fetched::Packet(packet));
                }
            }
        }
    }

    fn fetch_next(&self, fetched: Fetched) -> Fetched {
        match fetched {
            Fetched::Packet(packet) => self.fetch_for(packet),
            Fetched::Flow(flow) => {
                let Flow {
                    carrier, writer, ..
                } = &self.flows[flow as usize];
                let Carrier::Connections(bundle) = carrier else {
                    return Fetched::All;
                };
                prefetch(&**bundle);
                prefetch(self.hosts.get(*writer));
                Fetched::Endpoint(*writer, 0)
            }
            Fetched::Endpoint(endpoint, time) => {
                let host = self.hosts.get(endpoint);
                prefetch(&self.flows[host.flow as usize]);
                self.switches.prefetch(host.route);
                host.tcp.prefetch();
                Fetched::Route(endpoint, time)
            }
            Fetched::Route(endpoint, time) => {
                let host = self.hosts.get(endpoint);
                if let Step::Link(link) = self.switches.step(host.route) {
                    self.links[link as usize].prefetch_transmission();
                }
                self.flows[host.flow as usize].prefetch();
                Fetched::Link(endpoint, time)
            }
            Fetched::Link(endpoint, time) => {
                let host = self.hosts.get(endpoint);
                if host.side == Side::Server {
                    self.flows[host.flow as usize].prefetch_read(time);
                }
                Fetched::All
            }
            Fetched::All => Fetched::All,
        }
    }

    /// Fetch where a packet goes next.
    fn fetch_for(&self, packet: InFlight) -> Fetched {
        match self.switches.step(packet.cursor) {
            Step::Link(next) => self.links[next as usize].prefetch_transmission(),
            Step::Deliver => match *self.packets.get(packet.packet) {
                Content::Tcp { endpoint, .. } => {
                    prefetch(self.hosts.get(endpoint));
                    return Fetched::Endpoint(endpoint, packet.arrival.time());
                }
                Content::Datagram { flow, .. } => prefetch(&self.flows[flow as usize]),
            },
            Step::Split(_) => {}
        }
        Fetched::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;
    use serde_json::json;
    use std::collections::HashSet;

    /// Flows between hosts of their own over one link.
    fn simulation(flows: usize) -> Simulation {
        let rate_bps = 1.2e6 * flows as f64;
        let mut links = vec![json!({ "ends": ["L", "R"], "rate_bps": rate_bps, "delay_us": 5e3 })];
        let mut described = Vec::new();
        for index in 0..flows {
            let [source, sink] = ["S", "D"].map(|host| format!("{host}{index}"));
            for ends in [[&source, "L"], [&sink, "R"]] {
                let delay_us = 1e3 + index as f64 % 97.0;
                links.push(json!({ "ends": ends, "rate_bps": 1e8, "delay_us": delay_us }));
            }
            described.push(json!({
                "name": source, "src": source, "dst": sink, "protocol": "tcp",
                "start_s": 0.01 * index as f64 / flows as f64, "traffic": { "kind": "cbr", "rate_bps": 1e6 },
            }));
        }
        let text = json!({ "format": 1, "duration_s": 1.0, "links": links, "flows": described });
        Simulation::new(&Description::from_json(&text.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn what_most_events_of_many_flows_need_was_fetched() {
        let mut simulation = simulation(2000);
        simulation.run(200_000).unwrap();
        let mut ahead = HashSet::new();
        let mut fetched = 0;
        const EVENTS: usize = 50_000;
        for _ in 0..EVENTS {
            if simulation.queue.take_opened() {
                let mut first = Vec::new();
                simulation.fetch_first(&mut first);
                ahead = first.iter().map(|one| format!("{one:?}")).collect();
                assert!(ahead.len() < 1000, "more than the caches hold");
            }
            let event = simulation.queue.peek().unwrap();
            let needed = match event.target() {
                EventTarget::Link(link) => {
                    let mut packets = simulation.links[link as usize].arriving(Nanos::MAX);
                    packets.next().map(Fetched::Packet)
                }
                EventTarget::Timer(endpoint) => Some(Fetched::Endpoint(endpoint, event.time())),
                EventTarget::Source(flow) => Some(Fetched::Flow(flow)),
                _ => None,
            };
            fetched += usize::from(needed.is_some_and(|one| ahead.contains(&format!("{one:?}"))));
            simulation.run(1).unwrap();
        }
        assert!(fetched * 100 > EVENTS * 95, "{fetched} of {EVENTS}");
    }
}
