//! Earliest arrival.

use super::{Scheduler, StreamSet, View};

/// The stream on which the frame would arrive first: what waits before it at the stream's rate, its own bytes, and
/// the delay of the path. Arrivals then come in order as far as rates and delays hold.
///
/// If that stream is full now, another with room gets the frame unless the streams that are faster would have brought all that is to
/// come by then; else the frame waits. (Earliest completion first: Lim et al., "ECF: An MPTCP path scheduler to manage
/// heterogeneous paths", CoNEXT 2017, for any number of paths, and for TCP's slow start.) So a long transfer uses every path, and
/// its end waits for none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Earliest;

impl Scheduler for Earliest {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let (first_s, first) = earliest(view, view.alive)?;
        if view.with_room.contains(first) {
            return Some(first);
        }
        let (next_s, next) = earliest(view, view.with_room)?;
        (next_s <= first_s || !is_done_before(view, next_s)).then_some(next)
    }
}

/// The stream of a set on which the frame would arrive first, and when.
fn earliest(view: &View<'_>, set: StreamSet) -> Option<(f64, usize)> {
    view.weighed(set)
        .map(|index| (view.streams[index].arrival_s(view.frame_bytes), index))
        .reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// Whether all that is to come would be at the peer `at_s` seconds from now over the streams that bring the frame sooner.
fn is_done_before(view: &View<'_>, at_s: f64) -> bool {
    let streams = view.weighed(view.alive).map(|index| &view.streams[index]);
    let faster = streams.filter(|stream| stream.arrival_s(view.frame_bytes) < at_s);
    let bits: f64 = faster.map(|stream| stream.brought_bits(at_s)).sum();
    bits > view.expected_bytes as f64 * 8.0
}
