//! From a description to a run that can begin: names become numbers, paths become routes, and what cannot be is refused.

use mstcp_core::scheduler;

use crate::bundle::{Bundle, Mstcp, MstcpSettings, Plain, StreamSettings};
use crate::description::{
    AckPath, AckRule, Description, FlowDescription, FoundPath, LinkDescription, PathChoice,
    Protocol, Traffic,
};
use crate::error::Error;
use crate::flow::{Carrier, Flow};
use crate::hosts::Hosts;
use crate::link::{Link, LinkSettings};
use crate::network::Network;
use crate::packet::Arena;
use crate::queue::{EventQueue, Target, MAX_TARGETS};
use crate::random::{derive_seed, generator, Purpose};
use crate::simulation::{Action, Counters, Sample, Schedule, Simulation};
use crate::switch::{Switches, WeightedPath};
use crate::tcp::Endpoint;
use crate::time::{seconds, Nanos, MICROSECOND};
use crate::traffic::{Source, Ticks};

/// Bytes of the identifier in front of each full frame.
const FRAME_HEADER_BYTES: u32 = mstcp_core::frame::HEADER_BYTES as u32;
/// A stream has room while less than this time of its rate is unsent, as in the library.
const UNSENT_TIME_S: f64 = 0.010;
/// ... but for these bounds.
const UNSENT_FRAMES_MIN: f64 = 4.0;
const UNSENT_BYTES_MAX: f64 = 262_144.0;
/// The longest run: 2^62 ns, 146 years.
const MAX_TIME_S: f64 = 4e9;

