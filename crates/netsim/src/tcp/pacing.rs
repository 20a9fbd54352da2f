//! Sending at a rate instead of in bursts.

use super::config::Pacing;
use super::congestion::Window;
use crate::time::{Nanos, SECOND};

/// Linux paces what follows the tenth segment of data, and no earlier.
const SEGMENTS_UNPACED: u32 = 9;

/// The least and the most that leave at once, if they are there (`tcp_min_tso_segs`, `sk_gso_max_size`).
const BURST_SEGMENTS_MIN: u64 = 2;
const BURST_BYTES_MAX: u64 = 65_536 - 321;
/// A burst is what the rate carries in 2^-10 s (`sk_pacing_shift`), and where round trips are short more: the most, halved for each 2^9 µs
/// (`tcp_tso_rtt_log`).
const BURST_SHIFT: u32 = 10;
const BURST_RTT_LOG: u32 = 9;

/// Segments that leave at once, as Linux sizes its packets for segmentation (`tcp_tso_autosize`).
fn burst_segments(bytes_per_s: u64, segment: u64, least_rtt: Option<Nanos>) -> u64 {
    let halvings = least_rtt.map_or(u64::MAX, |rtt| (rtt / 1000) >> BURST_RTT_LOG);
    let near = if halvings < 32 {
        BURST_BYTES_MAX >> halvings
    } else {
        0
    };
    let bytes = ((bytes_per_s >> BURST_SHIFT) + near).min(BURST_BYTES_MAX);
    (bytes / segment.max(1)).max(BURST_SEGMENTS_MIN)
}

/// When the next segment may leave.
#[derive(Debug, Clone)]
pub struct Pacer {
    pacing: Pacing,
    next: Nanos,
    /// When the present burst leaves, how many segments more it may have, and how late it is, as far as that has not shortened a gap.
    burst_at: Nanos,
    burst_left: u64,
    late: Nanos,
    /// Segments that left unpaced at the beginning.
    unpaced: u32,
}

impl Pacer {
    /// Nothing has been sent.
    pub fn new(pacing: Pacing) -> Self {
        Self {
            pacing,
            next: 0,
            burst_at: 0,
            burst_left: 0,
            late: 0,
            unpaced: 0,
        }
    }

    /// The earliest time of the next segment.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Whether a segment may leave.
    pub fn ready(&self, now: Nanos) -> bool {
        now >= self.next || (self.burst_left > 0 && now == self.burst_at)
    }

    /// Whether an allocated rate paces.
    pub fn is_at_rate(&self) -> bool {
        matches!(self.pacing, Pacing::Rate { .. })
    }

    /// Let the next segment begin a burst of its own.
    pub fn end_burst(&mut self) {
        self.burst_left = 0;
    }

    /// Pace at what is allocated now, where a rate paces.
    pub fn set_rate(&mut self, allocated_bps: f64) {
        if self.is_at_rate() {
            self.pacing = Pacing::at(allocated_bps);
        }
    }

    /// Forget what was sent, as after a timeout.
    pub fn reset(&mut self) {
        self.next = 0;
        self.burst_left = 0;
    }

    /// Account for `bytes` of data that leave at `now`, at this many bytes a nanosecond.
    pub fn sent_at_rate(&mut self, now: Nanos, bytes: u32, rate: f64) {
        self.next = self.next.max(now) + (f64::from(bytes) / rate) as Nanos;
    }

    /// Account for `bytes` of data that leave at `now`; `srtt` and the least round trip are the path's, if known.
    ///
    /// As in Linux (`tcp_update_skb_after_send`) the first segments leave at once, and what leaves late shortens the gap behind it,
    /// by half of it at most. A burst is half of the window at most (`tcp_cwnd_test`).
    pub fn sent(
        &mut self,
        now: Nanos,
        bytes: u32,
        window: &Window,
        srtt: Option<Nanos>,
        least_rtt: Option<Nanos>,
    ) {
        if self.pacing != Pacing::Off && self.unpaced < SEGMENTS_UNPACED {
            self.unpaced += 1;
            self.next = now;
            return;
        }
        let bytes_per_s = match self.pacing {
            Pacing::Off => return,
            Pacing::Rate { rate_bps } => rate_bps as f64 / 8.0,
            Pacing::Window {
                slow_start_percent,
                avoidance_percent,
            } => {
                let Some(srtt) = srtt else { return };
                let percent = if window.cwnd < window.ssthresh / 2 {
                    slow_start_percent
                } else {
                    avoidance_percent
                };
                let a_round = window.cwnd as f64 * f64::from(percent.max(1)) / 100.0;
                a_round * SECOND as f64 / srtt.max(1) as f64
            }
        };
        if self.burst_left > 0 && now == self.burst_at {
            self.burst_left -= 1;
        } else {
            self.late = now.saturating_sub(self.next);
            self.burst_at = now;
            let most = (window.cwnd / window.segment() / 2).max(1);
            let burst = burst_segments(bytes_per_s as u64, window.segment(), least_rtt);
            self.burst_left = burst.min(most) - 1;
            self.next = self.next.max(now);
        }
        let gap = (f64::from(bytes) * SECOND as f64 / bytes_per_s) as Nanos;
        let made_up = self.late.min(gap / 2);
        self.late -= made_up;
        self.next += gap - made_up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Nanos = 1_000_000;

    /// `tcp_tso_autosize`: two at least, the data of a 1024th second, and the more the nearer the peer is.
    #[test]
    fn bursts_are_sized_as_linux_sizes_them() {
        for (bytes_per_s, least_rtt, segments) in [
            (125_000, Some(100 * MILLISECOND), 2),
            (12_500_000, Some(100 * MILLISECOND), 8),
            (125_000, None, 2),
            // 65,215 bytes halved four times, and 122.
            (125_000, Some(2 * MILLISECOND + 100_000), 2),
            // Not halved.
            (125_000, Some(400_000), 45),
            (u64::MAX, Some(400_000), 45),
        ] {
            assert_eq!(burst_segments(bytes_per_s, 1448, least_rtt), segments);
        }
    }

    /// `tcp_cwnd_test`.
    #[test]
    fn a_burst_is_half_of_the_window_at_most() {
        let mss = 1000;
        let window = Window {
            cwnd: 8000,
            ssthresh: u64::MAX,
            mss,
        };
        let mut pacer = Pacer::new(Pacing::at(1e9));
        for now in 0..u64::from(SEGMENTS_UNPACED) {
            pacer.sent(now, mss, &window, None, None);
        }
        let mut burst = 0;
        while pacer.ready(MILLISECOND) {
            pacer.sent(MILLISECOND, mss, &window, None, None);
            burst += 1;
        }
        assert_eq!(burst, 4);
    }
}
