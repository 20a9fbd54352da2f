//! CUBIC (RFC 9438). Windows are in segments here, times in seconds, as in the RFC.

use super::{Acked, CongestionControl, Window};
use crate::time::{Nanos, SECOND};

/// C (4.1), in segments per cubed second.
const C: f64 = 0.4;
/// The factor of the multiplicative decrease (4.6).
const BETA: f64 = 0.7;

/// CUBIC's window: a cubic function of the time since the last loss, whatever the round-trip time.
#[derive(Debug, Clone, Default)]
pub struct Cubic {
    /// W_max: the window before the last loss, perhaps lowered by fast convergence.
    w_max: f64,
    /// cwnd_prior: the window before the last loss as it was.
    prior: f64,
    /// The present growth, from the first ACK after a loss or slow start.
    epoch: Option<Epoch>,
    /// Growth below one byte.
    remainder: f64,
}

#[derive(Debug, Clone)]
struct Epoch {
    start: Nanos,
    /// When the curve is back at `origin`, in seconds after the start.
    k: f64,
    origin: f64,
    /// W_est: the window that Reno would have.
    reno: f64,
}

impl Cubic {
    /// Equations 1 and 2: the window `t` seconds into an epoch.
    fn curve(epoch: &Epoch, t: f64) -> f64 {
        let offset = t - epoch.k;
        C * offset * offset * offset + epoch.origin
    }

    /// RFC 9438, 4.2: the epoch begins with the first ACK of congestion avoidance.
    fn begin_epoch(&self, now: Nanos, cwnd: f64) -> Epoch {
        let (k, origin) = if self.w_max > cwnd {
            (cube_root((self.w_max - cwnd) / C), self.w_max)
        } else {
            (0.0, cwnd)
        };
        Epoch {
            start: now,
            k,
            origin,
            reno: cwnd,
        }
    }

    /// RFC 9438, 4.3: W_est after an ACK of `segments`.
    fn grow_reno(&self, epoch: &mut Epoch, cwnd: f64, segments: f64) {
        let alpha = if epoch.reno >= self.prior {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        epoch.reno += alpha * segments / cwnd;
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if window.in_slow_start() {
            // RFC 3465, 2.2 with L = 2: delayed ACKs do not halve the growth.
            window.cwnd += acked.bytes.min(2 * window.segment());
            return;
        }
        let mss = f64::from(window.mss);
        let cwnd = window.cwnd as f64 / mss;
        let segments = acked.bytes as f64 / mss;
        let mut epoch = self
            .epoch
            .take()
            .unwrap_or_else(|| self.begin_epoch(acked.now, cwnd));
        let t = seconds(acked.now.saturating_sub(epoch.start));
        self.grow_reno(&mut epoch, cwnd, segments);
        let growth = if Self::curve(&epoch, t) < epoch.reno {
            (epoch.reno - cwnd).max(0.0)
        } else {
            // RFC 9438, 4.2: half more in a round trip at most.
            let target =
                Self::curve(&epoch, t + seconds(acked.srtt.unwrap_or(0))).clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) / cwnd * segments
        };
        self.epoch = Some(epoch);
        self.remainder += growth * mss;
        let whole = self.remainder as u64;
        self.remainder -= whole as f64;
        window.cwnd += whole;
    }

    /// RFC 9438, 4.6 and 4.7.
    fn on_loss(&mut self, _now: Nanos, window: &mut Window, flight: u64) {
        let cwnd = window.cwnd as f64 / f64::from(window.mss);
        self.prior = cwnd;
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.epoch = None;
        self.remainder = 0.0;
        let reduced = flight.min(window.cwnd) as f64 * BETA;
        window.ssthresh = (reduced as u64).max(2 * window.segment());
    }

    /// RFC 9438, 4.8: after a timeout the curve begins at the window that slow start reaches.
    fn on_timeout(&mut self, window: &mut Window) {
        self.w_max = 0.0;
        self.epoch = None;
        window.cwnd = window.segment();
    }

    /// RFC 9438, 5.8: time in which the window was not the limit does not count.
    fn on_idle(&mut self, since: Nanos, now: Nanos) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += now.saturating_sub(since);
        }
    }
}

pub(in crate::tcp) fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

/// The cube root by Newton's method: only operations that IEEE 754 fixes to the bit, since `f64::cbrt` is the platform's.
pub(in crate::tcp) fn cube_root(value: f64) -> f64 {
    let mut root = value.max(1.0);
    for _ in 0..200 {
        let next = (2.0 * root + value / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    #[test]
    fn finds_cube_roots() {
        for value in [0.0, 1e-3, 0.5, 1.0, 8.0, 27.0, 1e6] {
            let root = cube_root(value);
            assert!(
                (root * root * root - value).abs() <= 1e-9 * value.max(1e-9),
                "{value}: {root}"
            );
        }
    }
}
