//! From a description to a run that can begin: names become numbers, paths become routes, and what cannot be is refused.

mod connections;
mod flows;
mod links;
mod paths;

use std::collections::BTreeMap;

use crate::bundle::Change;
use crate::description::{Description, FlowDescription, Protocol};
use crate::error::Error;
use crate::hosts::Hosts;
use crate::methods::{BuiltInOnly, Methods};
use crate::network::Network;
use crate::packet::Arena;
use crate::queue::{EventQueue, Target, MAX_TARGETS};
use crate::simulation::{Action, Counters, Sample, Schedule, Simulation};
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

    /// Make a run of its description, with methods of one's own.
    ///
    /// # Errors
    /// [`Error::Description`] names the first place that cannot be.
    pub fn with_methods(description: &Description, methods: &dyn Methods) -> Result<Self, Error> {
        if description.format != 1 {
            return Err(Error::description(
                "format",
                format!("this simulator reads format 1, not {}", description.format),
            ));
        }
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
        let mut flows = Vec::new();
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
            flows.push(builder.flow(&place, index as u32, flow)?);
        }
        if flows.is_empty() {
            return Err(Error::description("flows", "a run needs at least one flow"));
        }
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
            schedule,
            packet_overhead_bytes: description.packet_overhead_bytes,
            counters: Counters::default(),
            samples: Vec::new(),
            at_start: Sample::default(),
            network: builder.network,
            trace: None,
        };
        simulation.trace = description
            .trace
            .as_ref()
            .map(|trace| Box::new(simulation.traced(trace, &description.flows)));
        simulation.plan(description)?;
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
    fn plan(&mut self, description: &Description) -> Result<(), Error> {
        let mut actions = vec![(self.schedule.measure_from, Action::Measure)];
        for (index, link) in description.links.iter().enumerate() {
            let arc = 2 * index as u32;
            let mut last = 0.0;
            for &[from, to] in &link.down_s {
                if !(last <= from && from < to && to <= MAX_TIME_S) {
                    return Err(Error::description(
                        format!("links[{index}].down_s"),
                        "spans [from, to) in seconds, rising and apart",
                    ));
                }
                last = to;
                actions.push((seconds(from), Action::LinkDown(arc)));
                actions.push((seconds(to), Action::LinkUp(arc)));
            }
        }
        for (index, flow) in description.flows.iter().enumerate() {
            actions.extend(changes(index, flow)?);
        }
        actions.sort_by_key(|action| action.0);
        for (index, (time, _)) in actions.iter().enumerate() {
            self.queue.schedule(*time, Target::Schedule(index as u32));
        }
        self.actions = actions.into_iter().map(|(_, action)| action).collect();
        // The last one is scheduled again and again, from the beginning of the measurement on.
        self.actions.push(Action::Sample);
        for (index, flow) in self.flows.iter().enumerate() {
            self.queue
                .schedule(flow.start, Target::Source(index as u32));
        }
        if self
            .flows
            .len()
            .max(self.links.len())
            .max(self.actions.len())
            > MAX_TARGETS
        {
            return Err(Error::description(
                "",
                "more flows, links or link failures than can be numbered",
            ));
        }
        Ok(())
    }
}

/// When subflows join and leave.
fn changes(index: usize, flow: &FlowDescription) -> Result<Vec<(Nanos, Action)>, Error> {
    let mut changes = Vec::new();
    for (stream, path) in flow.paths.iter().enumerate() {
        let given = [(path.join_s, Change::Join), (path.leave_s, Change::Leave)];
        let [join_s, leave_s] = [path.join_s, path.leave_s].map(|time| time.unwrap_or(0.0));
        let place = format!("flows[{index}].paths[{stream}]");
        let fits = |time: f64| (flow.start_s..=MAX_TIME_S).contains(&time);
        let reason = if path.join_s.is_none() && path.leave_s.is_none() {
            continue;
        } else if flow.protocol != Protocol::Mptcp {
            "join_s and leave_s are for the subflows of mptcp"
        } else if stream == 0 && path.join_s.is_some() {
            "the first subflow opens the connection: it has no join_s"
        } else if !given.iter().all(|(time, _)| time.map_or(true, fits))
            || leave_s < join_s && path.leave_s.is_some()
        {
            "join_s and leave_s come after the flow's start_s, in this order"
        } else {
            let stream = stream as u16;
            let action = |(time, change): (Option<f64>, Change)| {
                Some((seconds(time?), Action::Stream(index as u32, stream, change)))
            };
            changes.extend(given.into_iter().filter_map(action));
            continue;
        };
        return Err(Error::description(place, reason));
    }
    Ok(changes)
}

fn schedule(description: &Description) -> Result<Schedule, Error> {
    let at = |place: &str, time: f64, least: f64| {
        if (least..=MAX_TIME_S).contains(&time) {
            Ok(seconds(time))
        } else {
            Err(Error::description(
                place,
                format!("{time} s is not a time from {least} s on"),
            ))
        }
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
