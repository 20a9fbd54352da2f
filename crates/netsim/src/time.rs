//! Simulated time: whole nanoseconds since the start of the run.

/// A point in time or a span, in nanoseconds.
pub type Nanos = u64;

/// Nanoseconds of a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds of a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds of a second.
pub const SECOND: Nanos = 1_000_000_000;
