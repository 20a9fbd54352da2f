//! The description of a run, as JSON: what `serde` reads here is all there is to set. Unknown keys are refused by name.

use serde::Deserialize;

use crate::bundle::mptcp::DuplicateAcks;
use crate::error::Error;
use crate::methods::Named;
use crate::tcp_description::{CongestionName, TcpDescription};
use crate::trace::TraceDescription;
use crate::wifi_description::WifiDescription;

/// A run: network, TCP and flows. Rates are bit/s, sizes bytes; times are seconds, those of links microseconds.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Version of this format: 1.
    pub format: u32,
    /// Seed of all draws.
    #[serde(default)]
    pub seed: u64,
    /// Length of the measurement.
    pub duration_s: f64,
    /// Time from the start of the run to the start of the measurement.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Interval of all series; none for no series.
    #[serde(default)]
    pub series_interval_s: Option<f64>,
    /// Bytes of a packet in front of the TCP header: link header and 20 of IPv4. 34 for Ethernet, 22 for PPP.
    #[serde(default = "default_packet_overhead_bytes")]
    pub packet_overhead_bytes: u32,
    /// The links; nodes are what they name.
    pub links: Vec<LinkDescription>,
    /// TCP of all hosts.
    #[serde(default)]
    pub tcp: TcpDescription,
    /// What is traced; nothing unless given.
    #[serde(default)]
    pub trace: Option<TraceDescription>,
    /// The flows.
    pub flows: Vec<FlowDescription>,
}

/// A link, alike in both directions: full-duplex with `rate_bps` and `delay_us`, or over a shared medium with `wifi`.
///
/// `rate_bps` counts whole packets with their link header.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LinkDescription {
    /// Names of the two nodes.
    pub ends: [String; 2],
    /// Rate, at least 1.
    #[serde(default)]
    pub rate_bps: Option<f64>,
    /// Propagation delay.
    #[serde(default)]
    pub delay_us: Option<f64>,
    /// What a wireless link is.
    #[serde(default)]
    pub wifi: Option<WifiDescription>,
    /// Bound of the packets that wait, the one in transmission not counted; none: unlimited, with `wifi` 500.
    #[serde(default)]
    pub queue_packets: Option<u64>,
    /// Bound of the bytes that wait, likewise.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// Probability that a packet is lost, below 1.
    #[serde(default)]
    pub loss: f64,
    /// The delay is longer by a uniform draw up to this; packets stay in order.
    #[serde(default)]
    pub jitter_us: f64,
    /// Spans [from, to) in seconds of the run during which the link is down.
    #[serde(default)]
    pub down_s: Vec<[f64; 2]>,
    /// What becomes of it at fixed times, in their order.
    #[serde(default)]
    pub changes: Vec<LinkChangeDescription>,
}

/// A link from a time on: all that a change can be of.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LinkChangeDescription {
    /// Seconds of the run.
    pub at_s: f64,
    /// As of [`LinkDescription`].
    pub rate_bps: f64,
    /// Likewise.
    pub delay_us: f64,
    /// Likewise.
    #[serde(default)]
    pub queue_packets: Option<u64>,
    /// Likewise.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// Likewise.
    #[serde(default)]
    pub loss: f64,
    /// Likewise.
    #[serde(default)]
    pub jitter_us: f64,
}

