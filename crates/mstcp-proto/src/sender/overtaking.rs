//! The end of a transfer: what slow streams carry, once more over streams that have nothing left to do.

use std::collections::BTreeMap;
use std::ops::Range;

use super::drafting::FrameKind;
use super::stream::{ByteRange, InFlight};
use super::Sender;
use crate::receiver::{ACK_BYTES, ACK_DELAY_NS};

/// A stream is slower than estimated if its peer reports nothing for this time.
const SILENT_NS: u64 = 2 * ACK_DELAY_NS;
/// This many of a stream's oldest frames are looked at for the first byte that the peer lacks: there may be a great many, and a frame
/// must not cost what waits.
const MAX_LOOKED_AT: usize = 1024;
/// Bytes are sent again for a gain of so much and a quarter of the quicker path's delay, in seconds; more where the rates are those
/// that streams should keep.
const MIN_GAIN_S: f64 = 0.001;
const MIN_GAIN_BESIDE_RATES_S: f64 = 0.02;
/// While nothing else happens the paths are looked at again after a round trip of the quicker one and so long, then after twice the
/// time each, in nanoseconds; fewer bytes are on their way too shortly on any path.
const MIN_LOOK_BYTES: usize = 4096;
const LOOK_NS: u64 = 2_000_000;
const MAX_LOOK_NS: u64 = 100_000_000;
/// How long an application may take to write more once its queue is empty, before it counts as done, in nanoseconds.
const REFILL_NS: u64 = 1_000_000;

/// When to look again whether the last bytes are to overtake: what is known of a path changes though nobody reports anything.
#[derive(Debug, Default)]
pub(super) struct OvertakingTimer {
    at_ns: Option<u64>,
    after_ns: u64,
    /// The bytes that were sent then.
    through: u64,
}

impl OvertakingTimer {
    /// Look again, unless TCP was found to have brought all to the peer's kernel since the bytes were sent.
    fn again(&mut self, now_ns: u64, through: u64, round_trip_ns: u64, has_arrived: bool) {
        let is_due = self.at_ns.is_some_and(|at_ns| now_ns >= at_ns);
        if self.through != through {
            self.through = through;
            self.after_ns = round_trip_ns + LOOK_NS;
        } else if !is_due {
            return;
        } else if has_arrived {
            self.at_ns = None;
            return;
        } else {
            self.after_ns = (2 * self.after_ns).min(MAX_LOOK_NS);
        }
        self.at_ns = Some(now_ns + self.after_ns);
    }
}

impl Sender {
    /// Once all is on its way (and, where streams have rates, the application has ended): what a stream with nothing to do would bring earlier than the
    /// one that carries it. The last bytes of a slow path come last, so those go first; a path that lost some of them
    /// (all after these wait) is overtaken as its silence grows.
    pub(super) fn draft_overtaking(&mut self, now_ns: u64) -> Option<usize> {
        let alive = self.alive;
        // A stream with a rate carries nothing beyond it before the application has ended.
        let may_repeat = self.ended || alive.iter().all(|slot| self.views[slot].is_measured);
        if !may_repeat || self.trusting || !alive.is_several() {
            return None;
        }
        let refilled_ns = self.begun_new_ns + REFILL_NS;
        if !self.ended && now_ns < refilled_ns {
            self.look.at_ns = Some(refilled_ns);
            return None;
        }
        for slot in alive.iter() {
            self.unsettled(slot);
        }
        let idle = self.with_room.and(self.eligible).without(self.full);
        let idle = idle
            .iter()
            .filter(|&stream| self.views[stream].weight > 0.0);
        let arrival_s = |stream: usize| self.views[stream].arrival_s(self.frame_payload_bytes);
        let stream = idle.min_by(|&a, &b| arrival_s(a).total_cmp(&arrival_s(b)))?;
        let others = alive.iter().filter(|&other| other != stream);
        let latest = others
            .filter_map(|other| self.latest_frame(now_ns, other))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((carried_s, span)) = latest else {
            self.look.at_ns = None;
            return None;
        };
        // What the peer has of it is not kept any more.
        let offset = span.offset.max(self.acknowledged);
        let length = (span.end() - offset) as usize;
        let view = self.views[stream];
        let least_gain_s = match view.is_measured {
            true => MIN_GAIN_S + view.least_delay_ns as f64 * 0.25e-9,
            false => MIN_GAIN_BESIDE_RATES_S,
        };
        if view.arrival_s(length) + least_gain_s < carried_s {
            return Some(self.draft_data(stream, FrameKind::Overtaking, offset, length));
        }
        if view.is_measured && self.unacknowledged_bytes() > MIN_LOOK_BYTES {
            let mut others = alive.iter().filter(|&other| other != stream);
            let has_arrived = others.all(|other| self.views[other].flight_bytes == 0.0);
            let through = self.next_offset;
            (self.look).again(now_ns, through, 2 * view.delay_ns, has_arrived);
        }
        None
    }

    /// When to look again whether something overtakes, if that is later than now.
    pub(crate) fn look_at_ns(&self, now_ns: u64) -> Option<u64> {
        self.look.at_ns.filter(|at_ns| *at_ns > now_ns)
    }

