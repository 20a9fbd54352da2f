//! Multipath connections over several TCP streams, for tokio.
//!
//! [`connect`] opens a connection over a stream for each path, [`Listener`] accepts them, and a [`Connection`] is read and written
//! as any other stream of tokio's. A stream that is lost is opened again; nothing is lost with it.
//!
//! ```no_run
//! use mstcp::{connect, ClientConfig, Listener, ServerConfig, StreamSpec};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ServerConfig { secret: b"between us".to_vec(), ..ServerConfig::default() };
//! let mut listener = Listener::bind("127.0.0.1:0", config).await?;
//!
//! // Two paths: one from an address of ours at 20 Mbit/s, one from wherever the system likes.
//! let paths = [
//!     StreamSpec::from_source("127.0.0.1:0".parse()?).rate_bps(20e6),
//!     StreamSpec::default(),
//! ];
//! let config = ClientConfig { secret: b"between us".to_vec(), ..ClientConfig::default() };
//! let mut client = connect(listener.local_addr(), &paths, config).await?;
//! let mut server = listener.accept().await?;
//! client.write_all(b"hello").await?;
//! client.shutdown().await?; // the other direction goes on
//! let mut said = Vec::new();
//! server.read_to_end(&mut said).await?;
//! server.close().await?; // waits until the peer has everything
//! # Ok(()) }
//! ```
//!
//! | | |
//! |---|---|
//! | [`Connection::into_split`] | a reader and a writer for two tasks |
//! | [`Connection::read_chunk`], [`Connection::write_chunk`] | bytes that are not copied |
//! | [`Connection::statistics`], [`Connection::events`] | what it has carried; streams that open, stall and are lost |
//! | [`Connection::add_stream`], [`Connection::remove_stream`] | paths that come and go |
//! | [`Connection::set_rate`], [`Connection::set_priority`] | how much goes over which, and which are backups |
//! | [`Interfaces`] | a stream from each of this host's addresses, also as they come and go |
//! | [`Connection::network_changed`] | the host has other addresses now; on Linux that is noticed |
//! | `control` (feature of this name) | rates and paths from a controller |
//! | [`ClientConfig`], [`ServerConfig`] | secret, TLS, buffers, timeouts |
//!
//! A connection is driven by a task of its own, which ends with it; it needs a runtime with I/O and time enabled. Protocol and
//! sockets are in the crates `mstcp-proto` and `mstcp-net`.
#![deny(unsafe_code)]

mod connection;
#[cfg(feature = "control")]
pub mod control;
mod listener;
mod network;
mod task;

pub use connection::{connect, Connection, Events, ReadHalf, WriteHalf};
pub use listener::Listener;
#[cfg(feature = "tls")]
pub use mstcp_net::ClientTls;
pub use mstcp_net::{
    ClientConfig, Error, Event, Interfaces, Keepalive, Loss, PathStatistics, ServerConfig,
    Statistics, StreamId, StreamSpec, StreamStatistics, TransportConfig,
};