/// A flow: an application that writes at `src`, and one that reads at `dst`.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FlowDescription {
    /// Its name in the results.
    pub name: String,
    /// Node that sends.
    pub src: String,
    /// Node that receives.
    pub dst: String,
    /// What carries it.
    pub protocol: Protocol,
    /// What the application writes.
    pub traffic: Traffic,
    /// When the connections are opened. The application begins once all of them are open.
    #[serde(default)]
    pub start_s: f64,
    /// ... but no earlier than this, if it is given.
    #[serde(default)]
    pub write_from_s: Option<f64>,
    /// When the application stops writing; none: never.
    #[serde(default)]
    pub stop_s: Option<f64>,
    /// `mstcp`: one stream for each. `tcp` and `datagram`: where there are several, the switch at which they part draws
    /// one for each packet (PPFS).
    #[serde(default = "default_paths")]
    pub paths: Vec<PathDescription>,
    /// The way of the acknowledgements; `shortest` for split flows, else `reverse`, unless given.
    #[serde(default)]
    pub ack_path: Option<AckPath>,
    /// Other paths at fixed times, in their order.
    #[serde(default)]
    pub reroutes: Vec<RerouteDescription>,
    /// Settings of the MSTCP connection.
    #[serde(default)]
    pub mstcp: MstcpDescription,
    /// Settings of the MPTCP connection.
    #[serde(default)]
    pub mptcp: MptcpDescription,
    /// Congestion control of this flow; the run's unless given.
    #[serde(default)]
    pub congestion_control: Option<Named<CongestionName>>,
    /// Payload of this flow's full segments; the run's unless given.
    #[serde(default)]
    pub mss_bytes: Option<u32>,
    /// Whether the results have each write and each read with its time.
    #[serde(default)]
    pub log: bool,
    /// Slow-start threshold after the handshake; the run's unless given. Linux keeps that of the last connection to a destination.
    #[serde(default)]
    pub initial_ssthresh_bytes: Option<u64>,
}

/// The paths of a flow from a time on. Packets that are under way stay on theirs.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RerouteDescription {
    /// Seconds of the run.
    pub at_s: f64,
    /// As many as the flow has; those of one connection may be more or fewer.
    pub paths: Vec<PathDescription>,
    /// As of [`FlowDescription`].
    #[serde(default)]
    pub ack_path: Option<AckPath>,
}

/// What carries a flow.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One TCP connection.
    Tcp,
    /// MSTCP over a stream for each path; over one path plain TCP, as in the paper, unless `mstcp.identify_single`.
    Mstcp,
    /// MPTCP with a subflow for each path.
    Mptcp,
    /// Packets without acknowledgement or retransmission.
    Datagram,
}

/// What an application writes. `write_bytes` is one packet's payload unless given.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// A constant bit rate.
    Cbr {
        /// Goodput that the application asks for.
        rate_bps: f64,
        /// Bytes of a write.
        #[serde(default)]
        write_bytes: Option<u32>,
        /// What becomes of a write that finds the send buffer full.
        #[serde(default)]
        when_full: WhenFull,
        /// Each write is late by a uniform draw up to this part of the time between two, at most 1.
        #[serde(default)]
        jitter: f64,
    },
    /// The same at the times of a Poisson process.
    Poisson {
        /// Mean goodput that the application asks for.
        rate_bps: f64,
        /// Bytes of a write.
        #[serde(default)]
        write_bytes: Option<u32>,
        /// What becomes of a write that finds the send buffer full.
        #[serde(default)]
        when_full: WhenFull,
    },
    /// A constant bit rate during on periods, and nothing between them.
    #[serde(rename = "onoff")]
    OnOff {
        /// Goodput during on periods.
        rate_bps: f64,
        /// Begin and end of each on period in seconds; they rise, and the first begins at 0.
        periods: Vec<(f64, f64)>,
        /// Bytes of a write.
        #[serde(default)]
        write_bytes: Option<u32>,
        /// What becomes of a write that finds the send buffer full.
        #[serde(default)]
        when_full: WhenFull,
        /// Each write is late by a uniform draw up to this part of the time between two, at most 1.
        #[serde(default)]
        jitter: f64,
    },
    /// As much as the send buffer takes, `total_bytes` at most.
    Bulk {
        /// Bytes in all; none: without end.
        #[serde(default)]
        total_bytes: Option<u64>,
        /// Bytes of a write.
        #[serde(default)]
        write_bytes: Option<u32>,
        /// The application writes no faster than this; none: as the send buffer takes it.
        #[serde(default)]
        write_rate_bps: Option<f64>,
    },
    /// The destination asks over the flow's connection, the source answers, one after the other.
    Requests {
        /// Bytes of the answers, in the order of the requests; after the last one they begin again.
        sizes_bytes: Vec<u64>,
        /// Times between requests, none after the last (open loop); with `users` how long one thinks, where they begin again.
        times_s: Vec<f64>,
        /// Users of a closed loop: each waits for the whole answer, thinks and asks again.
        #[serde(default)]
        users: Option<u32>,
        /// Bytes of a request.
        #[serde(default = "default_request_bytes")]
        request_bytes: u32,
        /// Bytes of a write.
        #[serde(default)]
        write_bytes: Option<u32>,
        /// The application answers no faster than this; none: as the send buffer takes it.
        #[serde(default)]
        write_rate_bps: Option<f64>,
    },
    /// Writes that somebody else has decided, each with its time.
    Listed {
        /// Seconds since the connections were open, which do not fall, and bytes.
        writes: Vec<(f64, u32)>,
        /// What becomes of a write that finds the send buffer full.
        #[serde(default)]
        when_full: WhenFull,
        /// What waits is written no faster than this; none: as the send buffer takes it.
        #[serde(default)]
        write_rate_bps: Option<f64>,
    },
}

