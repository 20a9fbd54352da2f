//! Flows: what their applications write, and what carries them.

use super::{Builder, Described, MAX_TIME_S};
use crate::description::{Binding, FlowDescription, Protocol, Traffic, WhenFull};
use crate::error::Error;
use crate::flow::{Application, Carrier, Flow};
use crate::random::{generator, Purpose};
use crate::requests::Requests;
use crate::time::{seconds, Nanos};
use crate::traffic::{Lateness, Listed, OnOff, Source, Ticks, WriteRate};

use super::connections::FRAME_HEADER_BYTES;

/// What an application with much before it writes at once to the library, which cuts it, in full segments; a quarter of the send
/// buffer at most.
const CHUNK_SEGMENTS: u32 = 8;
/// The largest size that is drawn.
const MAX_SIZE_BYTES: u64 = 1 << 50;

/// Whether MSTCP numbers what a flow sends.
pub(super) fn is_framed(flow: &FlowDescription) -> bool {
    flow.protocol == Protocol::Mstcp && (flow.paths.len() > 1 || flow.mstcp.identify_single)
}

impl Builder<'_> {
    pub(super) fn flow(&mut self, of: Described<'_>) -> Result<Flow, Error> {
        let flow = of.flow;
        let paths = self.paths(of)?;
        let framed = is_framed(flow);
        let payload = self.payload_bytes(of)?;
        let buffer_s = flow.mstcp.send_buffer_s;
        Error::require(
            buffer_s.map_or(true, |time_s| (1e-6..=MAX_TIME_S).contains(&time_s)),
            of.at("mstcp.send_buffer_s"),
            "a time above 0 in seconds",
        )?;
        let application = self.application(of, payload)?;
        let write_bytes = application.write_bytes;
        let needs_connection = matches!(application.source, Source::Bulk | Source::Requests(_));
        Error::require(
            flow.protocol != Protocol::Datagram || !needs_connection,
            of.at("traffic"),
            "datagrams carry cbr, poisson and onoff; the others need a connection",
        )?;
        let carrier = match flow.protocol {
            Protocol::Datagram => Carrier::Datagrams {
                route: self.route(&paths),
            },
            Protocol::Mptcp => Carrier::Connections(self.mptcp(of, &paths)?),
            Protocol::Mstcp if framed => {
                Carrier::Connections(self.mstcp(of, &paths, [payload, write_bytes])?)
            }
            Protocol::Tcp | Protocol::Mstcp => Carrier::Connections(self.plain(of, &paths)?),
        };
        let stop = flow.stop_s.unwrap_or(MAX_TIME_S);
        let write_from_s = flow.write_from_s.unwrap_or(flow.start_s);
        let rise = 0.0 <= flow.start_s && flow.start_s <= write_from_s && write_from_s <= stop;
        Error::require(
            rise && stop <= MAX_TIME_S,
            of.at("start_s"),
            "a flow starts at 0 or later, writes no earlier than that, and stops after both",
        )?;
        let times = [flow.start_s, write_from_s, stop].map(seconds);
        let mut made = Flow::new(flow.name.clone(), carrier, application, times);
        made.log = flow.log.then(Box::default);
        Ok(made)
    }

    /// Bytes of the application in a full segment.
    pub(super) fn payload_bytes(&self, of: Described<'_>) -> Result<u32, Error> {
        let flow = of.flow;
        let of_run = || self.description.tcp.config(None).mss_bytes;
        let mss = flow.mss_bytes.unwrap_or_else(of_run);
        match (is_framed(flow), flow.mstcp.frame_payload_bytes) {
            (false, _) => Ok(mss),
            (true, Some(bytes)) if bytes > 0 => Ok(bytes),
            (true, None) if mss > FRAME_HEADER_BYTES => Ok(mss - FRAME_HEADER_BYTES),
            _ => {
                let place = of.at("mstcp.frame_payload_bytes");
                Err(Error::description(
                    place,
                    "a frame carries at least one byte",
                ))
            }
        }
    }

    fn application(&self, of: Described<'_>, payload: u32) -> Result<Application, Error> {
        let flow = of.flow;
        let place = &of.at("traffic");
        let traffic = &flow.traffic;
        let mut write_segments = 1;
        let (bytes, when_full, write_rate_bps) = match *traffic {
            Traffic::Cbr {
                write_bytes,
                when_full,
                ..
            }
            | Traffic::Poisson {
                write_bytes,
                when_full,
                ..
            }
            | Traffic::OnOff {
                write_bytes,
                when_full,
                ..
            } => (write_bytes, when_full, None),
            Traffic::Bulk {
                write_bytes,
                write_rate_bps,
                ..
            }
            | Traffic::Requests {
                write_bytes,
                write_rate_bps,
                ..
            } => {
                let is_late =
                    flow.protocol == Protocol::Mstcp && flow.mstcp.binding == Binding::Late;
                if is_late && write_rate_bps.is_none() {
                    let buffer_bytes = self.description.tcp.config(None).send_buffer_bytes;
                    write_segments = (buffer_bytes / 4 / payload).clamp(1, CHUNK_SEGMENTS);
                }
                (write_bytes, WhenFull::Wait, write_rate_bps)
            }
            Traffic::Listed {
                when_full,
                write_rate_bps,
                ..
            } => (None, when_full, write_rate_bps),
        };
        let write_bytes = bytes.unwrap_or(write_segments * payload);
        Error::require(
            (1..=65_536).contains(&write_bytes),
            place,
            "write_bytes is between 1 and 65536",
        )?;
        Error::require(
            write_rate_bps.map_or(true, |rate| (1.0..=1e13).contains(&rate)),
            place,
            "write_rate_bps is between 1 and 1e13",
        )?;
        let file_bytes = match *traffic {
            Traffic::Bulk { total_bytes, .. } => total_bytes,
            _ => None,
        };
        Ok(Application {
            source: self.source(of, write_bytes)?,
            write_bytes,
            when_full,
            file_bytes,
            write_rate: write_rate_bps.map(WriteRate::new),
            lateness: self.lateness(of, write_bytes)?,
        })
    }

    fn lateness(&self, of: Described<'_>, bytes: u32) -> Result<Lateness, Error> {
        let (share, rate_bps) = match of.flow.traffic {
            Traffic::Cbr {
                jitter, rate_bps, ..
            }
            | Traffic::OnOff {
                jitter, rate_bps, ..
            } => (jitter, rate_bps),
            _ => (0.0, 1.0),
        };
        let fits = (0.0..=1.0).contains(&share);
        Error::require(fits, of.at("traffic"), "jitter is between 0 and 1")?;
        let most = (share * f64::from(bytes) * 8e9 / rate_bps.round()) as Nanos;
        let rng = generator(self.description.seed, Purpose::Lateness, of.index.into());
        Ok(Lateness::new(most, rng))
    }

    fn source(&self, of: Described<'_>, bytes: u32) -> Result<Source, Error> {
        let place = &of.at("traffic");
        let ticks = |rate_bps: f64| {
            let fits = (1.0..=1e13).contains(&rate_bps);
            Error::require(fits, place, "rate_bps is between 1 and 1e13")?;
            Ok::<_, Error>(Ticks::new(bytes, rate_bps.round() as u64))
        };
        Ok(match &of.flow.traffic {
            Traffic::Cbr { rate_bps, .. } => Source::ConstantRate(ticks(*rate_bps)?),
            Traffic::Poisson { rate_bps, .. } => {
                ticks(*rate_bps)?;
                Source::Poisson {
                    mean_ns: f64::from(bytes) * 8e9 / rate_bps,
                    rng: generator(self.description.seed, Purpose::Traffic, of.index.into()),
                }
            }
            Traffic::OnOff {
                rate_bps, periods, ..
            } => Source::OnOff(OnOff::new(ticks(*rate_bps)?, on_periods(place, periods)?)),
            Traffic::Bulk { .. } => Source::Bulk,
            Traffic::Listed { writes, .. } => Source::Listed(Listed::new(listed(place, writes)?)),
            Traffic::Requests {
                sizes_bytes,
                times_s,
                users,
                request_bytes,
                ..
            } => {
                let made = requests(place, times_s, sizes_bytes, *users, *request_bytes)?;
                Source::Requests(Box::new(made))
            }
        })
    }
}

