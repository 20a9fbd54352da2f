//! The round-trip time and the retransmission timeout (RFC 6298).

use super::config::{RtoSettings, TimeoutRule};
use crate::time::{Nanos, MILLISECOND};

/// The tick of a host's clock, which is the granularity G (RFC 6298, 2.3), and of which timestamps are multiples.
const TICK: Nanos = MILLISECOND;

/// The last tick of a host's clock.
pub fn last_tick(now: Nanos) -> Nanos {
    now / TICK * TICK
}

/// Smoothed round-trip time, its variation, and the timeout that follows.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    settings: RtoSettings,
    rule: TimeoutRule,
    srtt: Nanos,
    variation: Nanos,
    rto: Nanos,
    /// How often it was doubled since the last sample.
    doublings: u32,
    measured: bool,
}

/// The timeout of ns-3's `RttMeanDeviation` is 64 times the estimate at most.
const NS3_DOUBLINGS_MAX: u32 = 6;

impl RttEstimator {
    /// Begin with the initial timeout (RFC 6298, 2.1).
    pub fn new(settings: RtoSettings, rule: TimeoutRule) -> Self {
        Self {
            settings,
            rule,
            srtt: 0,
            variation: 0,
            rto: settings.initial,
            doublings: 0,
            measured: false,
        }
    }

    /// Take a sample (RFC 6298, 2.2 and 2.3): alpha 1/8, beta 1/4, the variation first.
    pub fn sample(&mut self, rtt: Nanos) {
        if self.rule == TimeoutRule::Ns3MeanDeviation {
            self.sample_mean_deviation(rtt);
        } else if self.measured {
            let error = rtt.abs_diff(self.srtt);
            self.variation = ((self.variation << 2) + error - self.variation) >> 2;
            self.srtt = ((self.srtt << 3) + rtt - self.srtt) >> 3;
        } else {
            self.srtt = rtt;
            self.variation = rtt / 2;
        }
        self.measured = true;
        self.end_backoff();
    }

    fn sample_mean_deviation(&mut self, rtt: Nanos) {
        if !self.measured {
            (self.srtt, self.variation) = (rtt, rtt);
            return;
        }
        let error = rtt.abs_diff(self.srtt);
        self.srtt = (9 * self.srtt + rtt) / 10;
        self.variation = (9 * self.variation + error) / 10;
    }

    /// Set the timeout by the present estimate (RFC 6298, 2.3 and 2.4).
    pub fn end_backoff(&mut self) {
        if !self.measured {
            return;
        }
        let deviations = 4 * self.variation;
        let timeout = match self.rule {
            TimeoutRule::Rfc6298 => self.srtt + deviations.max(TICK),
            TimeoutRule::LeastMargin => self.srtt + deviations.max(self.settings.min),
            TimeoutRule::Ns3MeanDeviation => self.srtt + deviations.max(self.srtt),
        };
        self.rto = timeout.clamp(self.settings.min, self.settings.max);
        self.doublings = 0;
    }

    /// Double the timeout (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        if self.rule == TimeoutRule::Ns3MeanDeviation && self.doublings == NS3_DOUBLINGS_MAX {
            return;
        }
        self.doublings += 1;
        self.rto = (2 * self.rto).min(self.settings.max);
    }

    /// The timeout now.
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// The smoothed round-trip time, once measured.
    pub fn srtt(&self) -> Option<Nanos> {
        self.measured.then_some(self.srtt)
    }

    /// The mean deviation of the round-trip time.
    pub fn variation(&self) -> Nanos {
        self.variation
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    #[test]
    fn ns3s_timeout_is_64_times_the_estimate_at_most() {
        let Config { rto, timeout, .. } = Config::ns3_mptcp();
        let mut estimator = RttEstimator::new(rto, timeout);
        estimator.sample(10 * MILLISECOND);
        // The first sample is its own deviation: 10 ms and four times 10 ms.
        assert_eq!(estimator.rto(), 50 * MILLISECOND);
        for _ in 0..10 {
            estimator.back_off();
        }
        assert_eq!(estimator.rto(), 64 * 50 * MILLISECOND);
        estimator.sample(10 * MILLISECOND);
        assert!(estimator.rto() <= 50 * MILLISECOND);
        estimator.back_off();
        assert!(estimator.rto() > 64 * MILLISECOND);
    }
}
