//! Earliest arrival.

use super::{Scheduler, View};

/// The stream on which the frame would arrive first: what waits before it at the stream's rate, its own bytes, and
/// the delay of the path. Arrivals then come in order as far as rates and delays hold.
///
/// If that stream is full now and the frame would still arrive later on every stream with room, it waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Earliest;

impl Scheduler for Earliest {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        let (_, index) = view
            .weighed(view.alive)
            .map(|index| (arrival_s(view, index), index))
            .reduce(|best, next| if next.0 < best.0 { next } else { best })?;
        view.with_room.contains(index).then_some(index)
    }
}

/// Seconds from now until the last byte of the frame would be at the peer.
fn arrival_s(view: &View<'_>, index: usize) -> f64 {
    let stream = &view.streams[index];
    let bits = (stream.backlog_bytes + view.frame_bytes as f64) * 8.0;
    bits / stream.weight + stream.delay_ns as f64 * 1e-9
}
