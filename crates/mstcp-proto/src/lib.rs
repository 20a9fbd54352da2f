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
//!
//! /// Bring what one end has to send to the other, whose sockets take everything.
//! fn carry(now_ns: u64, from: &mut Connection, to: &mut Connection) -> Result<Vec<Slice>, Error> {
//!     let mut came = Vec::new();
//!     while let Some((stream, _)) = from.poll_frame(now_ns) {
//!         let mut bytes = Vec::new();
//!         from.rest(stream, |piece| bytes.extend_from_slice(piece));
//!         from.on_sent(stream, bytes.len())?;
//!         to.on_slice(stream, &Slice::copy_of(&bytes), &mut came)?;
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
//! # What else is public
//! | | |
//! |---|---|
//! | [`hello`], [`handshake`] | the message that opens each stream; proofs, the client's hellos, whom a server lets in |
//! | [`frame`], [`Control`], [`code`] | the layout of frames and their incremental parser, control frames, error codes |
//! | [`RecordWriter`], [`RecordReader`] | bytes that are authenticated without TLS |
//! | [`scheduler`] | which stream carries the next frame |
//! | [`Slice`], [`Storage`] | received bytes that are not copied |
//! | [`ReconnectBackoff`] | when a lost stream is opened again |
//! | [`Budget`] | what all connections of a process may promise to receive |
//! | [`SplitMix64`] | the generator of all draws |
#![forbid(unsafe_code)]

mod budget;
mod connection;
mod control;
mod error;
pub mod frame;
pub mod handshake;
pub mod hello;
mod peer_activity;
mod reassembly;
mod receiver;
mod reconnect;
mod records;
mod rng;
pub mod scheduler;
mod send_buffer;
mod sender;
mod slice;
mod state;
mod unanswered;

pub use budget::Budget;
pub use connection::{Config, Connection, Counters, StreamCounters};
pub use control::{code, Control, MAX_ADDRESSES};
pub use error::{Error, LocalError, RemoteError};
#[doc(hidden)] // for its fuzz target alone
pub use reassembly::Reassembly;
pub use reconnect::{ReconnectAttempt, ReconnectBackoff};
pub use records::{
    RecordKeys, RecordReader, RecordWriter, MAX_RECORD_BYTES, RECORD_OVERHEAD_BYTES,
};
pub use rng::SplitMix64;
pub use scheduler::{Scheduler, StreamSet};
pub use send_buffer::SharedBytes;
pub use sender::MeasuredPath;
pub use slice::{Slice, Storage};
pub use state::{ConnectionState, Event, Outcome};
pub use unanswered::Unanswered;

/// The most streams that a connection may have.
pub const MAX_STREAMS: usize = 64;
