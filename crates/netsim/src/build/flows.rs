//! Flows: what their applications write, and what carries them.

use std::collections::VecDeque;

use super::{Builder, MAX_TIME_S};
use crate::description::{Binding, FlowDescription, Protocol, Sizes, Traffic, WhenFull};
use crate::error::Error;
use crate::flow::{Application, Carrier, Flow};
use crate::random::{generator, Purpose};
use crate::requests::{Drawn, Loop, Requests};
use crate::time::seconds;
use crate::time::Nanos;
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
    pub(super) fn flow(
        &mut self,
        place: &str,
        index: u32,
        flow: &FlowDescription,
    ) -> Result<Flow, Error> {
        let paths = self.paths(place, index, flow)?;
        let framed = is_framed(flow);
        let payload = self.payload_bytes(place, flow)?;
        if flow
            .mstcp
            .send_buffer_s
            .is_some_and(|time_s| !(1e-6..=MAX_TIME_S).contains(&time_s))
        {
            let place = format!("{place}.mstcp.send_buffer_s");
            return Err(Error::description(place, "a time above 0 in seconds"));
        }
        let application = self.application(place, index, flow, payload)?;
        let write_bytes = application.write_bytes;
        if flow.protocol == Protocol::Datagram
            && matches!(application.source, Source::Bulk | Source::Requests(_))
        {
            return Err(Error::description(
                format!("{place}.traffic"),
                "datagrams carry cbr, poisson and onoff; the others need a connection",
            ));
        }
        let carrier = match flow.protocol {
            Protocol::Datagram => Carrier::Datagrams {
                route: self.route(&paths),
            },
            Protocol::Tcp => Carrier::Connections(self.plain(place, index, flow, &paths)?),
            Protocol::Mptcp => Carrier::Connections(self.mptcp(place, index, flow, &paths)?),
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
        let write_from_s = flow.write_from_s.unwrap_or(flow.start_s);
        let rise = 0.0 <= flow.start_s && flow.start_s <= write_from_s && write_from_s <= stop;
        if !rise || stop > MAX_TIME_S {
            return Err(Error::description(
                format!("{place}.start_s"),
                "a flow starts at 0 or later, writes no earlier than that, and stops after both",
            ));
        }
        let times = [flow.start_s, write_from_s, stop].map(seconds);
        let mut made = Flow::new(flow.name.clone(), carrier, application, times);
        made.log = flow.log.then(Box::default);
        Ok(made)
    }

    /// Bytes of the application in a full segment.
    pub(super) fn payload_bytes(&self, place: &str, flow: &FlowDescription) -> Result<u32, Error> {
        let of_run = || self.description.tcp.config(None).mss_bytes;
        let mss = flow.mss_bytes.unwrap_or_else(of_run);
        match (is_framed(flow), flow.mstcp.frame_payload_bytes) {
            (false, _) => Ok(mss),
            (true, Some(bytes)) if bytes > 0 => Ok(bytes),
            (true, None) if mss > FRAME_HEADER_BYTES => Ok(mss - FRAME_HEADER_BYTES),
            _ => {
                let place = format!("{place}.mstcp.frame_payload_bytes");
                let reason = "a frame carries at least one byte";
                Err(Error::description(place, reason))
            }
        }
    }

    fn application(
        &self,
        place: &str,
        index: u32,
        flow: &FlowDescription,
        payload: u32,
    ) -> Result<Application, Error> {
        let place = &format!("{place}.traffic");
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
        require(
            (1..=65_536).contains(&write_bytes),
            place,
            "write_bytes is between 1 and 65536",
        )?;
        require(
            write_rate_bps.map_or(true, |rate| (1.0..=1e13).contains(&rate)),
            place,
            "write_rate_bps is between 1 and 1e13",
        )?;
        let file_bytes = match *traffic {
            Traffic::Bulk { total_bytes, .. } => total_bytes,
            _ => None,
        };
        Ok(Application {
            source: self.source(place, index, traffic, write_bytes)?,
            write_bytes,
            when_full,
            file_bytes,
            write_rate: write_rate_bps.map(WriteRate::new),
            lateness: self.lateness(place, index, traffic, write_bytes)?,
        })
    }

    fn lateness(
        &self,
        place: &str,
        index: u32,
        traffic: &Traffic,
        bytes: u32,
    ) -> Result<Lateness, Error> {
        let (share, rate_bps) = match *traffic {
            Traffic::Cbr {
                jitter, rate_bps, ..
            }
            | Traffic::OnOff {
                jitter, rate_bps, ..
            } => (jitter, rate_bps),
            _ => (0.0, 1.0),
        };
        let fits = (0.0..=1.0).contains(&share);
        require(fits, place, "jitter is between 0 and 1")?;
        let most = (share * f64::from(bytes) * 8e9 / rate_bps.round()) as Nanos;
        let rng = generator(self.description.seed, Purpose::Lateness, u64::from(index));
        Ok(Lateness::new(most, rng))
    }

    fn source(
        &self,
        place: &str,
        index: u32,
        traffic: &Traffic,
        bytes: u32,
    ) -> Result<Source, Error> {
        let draws = |purpose| generator(self.description.seed, purpose, u64::from(index));
        let ticks = |rate_bps: f64| {
            let fits = (1.0..=1e13).contains(&rate_bps);
            require(fits, place, "rate_bps is between 1 and 1e13")?;
            Ok::<_, Error>(Ticks::new(bytes, rate_bps.round() as u64))
        };
        Ok(match traffic {
            Traffic::Cbr { rate_bps, .. } => Source::ConstantRate(ticks(*rate_bps)?),
            Traffic::Poisson { rate_bps, .. } => {
                ticks(*rate_bps)?;
                Source::Poisson {
                    mean_ns: f64::from(bytes) * 8e9 / rate_bps,
                    rng: draws(Purpose::Traffic),
                }
            }
            Traffic::OnOff {
                rate_bps,
                on_s,
                off_s,
                lengths,
                periods,
                ..
            } => {
                let fits = [on_s, off_s].iter().all(|s| (1e-9..=86_400.0).contains(*s));
                require(fits, place, "on_s and off_s are above 0 and at most 86400")?;
                let means = [seconds(*on_s), seconds(*off_s)];
                Source::OnOff(Box::new(OnOff::new(
                    ticks(*rate_bps)?,
                    means,
                    *lengths,
                    on_periods(place, periods)?,
                    draws(Purpose::Traffic),
                )))
            }
            Traffic::Bulk { .. } => Source::Bulk,
            Traffic::Listed { writes, .. } => Source::Listed(Listed::new(listed(place, writes)?)),
            Traffic::Requests {
                sizes,
                per_s,
                users,
                think_s,
                request_bytes,
                drawn_times_s,
                drawn_sizes_bytes,
                ..
            } => {
                let arrivals = arrivals(place, *per_s, *users, *think_s)?;
                check_sizes(place, sizes)?;
                require(
                    (1..=65_536).contains(request_bytes),
                    place,
                    "request_bytes is between 1 and 65536",
                )?;
                Source::Requests(Box::new(Requests::new(
                    arrivals,
                    sizes.clone(),
                    *request_bytes,
                    [Purpose::Traffic, Purpose::Sizes].map(draws),
                    drawn(place, drawn_times_s, drawn_sizes_bytes)?,
                )))
            }
        })
    }
}