impl Simulation {
    /// Make a run of its description.
    ///
    /// # Errors
    /// [`Error::Description`] names the first place that cannot be.
    pub fn new(description: &Description) -> Result<Self, Error> {
        if description.format != 1 {
            return Err(Error::description(
                "format",
                format!("this simulator reads format 1, not {}", description.format),
            ));
        }
        let schedule = schedule(description)?;
        let tcp = description.tcp.config(None);
        tcp.validate()
            .map_err(|error| Error::description("tcp", error.to_string()))?;
        let mut builder = Builder {
            description,
            network: network(&description.links)?,
            switches: Switches::default(),
            hosts: Hosts::default(),
            splits: 0,
        };
        let mut flows = Vec::new();
        for (index, flow) in description.flows.iter().enumerate() {
            let place = format!("flows[{index}]");
            flows.push(builder.flow(&place, index as u32, flow)?);
        }
        if flows.is_empty() {
            return Err(Error::description("flows", "a run needs at least one flow"));
        }
        let seed = description.seed;
        let arcs = builder.network.arcs().iter().enumerate();
        let links = arcs.map(|(index, arc)| {
            let draws = |purpose| generator(seed, purpose, index as u64);
            Link::new(arc.settings, draws(Purpose::Loss), draws(Purpose::Jitter))
        });
        let mut simulation = Self {
            now: 0,
            queue: EventQueue::default(),
            packets: Arena::default(),
            links: links.collect(),
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
        };
        simulation.plan(description)?;
        Ok(simulation)
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

fn network(links: &[LinkDescription]) -> Result<Network, Error> {
    let mut network = Network::default();
    for (index, link) in links.iter().enumerate() {
        let place = |field: &str| format!("links[{index}].{field}");
        let within = |field: &str, value: f64, range: std::ops::RangeInclusive<f64>| {
            if range.contains(&value) {
                return Ok(value);
            }
            let (least, most) = range.into_inner();
            Err(Error::description(
                place(field),
                format!("{value} is not between {least} and {most}"),
            ))
        };
        let settings = LinkSettings {
            rate_bps: within("rate_bps", link.rate_bps, 1.0..=1e13)?.round() as u64,
            delay: micros(within("delay_us", link.delay_us, 0.0..=1e9)?),
            queue_packets: link.queue_packets,
            queue_bytes: link.queue_bytes,
            loss: within("loss", link.loss, 0.0..=0.999_999)?,
            jitter: micros(within("jitter_us", link.jitter_us, 0.0..=1e9)?),
        };
        let [a, b] = [network.intern(&link.ends[0]), network.intern(&link.ends[1])];
        if a == b {
            return Err(Error::description(place("ends"), "a link joins two nodes"));
        }
        if network.arc_between(a, b).is_some() {
            return Err(Error::description(
                place("ends"),
                format!("{} and {} are joined already", link.ends[0], link.ends[1]),
            ));
        }
        network.join([a, b], settings);
    }
    Ok(network)
}

fn micros(time_us: f64) -> Nanos {
    (time_us * MICROSECOND as f64 + 0.5) as Nanos
}

struct Builder<'a> {
    description: &'a Description,
    network: Network,
    switches: Switches,
    hosts: Hosts,
    /// Split routes so far: each has a generator of its own.
    splits: u64,
}

impl Builder<'_> {
    fn flow(&mut self, place: &str, index: u32, flow: &FlowDescription) -> Result<Flow, Error> {
        let paths = self.paths(place, index, flow)?;
        let framed =
            flow.protocol == Protocol::Mstcp && (paths.len() > 1 || flow.mstcp.identify_single);
        let mss = self.description.tcp.config(None).mss_bytes;
        let payload = match (framed, flow.mstcp.frame_payload_bytes) {
            (false, _) => mss,
            (true, Some(bytes)) if bytes > 0 => bytes,
            (true, None) if mss > FRAME_HEADER_BYTES => mss - FRAME_HEADER_BYTES,
            _ => {
                let place = format!("{place}.mstcp.frame_payload_bytes");
                return Err(Error::description(
                    place,
                    "a frame carries at least one byte",
                ));
            }
        };
        let (source, write_bytes) = self.source(place, index, flow.traffic, payload)?;
        let carrier = match flow.protocol {
            Protocol::Datagram => Carrier::Datagrams {
                route: self.route(&paths),
            },
            Protocol::Tcp => Carrier::Connections(self.plain(place, index, flow, &paths)?),
            Protocol::Mstcp if !framed => {
                Carrier::Connections(self.plain(place, index, flow, &paths)?)
            }
            Protocol::Mstcp => Carrier::Connections(self.mstcp(
                place,
                index,
                flow,
                &paths,
                [payload, write_bytes],
            )?),
        };
        let stop = flow.stop_s.unwrap_or(MAX_TIME_S);
        if !(0.0..=stop).contains(&flow.start_s) || stop > MAX_TIME_S {
            return Err(Error::description(
                format!("{place}.start_s"),
                "a flow starts at 0 or later, and before it stops",
            ));
        }
        let span = [seconds(flow.start_s), seconds(stop)];
        Ok(Flow::new(
            flow.name.clone(),
            carrier,
            source,
            write_bytes,
            span,
        ))
    }

    fn source(
        &self,
        place: &str,
        index: u32,
        traffic: Traffic,
        payload: u32,
    ) -> Result<(Source, u32), Error> {
        let (rate, bytes) = match traffic {
            Traffic::Cbr {
                rate_bps,
                write_bytes,
            } => (rate_bps, write_bytes),
            Traffic::Poisson {
                rate_bps,
                write_bytes,
            } => (rate_bps, write_bytes),
            Traffic::Bulk { write_bytes, .. } => (1.0, write_bytes),
        };
        let place = format!("{place}.traffic");
        if !(1.0..=1e13).contains(&rate) {
            return Err(Error::description(place, "rate_bps is between 1 and 1e13"));
        }
        let bytes = bytes.unwrap_or(payload);
        if !(1..=65_536).contains(&bytes) {
            return Err(Error::description(
                place,
                "write_bytes is between 1 and 65536",
            ));
        }
        let source = match traffic {
            Traffic::Cbr { .. } => Source::ConstantRate(Ticks::new(bytes, rate.round() as u64)),
            Traffic::Poisson { .. } => Source::Poisson {
                mean_ns: f64::from(bytes) * 8e9 / rate,
                rng: generator(self.description.seed, Purpose::Traffic, u64::from(index)),
            },
            Traffic::Bulk { total_bytes, .. } => Source::Bulk { left: total_bytes },
        };
        Ok((source, bytes))
    }

