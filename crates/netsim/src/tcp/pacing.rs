//! Sending at a rate instead of in bursts.

use super::config::Pacing;
use crate::time::{Nanos, SECOND};

/// Linux paces what follows the tenth segment of data, and no earlier.
const SEGMENTS_UNPACED: u32 = 9;

/// When the next segment may leave.
#[derive(Debug, Clone)]
pub struct Pacer {
    pacing: Pacing,
    next: Nanos,
    /// Segments that left unpaced at the beginning.
    unpaced: u32,
}

impl Pacer {
    /// Nothing has been sent.
    pub fn new(pacing: Pacing) -> Self {
        Self {
            pacing,
            next: 0,
            unpaced: 0,
        }
    }

    /// The earliest time of the next segment.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Whether a segment may leave.
    pub fn ready(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Forget what was sent, as after a timeout.
    pub fn reset(&mut self) {
        self.next = 0;
    }

    /// Account for `bytes` of data that leave at `now`, at so many bytes a nanosecond.
    pub fn sent_at_rate(&mut self, now: Nanos, bytes: u32, rate: f64) {
        self.next = self.next.max(now) + (f64::from(bytes) / rate) as Nanos;
    }

    /// Account for `bytes` of data that leave at `now`; `cwnd`, `ssthresh` in bytes, `srtt` if known.
    ///
    /// As in Linux (`tcp_update_skb_after_send`) the first segments leave at once, and what leaves late shortens the gap behind it,
    /// by half of it at most.
    pub fn sent(&mut self, now: Nanos, bytes: u32, cwnd: u64, ssthresh: u64, srtt: Option<Nanos>) {
        if self.pacing != Pacing::Off && self.unpaced < SEGMENTS_UNPACED {
            self.unpaced += 1;
            self.next = now;
            return;
        }
        let bits = u128::from(bytes) * 8;
        let gap = match self.pacing {
            Pacing::Off => return,
            Pacing::Rate { rate_bps } => bits * u128::from(SECOND) / u128::from(rate_bps),
            Pacing::Window {
                slow_start_percent,
                avoidance_percent,
            } => {
                let Some(srtt) = srtt else { return };
                let percent = if cwnd < ssthresh / 2 {
                    slow_start_percent
                } else {
                    avoidance_percent
                };
                let window_bits = u128::from(cwnd) * 8 * u128::from(percent.max(1));
                bits * u128::from(srtt) * 100 / window_bits.max(1)
            }
        };
        let (gap, late) = (gap as Nanos, now.saturating_sub(self.next));
        self.next = self.next.max(now) + gap - late.min(gap / 2);
    }
}
