//! CUBIC as ns-3 3.37 has it (`TcpCubic`): Ha, Rhee and Xu 2008, counted in whole segments, with hybrid slow start (Ha and Rhee 2011).
//!
//! What differs from RFC 9438: there is no Reno-friendly region, so windows of short paths grow slowly; the aim is in whole segments, one
//! least round trip ahead; the window is reduced, not what is under way.

use super::super::congestion::curve::Curve;
use super::super::congestion::hystart::{HybridSlowStart, Limits};
use super::super::congestion::{Acked, CongestionControl, Window};
use crate::time::{Nanos, MILLISECOND};

const BETA: f64 = 0.7;
/// At most half more in a round trip.
const MIN_COUNT: u64 = 2;
/// How much longer than the least round trip a round's first ones may be: as much again, within these bounds.
const MIN_RISE: Nanos = 4 * MILLISECOND;
const MAX_RISE: Nanos = 1000 * MILLISECOND;
/// Round trips this soon after an epoch's begin do not count.
const AFTER_EPOCH: Nanos = 10 * MILLISECOND;

/// ns-3's CUBIC.
#[derive(Debug, Clone, Default)]
pub struct Ns3Cubic {
    /// The window before the last loss, in segments; 0: none.
    w_max: u64,
    epoch: Option<Curve>,
    /// Segments acknowledged and not yet grown by.
    credit: u64,
    /// The least smoothed round-trip time.
    least_rtt: Option<Nanos>,
    slow_start: HybridSlowStart,
    /// When the last loss was seen, and what was under way.
    lost: (Nanos, u64),
}

impl Ns3Cubic {
    /// How many segments are to be acknowledged for one of growth.
    fn count(&mut self, now: Nanos, segments: u64) -> u64 {
        let w_max = self.w_max;
        let begin = || Curve::begin(now, segments, w_max);
        let epoch = self.epoch.get_or_insert_with(begin);
        let ahead = self.least_rtt.unwrap_or(0);
        epoch.count(now, ahead, segments, w_max).max(MIN_COUNT)
    }

    fn look_at_delay(&mut self, window: &mut Window, acked: &Acked) {
        let Some(srtt) = acked.srtt else { return };
        if self
            .epoch
            .is_some_and(|epoch| acked.now - epoch.start < AFTER_EPOCH)
        {
            return;
        }
        let least = self.least_rtt.map_or(srtt, |least| least.min(srtt));
        self.least_rtt = Some(least);
        let limits = Limits {
            train: least,
            delay: least + least.clamp(MIN_RISE, MAX_RISE),
        };
        let segments = window.cwnd / window.segment();
        if window.cwnd <= window.ssthresh && self.slow_start.ends(acked.now, segments, srtt, limits)
        {
            window.ssthresh = window.cwnd;
        }
    }
}

impl CongestionControl for Ns3Cubic {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        self.look_at_delay(window, acked);
        let round_over = self.slow_start.acknowledge(acked.bytes);
        if window.in_slow_start() {
            if round_over {
                self.slow_start.begin_round(acked.now, acked.flight);
            }
            window.cwnd += acked.segments * window.segment();
            return;
        }
        if acked.segments == 0 {
            return;
        }
        self.credit += acked.segments;
        let count = self.count(acked.now, window.cwnd / window.segment());
        if self.credit >= count {
            window.cwnd += window.segment();
            self.credit -= count;
        }
    }

    fn on_loss(&mut self, now: Nanos, window: &mut Window, flight: u64) {
        let segments = window.cwnd / window.segment();
        self.w_max = if segments < self.w_max {
            (segments as f64 * (1.0 + BETA) / 2.0) as u64
        } else {
            segments
        };
        self.epoch = None;
        self.lost = (now, flight);
        window.ssthresh = ((segments as f64 * BETA) as u64).max(2) * window.segment();
    }

    /// All is forgotten, and slow start looks at delays again.
    fn on_timeout(&mut self, window: &mut Window) {
        let (now, flight) = self.lost;
        *self = Self {
            credit: self.credit,
            ..Self::default()
        };
        self.slow_start.begin_round(now, flight);
        window.cwnd = window.segment();
    }
}
