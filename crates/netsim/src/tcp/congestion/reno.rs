//! Slow start and congestion avoidance (RFC 5681, 3.1).

use super::super::config::RenoGrowth;
use super::{Acked, CongestionControl, Window};
use crate::time::Nanos;

/// Reno's window: half of the flight at a loss, one segment more each round trip.
#[derive(Debug, Clone)]
pub struct Reno {
    growth: RenoGrowth,
    /// Acknowledged towards the next segment of growth: bytes or segments.
    credit: u64,
}

impl Reno {
    /// Count by `growth`.
    pub fn new(growth: RenoGrowth) -> Self {
        Self { growth, credit: 0 }
    }

    /// RFC 5681 equation 2 and the byte counting that it recommends.
    fn by_bytes(&mut self, window: &mut Window, acked: &Acked) {
        if window.in_slow_start() {
            window.cwnd += acked.bytes.min(window.segment());
            return;
        }
        self.credit += acked.bytes;
        if self.credit >= window.cwnd {
            self.credit -= window.cwnd;
            window.cwnd += window.segment();
        }
    }

    /// RFC 5681 equations 2 and 3, by the ACK.
    fn by_acks(window: &mut Window, acked: &Acked) {
        let mut segments = acked.segments;
        if segments > 0 && window.in_slow_start() {
            window.cwnd += window.segment();
            segments -= 1;
        }
        if segments > 0 && !window.in_slow_start() {
            window.cwnd += (window.segment() * window.segment() / window.cwnd).max(1);
        }
    }

    /// Slow start up to the threshold by all that is acknowledged, the rest for congestion avoidance.
    fn by_segments(&mut self, window: &mut Window, acked: &Acked) {
        let mut segments = acked.segments;
        if window.in_slow_start() {
            let room = (window.ssthresh - window.cwnd).div_ceil(window.segment());
            let used = segments.min(room);
            window.cwnd = (window.cwnd + used * window.segment()).min(window.ssthresh);
            segments -= used;
        }
        if segments > 0 {
            let window_segments = (window.cwnd / window.segment()).max(1);
            self.credit += segments;
            window.cwnd += self.credit / window_segments * window.segment();
            self.credit %= window_segments;
        }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        match self.growth {
            RenoGrowth::Bytes => self.by_bytes(window, acked),
            RenoGrowth::Acks => Self::by_acks(window, acked),
            RenoGrowth::Segments => self.by_segments(window, acked),
        }
    }

    /// RFC 5681 equation 4; Linux halves the window, which is less where lost data is still out (`tcp_reno_ssthresh`).
    fn on_loss(&mut self, _now: Nanos, window: &mut Window, flight: u64) {
        self.credit = 0;
        let flight = match self.growth {
            RenoGrowth::Segments => flight.min(window.cwnd),
            RenoGrowth::Bytes | RenoGrowth::Acks => flight,
        };
        window.ssthresh = (flight / 2).max(2 * window.segment());
    }
}
