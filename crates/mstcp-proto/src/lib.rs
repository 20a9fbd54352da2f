//! The MSTCP protocol, pure and sans-IO.
//!
//! Nothing here opens a socket, reads a clock or draws from a global generator: bytes, `now` (nanoseconds of any
//! monotonic clock, `u64`) and a seed go in, bytes and decisions come out. A shell (asyncio, blocking sockets, a
//! simulator) owns the sockets and calls [`Connection`].
//!
//! | module | holds |
//! |---|---|
//! | [`hello`] | the message that opens each stream |
//! | [`handshake`] | proofs, the client's hellos, whom a server lets in |
//! | [`frame`] | the layout of frames and the incremental parser |
//! | [`control`] | control frames and error codes |
//! | [`scheduler`] | which stream carries the next frame |
//! | [`send_buffer`] | the application's bytes until they are acknowledged |
//! | [`sender`] | application bytes to frames, again over other streams when one is lost |
//! | [`slice`] | received bytes that are not copied |
//! | [`reassembly`] | bytes in any order to bytes in order |
//! | [`receiver`] | streams' bytes to reassembly, and what is acknowledged |
//! | [`redial`] | when a lost stream is opened again |
//! | [`state`] | the states of streams and connections, and what a shell is told |
//! | [`life`] | signs of life of the peer |
//! | [`budget`] | what all connections of a process may promise to receive |
//! | [`connection`] | both directions of one connection |
#![forbid(unsafe_code)]

pub mod budget;
pub mod connection;
pub mod control;
mod doubt;
pub mod error;
pub mod frame;
pub mod handshake;
pub mod hello;
pub mod life;
pub mod reassembly;
pub mod receiver;
pub mod records;
pub mod redial;
pub mod rng;
pub mod scheduler;
pub mod send_buffer;
pub mod sender;
pub mod slice;
pub mod state;

pub use budget::Budget;
pub use connection::{Config, Connection, Counters, StreamCounters};
pub use error::{Error, LocalError, RemoteError};
pub use hello::Hello;
pub use scheduler::{Scheduler, Stochastic, StreamSet};
pub use sender::Transmit;
pub use slice::Slice;
pub use state::{ConnectionState, Event, Outcome, StreamState};

/// The most streams that a connection may have.
pub const MAX_STREAMS: usize = 64;
