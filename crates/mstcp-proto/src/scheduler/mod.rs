//! Which stream carries the next frame: rules by name, one a file.
//!
//! | name | rule |
//! |---|---|
//! | [`stochastic`](Stochastic) | an independent draw for each frame, by the rates (the paper's) |
//! | [`weighted`](Weighted) | deterministic and smooth, in proportion to the rates |
//! | [`earliest`](Earliest) | the stream on which the frame would arrive first |
//! | [`redundant`](Redundant) | small frames on every stream at once, others by `earliest` |

mod earliest;
mod redundant;
mod stochastic;
mod weighted;

use std::fmt;

use crate::error::LocalError;

pub use earliest::Earliest;
pub use redundant::Redundant;
pub use stochastic::Stochastic;
pub use weighted::Weighted;

/// TCP's window doubles in no less than twice this, in seconds.
const MIN_DELAY_S: f64 = 1e-6;

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 4] = ["stochastic", "weighted", "earliest", "redundant"];

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

    /// One stream alone.
    pub fn only(index: usize) -> Self {
        Self(1 << index)
    }

    /// Add a stream.
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// Take a stream out.
    pub fn remove(&mut self, index: usize) {
        self.0 &= !(1 << index);
    }

    /// Add a stream, or take it out.
    pub(crate) fn set(&mut self, index: usize, is_in: bool) {
        match is_in {
            true => self.insert(index),
            false => self.remove(index),
        }
    }

    /// Whether the stream is in the set.
    pub fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Whether no stream is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether there are two streams or more in the set.
    pub fn is_several(self) -> bool {
        self.0 & self.0.wrapping_sub(1) != 0
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

    /// The streams in both sets.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in either.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The streams of this set that are not in the other.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// One bit per stream, stream 0 lowest.
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// What a scheduler sees of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StreamView {
    /// Its rate in bit/s, or any other weight where rates are not known.
    pub weight: f64,
    /// One-way delay of its path in nanoseconds; 0 where it is not known.
    pub delay_ns: u64,
    /// As `delay_ns`, without what packets wait in queues.
    pub least_delay_ns: u64,
    /// Bytes handed to the stream that have not left the host yet: reported by the shell, and estimated from the rate since.
    pub backlog_bytes: f64,
    /// Bytes that wait on its path, as far as the shell found them there; drained when the backlog is.
    pub queue_bytes: f64,
    /// Bytes that TCP has sent and the peer's kernel had not acknowledged when the shell asked last.
    pub flight_bytes: f64,
    /// While there is a backlog: seconds until TCP's window opens.
    pub held_s: f64,
    /// The weight is what TCP carries; else a rate that the stream should keep.
    pub is_measured: bool,
    /// TCP sends twice as much in each round trip as in the one before: it has not found out yet what the path carries.
    pub is_growing: bool,
}

impl StreamView {
    /// Seconds from now until the last byte of a frame of this many bytes would be at the peer.
    pub fn arrival_s(&self, frame_bytes: usize) -> f64 {
        let seconds = self.bits_before(frame_bytes) / self.weight;
        let round_trip_s = self.round_trip_s();
        let seconds = match self.is_growing {
            true => round_trip_s * (1.0 + seconds / (2.0 * round_trip_s)).log2(),
            false => seconds,
        };
        let held_s = if self.backlog_bytes > 0.0 {
            self.held_s
        } else {
            0.0
        };
        seconds.max(held_s) + self.delay_s()
    }

    /// How many bits, at most, the stream would have brought to the peer `in_s` seconds from now, beside those that it has taken
    /// already.
    pub fn brought_bits(&self, in_s: f64) -> f64 {
        let sending_s = (in_s - self.delay_s()).max(0.0);
        let round_trip_s = self.round_trip_s();
        let sending_s = match self.is_growing {
            true => 2.0 * round_trip_s * ((sending_s / round_trip_s).exp2() - 1.0),
            false => sending_s,
        };
        (sending_s * self.weight - self.bits_before(0)).max(0.0)
    }

    fn bits_before(&self, frame_bytes: usize) -> f64 {
        (self.queue_bytes + self.backlog_bytes + frame_bytes as f64) * 8.0
    }

    fn delay_s(&self) -> f64 {
        self.least_delay_ns as f64 * 1e-9
    }

    fn round_trip_s(&self) -> f64 {
        2.0 * self.delay_s().max(MIN_DELAY_S)
    }
}

/// What a scheduler sees when a frame is to be sent.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Application bytes of the frame.
    pub frame_bytes: usize,
    /// Application bytes that are expected to be sent yet, those of the frame included: all that are queued, and before
    /// the application has ended as many as were sent since the streams had last nothing to do. What has lasted long will
    /// last, and a queue is kept short by the application that waits for it.
    pub expected_bytes: u64,
    /// The streams that are alive.
    pub alive: StreamSet,
    /// Those of them whose sockets have room.
    pub with_room: StreamSet,
    /// All streams by index; the places of dead ones mean nothing.
    pub streams: &'a [StreamView],
}

impl View<'_> {
    /// Whether nobody gave the streams rates that they should keep.
    fn is_measured(&self) -> bool {
        let mut alive = self.alive.iter();
        alive.all(|index| self.streams[index].is_measured)
    }

    fn weight(&self, index: usize) -> f64 {
        self.streams[index].weight
    }

    /// The streams of `set` that may carry frames: weight 0 is never chosen.
    fn weighed(&self, set: StreamSet) -> impl Iterator<Item = usize> + '_ {
        set.iter().filter(|&index| self.weight(index) > 0.0)
    }
}

/// A rule that picks the stream of the next frame.
///
/// The sender calls it for one frame at a time, and again if the chosen stream's socket turned out to be full.
pub trait Scheduler: fmt::Debug + Send + Sync {
    /// Pick one of the streams with room, or none if it would rather wait for another that is full now.
    fn choose(&mut self, view: &View<'_>) -> Option<usize>;

    /// Note that the frame that `view` was shown for has been begun on `stream`.
    fn on_begun(&mut self, _view: &View<'_>, _stream: usize) {}

    /// Whether a frame of this many application bytes goes over every stream with room at once.
    fn is_copied(&self, _frame_bytes: usize) -> bool {
        false
    }
}

/// Make a scheduler by its name; `seed` decides all draws of those that draw.
pub fn by_name(name: &str, seed: u64) -> Result<Box<dyn Scheduler>, LocalError> {
    match name {
        "stochastic" => Ok(Box::new(Stochastic::new(seed))),
        "weighted" => Ok(Box::<Weighted>::default()),
        "earliest" => Ok(Box::new(Earliest)),
        "redundant" => Ok(Box::new(Redundant)),
        _ => Err(LocalError::NoSuchScheduler(name.to_owned())),
    }
}

/// Check the weights of a connection's streams: finite, not negative, not all 0.
pub fn check_weights(weights: &[f64]) -> Result<(), LocalError> {
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
