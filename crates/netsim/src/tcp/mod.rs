//! TCP after the RFCs, sans-IO: segments, application calls and `now` go in, segments and timers come out.
//!
//! A stream carries a number of bytes, not their values: what the application wrote is delivered in order, so a shell that
//! wants the values keeps them in a queue of its own beside the stream.

pub mod segment;

pub use segment::Segment;
