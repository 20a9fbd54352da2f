//! Deterministic and smooth.

use super::{Earliest, Scheduler, StreamSet, View};

/// What a stream that was full may catch up, in frames of the size at hand.
const CATCH_UP_FRAMES: f64 = 8.0;

/// Smooth weighted round robin by bytes: each frame earns every stream its share of the frame's bytes, and costs the
/// stream that carries it all of them; the stream with the most credit is next.
///
/// While all streams have room, none is ever more than one frame off its share. A stream that was full makes up for
/// a few frames later and not for more, so that it gets no burst.
///
/// Where nobody gave the streams rates there is no share to keep, and [`Earliest`] chooses.
#[derive(Debug, Clone, Default)]
pub struct Weighted {
    /// By stream; those that have earned nothing yet may be missing.
    credit_bytes: Vec<f64>,
}

impl Weighted {
    fn credit_after(&self, view: &View<'_>, index: usize) -> f64 {
        let total: f64 = view.alive.iter().map(|index| view.weight(index)).sum();
        let credit = self.credit_bytes.get(index).copied().unwrap_or(0.0);
        credit + view.frame_bytes as f64 * view.weight(index) / total
    }
}

impl Scheduler for Weighted {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        if view.is_measured() {
            return Earliest.choose(view);
        }
        view.weighed(view.with_room)
            .map(|index| (self.credit_after(view, index), index))
            // The first of equal ones, so that the order does not depend on rounding.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, index)| index)
    }

    fn on_begun(&mut self, view: &View<'_>, stream: usize) {
        if view.is_measured() {
            return;
        }
        let frame_bytes = view.frame_bytes as f64;
        let most = CATCH_UP_FRAMES * frame_bytes;
        if self.credit_bytes.len() < view.streams.len() {
            self.credit_bytes.resize(view.streams.len(), 0.0);
        }
        let mut earning = StreamSet::default();
        for index in view.weighed(view.alive) {
            self.credit_bytes[index] = self.credit_after(view, index);
            earning.insert(index);
        }
        for (index, credit) in self.credit_bytes.iter_mut().enumerate() {
            // Places of dead streams are cleared: a stream that takes one begins without debts.
            let earned = if earning.contains(index) {
                *credit
            } else {
                0.0
            };
            let cost = if index == stream { frame_bytes } else { 0.0 };
            *credit = (earned - cost).clamp(-most, most);
        }
    }
}
