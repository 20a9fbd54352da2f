//! Simulated time: whole nanoseconds since the start of the run.

/// A point in time or a span, in nanoseconds.
pub type Nanos = u64;

/// Nanoseconds of a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds of a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds of a second.
pub const SECOND: Nanos = 1_000_000_000;

/// Nanoseconds of this many seconds, to the nearest; negative times are 0.
pub fn seconds(time_s: f64) -> Nanos {
    (time_s * SECOND as f64 + 0.5) as Nanos
}
