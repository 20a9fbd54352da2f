//! The rate of a subflow by its window.

use crate::time::{Nanos, SECOND};

/// A subflow's window by its round trip: the mean over time, and over the lines of a log.
///
/// So the MPTCP model of ns-3 by Chihani and Collange (2011) logs the throughput of a subflow, a line whenever an ACK or a loss sets the
/// window, and the sum of all as `gThroughput`. Data that flows without a pause makes the mean over time the throughput; a subflow
/// that waits for its timer has the rate that it could have had. The mean over lines leaves out what waits: it is the rate at which a
/// subflow sends while it does.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowRate {
    begun: Option<Nanos>,
    until: Nanos,
    bytes_per_s: f64,
    bytes: f64,
    lines: u64,
    sum: f64,
}

impl WindowRate {
    /// From `now` on the window is `cwnd_bytes`, the smoothed round trip `srtt`; nothing begins before that is measured. `acked`:
    /// an ACK advanced, which is a line even if the window stays. Whether there is a line.
    pub fn note(&mut self, now: Nanos, cwnd_bytes: u64, srtt: Nanos, acked: bool) -> bool {
        if srtt == 0 {
            return false;
        }
        self.bytes += self.bytes_per_s * seconds(now - self.until.min(now));
        self.begun.get_or_insert(now);
        self.until = now;
        let rate = cwnd_bytes as f64 / seconds(srtt);
        let line = acked || rate != self.bytes_per_s;
        if line {
            self.lines += 1;
            self.sum += rate;
        }
        self.bytes_per_s = rate;
        line
    }

    /// Bytes a second by the present window.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s
    }

    /// Bit/s, from the first measurement to the last.
    pub fn mean_bps(&self) -> f64 {
        let begun = self.begun.unwrap_or(self.until);
        8.0 * self.bytes / seconds((self.until - begun).max(1))
    }

    /// Bit/s, the mean over lines.
    pub fn logged_bps(&self) -> f64 {
        8.0 * self.sum / self.lines.max(1) as f64
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_count_as_long_as_they_last() {
        let mut rate = WindowRate::default();
        rate.note(SECOND, 5000, 0, true);
        assert_eq!(rate.mean_bps(), 0.0);
        // 10 kB in 100 ms for a second, then half of it for three.
        rate.note(2 * SECOND, 10_000, SECOND / 10, true);
        rate.note(3 * SECOND, 5000, SECOND / 10, false);
        rate.note(6 * SECOND, 5000, SECOND / 10, false);
        assert_eq!(rate.mean_bps(), (800_000.0 + 3.0 * 400_000.0) / 4.0);
        // A line each, but for the last, which changes nothing.
        assert_eq!(rate.logged_bps(), (800_000.0 + 400_000.0) / 2.0);
    }
}
