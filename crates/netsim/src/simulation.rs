//! The engine: one loop that takes the next event and lets links, switches, endpoints and applications act on it.

use crate::ahead::Fetched;
use crate::bundle::StreamChange;
use crate::error::Error;
use crate::flow::{Carrier, Flow};
use crate::hosts::Hosts;
use crate::link::{InFlight, Link, LinkChange, SendOutcome};
use crate::network::Network;
use crate::packet::{Arena, Content};
use crate::queue::{Event, EventQueue, EventTarget};
use crate::switch::{Step, Switches};
use crate::tcp::segment::MptcpKind;
use crate::tcp::{Endpoint, Segment};
use crate::time::Nanos;
use crate::trace::Trace;
use crate::wireless::Scheduled;

/// Length of a TCP header without options (RFC 9293, 3.1).
const TCP_HEADER_BYTES: u32 = 20;

/// What happens at a fixed time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Both directions of a link go down; the index is that of the first arc.
    LinkDown(u32),
    /// They come up again.
    LinkUp(u32),
    /// A direction of a link becomes another one: indices of its arc and of the change.
    ChangeLink(u32, u32),
    /// A flow takes other paths; the index is that of the reroute.
    Reroute(u32),
    /// A stream of a flow is added or removed: indices of flow and stream.
    Stream(u32, u16, StreamChange),
    /// The measurement begins.
    Measure,
    /// An interval of the series ends.
    Sample,
}

/// The routes of a flow from a time on.
#[derive(Debug, Clone, PartialEq)]
pub struct Reroute {
    /// Which flow.
    pub flow: u32,
    /// One for each of its connections; one for datagrams.
    pub streams: Vec<StreamRoute>,
}

/// The route of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRoute {
    /// Routes of what client and server send.
    pub routes: [u32; 2],
    /// Goodput allocated to it.
    pub rate_bps: f64,
    /// What TCP carries for it.
    pub carried_bps: f64,
    /// Propagation delay from client to server.
    pub delay: Nanos,
}

/// Times of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The measurement begins.
    pub measure_from: Nanos,
    /// The run ends.
    pub end: Nanos,
    /// Interval of the series; 0 for none.
    pub series_interval: Nanos,
}

/// What the engine has counted. At any time `sent = delivered + dropped + in flight`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events taken from the queue.
    pub events: u64,
    /// Packets that hosts have sent.
    pub sent: u64,
    /// Packets that have reached their host.
    pub delivered: u64,
    /// Packets that a queue, a wire or a link that is down has lost.
    pub dropped: u64,
}

/// A run.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) now: Nanos,
    pub(crate) queue: EventQueue,
    pub(crate) packets: Arena,
    pub(crate) links: Vec<Link>,
    pub(crate) media: Vec<Scheduled>,
    pub(crate) switches: Switches,
    pub(crate) hosts: Hosts,
    pub(crate) flows: Vec<Flow>,
    pub(crate) actions: Vec<Action>,
    pub(crate) link_changes: Vec<LinkChange>,
    pub(crate) reroutes: Vec<Reroute>,
    pub(crate) schedule: Schedule,
    pub(crate) packet_overhead_bytes: u32,
    pub(crate) counters: Counters,
    pub(crate) samples: Vec<Sample>,
    /// Bytes and busy time of each link when the measurement began.
    pub(crate) at_start: Sample,
    pub(crate) network: Network,
    pub(crate) trace: Option<Box<Trace>>,
    /// What has been fetched of each of the next events; memory that is used again.
    pub(crate) ahead: Vec<Fetched>,
}

/// What links and streams had carried at some time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub time: Nanos,
    /// By link and direction: how long its transmitter has been busy.
    pub busy: Vec<Nanos>,
    /// By link and direction: packets dropped.
    pub dropped: Vec<u64>,
    /// By flow and stream: bytes that have arrived at the receiver, each once.
    pub arrived: Vec<Vec<u64>>,
    /// By flow and stream: application bytes acknowledged.
    pub acknowledged: Vec<Vec<u64>>,
    /// By flow and stream: the congestion window.
    pub cwnd: Vec<Vec<u64>>,
    /// Likewise the smoothed round-trip time; 0 before it is measured.
    pub srtt: Vec<Vec<Nanos>>,
    /// By flow: bytes that wait at the receiver for earlier ones.
    pub waiting: Vec<u64>,
}

