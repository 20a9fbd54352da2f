//! When the last bit of a packet leaves.

use crate::time::{Nanos, SECOND};

/// Serialises packets one after the other, exactly: what is less than a nanosecond is carried over to the next packet.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Transmitter {
    rate_bps: u64,
    pub(super) busy_until: Nanos,
    /// Fraction of a nanosecond carried over, in units of 1 / `rate_bps`.
    carry: u64,
    /// The last size with its quotient and remainder: most packets of a link are of one size.
    known: (u32, Nanos, u64),
    pub(super) busy: Nanos,
}

impl Transmitter {
    pub(super) fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            busy_until: 0,
            busy: 0,
            carry: 0,
            known: (0, 0, 0),
        }
    }

    /// Send after all that was sent before; when the last bit leaves.
    pub(super) fn send(&mut self, now: Nanos, bytes: u32) -> Nanos {
        if self.known.0 != bytes {
            let work = u128::from(bytes) * 8 * u128::from(SECOND);
            let rate = u128::from(self.rate_bps);
            self.known = (bytes, (work / rate) as Nanos, (work % rate) as u64);
        }
        let (_, mut time, remainder) = self.known;
        if now >= self.busy_until {
            self.busy_until = now;
            self.carry = 0;
        }
        self.carry += remainder;
        if self.carry >= self.rate_bps {
            self.carry -= self.rate_bps;
            time += 1;
        }
        self.busy_until += time;
        self.busy += time;
        self.busy_until
    }

    /// Have another rate from `begin` on, and nothing to send after that.
    pub(super) fn change(&mut self, begin: Nanos, rate_bps: u64) {
        self.stop(begin);
        self.rate_bps = rate_bps;
        self.carry = 0;
        self.known = (0, 0, 0);
    }

    pub(super) fn stop(&mut self, now: Nanos) {
        self.busy -= self.busy_until.saturating_sub(now);
        self.busy_until = self.busy_until.min(now);
    }
}
