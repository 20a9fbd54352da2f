//! The MSTCP protocol, pure and sans-IO.
//!
//! Nothing here opens a socket, reads a clock or draws from a global generator: bytes, `now` (nanoseconds of any
//! monotonic clock, `u64`) and a seed go in, bytes and decisions come out. A shell (asyncio, blocking sockets, a
//! simulator) owns the sockets and calls [`Connection`].
//!
//! | module | holds |
//! |---|---|
//! | [`hello`] | the message that opens each stream |
//! | [`frame`] | the layout of frames and the incremental parser |
//! | [`scheduler`] | which stream carries the next frame |
//! | [`sender`] | application bytes to frames |
//! | [`reassembly`] | frames in any order to bytes in order |
//! | [`receiver`] | streams' bytes to reassembly, and which streams may be read |
//! | [`connection`] | both directions of one connection |
#![forbid(unsafe_code)]

pub mod connection;
pub mod error;
pub mod frame;
pub mod hello;
pub mod reassembly;
pub mod receiver;
pub mod rng;
pub mod scheduler;
pub mod sender;

pub use connection::{Config, Connection, Statistics, StreamStatistics};
pub use error::{Error, LocalError, RemoteError};
pub use hello::Hello;
pub use scheduler::{Scheduler, Stochastic, StreamSet};
pub use sender::Transmit;

/// The most streams that a connection may have.
pub const MAX_STREAMS: usize = 64;
