//! The sockets of MSTCP connections: what moves bytes between them and the protocol core.
//!
//! [`Driver`] is one connection from its first hello to its end, [`Server`] and [`Incoming`] are the accepting side. They own the
//! sockets and wait for nothing: a shell (tokio in the crate `mstcp`, a thread, an event loop) tells them what happened and what time
//! it is, and does what they answer. They have no thread and no clock of their own.
//!
//! Below them [`Endpoint`] is one connection after its hellos.
//!
//! | module | |
//! |---|---|
//! | [`driver`] | a connection: hellos, racing, lost streams that are opened again |
//! | [`incoming`] | sockets that were accepted |
//! | [`config`], [`error`] | how connections are to be, and why they end |
//! | [`endpoint`] | a connection and its sockets after the hellos |
//! | [`inbox`] | from the sockets to bytes in order, without copying what is large |
//! | [`policy`] | how much may wait unsent in a socket, pacing, what TCP is asked |
//! | [`layers`] | what stands between frames and a socket: records or TLS |
//! | [`memory`] | where bytes are read to |
//! | [`records`] | bytes that are authenticated without TLS |
//! | [`shared`] | a connection that a loop and the threads which wait for it drive in turn |
//! | [`socket`] | the socket of a stream, closed by the driver or by its shell |
//! | [`sys`] | the system calls |
//! | `tls` (feature of this name) | TLS by rustls, inside the endpoint |

pub mod config;
mod dial;
pub mod driver;
pub mod endpoint;
pub mod error;
mod handshake_socket;
pub mod inbox;
pub mod incoming;
mod interfaces;
pub mod layers;
pub mod low_water_mark;
pub mod memory;
pub mod policy;
pub mod records;
pub mod shared;
pub mod socket;
pub mod sys;
#[cfg(feature = "tls")]
pub mod tls;

#[cfg(feature = "tls")]
pub use config::ClientTls;
pub use config::{
    Ciphers, ClientConfig, Keepalive, PlainTcp, ServerConfig, SocketOptions, StreamSpec,
    TransportConfig,
};
pub use driver::{
    Action, Driver, Event, Loss, PathStatistics, SocketId, Statistics, StreamId, StreamStatistics,
};
pub use endpoint::{Endpoint, Sent};
pub use error::Error;
pub use inbox::ReadError;
pub use incoming::{Incoming, Progress, Server};
pub use interfaces::Interfaces;
pub use layers::{Cipher, CipherLayer, Layer};
pub use memory::{Memory, OwnMemory};
pub use mstcp_proto::SharedBytes;
pub use policy::{StreamSockets, UnsentLimit};
pub use records::RecordLayer;
pub use rustix::io::Errno;
pub use shared::SharedDriver;
pub use socket::StreamSocket;
#[cfg(feature = "tls")]
pub use tls::TlsLayer;
