//! Hybrid slow start: end it before it fills the queue (Ha and Rhee, "Taming the elephants: New TCP slow start", 2011).

use crate::time::{Nanos, MILLISECOND};

/// Looks at the ACKs of a round, as long as the window is large enough.
#[derive(Debug, Clone, Default)]
pub(in crate::tcp) struct HybridSlowStart {
    round_start: Nanos,
    /// Bytes until the round is acknowledged.
    round_left: i64,
    /// The last ACK of a train.
    train_at: Nanos,
    /// The round's least delay, and how many were looked at.
    round_delay: Option<Nanos>,
    samples: u32,
    ended: bool,
}

/// When slow start has filled the path.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Limits {
    /// A round's ACKs that follow each other closely last longer.
    pub train: Nanos,
    /// All delays at the beginning of a round are longer.
    pub delay: Nanos,
}

impl HybridSlowStart {
    const MIN_SEGMENTS: u64 = 16;
    const SAMPLES: u32 = 8;
    /// ACKs of a train follow each other within this time.
    const TRAIN_GAP: Nanos = 2 * MILLISECOND;

    /// Begin a round with this many bytes under way.
    pub fn begin_round(&mut self, now: Nanos, flight: u64) {
        self.round_start = now;
        self.train_at = now;
        self.round_left = flight as i64;
        self.round_delay = None;
        self.samples = 0;
    }

    /// Count what is acknowledged; whether the round is over.
    pub fn acknowledge(&mut self, bytes: u64) -> bool {
        self.round_left -= bytes as i64;
        self.round_left < 0
    }

    /// Look at an ACK of slow start with a window of this many segments; whether slow start ends with it.
    pub fn ends(&mut self, now: Nanos, segments: u64, delay: Nanos, limits: Limits) -> bool {
        if self.ended || segments < Self::MIN_SEGMENTS {
            return false;
        }
        if now - self.train_at <= Self::TRAIN_GAP {
            self.train_at = now;
            self.ended |= now - self.round_start > limits.train;
        }
        if self.samples < Self::SAMPLES {
            self.round_delay = Some(self.round_delay.map_or(delay, |least| least.min(delay)));
            self.samples += 1;
        } else {
            self.ended |= self.round_delay.is_some_and(|least| least > limits.delay);
        }
        self.ended
    }
}
