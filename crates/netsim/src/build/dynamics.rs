//! What becomes of links and paths at fixed times of a run.

use super::connections::FRAME_HEADER_BYTES;
use super::flows::is_framed;
use super::links::serial;
use super::{Builder, Described, MAX_TIME_S};
use crate::bundle::StreamChange;
use crate::description::{Description, FlowDescription, LinkDescription, Protocol};
use crate::error::Error;
use crate::link::LinkChange;
use crate::random::{generator, Purpose};
use crate::simulation::{Action, Reroute, StreamRoute};
use crate::switch::WeightedPath;
use crate::time::{seconds, Nanos};

/// Actions with their times.
pub(super) type TimedActions = Vec<(Nanos, Action)>;

/// When links go down, come up and change.
pub(super) fn of_links(
    description: &Description,
) -> Result<(TimedActions, Vec<LinkChange>), Error> {
    let (mut actions, mut changes) = (Vec::new(), Vec::new());
    for (index, link) in description.links.iter().enumerate() {
        let arc = 2 * index as u32;
        let mut last = 0.0;
        for &[from, to] in &link.down_s {
            Error::require(
                last <= from && from < to && to <= MAX_TIME_S,
                format!("links[{index}].down_s"),
                "spans [from, to) in seconds, rising and apart",
            )?;
            last = to;
            actions.push((seconds(from), Action::LinkDown(arc)));
            actions.push((seconds(to), Action::LinkUp(arc)));
        }
        let mut last = 0.0;
        for (number, change) in link.changes.iter().enumerate() {
            let place = format!("links[{index}].changes[{number}]");
            in_order(&place, &mut last, change.at_s)?;
            Error::require(
                link.wifi.is_none(),
                place,
                "a link with wifi does not change",
            )?;
            let changed = LinkDescription {
                rate_bps: Some(change.rate_bps),
                delay_us: Some(change.delay_us),
                queue_packets: change.queue_packets,
                queue_bytes: change.queue_bytes,
                loss: change.loss,
                jitter_us: change.jitter_us,
                ..link.clone()
            };
            let settings = serial(index, &changed)?;
            for arc in [arc, arc + 1] {
                let index = changes.len() as u32;
                let draws = |purpose| generator(description.seed, purpose, u64::from(index));
                changes.push(LinkChange {
                    settings,
                    loss: draws(Purpose::ChangedLoss),
                    jitter: draws(Purpose::ChangedJitter),
                });
                actions.push((seconds(change.at_s), Action::ChangeLink(arc, index)));
            }
        }
    }
    Ok((actions, changes))
}

/// When subflows join and leave.
pub(super) fn of_subflows(index: usize, flow: &FlowDescription) -> Result<TimedActions, Error> {
    let mut changes = Vec::new();
    for (stream, path) in flow.paths.iter().enumerate() {
        let given = [
            (path.join_s, StreamChange::Join),
            (path.leave_s, StreamChange::Leave),
        ];
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
            let action = |(time, change): (Option<f64>, StreamChange)| {
                Some((seconds(time?), Action::Stream(index as u32, stream, change)))
            };
            changes.extend(given.into_iter().filter_map(action));
            continue;
        };
        return Err(Error::description(place, reason));
    }
    Ok(changes)
}

fn in_order(place: &str, last: &mut f64, at_s: f64) -> Result<(), Error> {
    Error::require(
        (*last..=MAX_TIME_S).contains(&at_s),
        format!("{place}.at_s"),
        "at_s is a time of the run, and none before the one of the entry before",
    )?;
    *last = at_s;
    Ok(())
}

impl Builder<'_> {
    /// The routes that a flow takes at fixed times.
    pub(super) fn reroutes(&mut self, of: Described<'_>) -> Result<Vec<(Nanos, Reroute)>, Error> {
        let flow = of.flow;
        let payload_bytes = self.payload_bytes(of)?;
        let (mut reroutes, mut last) = (Vec::new(), 0.0);
        for (number, described) in flow.reroutes.iter().enumerate() {
            let place = &of.at(&format!("reroutes[{number}]"));
            in_order(place, &mut last, described.at_s)?;
            let then = FlowDescription {
                paths: described.paths.clone(),
                ack_path: described.ack_path.clone(),
                ..flow.clone()
            };
            let then = Described {
                place,
                flow: &then,
                ..of
            };
            let paths = self.paths(then)?;
            let is_multipath = matches!(flow.protocol, Protocol::Mptcp | Protocol::Mstcp);
            Error::require(
                !is_multipath || paths.len() == flow.paths.len(),
                then.at("paths"),
                format!("a connection of {} paths keeps as many", flow.paths.len()),
            )?;
            let together = if is_multipath { 1 } else { paths.len() };
            let streams = paths
                .chunks(together)
                .map(|paths| self.stream_route(then, paths, payload_bytes))
                .collect::<Result<_, _>>()?;
            let reroute = Reroute {
                flow: of.index,
                streams,
            };
            reroutes.push((seconds(described.at_s), reroute));
        }
        Ok(reroutes)
    }

    fn stream_route(
        &mut self,
        of: Described<'_>,
        paths: &[WeightedPath],
        payload_bytes: u32,
    ) -> Result<StreamRoute, Error> {
        let header_bytes = if is_framed(of.flow) {
            FRAME_HEADER_BYTES
        } else {
            0
        };
        let overhead = 1.0 + f64::from(header_bytes) / f64::from(payload_bytes);
        let rate_bps: f64 = paths.iter().map(|path| path.weight).sum();
        Ok(StreamRoute {
            routes: [self.route(paths), self.ack_route(of, paths)?],
            rate_bps,
            carried_bps: rate_bps * overhead,
            delay: self.network.delay(&paths[0].links),
        })
    }
}