    // --- paths --------------------------------------------------------------------------------------------------------

    fn node(&self, place: &str, name: &str) -> Result<u32, Error> {
        self.network
            .node(name)
            .ok_or_else(|| Error::description(place, format!("no link ends at a node {name}")))
    }

    /// The links of a path that is given by its nodes.
    fn links(&self, place: &str, nodes: &[String], ends: [&str; 2]) -> Result<Vec<u32>, Error> {
        if nodes.first().map(String::as_str) != Some(ends[0])
            || nodes.last().map(String::as_str) != Some(ends[1])
        {
            return Err(Error::description(
                place,
                format!("the path must lead from {} to {}", ends[0], ends[1]),
            ));
        }
        let hop = |pair: &[String]| {
            let [tail, head] = [self.node(place, &pair[0])?, self.node(place, &pair[1])?];
            self.network.arc_between(tail, head).ok_or_else(|| {
                Error::description(place, format!("no link joins {} and {}", pair[0], pair[1]))
            })
        };
        nodes.windows(2).map(hop).collect()
    }

    fn found(
        &self,
        place: &str,
        found: FoundPath,
        index: u32,
        ends: [&str; 2],
    ) -> Result<Vec<u32>, Error> {
        let [source, destination] = [self.node(place, ends[0])?, self.node(place, ends[1])?];
        let seed = derive_seed(self.description.seed, Purpose::Hash, u64::from(index));
        let path = match found {
            FoundPath::Shortest => self.network.shortest_path(source, destination),
            FoundPath::Ecmp => {
                let hash = |node| derive_seed(seed, Purpose::Hash, u64::from(node));
                self.network.hashed_path(source, destination, hash)
            }
        };
        path.filter(|links| !links.is_empty()).ok_or_else(|| {
            Error::description(
                place,
                format!("no path leads from {} to {}", ends[0], ends[1]),
            )
        })
    }

    fn paths(
        &self,
        place: &str,
        index: u32,
        flow: &FlowDescription,
    ) -> Result<Vec<WeightedPath>, Error> {
        let ends = [&flow.src[..], &flow.dst[..]];
        let mut paths = Vec::new();
        for (number, path) in flow.paths.iter().enumerate() {
            let place = format!("{place}.paths[{number}]");
            let links = match &path.path {
                PathChoice::Nodes(nodes) => self.links(&place, nodes, ends)?,
                PathChoice::Found(found) => self.found(&place, *found, index, ends)?,
            };
            if !(0.0..=1e13).contains(&path.rate_bps) {
                return Err(Error::description(place, "rate_bps is between 0 and 1e13"));
            }
            paths.push(WeightedPath {
                links,
                weight: path.rate_bps,
            });
        }
        if paths.iter().map(|path| path.weight).sum::<f64>() <= 0.0 {
            return Err(Error::description(
                format!("{place}.paths"),
                "a flow needs a path with a rate above 0",
            ));
        }
        Ok(paths)
    }

    fn route(&mut self, paths: &[WeightedPath]) -> u32 {
        if let [path] = paths {
            return self.switches.pin(&path.links);
        }
        let rng = generator(self.description.seed, Purpose::Split, self.splits);
        self.splits += 1;
        self.switches.split(paths, rng)
    }

    /// The route of the acknowledgements of data on `paths`.
    fn ack_route(
        &mut self,
        place: &str,
        flow: &FlowDescription,
        paths: &[WeightedPath],
    ) -> Result<u32, Error> {
        let place = format!("{place}.ack_path");
        let ends = [&flow.dst[..], &flow.src[..]];
        let rule = match &flow.ack_path {
            Some(AckPath::Nodes(nodes)) => {
                let links = self.links(&place, nodes, ends)?;
                return Ok(self.switches.pin(&links));
            }
            Some(AckPath::Rule(rule)) => *rule,
            None if paths.len() > 1 => AckRule::Shortest,
            None => AckRule::Reverse,
        };
        let back: Vec<WeightedPath> = paths
            .iter()
            .map(|path| WeightedPath {
                links: path.links.iter().rev().map(|link| link ^ 1).collect(),
                weight: path.weight,
            })
            .collect();
        Ok(match rule {
            AckRule::Reverse => self.route(&back[..1]),
            AckRule::Split => self.route(&back),
            AckRule::Shortest => {
                let links = self.found(&place, FoundPath::Shortest, 0, ends)?;
                self.switches.pin(&links)
            }
        })
    }

