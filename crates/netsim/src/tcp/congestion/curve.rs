//! CUBIC's curve counted in whole segments, as kernels and ns-3 have it (Ha, Rhee and Xu 2008).

use super::cubic::{cube_root, seconds};
use crate::time::Nanos;

const C: f64 = 0.4;
/// Before the first loss a segment for this many acknowledged ones is the least growth.
const MAX_COUNT_AT_FIRST: u64 = 20;

/// Growth from the first ACK after a loss or slow start.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Curve {
    pub(in crate::tcp) start: Nanos,
    /// When the curve is at `origin`, in seconds after the start.
    k: f64,
    origin: u64,
}

impl Curve {
    /// Begin with a window of `segments`; before the last loss it was `w_max`, 0 if there was none.
    pub(in crate::tcp) fn begin(now: Nanos, segments: u64, w_max: u64) -> Self {
        let below = w_max.saturating_sub(segments);
        Self {
            start: now,
            k: if below == 0 {
                0.0
            } else {
                cube_root(below as f64 / C)
            },
            origin: w_max.max(segments),
        }
    }

    /// The window to aim at, `ahead` from now.
    fn aim(&self, now: Nanos, ahead: Nanos) -> u64 {
        let t = seconds(now - self.start + ahead);
        let offset = (t - self.k).abs();
        let delta = (C * offset * offset * offset) as u64;
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin + delta
        }
    }

    /// How many segments are to be acknowledged for one of growth towards the aim.
    pub(in crate::tcp) fn count(&self, now: Nanos, ahead: Nanos, segments: u64, w_max: u64) -> u64 {
        let aim = self.aim(now, ahead);
        let count = if aim > segments {
            segments / (aim - segments)
        } else {
            100 * segments
        };
        match w_max {
            0 => count.min(MAX_COUNT_AT_FIRST),
            _ => count,
        }
    }
}
