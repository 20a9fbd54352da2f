//! TCP connections and the protocols over them.

use mstcp_proto::scheduler;

use super::{Builder, Described};
use crate::bundle::mptcp::scheduler::{by_name as scheduler_by_name, NAMES as SCHEDULERS};
use crate::bundle::mptcp::DuplicateAcks;
use crate::bundle::{
    Bundle, Mptcp, MptcpSettings, Mstcp, MstcpSettings, Plain, SocketLimits, StreamSettings,
    SubflowSettings,
};
use crate::description::{Binding, CoupledName, FlowDescription, Protocol};
use crate::error::Error;
use crate::link::LinkSettings;
use crate::methods::{is_own, Named};
use crate::random::{derive_seed, Purpose};
use crate::switch::WeightedPath;
use crate::tcp::config::{CongestionAlgorithm, Detection, Ns3MptcpMethod, Pacing};
use crate::tcp::congestion::{self, coupled as coupling, CongestionControl};
use crate::tcp::ns3::{FRtoStep, Ns3FRto};
use crate::tcp::{Config, Endpoint, Profile};
use crate::time::{seconds, Nanos, SECOND};

/// Bytes of the identifier in front of each full frame.
pub(super) const FRAME_HEADER_BYTES: u32 = mstcp_proto::frame::HEADER_BYTES as u32;
/// A question for an address, or its answer, in Ethernet's frame (RFC 826).
const ARP_BYTES: u32 = 42;
/// Subflows of one connection, at most: a set of them is a word.
const MAX_SUBFLOWS: usize = 64;
/// A stream has room while less than this time of its rate is unsent, as in the library.
const UNSENT_TIME_S: f64 = 0.010;
/// ... but for these bounds.
const UNSENT_FRAMES_MIN: f64 = 4.0;
const UNSENT_BYTES_MAX: f64 = 2_097_152.0;
/// The library gives the socket of a plain connection so large a part of that at once.
const PLAIN_PIECES: u32 = 4;
/// A send buffer that follows the rate has room for this many segments at least.
const SEND_BUFFER_SEGMENTS_MIN: u32 = 8;
/// ... and beyond a round trip for these: segments that serialise or wait for a delayed ACK.
const SEND_BUFFER_SPARE_SEGMENTS: f64 = 4.0;
const SEND_BUFFER_SPARE_S: f64 = 0.002;

/// What may wait unsent in a stream's socket where TCP carries `rate_bps` in frames of `frame_bytes`.
fn unsent_limit_bytes(rate_bps: f64, frame_bytes: u32) -> u32 {
    let bytes = rate_bps / 8.0 * UNSENT_TIME_S;
    bytes
        .max(UNSENT_FRAMES_MIN * f64::from(frame_bytes))
        .min(UNSENT_BYTES_MAX) as u32
}

