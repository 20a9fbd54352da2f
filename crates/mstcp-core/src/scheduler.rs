//! Which stream carries the next frame.

use std::fmt;

use crate::error::LocalError;
use crate::rng::SplitMix64;

/// A set of stream indices, 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamSet(u64);

impl StreamSet {
    /// The streams `0..count`.
    pub fn first(count: usize) -> Self {
        debug_assert!(count <= crate::MAX_STREAMS);
        Self(if count >= 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        })
    }

    /// Add a stream.
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// Take a stream out.
    pub fn remove(&mut self, index: usize) {
        self.0 &= !(1 << index);
    }

    /// Whether the stream is in the set.
    pub fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Whether no stream is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The streams of the set, in rising order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (index < 64).then_some(index)
        })
    }

    /// One bit per stream, stream 0 lowest.
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// A rule that picks the stream of the next frame.
///
/// The sender calls it for one frame at a time, and again if the chosen stream's socket turned out to be full.
pub trait Scheduler: fmt::Debug + Send + Sync {
    /// Pick one of the streams `with_room`, or none if it would rather wait for another.
    ///
    /// `now_ns` is the shell's monotonic clock in nanoseconds.
    fn choose(&mut self, now_ns: u64, with_room: StreamSet) -> Option<usize>;

    /// Take new weights, one per stream, in any unit (the shells use bit/s).
    fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError>;
}

/// The paper's scheduler: an independent draw for each frame, by the streams' rates (section II).
///
/// Only streams with room take part, in proportion to their weights; a stream of weight 0 is never drawn.
#[derive(Debug, Clone)]
pub struct Stochastic {
    weights: Vec<f64>,
    rng: SplitMix64,
}

impl Stochastic {
    /// Draw by `weights` (one per stream) with the generator of `seed`.
    pub fn new(weights: &[f64], seed: u64) -> Result<Self, LocalError> {
        check_weights(weights)?;
        Ok(Self {
            weights: weights.to_vec(),
            rng: SplitMix64::new(seed),
        })
    }
}

impl Scheduler for Stochastic {
    fn choose(&mut self, _now_ns: u64, with_room: StreamSet) -> Option<usize> {
        let total: f64 = with_room.iter().map(|index| self.weights[index]).sum();
        if total <= 0.0 {
            return None;
        }
        let mut point = self.rng.next_unit() * total;
        let mut last = None;
        for index in with_room.iter().filter(|&index| self.weights[index] > 0.0) {
            last = Some(index);
            if point < self.weights[index] {
                break;
            }
            point -= self.weights[index];
        }
        // Rounding may carry the point past the last weight: the last stream it is then.
        last
    }

    fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError> {
        check_weights(weights)?;
        if weights.len() != self.weights.len() {
            return Err(LocalError::BadWeights);
        }
        self.weights.copy_from_slice(weights);
        Ok(())
    }
}

fn check_weights(weights: &[f64]) -> Result<(), LocalError> {
    if weights.is_empty() || weights.len() > crate::MAX_STREAMS {
        return Err(LocalError::StreamCount(weights.len()));
    }
    let usable = weights
        .iter()
        .all(|weight| weight.is_finite() && *weight >= 0.0);
    let sum: f64 = weights.iter().sum();
    if usable && sum > 0.0 && sum.is_finite() {
        Ok(())
    } else {
        Err(LocalError::BadWeights)
    }
}