/// The on periods of a source.
fn on_periods(place: &str, periods: &[(f64, f64)]) -> Result<Vec<(Nanos, Nanos)>, Error> {
    let ends = periods.iter().flat_map(|&(begin, end)| [begin, end]);
    let ends: Vec<f64> = ends.collect();
    let fits = ends
        .iter()
        .all(|time_s| (0.0..=MAX_TIME_S).contains(time_s));
    Error::require(
        fits && ends.windows(2).all(|pair| pair[0] < pair[1]) && ends.first() == Some(&0.0),
        place,
        "periods are pairs of seconds, the first from 0 on, which rise",
    )?;
    let periods = periods.iter();
    Ok(periods
        .map(|&(begin, end)| (seconds(begin), seconds(end)))
        .collect())
}

fn requests(
    place: &str,
    times_s: &[f64],
    sizes: &[u64],
    users: Option<u32>,
    request_bytes: u32,
) -> Result<Requests, Error> {
    for (holds, reason) in [
        (
            (1..=65_536).contains(&request_bytes),
            "request_bytes is between 1 and 65536",
        ),
        (
            users.map_or(true, |users| {
                (1..=10_000).contains(&users) && !times_s.is_empty()
            }),
            "users are between 1 and 10000, and their times_s one at least",
        ),
        (
            times_s
                .iter()
                .all(|time_s| (0.0..=MAX_TIME_S).contains(time_s)),
            "times_s are seconds from 0 on",
        ),
        (
            !sizes.is_empty() && sizes.iter().all(|size| (1..=MAX_SIZE_BYTES).contains(size)),
            "sizes_bytes are one at least, between 1 and 2^50",
        ),
    ] {
        Error::require(holds, place, reason)?;
    }
    let times = times_s.iter().copied().map(seconds).collect();
    Ok(Requests::new(times, sizes.to_vec(), users, request_bytes))
}

fn listed(place: &str, writes: &[(f64, u32)]) -> Result<Vec<(Nanos, u32)>, Error> {
    let fits = |&(time_s, bytes): &(f64, u32)| {
        (0.0..=86_400.0).contains(&time_s) && (1..=1 << 30).contains(&bytes)
    };
    Error::require(
        writes.iter().all(fits) && writes.windows(2).all(|pair| pair[0].0 <= pair[1].0),
        place,
        "writes are pairs of seconds (0 to 86400, not falling) and bytes (1 to 2^30)",
    )?;
    Ok(writes
        .iter()
        .map(|&(time_s, bytes)| (seconds(time_s), bytes))
        .collect())
}
