//! Earliest arrival.

use super::{Scheduler, StreamSet, View};

/// The stream on which the frame would arrive first: what waits before it at the stream's rate, its own bytes, and
/// the delay of the path. Arrivals then come in order as far as rates and delays hold.
///
/// If that stream is full now, another with room gets the frame where it would arrive no later than the last of all
/// that is to come would over the streams that are faster; else the frame waits. (Earliest completion first: Lim et al.,
/// "ECF: An MPTCP path scheduler to manage heterogeneous paths", CoNEXT 2017, for any number of paths.) So a long transfer
/// uses every path, and its end waits for none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Earliest;

impl Scheduler for Earliest {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let (first_s, first) = earliest(view, view.alive)?;
        if view.with_room.contains(first) {
            return Some(first);
        }
        let (next_s, next) = earliest(view, view.with_room)?;
        (next_s <= first_s || next_s <= completion_s(view, next_s)).then_some(next)
    }
}

/// The stream of a set on which the frame would arrive first, and when.
fn earliest(view: &View<'_>, set: StreamSet) -> Option<(f64, usize)> {
    view.weighed(set)
        .map(|index| (view.streams[index].arrival_s(view.frame_bytes), index))
        .reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// Seconds from now until all that is to come would be at the peer over the streams that bring the frame before
/// `before_s`, all busy to the end.
fn completion_s(view: &View<'_>, before_s: f64) -> f64 {
    let (mut bits, mut rate_bps) = (view.expected_bytes as f64 * 8.0, 0.0);
    for index in view.weighed(view.alive) {
        if view.streams[index].arrival_s(view.frame_bytes) < before_s {
            let stream = &view.streams[index];
            bits += (stream.queue_bytes + stream.backlog_bytes) * 8.0
                + stream.weight * stream.least_delay_ns as f64 * 1e-9;
            rate_bps += stream.weight;
        }
    }
    bits / rate_bps
}