impl Builder<'_> {
    /// The settings of TCP with what a flow says of its own. Unless told otherwise, MSTCP's streams are paced at what their paths
    /// are allocated, and nothing else is.
    fn flow_config(&self, flow: &FlowDescription, rate_bps: Option<f64>) -> Config {
        let tcp = &self.description.tcp;
        let is_told = tcp.pacing.is_some();
        let mut config =
            tcp.config(rate_bps.filter(|_| is_told || flow.protocol == Protocol::Mstcp));
        if let Some(&name) = flow.congestion_control.as_ref().and_then(Named::built_in) {
            config.congestion = self.description.tcp.congestion(name);
        }
        if let Some(bytes) = flow.initial_ssthresh_bytes {
            config.initial_ssthresh_bytes = bytes;
        }
        if let Some(bytes) = flow.mss_bytes {
            config.mss_bytes = bytes;
        }
        config
    }

    /// A connection whose data goes over `paths`: indices of its endpoints. `overhead` is what TCP carries for each byte of the
    /// application.
    fn connection(
        &mut self,
        of: Described<'_>,
        stream: u16,
        paths: &[WeightedPath],
        overhead: f64,
    ) -> Result<[u32; 2], Error> {
        let flow = of.flow;
        let rate = paths.iter().map(|path| path.weight).sum::<f64>() * overhead;
        let is_allocated = flow.paths.iter().all(|path| path.rate_bps.is_some());
        let mut config = self.flow_config(flow, is_allocated.then_some(rate));
        if let (Protocol::Mstcp, Binding::Early, [path]) =
            (flow.protocol, flow.mstcp.binding, paths)
        {
            let time_s = self.stream_buffer_s(flow, &path.links, rate);
            config.send_buffer_bytes = self.send_buffer_bytes(time_s, rate);
        }
        config
            .validate()
            .map_err(|reason| Error::description("tcp", reason))?;
        let routes = [self.route(paths), self.ack_route(of, paths)?];
        let [client, server] = [self.control(of, &config)?, self.control(of, &config)?];
        let sender = Endpoint::client_with(&config, seconds(flow.start_s), client);
        if matches!(config.pacing, Pacing::Rate { .. }) {
            // What is allocated is the flow's: the side that accepts knows no rate.
            config.pacing = Pacing::Off;
        }
        let receiver = Endpoint::server_with(&config, server);
        let ends = [self.responding(sender)?, self.responding(receiver)?];
        Ok(self.hosts.connect(ends, routes, of.index, stream))
    }

    /// The congestion control of one side of a connection.
    fn control(
        &self,
        of: Described<'_>,
        config: &Config,
    ) -> Result<Box<dyn CongestionControl>, Error> {
        let (named, place) = match &of.flow.congestion_control {
            Some(named) => (Some(named), of.at("congestion_control")),
            None => (
                self.description.tcp.congestion_control.as_ref(),
                "tcp.congestion_control".to_owned(),
            ),
        };
        let own = match named {
            Some(Named::Own(name)) => self
                .methods
                .congestion_controls(name, 1)
                .map_err(|reason| Error::description(place, reason))?
                .pop(),
            _ => None,
        };
        let seed = || {
            let index = self.hosts.all().len() as u64;
            derive_seed(self.description.seed, Purpose::Probing, index)
        };
        let algorithm = match config.congestion {
            CongestionAlgorithm::Bbr { .. } => CongestionAlgorithm::Bbr { seed: seed() },
            CongestionAlgorithm::Ns3Bbr { .. } => CongestionAlgorithm::Ns3Bbr { seed: seed() },
            other => other,
        };
        Ok(own.unwrap_or_else(|| congestion::build(algorithm)))
    }

    /// An endpoint with the user-defined response to reordering, if any.
    fn responding(&self, mut endpoint: Endpoint) -> Result<Endpoint, Error> {
        if let Some(Named::Own(name)) = &self.description.tcp.reordering {
            let response = self.methods.response(name);
            let refused = |reason| Error::description("tcp.reordering", reason);
            endpoint.respond_by(response.map_err(refused)?);
        }
        Ok(endpoint)
    }

    /// Bytes that may be written and not acknowledged where TCP carries `rate_bps`, if they follow the rate.
    fn send_buffer_bytes(&self, time_s: Option<f64>, rate_bps: f64) -> u32 {
        let config = self.description.tcp.config(None);
        let least = SEND_BUFFER_SEGMENTS_MIN * config.mss_bytes;
        let most = config.send_buffer_bytes;
        time_s.map_or(most, |time_s| {
            ((rate_bps / 8.0 * time_s) as u32).max(least).min(most)
        })
    }

    /// The send buffer of a stream with early binding, in seconds of its rate. The paper's draw needs a deep one: it queues
    /// where it draws unevenly. Where frames follow the rates, what a buffer holds beyond a round trip only waits.
    fn stream_buffer_s(&self, flow: &FlowDescription, links: &[u32], rate_bps: f64) -> Option<f64> {
        if flow.mstcp.send_buffer_s.is_some() || flow.mstcp.scheduler == "stochastic" {
            return flow.mstcp.send_buffer_s;
        }
        let back: Vec<u32> = links.iter().map(|link| link ^ 1).collect();
        let round_trip = self.network.delay(links) + self.network.delay(&back);
        let segment_bits = f64::from(self.description.tcp.config(None).mss_bytes) * 8.0;
        let spare_s = SEND_BUFFER_SPARE_SEGMENTS * segment_bits / rate_bps;
        Some(round_trip as f64 / SECOND as f64 + spare_s + SEND_BUFFER_SPARE_S)
    }

    pub(super) fn plain(
        &mut self,
        of: Described<'_>,
        paths: &[WeightedPath],
    ) -> Result<Box<dyn Bundle>, Error> {
        let flow = of.flow;
        let ends = self.connection(of, 0, paths, 1.0)?;
        let rate_bps = paths.iter().map(|path| path.weight).sum();
        let room = match (flow.protocol, flow.mstcp.binding) {
            (Protocol::Mstcp, Binding::Late) => {
                let segment = self.description.tcp.config(None).mss_bytes;
                let unsent_bytes = unsent_limit_bytes(rate_bps, segment);
                SocketLimits {
                    unsent_bytes,
                    piece_bytes: unsent_bytes / PLAIN_PIECES,
                }
            }
            _ => SocketLimits::UNLIMITED,
        };
        Ok(Box::new(Plain::new(ends, room)))
    }

    /// An MPTCP connection with a subflow for each path.
    pub(super) fn mptcp(
        &mut self,
        of: Described<'_>,
        paths: &[WeightedPath],
    ) -> Result<Box<dyn Bundle>, Error> {
        let Described { index, flow, .. } = of;
        let reason = format!("a connection has at most {MAX_SUBFLOWS} subflows");
        Error::require(paths.len() <= MAX_SUBFLOWS, of.at("mptcp"), reason)?;
        let scheduler = || {
            let name = &flow.mptcp.scheduler;
            let made = if is_own(name) {
                self.methods.scheduler(name)
            } else {
                let known = SCHEDULERS.join(", ");
                scheduler_by_name(name)
                    .ok_or_else(|| format!("there is no scheduler {name}; known: {known}"))
            };
            made.map_err(|reason| Error::description(of.at("mptcp.scheduler"), reason))
        };
        let schedulers = [scheduler()?, scheduler()?];
        let (config, settings) = self.mptcp_settings(of)?;
        let [clients, servers] = [
            self.coupled(of, &config, paths.len())?,
            self.coupled(of, &config, paths.len())?,
        ];
        let mut subflows = Vec::new();
        let step = FRtoStep::default();
        let controls = clients.into_iter().zip(servers);
        for ((stream, path), (client, server)) in paths.iter().enumerate().zip(controls) {
            let alone = std::slice::from_ref(path);
            let routes = [self.route(alone), self.ack_route(of, alone)?];
            let mut client = Endpoint::client_with(&config, seconds(flow.start_s), client);
            if config.detection == Detection::Ns3Mptcp(Ns3MptcpMethod::FRto) {
                let seed = self.ignored_acks_seed(index, stream);
                client.respond_by(Box::new(Ns3FRto::new(seed, step.clone())));
            }
            if stream == 0 && self.description.tcp.profile == Profile::Linux {
                client.resolve_for(self.resolution(&path.links));
            }
            let ends = [
                self.responding(client)?,
                self.responding(Endpoint::server_with(&config, server))?,
            ];
            subflows.push(SubflowSettings {
                ends: self.hosts.connect(ends, routes, index, stream as u16),
                joins_later: flow.paths[stream].join_s.is_some(),
            });
        }
        let bundle = Mptcp::new(settings, subflows, schedulers, &mut self.hosts);
        Ok(Box::new(bundle))
    }

    /// What two hosts take to ask their switches for each other's address, one after the other, before the first packets leave: Linux's
    /// scheduler goes by the round trip that this is a part of.
    fn resolution(&self, path: &[u32]) -> Nanos {
        let access = [path.first(), path.last()].into_iter().flatten();
        let links = access.map(|&link| self.network.arcs()[link as usize].settings);
        let one_way = |link: LinkSettings| {
            let bits = f64::from(ARP_BYTES) * 8.0;
            link.delay + (bits / link.rate_bps as f64 * SECOND as f64) as Nanos
        };
        2 * links.map(one_way).sum::<Nanos>()
    }

    /// What a subflow draws from which ACKs it ignores.
    fn ignored_acks_seed(&self, index: u32, stream: usize) -> u64 {
        let place = u64::from(index) << 16 | stream as u64;
        derive_seed(self.description.seed, Purpose::IgnoredAcks, place)
    }

    fn mptcp_settings(&self, of: Described<'_>) -> Result<(Config, MptcpSettings), Error> {
        let mut config = self.flow_config(of.flow, None);
        let own = &of.flow.mptcp;
        let send_buffer = own.send_buffer_bytes.unwrap_or(config.send_buffer_bytes);
        if let Some(bytes) = own.receive_buffer_bytes {
            config.receive_buffer_bytes = bytes;
        }
        config
            .validate()
            .map_err(|reason| Error::description(of.at("mptcp"), reason))?;
        Error::require(
            send_buffer >= config.mss_bytes,
            of.at("mptcp.send_buffer_bytes"),
            "at least one segment",
        )?;
        // What is out of order for the connection alone changes no SACK block.
        config.bare_duplicates = own.dupack == DuplicateAcks::Connection;
        // The connection's buffers are the limit, not those of its subflows.
        config.send_buffer_bytes = u32::MAX;
        let settings = MptcpSettings {
            send_buffer_bytes: u64::from(send_buffer),
            receive_buffer_bytes: u64::from(config.receive_buffer_bytes),
            duplicate_acks: own.dupack,
            opportunistic: own.opportunistic_retransmission,
            penalisation: own.penalisation,
            reinjection: own.reinjection,
            as_in_ns3: matches!(config.detection, Detection::Ns3Mptcp(_)),
            reports_held: own.dupack == DuplicateAcks::Connection
                && config.detection == Detection::Ns3Mptcp(Ns3MptcpMethod::DSack),
        };
        Ok((config, settings))
    }

    pub(super) fn mstcp(
        &mut self,
        of: Described<'_>,
        paths: &[WeightedPath],
        [frame_payload_bytes, write_bytes]: [u32; 2],
    ) -> Result<Box<dyn Bundle>, Error> {
        let Described { index, flow, .. } = of;
        let frame_bytes = frame_payload_bytes + FRAME_HEADER_BYTES;
        let overhead = 1.0 + f64::from(FRAME_HEADER_BYTES) / f64::from(frame_payload_bytes);
        let mut ends = Vec::new();
        for (stream, path) in paths.iter().enumerate() {
            ends.push(self.connection(of, stream as u16, std::slice::from_ref(path), overhead)?);
        }
        let total: f64 = paths.iter().map(|path| path.weight).sum();
        let settings = MstcpSettings {
            binding: flow.mstcp.binding,
            trust_streams: flow.mstcp.trusts_streams(),
            frame_payload_bytes: frame_payload_bytes as usize,
            reorder_buffer_bytes: flow.mstcp.reorder_buffer_bytes,
            send_buffer_bytes: u64::from(
                self.send_buffer_bytes(flow.mstcp.send_buffer_s, total * overhead),
            ),
            unsent_limit_bytes: paths
                .iter()
                .map(|path| unsent_limit_bytes(path.weight * overhead, frame_bytes))
                .collect(),
        };
        if !settings.trust_streams {
            Error::require(
                settings.binding == Binding::Late,
                of.at("mstcp.trust_streams"),
                "is true with early binding: the library's protocol binds late (binding = \"late\")",
            )?;
            for &endpoint in ends.iter().flatten() {
                self.hosts.get_mut(endpoint).wrapped = true;
            }
        }
        let seed = derive_seed(self.description.seed, Purpose::Schedule, u64::from(index));
        let refused = |error: String| Error::description(of.at("mstcp"), error);
        let scheduler = |seed| {
            let made = scheduler::by_name(&flow.mstcp.scheduler, seed);
            made.map_err(|error| refused(error.to_string()))
        };
        let schedulers = [scheduler(seed)?, scheduler(!seed)?];
        let streams: Vec<StreamSettings> = ends
            .into_iter()
            .zip(paths)
            .map(|(ends, path)| StreamSettings {
                ends,
                rate_bps: path.weight,
                delay: self.network.delay(&path.links),
            })
            .collect();
        let bundle = Mstcp::new(settings, &streams, schedulers, write_bytes as usize);
        Ok(Box::new(
            bundle.map_err(|error| refused(error.to_string()))?,
        ))
    }

    /// The controls of one side's subflows.
    fn coupled(
        &self,
        of: Described<'_>,
        config: &Config,
        count: usize,
    ) -> Result<Vec<Box<dyn CongestionControl>>, Error> {
        let name = match &of.flow.mptcp.congestion_control {
            Named::BuiltIn(name) => *name,
            Named::Own(name) => {
                let own = self.methods.congestion_controls(name, count);
                let place = of.at("mptcp.congestion_control");
                return own.map_err(|reason| Error::description(place, reason));
            }
        };
        let growth = self.description.tcp.reno_growth();
        Ok(match name {
            CoupledName::Uncoupled => {
                let alone = (0..count).map(|_| self.control(of, config));
                return alone.collect();
            }
            CoupledName::Lia if matches!(config.detection, Detection::Ns3Mptcp(_)) => {
                coupling::couple(coupling::Ns3Lia, growth, count)
            }
            CoupledName::Lia => coupling::couple(coupling::Lia, growth, count),
            CoupledName::Olia => coupling::couple(coupling::Olia, growth, count),
            CoupledName::Balia => coupling::couple(coupling::Balia, growth, count),
            CoupledName::FullyCoupled => coupling::couple(coupling::FullyCoupled, growth, count),
            CoupledName::Wvegas => coupling::WVegas::couple(count),
        })
    }
}