/// What becomes of a write of a source with a rate that finds the send buffer full.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It is left out and counted, as in the paper.
    #[default]
    Skip,
    /// It waits until there is room, and those after it wait behind it.
    Wait,
}

/// A path and what it may carry.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PathDescription {
    /// Its nodes from `src` to `dst`, or how they are found.
    #[serde(default)]
    pub path: PathChoice,
    /// Goodput allocated to it: its weight among the flow's paths, and what its packets may be paced at. None: nothing is allocated
    /// to it, and it weighs 1.
    #[serde(default)]
    pub rate_bps: Option<f64>,
    /// `mptcp`: when the subflow joins; with the connection unless given. The first path's is always there.
    #[serde(default)]
    pub join_s: Option<f64>,
    /// `mptcp`: when the subflow is given up.
    #[serde(default)]
    pub leave_s: Option<f64>,
}

/// A path: its nodes, or how they are found.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(
    untagged,
    expecting = "a path is a list of node names, \"shortest\" or \"ecmp\""
)]
pub enum PathChoice {
    /// Found by the network.
    Found(FoundPath),
    /// These nodes.
    Nodes(Vec<String>),
}

/// How the network finds a path.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FoundPath {
    /// Least delay, then fewest links, then first in the file.
    Shortest,
    /// One of those of least delay and fewest links, by a hash of the connection at each node.
    Ecmp,
}

impl Default for PathChoice {
    fn default() -> Self {
        Self::Found(FoundPath::Shortest)
    }
}

/// The way of acknowledgements.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(
    untagged,
    expecting = "a way for acknowledgements is \"reverse\", \"shortest\", \"split\" or a list of node names from dst to src"
)]
pub enum AckPath {
    /// By a rule.
    Rule(AckRule),
    /// These nodes.
    Nodes(Vec<String>),
}

/// A rule for the way of acknowledgements.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AckRule {
    /// The reverse of the data's path, the first of them if they are split.
    Reverse,
    /// The shortest path.
    Shortest,
    /// Split like the data, over the reverse paths.
    Split,
}