/// On periods that were drawn before.
fn on_periods(place: &str, periods: &[(f64, f64)]) -> Result<VecDeque<(Nanos, Nanos)>, Error> {
    let ends = periods.iter().flat_map(|&(begin, end)| [begin, end]);
    let ends: Vec<f64> = ends.collect();
    require(
        ends.iter()
            .all(|time_s| (0.0..=MAX_TIME_S).contains(time_s))
            && ends.windows(2).all(|pair| pair[0] < pair[1])
            && ends.first().map_or(true, |&begin| begin == 0.0),
        place,
        "periods are pairs of seconds, the first from 0 on, which rise",
    )?;
    let periods = periods.iter();
    Ok(periods
        .map(|&(begin, end)| (seconds(begin), seconds(end)))
        .collect())
}

/// Draws of requests that were made before.
fn drawn(place: &str, times_s: &[f64], sizes: &[u64]) -> Result<Drawn, Error> {
    require(
        times_s
            .iter()
            .all(|time_s| (0.0..=MAX_TIME_S).contains(time_s))
            && sizes.iter().all(|size| (1..=MAX_SIZE_BYTES).contains(size)),
        place,
        "drawn_times_s are seconds from 0 on, drawn_sizes_bytes between 1 and 2^50",
    )?;
    Ok(Drawn {
        times: times_s.iter().map(|&time_s| seconds(time_s)).collect(),
        sizes: sizes.iter().copied().collect(),
    })
}

