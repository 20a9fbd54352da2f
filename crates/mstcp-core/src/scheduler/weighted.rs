//! Deterministic and smooth.

use super::{Scheduler, View};
use crate::MAX_STREAMS;

/// What a stream that was full may catch up, in frames of the size at hand.
const CATCH_UP_FRAMES: f64 = 8.0;

/// Smooth weighted round robin by bytes: each frame earns every stream its share of the frame's bytes, and costs the
/// stream that carries it all of them; the stream with the most credit is next.
///
/// While all streams have room, none is ever more than one frame off its share. A stream that was full makes up for
/// a few frames later and not for more, so that it gets no burst.
#[derive(Debug, Clone)]
pub struct Weighted {
    credit_bytes: [f64; MAX_STREAMS],
}

impl Default for Weighted {
    fn default() -> Self {
        Self {
            credit_bytes: [0.0; MAX_STREAMS],
        }
    }
}

impl Weighted {
    fn credit_after(&self, view: &View<'_>, index: usize) -> f64 {
        let total: f64 = view.alive.iter().map(|index| view.weight(index)).sum();
        self.credit_bytes[index] + view.frame_bytes as f64 * view.weight(index) / total
    }
}

impl Scheduler for Weighted {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        view.weighed(view.with_room)
            .map(|index| (self.credit_after(view, index), index))
            // Of equal ones the first, so that the order does not hang on rounding.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, index)| index)
    }

    fn on_begun(&mut self, view: &View<'_>, stream: usize) {
        let frame_bytes = view.frame_bytes as f64;
        let most = CATCH_UP_FRAMES * frame_bytes;
        let mut earned = [0.0; MAX_STREAMS];
        for index in view.weighed(view.alive) {
            earned[index] = self.credit_after(view, index);
        }
        earned[stream] -= frame_bytes;
        // Places of dead streams are cleared: a stream that takes one begins without debts.
        self.credit_bytes = earned.map(|credit| credit.clamp(-most, most));
    }
}
