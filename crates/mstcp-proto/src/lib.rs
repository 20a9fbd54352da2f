//! The MSTCP protocol, pure and sans-IO.
//!
//! Nothing here opens a socket, reads a clock or draws from a global generator: bytes, `now` (nanoseconds of any
//! monotonic clock, `u64`) and a seed go in, bytes and decisions come out. A shell (asyncio, blocking sockets, a
//! simulator) owns the sockets and calls [`Connection`].
//!
//! # The order of calls
//! After whatever it told a connection, and when [`Connection::timeout_ns`] has come, a shell
//!
//! 1. calls [`Connection::poll_frame`] until it returns none; each frame is offered to the socket ([`Connection::rest`]) and how much of
//!    it went is reported ([`Connection::on_sent`]) before the next is polled; a socket that took less than all is blocked until
//!    [`Connection::on_writable`];
//! 2. takes [`Connection::poll_event`] until it returns none, and looks at [`Connection::closed_by_peer`];
//! 3. asks [`Connection::timeout_ns`] when to do so again. `now_ns` never goes back.
//!
//! ```
//! use mstcp_proto::{scheduler, Config, Connection, Error, Slice};
//! use std::sync::Arc;
//!
//! /// Bring what one end has to send to the other, whose sockets take everything.
//! fn carry(now_ns: u64, from: &mut Connection, to: &mut Connection) -> Result<Vec<Slice>, Error> {
//!     let mut came = Vec::new();
//!     while let Some((stream, _)) = from.poll_frame(now_ns) {
//!         let mut bytes = Vec::new();
//!         from.rest(stream, |piece| bytes.extend_from_slice(piece));
//!         from.on_sent(stream, bytes.len())?;
//!         let length = bytes.len();
//!         to.on_chunk(stream, &Arc::new(bytes), length, &mut came)?;
//!     }
//!     to.on_consumed(came.iter().map(|slice| slice.len()).sum());
//!     while let Some(event) = from.poll_event() {
//!         println!("{event:?}");
//!     }
//!     Ok(came)
//! }
//!
//! # fn main() -> Result<(), Error> {
//! let config = Config {
//!     stream_count: 2,
//!     frame_payload_bytes: 1428,
//!     send_queue_bytes: 1 << 18,
//!     reorder_buffer_bytes: 1 << 20,
//! };
//! let mut near = Connection::new(config, scheduler::by_name("weighted", 1)?)?;
//! let mut far = Connection::new(config, scheduler::by_name("weighted", 2)?)?;
//! near.write(b"hello")?;
//! near.end();
//! let came = carry(1_000_000, &mut near, &mut far)?;
//! assert_eq!(came.iter().map(|slice| slice.to_vec()).collect::<Vec<_>>().concat(), b"hello");
//! carry(2_000_000, &mut far, &mut near)?; // the acknowledgement
//! assert!(far.is_ended());
//! assert!(far.timeout_ns() > Some(2_000_000));
//! # Ok(()) }
//! ```
//!
//! # The parts
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
