//! From a description to a run that can begin: names become numbers, paths become routes, and what cannot be is refused.

mod connections;
mod dynamics;
mod flows;
mod links;
mod paths;

use std::collections::BTreeMap;

use crate::description::{Description, FlowDescription};
use crate::error::Error;
use crate::hosts::Hosts;
use crate::methods::{BuiltInOnly, Methods};
use crate::network::Network;
use crate::packet::Arena;
use crate::queue::{EventQueue, EventTarget, MAX_TARGETS};
use crate::simulation::{Action, Counters, Reroute, Sample, Schedule, Simulation};
use crate::switch::Switches;
use crate::time::{seconds, Nanos};
use crate::trace::{Trace, TraceDescription};

/// The longest run: 2^62 ns, 146 years.
const MAX_TIME_S: f64 = 4e9;

impl Simulation {
    /// Make a run of its description.
    ///
    /// # Errors
    /// [`Error::Description`] names the first place that cannot be.
    pub fn new(description: &Description) -> Result<Self, Error> {
        Self::with_methods(description, &BuiltInOnly)
    }

    /// Make a run of its description, with user-defined methods.
    ///
    /// # Errors
    /// [`Error::Description`] names the first place that cannot be.
    pub fn with_methods(description: &Description, methods: &dyn Methods) -> Result<Self, Error> {
        let format = description.format;
        let reason = format!("this simulator reads format 1, not {format}");
        Error::require(format == 1, "format", reason)?;
        let schedule = schedule(description)?;
        description.tcp.check()?;
        let mut builder = Builder {
            description,
            methods,
            network: links::network(&description.links)?,
            switches: Switches::default(),
            hosts: Hosts::default(),
            splits: 0,
        };
        let (mut flows, mut reroutes) = (Vec::new(), Vec::new());
        let mut names = BTreeMap::new();
        for (index, flow) in description.flows.iter().enumerate() {
            let place = format!("flows[{index}]");
            if let Some(other) = names.insert(&flow.name, index) {
                let reason = format!(
                    "flows[{other}] is called {} too: names tell flows apart",
                    flow.name
                );
                return Err(Error::description(format!("{place}.name"), reason));
            }
            let of = Described {
                place: &place,
                index: index as u32,
                flow,
            };
            flows.push(builder.flow(of)?);
            reroutes.extend(builder.reroutes(of)?);
        }
        Error::require(!flows.is_empty(), "flows", "a run needs at least one flow")?;
        let (links, media) = links::carriers(description, &builder.network)?;
        let mut simulation = Self {
            now: 0,
            queue: EventQueue::default(),
            packets: Arena::default(),
            links,
            media,
            switches: builder.switches,
            hosts: builder.hosts,
            flows,
            actions: Vec::new(),
            link_changes: Vec::new(),
            reroutes: Vec::new(),
            schedule,
            packet_overhead_bytes: description.packet_overhead_bytes,
            counters: Counters::default(),
            samples: Vec::new(),
            at_start: Sample::default(),
            network: builder.network,
            trace: None,
            ahead: Vec::new(),
        };
        simulation.trace = description
            .trace
            .as_ref()
            .map(|trace| Box::new(simulation.traced(trace, &description.flows)));
        simulation.plan(description, reroutes)?;
        Ok(simulation)
    }

    fn traced(&self, trace: &TraceDescription, flows: &[FlowDescription]) -> Trace {
        let flows: Vec<_> = flows
            .iter()
            .map(|flow| (flow.name.clone(), flow.src.clone(), flow.dst.clone()))
            .collect();
        let name = |node| self.network.name(node);
        let arcs = self.network.arcs().iter();
        let links = arcs.map(|arc| format!("{}->{}", name(arc.tail), name(arc.head)));
        Trace::new(trace, &self.hosts, &flows, links.collect())
    }

    /// Schedule what happens at fixed times.
    fn plan(
        &mut self,
        description: &Description,
        reroutes: Vec<(Nanos, Reroute)>,
    ) -> Result<(), Error> {
        let mut actions = vec![(self.schedule.measure_from, Action::Measure)];
        let (of_links, changes) = dynamics::of_links(description)?;
        for (_, action) in &of_links {
            if let Action::ChangeLink(arc, _) = *action {
                self.links[arc as usize].expect_changes();
            }
        }
        actions.extend(of_links);
        self.link_changes = changes;
        for (index, flow) in description.flows.iter().enumerate() {
            actions.extend(dynamics::of_subflows(index, flow)?);
        }
        for (index, (time, reroute)) in reroutes.into_iter().enumerate() {
            actions.push((time, Action::Reroute(index as u32)));
            self.reroutes.push(reroute);
        }
        actions.sort_by_key(|action| action.0);
        for (index, (time, _)) in actions.iter().enumerate() {
            self.queue
                .schedule(*time, EventTarget::Schedule(index as u32));
        }
        self.actions = actions.into_iter().map(|(_, action)| action).collect();
        // The last one is scheduled again and again, from the beginning of the measurement on.
        self.actions.push(Action::Sample);
        for (index, flow) in self.flows.iter().enumerate() {
            self.queue
                .schedule(flow.start, EventTarget::Source(index as u32));
        }
        let counts = [self.flows.len(), self.links.len(), self.actions.len()];
        Error::require(
            counts.iter().all(|&count| count <= MAX_TARGETS),
            "",
            "more flows, links or link failures than can be numbered",
        )
    }
}

fn schedule(description: &Description) -> Result<Schedule, Error> {
    let at = |place: &str, time: f64, least: f64| -> Result<Nanos, Error> {
        let reason = format!("{time} s is not a time from {least} s on");
        Error::require((least..=MAX_TIME_S).contains(&time), place, reason)?;
        Ok(seconds(time))
    };
    let measure_from = at("warm_up_s", description.warm_up_s, 0.0)?;
    let duration = at("duration_s", description.duration_s, 1e-9)?;
    let interval = description.series_interval_s;
    let series_interval = interval.map_or(Ok(0), |time| at("series_interval_s", time, 1e-6))?;
    Ok(Schedule {
        measure_from,
        end: measure_from + duration,
        series_interval,
    })
}

/// A flow that is built: its place in the description, and its number.
#[derive(Clone, Copy)]
struct Described<'a> {
    place: &'a str,
    index: u32,
    flow: &'a FlowDescription,
}

impl Described<'_> {
    /// A place in it.
    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }
}

/// What grows while the flows are built.
struct Builder<'a> {
    description: &'a Description,
    methods: &'a dyn Methods,
    network: Network,
    switches: Switches,
    hosts: Hosts,
    /// Split routes so far: each has a generator of its own.
    splits: u64,
}