    // --- connections --------------------------------------------------------------------------------------------------

    /// A connection whose data goes over `paths`: indices of its endpoints. `overhead` is what TCP carries for each byte of the
    /// application.
    fn connection(
        &mut self,
        place: &str,
        ids: (u32, u16),
        flow: &FlowDescription,
        paths: &[WeightedPath],
        overhead: f64,
    ) -> Result<[u32; 2], Error> {
        let rate = paths.iter().map(|path| path.weight).sum::<f64>() * overhead;
        let config = self.description.tcp.config(Some(rate));
        config
            .validate()
            .map_err(|error| Error::description("tcp", error.to_string()))?;
        let routes = [self.route(paths), self.ack_route(place, flow, paths)?];
        let ends = [
            Endpoint::client(&config, seconds(flow.start_s)),
            Endpoint::server(&config),
        ];
        Ok(self.hosts.connect(ends, routes, ids.0, ids.1))
    }

    fn plain(
        &mut self,
        place: &str,
        index: u32,
        flow: &FlowDescription,
        paths: &[WeightedPath],
    ) -> Result<Box<dyn Bundle>, Error> {
        Ok(Box::new(Plain::new(self.connection(
            place,
            (index, 0),
            flow,
            paths,
            1.0,
        )?)))
    }

    fn mstcp(
        &mut self,
        place: &str,
        index: u32,
        flow: &FlowDescription,
        paths: &[WeightedPath],
        [frame_payload_bytes, write_bytes]: [u32; 2],
    ) -> Result<Box<dyn Bundle>, Error> {
        let overhead = 1.0 + f64::from(FRAME_HEADER_BYTES) / f64::from(frame_payload_bytes);
        let mut ends = Vec::new();
        for (stream, path) in paths.iter().enumerate() {
            let ids = (index, stream as u16);
            ends.push(self.connection(place, ids, flow, std::slice::from_ref(path), overhead)?);
        }
        let settings = MstcpSettings {
            binding: flow.mstcp.binding,
            frame_payload_bytes: frame_payload_bytes as usize,
            reorder_buffer_bytes: flow.mstcp.reorder_buffer_bytes,
            send_buffer_bytes: u64::from(self.description.tcp.config(None).send_buffer_bytes),
            unsent_limit_bytes: paths
                .iter()
                .map(|path| {
                    let frame = f64::from(frame_payload_bytes + FRAME_HEADER_BYTES);
                    let bytes = path.weight / 8.0 * UNSENT_TIME_S;
                    bytes.max(UNSENT_FRAMES_MIN * frame).min(UNSENT_BYTES_MAX) as u32
                })
                .collect(),
        };
        let seed = derive_seed(self.description.seed, Purpose::Schedule, u64::from(index));
        let refused = |error: mstcp_core::LocalError| {
            Error::description(format!("{place}.mstcp"), error.to_string())
        };
        let schedulers = [
            scheduler::by_name(&flow.mstcp.scheduler, seed).map_err(refused)?,
            scheduler::by_name(&flow.mstcp.scheduler, !seed).map_err(refused)?,
        ];
        let streams: Vec<StreamSettings> = ends
            .into_iter()
            .zip(paths)
            .map(|(ends, path)| StreamSettings {
                ends,
                rate_bps: path.weight,
                delay: self.network.delay(&path.links),
            })
            .collect();
        let bundle = Mstcp::new(settings, &streams, schedulers, write_bytes as usize)
            .map_err(|error| Error::description(format!("{place}.mstcp"), error.to_string()))?;
        Ok(Box::new(bundle))
    }
}
