//! CUBIC as Linux has it (`tcp_cubic`), counted in whole segments, with hybrid slow start.
//!
//! What differs from RFC 9438: the aim is one least round trip ahead, not a present one, which a queue makes longer; the estimate of
//! Reno's window grows at the pace of losses for ever; the window is reduced, not what is under way; slow start ends early.

use super::curve::Curve;
use super::hystart::{HybridSlowStart, Limits};
use super::{Acked, CongestionControl, Window};
use crate::time::{Nanos, MILLISECOND, SECOND};

/// The multiplicative decrease in 1024ths: 0.7.
const BETA: u64 = 717;
const UNIT: u64 = 1024;
/// At most half more in a round trip.
const MIN_COUNT: u64 = 2;
/// Delays this soon after an epoch's begin do not count.
const AFTER_EPOCH: Nanos = SECOND;
/// With one window the pace of growth is computed this often.
const PACE_LASTS: Nanos = SECOND / 32;
/// How much longer than the least delay a round's first delays may be: an eighth, within these bounds.
const RISE: [Nanos; 2] = [4 * MILLISECOND, 16 * MILLISECOND];
/// Bytes that a network card may hold back as one burst, four times.
const BURST_BYTES: u64 = 4 * 65_536;

/// Linux's CUBIC.
#[derive(Debug, Clone, Default)]
pub struct LinuxCubic {
    /// The sender is paced, which delays ACKs by up to half of a round trip.
    paced: bool,
    /// The window before the last loss, in segments, perhaps lowered by fast convergence; 0: none.
    w_max: u64,
    epoch: Option<Epoch>,
    /// Segments acknowledged and not yet grown by.
    credit: u64,
    least_delay: Option<Nanos>,
    slow_start: HybridSlowStart,
    /// When the last loss was seen, and what was under way.
    lost: (Nanos, u64),
}

/// The present growth, from the first ACK after a loss or slow start.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    curve: Curve,
    /// The window that Reno would have, and segments acknowledged towards its next one.
    reno: u64,
    reno_credit: u64,
    /// Segments to be acknowledged for one of growth, and for which window and when that was computed.
    count: u64,
    counted: (u64, Nanos),
}

impl Epoch {
    fn begin(now: Nanos, segments: u64, w_max: u64) -> Self {
        Self {
            curve: Curve::begin(now, segments, w_max),
            reno: segments,
            reno_credit: 0,
            count: 0,
            counted: (0, 0),
        }
    }

    /// Reno's window: a segment more for this many acknowledged ones that its halving at the same losses gives CUBIC's mean.
    fn grow_reno(&mut self, segments: u64) {
        let pace = segments * (8 * (UNIT + BETA) / 3 / (UNIT - BETA)) / 8;
        while self.reno_credit > pace {
            self.reno_credit -= pace;
            self.reno += 1;
        }
    }
}

impl LinuxCubic {
    /// Nothing is known of the path; whether the sender is paced.
    pub fn new(paced: bool) -> Self {
        Self {
            paced,
            ..Self::default()
        }
    }

    /// How many segments are to be acknowledged for one of growth, after an ACK of `acked` with a window of `segments`.
    fn count(&mut self, now: Nanos, segments: u64, acked: u64) -> u64 {
        let w_max = self.w_max;
        let ahead = self.least_delay.unwrap_or(0);
        let epoch = self
            .epoch
            .get_or_insert_with(|| Epoch::begin(now, segments, w_max));
        epoch.reno_credit += acked;
        if epoch.counted.0 == segments && now - epoch.counted.1 <= PACE_LASTS {
            return epoch.count;
        }
        epoch.counted = (segments, now);
        let mut count = epoch.curve.count(now, ahead, segments, w_max);
        epoch.grow_reno(segments);
        if epoch.reno > segments {
            count = count.min(segments / (epoch.reno - segments));
        }
        epoch.count = count.max(MIN_COUNT);
        epoch.count
    }

    fn look_at_delay(&mut self, window: &mut Window, acked: &Acked) {
        let Some(delay) = acked.delay else { return };
        let after_epoch = |epoch: Epoch| acked.now - epoch.curve.start < AFTER_EPOCH;
        if self.epoch.is_some_and(after_epoch) {
            return;
        }
        let least = self.least_delay.map_or(delay, |least| least.min(delay));
        self.least_delay = Some(least);
        if !window.in_slow_start() {
            return;
        }
        if self.slow_start.acknowledge(acked.bytes) {
            self.slow_start.begin_round(acked.now, acked.flight);
        }
        // What the network card holds back at twice the window a round trip.
        let most_bytes = 2 * window.cwnd.max(acked.flight);
        let held = (BURST_BYTES * acked.srtt.unwrap_or(0) / most_bytes).min(MILLISECOND);
        let limits = Limits {
            train: if self.paced {
                least + held
            } else {
                (least + held) / 2
            },
            delay: least + (least / 8).clamp(RISE[0], RISE[1]),
        };
        let segments = window.cwnd / window.segment();
        if self.slow_start.ends(acked.now, segments, delay, limits) {
            window.ssthresh = window.cwnd;
        }
    }
}

impl CongestionControl for LinuxCubic {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        self.look_at_delay(window, acked);
        let mut left = acked.segments;
        if window.in_slow_start() {
            let grown = (window.cwnd + left * window.segment()).min(window.ssthresh);
            left -= (grown - window.cwnd).div_ceil(window.segment()).min(left);
            window.cwnd = grown;
        }
        if left == 0 {
            return;
        }
        let count = self.count(acked.now, (window.cwnd / window.segment()).max(1), left);
        if self.credit >= count {
            self.credit = 0;
            window.cwnd += window.segment();
        }
        self.credit += left;
        window.cwnd += self.credit / count * window.segment();
        self.credit %= count;
    }

    fn on_loss(&mut self, now: Nanos, window: &mut Window, flight: u64) {
        let segments = window.cwnd / window.segment();
        self.w_max = if segments < self.w_max {
            segments * (UNIT + BETA) / (2 * UNIT)
        } else {
            segments
        };
        self.epoch = None;
        self.credit = 0;
        self.lost = (now, flight);
        window.ssthresh = (segments * BETA / UNIT).max(2) * window.segment();
    }

    /// All is forgotten, and slow start looks at delays again.
    fn on_timeout(&mut self, window: &mut Window) {
        let (now, flight) = self.lost;
        *self = Self::new(self.paced);
        self.slow_start.begin_round(now, flight);
        window.cwnd = window.segment();
    }

    /// Time in which nothing was sent does not count.
    fn on_idle(&mut self, since: Nanos, now: Nanos) {
        if let Some(epoch) = &mut self.epoch {
            epoch.curve.start += now.saturating_sub(since);
        }
    }
}