fn listed(place: &str, writes: &[(f64, u32)]) -> Result<Vec<(Nanos, u32)>, Error> {
    let fits = |&(time_s, bytes): &(f64, u32)| {
        (0.0..=86_400.0).contains(&time_s) && (1..=1 << 30).contains(&bytes)
    };
    require(
        writes.iter().all(fits) && writes.windows(2).all(|pair| pair[0].0 <= pair[1].0),
        place,
        "writes are pairs of seconds (0 to 86400, not falling) and bytes (1 to 2^30)",
    )?;
    Ok(writes
        .iter()
        .map(|&(time_s, bytes)| (seconds(time_s), bytes))
        .collect())
}

fn require(holds: bool, place: &str, reason: &str) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::description(place, reason))
}

fn arrivals(
    place: &str,
    per_s: Option<f64>,
    users: Option<u32>,
    think_s: f64,
) -> Result<Loop, Error> {
    match (per_s, users) {
        (Some(per_s), None) => {
            let fits = (1e-6..=1e6).contains(&per_s);
            require(fits, place, "per_s is between 1e-6 and 1e6")?;
            require(think_s == 0.0, place, "think_s belongs to users")?;
            Ok(Loop::Open {
                mean_ns: 1e9 / per_s,
            })
        }
        (None, Some(users)) => {
            let fits = (1..=10_000).contains(&users);
            require(fits, place, "users are between 1 and 10000")?;
            let fits = (0.0..=86_400.0).contains(&think_s);
            require(fits, place, "think_s is between 0 and 86400")?;
            Ok(Loop::Closed {
                users,
                think_ns: think_s * 1e9,
            })
        }
        _ => Err(Error::description(
            place,
            "give either per_s (open loop) or users (closed loop)",
        )),
    }
}

fn check_sizes(place: &str, sizes: &Sizes) -> Result<(), Error> {
    let place = &format!("{place}.sizes");
    match sizes {
        Sizes::Fixed { size_bytes } => require(
            (1..=MAX_SIZE_BYTES).contains(size_bytes),
            place,
            "size_bytes is between 1 and 2^50",
        ),
        Sizes::Exponential { mean_bytes } => require(
            (1.0..=1e12).contains(mean_bytes),
            place,
            "mean_bytes is between 1 and 1e12",
        ),
        Sizes::Empirical { cdf, scale } => {
            let rises = cdf
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
            let ends = cdf
                .first()
                .is_some_and(|&(size, share)| size >= 1.0 && share >= 0.0)
                && cdf
                    .last()
                    .is_some_and(|&(size, share)| size <= 1e15 && share == 1.0);
            let reason = "sizes from 1 byte and shares from 0 rise, and the last share is 1";
            require(rises && ends, place, reason)?;
            let fits = *scale > 0.0 && *scale <= 1e3;
            require(fits, place, "scale is above 0 and at most 1000")
        }
    }
}
