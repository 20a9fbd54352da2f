//! The sockets of a connection: what moves bytes between them and the protocol core.
//!
//! [`Endpoint`] is one connection after its hellos. The one that waits for the sockets (asyncio's loop, a thread, tokio) tells it
//! that one is readable or writable and what time it is; it reads, writes and says when it wants to be called again. It never
//! waits, and it has no thread and no clock of its own.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mstcp_net::{Endpoint, OwnMemory};
//! # let core: mstcp_proto::Connection = todo!();
//! # let (descriptor, now_ns) = (0, 0);
//! let mut endpoint = Endpoint::new(core);
//! endpoint.sockets().attach(0, descriptor, None, 1440, 8).map_err(std::io::Error::from_raw_os_error)?;
//! endpoint.core.write(b"hello")?;
//! let sent = endpoint.transmit(now_ns)?; // sent.blocked: wait until these are writable
//! let count = endpoint.read(&mut OwnMemory, 0)?; // when the first is readable
//! let slices = endpoint.take();
//! # Ok(()) }
//! ```
//!
//! | module | |
//! |---|---|
//! | [`endpoint`] | a connection and its sockets |
//! | [`inbox`] | from the sockets to bytes in order, without copying what is large |
//! | [`policy`] | how much may wait unsent in a socket, pacing, what TCP is asked |
//! | [`layers`] | what stands between frames and a socket: records or TLS |
//! | [`mapped`] | files that are sent as they lie |
//! | [`memory`] | where bytes are read to |
//! | [`records`] | bytes that are authenticated without TLS |
//! | [`shared`] | a connection that a loop, the threads which wait for it and worker threads drive in turn |
//! | [`sys`] | the system calls |
//! | `tls` (feature of this name) | TLS by rustls, inside the endpoint |
//! | `tokio` (feature of this name, on by default) | connections and listeners for applications |

pub mod awaiting;
pub mod endpoint;
pub mod inbox;
pub mod layers;
pub mod mapped;
pub mod memory;
pub mod policy;
pub mod records;
pub mod shared;
pub mod sys;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use endpoint::{Endpoint, Sent};
pub use inbox::{Inbox, ReadError};
pub use layers::Layer;
pub use mapped::MappedFile;
pub use memory::{Memory, OwnMemory};
pub use policy::{Room, StreamSockets};
pub use records::RecordLayer;
pub use shared::SharedEndpoint;
#[cfg(feature = "tls")]
pub use tls::TlsLayer;
