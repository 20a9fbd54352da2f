//! What applications write, and when.

use mstcp_core::rng::SplitMix64;

use crate::random::exponential;
use crate::time::{Nanos, SECOND};

/// When an application writes.
#[derive(Debug, Clone)]
pub enum Source {
    /// Writes of one size at a constant rate; one that finds the send buffer full is skipped.
    ConstantRate(Ticks),
    /// Writes of one size at the times of a Poisson process; likewise.
    Poisson {
        /// Mean time between writes.
        mean_ns: f64,
        /// Draws the times.
        rng: SplitMix64,
    },
    /// As much as the send buffer takes.
    Bulk {
        /// Bytes that are left to write; none without end.
        left: Option<u64>,
    },
}

impl Source {
    /// The time from a write to the next; none for sources that write whenever there is room.
    pub fn gap(&mut self) -> Option<Nanos> {
        match self {
            Self::ConstantRate(ticks) => Some(ticks.next_gap()),
            Self::Poisson { mean_ns, rng } => Some(exponential(rng, *mean_ns)),
            Self::Bulk { .. } => None,
        }
    }
}

/// Ticks of a constant rate, exact in the long run: fractions of a nanosecond are carried over.
#[derive(Debug, Clone)]
pub struct Ticks {
    whole: Nanos,
    remainder: u64,
    rate_bps: u64,
    carry: u64,
}

impl Ticks {
    /// The ticks at which `bytes` make `rate_bps` (not 0).
    pub fn new(bytes: u32, rate_bps: u64) -> Self {
        let work = u128::from(bytes) * 8 * u128::from(SECOND);
        let rate = u128::from(rate_bps);
        Self {
            whole: (work / rate) as Nanos,
            remainder: (work % rate) as u64,
            rate_bps,
            carry: 0,
        }
    }

    fn next_gap(&mut self) -> Nanos {
        self.carry += self.remainder;
        let more = self.carry >= self.rate_bps;
        if more {
            self.carry -= self.rate_bps;
        }
        self.whole + Nanos::from(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_exact_in_the_long_run() {
        let mut ticks = Ticks::new(536, 8_500_000);
        let total: Nanos = (0..8_500_000 / 8).map(|_| ticks.next_gap()).sum();
        assert_eq!(total, 536 * SECOND);
    }
}