    /// The last frame on a stream that is nowhere else, and in how many seconds it may be there.
    fn latest_frame(&self, now_ns: u64, stream: usize) -> Option<(f64, ByteRange)> {
        let carrier = &self.streams[stream];
        let (first, last) = (carrier.in_flight.front()?, carrier.last_unsettled()?);
        let before = last.through + first.span.length as u64 - first.through;
        let view = &self.views[stream];
        let silent_ns = now_ns.saturating_sub(carrier.progress_ns);
        let silent_ns = match view.is_measured && carrier.reported > 0 {
            // What was sent in bursts is reported in bursts.
            true => silent_ns.min(now_ns.saturating_sub(first.left_ns + 2 * view.delay_ns)),
            false => silent_ns,
        };
        // A peer that is silent on all streams is held up itself.
        let is_late = silent_ns > SILENT_NS && self.is_peer_alive;
        let late_ns = if is_late { silent_ns } else { 0 };
        // Some may be there already: an ACK is not sent for each of them.
        let rate = view.weight.max(1.0) / 8.0;
        let unreported = (rate * ACK_DELAY_NS as f64 * 1e-9).min(ACK_BYTES as f64);
        let report_s = (before as f64 - unreported) / rate;
        if view.is_measured {
            if carrier.reported == 0 && now_ns > carrier.progress_ns + 2 * view.least_delay_ns {
                // Nobody knows yet what this path carries.
                return Some((f64::INFINITY, last.span));
            }
            // What was given to it later leaves later.
            let behind = (carrier.taken_bytes - last.through) as f64;
            let ahead_s = (view.queue_bytes + view.backlog_bytes - behind).max(0.0) / rate;
            let arrived_ns = last.left_ns + view.least_delay_ns;
            let carried_s = match view.backlog_bytes > behind {
                // It has not left the host.
                true => ahead_s + view.least_delay_ns as f64 * 1e-9,
                false => ahead_s.max(arrived_ns.saturating_sub(now_ns) as f64 * 1e-9),
            };
            return Some((carried_s + late_ns as f64 * 1e-9, last.span));
        }
        // Reports come back over the quickest path, and what waits on this one waits on its way there.
        let back_ns = self.delay_ns(self.quickest(self.alive.without(self.stalled)));
        let carried_s = report_s + (late_ns as f64 - back_ns.min(view.delay_ns) as f64) * 1e-9;
        Some((carried_s, last.span))
    }

    /// Once the peer's window is full: the first bytes that it lacks, if they are on a stream that is late, over one that has
    /// room. A slow stream would else hold up all others until it has brought what it took (as MPTCP's opportunistic
    /// retransmission: Raiciu et al., NSDI 2012).
    pub(super) fn draft_unblocking(&mut self) -> Option<usize> {
        let acknowledged = self.acknowledged;
        let late = self.late.without(self.stalled);
        let first = late.iter().filter_map(|slot| self.first_lacking(slot));
        let first = first.min_by_key(|span| span.offset)?;
        let offset = first.offset.max(acknowledged);
        let length = (first.end() - offset) as usize;
        let stream = self.choose(length)?;
        Some(self.draft_data(stream, FrameKind::Overtaking, offset, length))
    }

    /// The frame whose bytes the peer lacks first, among a stream's oldest that no other stream carries.
    fn first_lacking(&mut self, slot: usize) -> Option<ByteRange> {
        let range = self.unsettled(slot);
        let frames = self.streams[slot].in_flight.range(range);
        let mut first: Option<ByteRange> = None;
        for frame in frames.take(MAX_LOOKED_AT) {
            let is_earlier = first.map_or(true, |first| frame.span.offset < first.offset);
            if is_earlier && !is_settled(self.acknowledged, &self.overtaken, frame) {
                first = Some(frame.span);
            }
        }
        first
    }

    /// Where those of a stream's frames are that are nowhere else and that the peer lacks; between them may be others.
    fn unsettled(&mut self, slot: usize) -> Range<usize> {
        let (acknowledged, overtaken) = (self.acknowledged, &self.overtaken);
        self.streams[slot].unsettled(|frame| is_settled(acknowledged, overtaken, frame))
    }
}

/// Whether the peer has a frame's bytes, or another stream carries them as well.
fn is_settled(acknowledged: u64, overtaken: &BTreeMap<u64, u64>, frame: &InFlight) -> bool {
    let end = frame.span.end();
    let is_overtaken = || {
        overtaken
            .get(&end)
            .is_some_and(|at_ns| frame.taken_ns <= *at_ns)
    };
    frame.is_elsewhere || end <= acknowledged || is_overtaken()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_was_overtaken_before_it_left_the_host_is_not_overtaken_again() {
        let span = ByteRange {
            offset: 0,
            length: 100,
        };
        let frame = |taken_ns| InFlight {
            span,
            taken_ns,
            through: 100,
            is_elsewhere: false,
            is_queued: false,
            left_ns: taken_ns + 50,
        };
        let overtaken = BTreeMap::from([(100, 10)]);
        assert!(is_settled(0, &overtaken, &frame(0)));
        assert!(!is_settled(0, &overtaken, &frame(11)));
    }
}
