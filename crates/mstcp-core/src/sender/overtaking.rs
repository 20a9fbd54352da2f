//! The end of a transfer: what slow streams carry, once more over streams that have nothing left to do.

use super::drafting::Draft;
use super::stream::{InFlight, Span};
use super::Sender;
use crate::receiver::{ACK_BYTES, ACK_DELAY_NS};

/// A stream is slower than estimated if its peer reports nothing for this time.
const SILENT_NS: u64 = 2 * ACK_DELAY_NS;
/// Bytes are sent again for a gain of so much and more, in seconds.
const LEAST_GAIN_S: f64 = 0.02;

impl Sender {
    /// Once the application has ended and all is on its way: what a stream with nothing to do would bring earlier than the
    /// one that carries it. The last bytes of a slow path come last, so those go first; a path that lost some of them
    /// (all after these wait) is overtaken as its silence grows.
    pub(super) fn draft_overtaking(&mut self, now_ns: u64) -> Option<usize> {
        if !self.ended || self.trusting {
            return None;
        }
        let idle = self.with_room.and(self.eligible).without(self.full);
        let arrival_s = |stream: usize, bytes: usize| self.views[stream].arrival_s(bytes);
        let frame_bytes = self.frame_payload_bytes;
        let stream = (idle
            .iter()
            .filter(|&stream| self.views[stream].weight > 0.0))
        .min_by(|&a, &b| arrival_s(a, frame_bytes).total_cmp(&arrival_s(b, frame_bytes)))?;
        let others = self.alive.iter().filter(|&other| other != stream);
        let latest = others
            .filter_map(|other| self.latest_frame(now_ns, other))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let (carried_s, span) = latest?;
        // What the peer has of it is not kept any more.
        let offset = span.offset.max(self.acknowledged);
        let length = (span.end() - offset) as usize;
        (arrival_s(stream, length) + LEAST_GAIN_S < carried_s)
            .then(|| self.draft_data(stream, Draft::Overtaking, offset, length))
    }

    /// The last frame on a stream that is nowhere else, and in how many seconds it may be there.
    fn latest_frame(&self, now_ns: u64, stream: usize) -> Option<(f64, Span)> {
        let in_flight = &self.streams[stream].in_flight;
        let lacking = |frame: &InFlight| frame.span.end() > self.acknowledged;
        let last = in_flight
            .iter()
            .rposition(|frame| !frame.is_elsewhere && lacking(frame))?;
        let before = in_flight
            .iter()
            .take(last + 1)
            .map(|frame| frame.span.length);
        let view = &self.views[stream];
        let silent_ns = now_ns.saturating_sub(self.streams[stream].progress_ns);
        // A peer that is silent on all streams is held up itself.
        let is_late = silent_ns > SILENT_NS && self.is_peer_alive;
        let late_ns = if is_late { silent_ns } else { 0 };
        // Some may be there already: an ACK is not sent for each of them.
        let rate = view.weight.max(1.0) / 8.0;
        let unreported = (rate * ACK_DELAY_NS as f64 * 1e-9).min(ACK_BYTES as f64);
        let report_s = (before.sum::<usize>() as f64 - unreported) / rate;
        // Reports come back over the quickest path, and what waits on this one waits on its way there.
        let back_ns = self.delay_ns(self.quickest(self.alive.without(self.stalled)));
        let carried_s = report_s + (late_ns as f64 - back_ns.min(view.delay_ns) as f64) * 1e-9;
        Some((carried_s, in_flight[last].span))
    }

    /// Once the peer's window is full: the first bytes that it lacks, if they are on a stream that is late, over one that has
    /// room. A slow stream would else hold up all others until it has brought what it took (as MPTCP's opportunistic
    /// retransmission: Raiciu et al., NSDI 2012).
    pub(super) fn draft_unblocking(&mut self, now_ns: u64) -> Option<usize> {
        let acknowledged = self.acknowledged;
        let late = self.late.without(self.stalled);
        let frames = late.iter().flat_map(|slot| &self.streams[slot].in_flight);
        let first = frames
            .filter(|frame| !frame.is_elsewhere && frame.span.end() > acknowledged)
            .map(|frame| frame.span)
            .min_by_key(|span| span.offset)?;
        let offset = first.offset.max(acknowledged);
        let length = (first.end() - offset) as usize;
        let stream = self.choose(now_ns, length)?;
        Some(self.draft_data(stream, Draft::Overtaking, offset, length))
    }

    /// Note that what the peer lacks of a frame is on a further stream, which took it last.
    pub(super) fn mark_elsewhere(&mut self, span: Span) {
        for stream in &mut self.streams {
            for frame in &mut stream.in_flight {
                frame.is_elsewhere |= frame.span.end() == span.end();
            }
        }
    }
}