impl Simulation {
    /// Run until the end, or until `max_events` more events have happened; whether the end has come.
    pub fn run(&mut self, max_events: u64) -> Result<bool, Error> {
        let last = self.counters.events.saturating_add(max_events);
        while self.counters.events < last {
            self.fetch_ahead();
            match self.queue.peek() {
                Some(event) if event.time() < self.schedule.end => self.handle(event)?,
                _ => {
                    self.now = self.schedule.end;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Take what the traces have grown by since the last time: names of files and their next bytes.
    pub fn take_trace(&mut self) -> Vec<(String, Vec<u8>)> {
        self.trace
            .as_mut()
            .map_or_else(Vec::new, |trace| trace.take())
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets on their way.
    pub fn in_flight(&self) -> usize {
        self.packets.len()
    }

    /// The flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Both directions of all links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Simulated time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    fn handle(&mut self, event: Event) -> Result<(), Error> {
        self.counters.events += 1;
        self.now = event.time();
        match event.target() {
            EventTarget::Link(link) => self.on_arrival(event, link),
            EventTarget::Timer(endpoint) => {
                self.queue.pop();
                self.on_timer(endpoint)
            }
            EventTarget::Source(flow) => self.on_source(flow),
            EventTarget::Schedule(index) => {
                self.queue.pop();
                self.act(index)
            }
            EventTarget::Medium(index) => {
                self.queue.pop();
                self.on_medium(index)
            }
            EventTarget::Flow(index) => {
                self.queue.pop();
                self.on_flow_timer(index)
            }
        }
    }

    // --- packets ------------------------------------------------------------------------------------------------------

    fn on_arrival(&mut self, event: Event, link: u32) -> Result<(), Error> {
        let Some((packet, next)) = self.links[link as usize].arrive(event) else {
            self.queue.pop();
            return Ok(());
        };
        match next {
            Some(next) => self.queue.replace_first(next),
            None => {
                self.queue.pop();
            }
        }
        self.forward(packet.packet, packet.cursor, packet.bytes)
    }

    /// Do what the route says next.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        packet: u32,
        mut cursor: u32,
        bytes: u32,
    ) -> Result<(), Error> {
        loop {
            match self.switches.step(cursor) {
                Step::Link(link) => {
                    self.transmit(link, packet, cursor + 1, bytes);
                    return Ok(());
                }
                Step::Split(splitter) => cursor = self.switches.draw(splitter),
                Step::Deliver => return self.deliver(packet),
            }
        }
    }

    #[inline(always)]
    fn transmit(&mut self, index: u32, packet: u32, cursor: u32, bytes: u32) {
        let link = &mut self.links[index as usize];
        let verdict = link.transmit(self.now, bytes);
        if let SendOutcome::Shared(medium_pair) = verdict {
            return self.offer(medium_pair, packet, cursor, bytes);
        }
        if let Some(trace) = &mut self.trace {
            let content = self.packets.get(packet);
            trace.on_link(self.now, index, packet, content, bytes, verdict);
        }
        match verdict {
            SendOutcome::Arrives(time) => {
                let arrival = self.queue.reserve(time, EventTarget::Link(index));
                if link.launch(InFlight {
                    arrival,
                    packet,
                    cursor,
                    bytes,
                }) {
                    self.queue.push(arrival);
                }
            }
            SendOutcome::Dropped(_) | SendOutcome::Shared(_) => {
                self.counters.dropped += 1;
                self.packets.remove(packet);
            }
        }
    }

    // A packet is delivered once and takes several links: what that takes stays out of their way.
    #[inline(never)]
    fn deliver(&mut self, packet: u32) -> Result<(), Error> {
        self.counters.delivered += 1;
        self.packets.remove(packet);
        if let Some(trace) = &mut self.trace {
            trace.on_delivered(self.now, self.packets.get(packet));
        }
        match self.packets.get(packet) {
            Content::Tcp { endpoint, segment } => {
                let endpoint = *endpoint;
                if segment.mptcp != MptcpKind::None {
                    let host = self.hosts.get(endpoint);
                    let stream_end = host.stream_end();
                    if let Carrier::Connections(bundle) =
                        &mut self.flows[host.flow as usize].carrier
                    {
                        bundle.on_arrival(self.now, stream_end, segment, &mut self.hosts);
                    }
                }
                self.hosts
                    .get_mut(endpoint)
                    .tcp
                    .on_segment(self.now, segment);
                self.on_change(endpoint)
            }
            &Content::Datagram {
                flow,
                payload_bytes,
                written,
            } => {
                self.flows[flow as usize].on_datagram(self.now, payload_bytes, written);
                Ok(())
            }
        }
    }

    pub(crate) fn send(&mut self, content: Content, route: u32, bytes: u32) -> Result<(), Error> {
        self.counters.sent += 1;
        let packet = self.packets.insert(content);
        if let Some(trace) = &mut self.trace {
            trace.on_sent(self.now, packet, &content);
        }
        self.forward(packet, route, bytes)
    }

    // --- endpoints ----------------------------------------------------------------------------------------------------

    fn on_timer(&mut self, endpoint: u32) -> Result<(), Error> {
        let host = self.hosts.get_mut(endpoint);
        if host.timer != self.now {
            return Ok(());
        }
        host.timer = Nanos::MAX;
        match host.tcp.next_timer() {
            Some(time) if time <= self.now => {
                host.tcp.on_timer(self.now);
                self.on_change(endpoint)
            }
            _ => {
                self.arm(endpoint);
                Ok(())
            }
        }
    }

    /// Let all touched endpoints send what they have.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        while let Some((endpoint, segment)) = self.hosts.next_pushed() {
            self.launch(endpoint, segment)?;
        }
        while let Some(endpoint) = self.hosts.next_touched() {
            self.flush(endpoint)?;
        }
        Ok(())
    }

    fn flush(&mut self, endpoint: u32) -> Result<(), Error> {
        while let Some(segment) = self.hosts.get_mut(endpoint).tcp.poll_transmit(self.now) {
            self.launch(endpoint, segment)?;
        }
        self.arm(endpoint);
        Ok(())
    }

    /// Put a segment that leaves an endpoint on its route.
    #[inline(always)]
    fn launch(&mut self, endpoint: u32, mut segment: Segment) -> Result<(), Error> {
        let host = self.hosts.get(endpoint);
        let (route, peer) = (host.route, host.peer);
        if host.wrapped {
            let stream_end = host.stream_end();
            if let Carrier::Connections(bundle) = &mut self.flows[host.flow as usize].carrier {
                bundle.on_transmit(stream_end, &mut segment);
            }
        }
        let options = host.tcp.option_layout().bytes(&segment);
        let bytes = self.packet_overhead_bytes + TCP_HEADER_BYTES + options + segment.payload_bytes;
        let content = Content::Tcp {
            endpoint: peer,
            segment,
        };
        self.send(content, route, bytes)
    }

    /// Make sure that a timer event comes no later than the endpoint's next timer.
    fn arm(&mut self, endpoint: u32) {
        let host = self.hosts.get_mut(endpoint);
        if let Some(time) = host.tcp.next_timer() {
            if time < host.timer {
                host.timer = time.max(self.now);
                self.queue
                    .schedule(host.timer, EventTarget::Timer(endpoint));
            }
        }
    }

    // --- the schedule -------------------------------------------------------------------------------------------------

    fn act(&mut self, index: u32) -> Result<(), Error> {
        match self.actions[index as usize] {
            Action::LinkDown(arc) => {
                for link in [arc, arc + 1] {
                    for lost in self.links[link as usize].go_down(self.now) {
                        self.counters.dropped += 1;
                        self.packets.remove(lost.packet);
                    }
                    if let Some(medium_pair) = self.links[link as usize].medium_pair() {
                        self.drop_waiting(medium_pair)?;
                    }
                }
            }
            Action::LinkUp(arc) => {
                for link in [arc, arc + 1] {
                    self.links[link as usize].come_up();
                }
            }
            Action::ChangeLink(arc, change) => {
                let queue = &mut self.queue;
                let due = self.links[arc as usize].change(
                    self.now,
                    &self.link_changes[change as usize],
                    |time| queue.reserve(time, EventTarget::Link(arc)),
                );
                if let Some(arrival) = due {
                    self.queue.push(arrival);
                }
            }
            Action::Reroute(index) => return self.reroute(index as usize),
            Action::Stream(flow, stream, change) => {
                let flow = &mut self.flows[flow as usize];
                if let Carrier::Connections(bundle) = &mut flow.carrier {
                    bundle.change(self.now, usize::from(stream), change, &mut self.hosts);
                }
                return self.settle();
            }
            Action::Measure => {
                self.at_start = self.sample();
                for flow in &mut self.flows {
                    flow.meter.start(flow.on_until(self.now));
                    flow.ticks = [0; 2];
                }
                if self.schedule.series_interval > 0 {
                    self.schedule_sample();
                }
            }
            Action::Sample => {
                let sample = self.sample();
                self.samples.push(sample);
                self.flows.iter_mut().for_each(|flow| flow.meter.sample());
                self.schedule_sample();
            }
        }
        Ok(())
    }

    fn reroute(&mut self, index: usize) -> Result<(), Error> {
        let Reroute { flow, streams } = &self.reroutes[index];
        match &mut self.flows[*flow as usize].carrier {
            Carrier::Datagrams { route } => *route = streams[0].routes[0],
            Carrier::Connections(bundle) => {
                for (stream, (ends, then)) in bundle.streams().iter().zip(streams).enumerate() {
                    for (side, &endpoint) in ends.iter().enumerate() {
                        self.hosts.get_mut(endpoint).route = then.routes[side];
                    }
                    self.hosts.set_pacing_rate(ends[0], then.carried_bps);
                    bundle.reroute(stream, then.rate_bps, then.delay)?;
                }
            }
        }
        self.settle()
    }

    fn schedule_sample(&mut self) {
        let index = self.actions.len() as u32 - 1;
        debug_assert_eq!(self.actions[index as usize], Action::Sample);
        let time = self.now + self.schedule.series_interval;
        self.queue.schedule(time, EventTarget::Schedule(index));
    }

    pub(crate) fn sample(&self) -> Sample {
        Sample {
            time: self.now,
            busy: (0..self.links.len())
                .map(|link| self.link_busy(link))
                .collect(),
            dropped: (0..self.links.len())
                .map(|link| self.link_counters(link).dropped())
                .collect(),
            arrived: self.of_streams(1, |tcp| {
                tcp.statistics().bytes_received + tcp.reassembly_bytes()
            }),
            acknowledged: self.of_streams(0, |tcp| tcp.statistics().bytes_acknowledged),
            cwnd: self.of_streams(0, |tcp| tcp.path().cwnd_bytes),
            srtt: self.of_streams(0, |tcp| tcp.path().srtt),
            waiting: self.flows.iter().map(|flow| self.waiting(flow)).collect(),
        }
    }

    /// A figure of each flow's streams, at their senders (0) or receivers (1).
    fn of_streams(&self, side: usize, figure: impl Fn(&Endpoint) -> u64) -> Vec<Vec<u64>> {
        let of_flow = |flow: &Flow| match &flow.carrier {
            Carrier::Connections(bundle) => bundle
                .streams()
                .iter()
                .map(|ends| figure(&self.hosts.get(ends[side]).tcp))
                .collect(),
            Carrier::Datagrams { .. } => Vec::new(),
        };
        self.flows.iter().map(of_flow).collect()
    }

    fn waiting(&self, flow: &Flow) -> u64 {
        let Carrier::Connections(bundle) = &flow.carrier else {
            return 0;
        };
        let of_tcp = |ends: &[u32; 2]| self.hosts.get(ends[1]).tcp.reassembly_bytes();
        let over_tcp = bundle.report().reorder_buffer_bytes;
        over_tcp.unwrap_or_else(|| bundle.streams().iter().map(of_tcp).sum())
    }
}
