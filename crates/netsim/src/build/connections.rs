//! TCP connections and the protocols over them.

use mstcp_core::scheduler;

use super::Builder;
use crate::bundle::{Bundle, Mstcp, MstcpSettings, Plain, StreamSettings};
use crate::description::{Binding, FlowDescription, Protocol};
use crate::error::Error;
use crate::random::{derive_seed, Purpose};
use crate::switch::WeightedPath;
use crate::tcp::Endpoint;
use crate::time::{seconds, SECOND};

/// Bytes of the identifier in front of each full frame.
pub(super) const FRAME_HEADER_BYTES: u32 = mstcp_core::frame::HEADER_BYTES as u32;
/// A stream has room while less than this time of its rate is unsent, as in the library.
const UNSENT_TIME_S: f64 = 0.010;
/// ... but for these bounds.
const UNSENT_FRAMES_MIN: f64 = 4.0;
const UNSENT_BYTES_MAX: f64 = 262_144.0;
/// A send buffer that follows the rate has room for so many segments at least.
const SEND_BUFFER_SEGMENTS_MIN: u32 = 8;
/// ... and beyond a round trip for these: segments that serialise or wait for a delayed ACK.
const SEND_BUFFER_SPARE_SEGMENTS: f64 = 4.0;
const SEND_BUFFER_SPARE_S: f64 = 0.002;

impl Builder<'_> {
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
        let mut config = self.description.tcp.config(Some(rate));
        if let (Protocol::Mstcp, Binding::Early, [path]) =
            (flow.protocol, flow.mstcp.binding, paths)
        {
            let time_s = self.stream_buffer_s(flow, &path.links, rate);
            config.send_buffer_bytes = self.send_buffer_bytes(time_s, rate);
        }
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

    pub(super) fn mstcp(
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
        let total: f64 = paths.iter().map(|path| path.weight).sum();
        let settings = MstcpSettings {
            binding: flow.mstcp.binding,
            frame_payload_bytes: frame_payload_bytes as usize,
            reorder_buffer_bytes: flow.mstcp.reorder_buffer_bytes,
            send_buffer_bytes: u64::from(
                self.send_buffer_bytes(flow.mstcp.send_buffer_s, total * overhead),
            ),
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