/// Settings of an MSTCP connection.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct MstcpDescription {
    /// When a frame is given to a stream.
    pub binding: Binding,
    /// Bytes that may be written and not acknowledged, in seconds of the rate (of each stream with early binding, else of the
    /// flow), `tcp.send_buffer_bytes` at most. Unless given: with early binding and another scheduler than `stochastic` what a
    /// round trip needs, else `tcp.send_buffer_bytes`.
    pub send_buffer_s: Option<f64>,
    /// Which stream is chosen: a name that the core knows (`stochastic`, `weighted`, `earliest`, `redundant`).
    pub scheduler: String,
    /// Memory for frames that are ahead.
    pub reorder_buffer_bytes: usize,
    /// Application bytes in a full frame; unless given, one segment's payload less 8.
    pub frame_payload_bytes: Option<u32>,
    /// Whether a connection of one stream has frames too.
    pub identify_single: bool,
    /// Take for delivered what a stream took, as in the paper; else the library's whole protocol, with late binding alone. Unless
    /// given: with early binding.
    pub trust_streams: Option<bool>,
}

impl MstcpDescription {
    /// Whether what a stream took counts as delivered.
    pub fn trusts_streams(&self) -> bool {
        self.trust_streams.unwrap_or(self.binding == Binding::Early)
    }
}

impl Default for MstcpDescription {
    fn default() -> Self {
        Self {
            binding: Binding::Late,
            scheduler: "weighted".to_owned(),
            reorder_buffer_bytes: 4 << 20,
            frame_payload_bytes: None,
            send_buffer_s: None,
            identify_single: false,
            trust_streams: None,
        }
    }
}

/// Settings of an MPTCP connection.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct MptcpDescription {
    /// Which subflow carries the next segment: `minrtt`, `roundrobin`, `blest`, `ecf`, `redundant`, `linux`, or `MODULE:NAME`.
    pub scheduler: String,
    /// How the subflows' windows are coupled, or a user-defined `MODULE:NAME`.
    pub congestion_control: Named<CoupledName>,
    /// What raises duplicate ACKs.
    pub dupack: DuplicateAcks,
    /// Send again on a fast subflow what blocks the window or the buffer.
    pub opportunistic_retransmission: bool,
    /// Halve the window of a subflow that blocks the receive window.
    pub penalisation: bool,
    /// Send what a subflow had before a timeout over the others too.
    pub reinjection: bool,
    /// Bytes written and not acknowledged, of the connection; `tcp.send_buffer_bytes` unless given.
    pub send_buffer_bytes: Option<u32>,
    /// The receive window of the connection, which the subflows share; `tcp.receive_buffer_bytes` unless given.
    pub receive_buffer_bytes: Option<u32>,
}

impl Default for MptcpDescription {
    fn default() -> Self {
        Self {
            scheduler: "minrtt".to_owned(),
            congestion_control: Named::BuiltIn(CoupledName::Lia),
            dupack: DuplicateAcks::Subflow,
            opportunistic_retransmission: true,
            penalisation: true,
            reinjection: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}

/// How the windows of subflows are coupled, by name.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CoupledName {
    /// Not at all: each subflow has the flow's congestion control by itself.
    Uncoupled,
    /// RFC 6356.
    Lia,
    /// Khalili et al. 2012.
    Olia,
    /// Peng et al. 2016.
    Balia,
    /// Xu et al. 2012.
    Wvegas,
    /// One window for all.
    FullyCoupled,
}

/// When a frame is given to a stream.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// When it is written, as in the paper: each stream has a send buffer of its own, and a write whose stream is full is
    /// skipped; the next write draws again.
    Early,
    /// When a stream has room for it, as the library does: what is written waits in one queue.
    Late,
}

fn default_packet_overhead_bytes() -> u32 {
    34
}

fn default_request_bytes() -> u32 {
    100
}

fn default_paths() -> Vec<PathDescription> {
    vec![PathDescription {
        path: PathChoice::default(),
        rate_bps: None,
        join_s: None,
        leave_s: None,
    }]
}

impl PathDescription {
    /// Its weight among the flow's paths.
    pub fn weight(&self) -> f64 {
        self.rate_bps.unwrap_or(1.0)
    }
}

impl Description {
    /// Read a description from JSON.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::description("", error.to_string()))
    }
}
