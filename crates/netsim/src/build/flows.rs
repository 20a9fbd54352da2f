//! Flows: what their applications write, and what carries them.

use super::{Builder, MAX_TIME_S};
use crate::description::{FlowDescription, Protocol, Traffic};
use crate::error::Error;
use crate::flow::{Carrier, Flow};
use crate::random::{generator, Purpose};
use crate::time::seconds;
use crate::traffic::{Source, Ticks};

use super::connections::FRAME_HEADER_BYTES;

impl Builder<'_> {
    pub(super) fn flow(
        &mut self,
        place: &str,
        index: u32,
        flow: &FlowDescription,
    ) -> Result<Flow, Error> {
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
        if flow
            .mstcp
            .send_buffer_s
            .is_some_and(|time_s| !(1e-6..=MAX_TIME_S).contains(&time_s))
        {
            let place = format!("{place}.mstcp.send_buffer_s");
            return Err(Error::description(place, "a time above 0 in seconds"));
        }
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
}
