//! Connections for tokio: [`connect`], [`Listener`], and a [`Connection`] that is read and written as any other stream.
//!
//! ```no_run
//! use mstcp_net::tokio::{connect, Listener, Options};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example() -> std::io::Result<()> {
//! let options = Options { secret: b"between us".to_vec(), ..Options::default() };
//! let mut listener = Listener::bind("127.0.0.1:0", options.clone()).await?;
//! let address = listener.local_addr()?;
//! // Two paths: the system chooses both source addresses. A path may also name its own.
//! let any = "0.0.0.0:0".parse().unwrap();
//! let mut client = connect(address, &[any, any], options).await?;
//! let mut server = listener.accept().await?;
//! client.write_all(b"hello").await?;
//! client.shutdown().await?; // the other direction goes on
//! let mut said = Vec::new();
//! server.read_to_end(&mut said).await?;
//! server.close().await?; // waits until the peer has everything
//! # Ok(()) }
//! ```
//!
//! A connection is driven by a task of its own, which ends with it. Lost streams are opened again by the client's side. With the
//! feature `tls`, [`Options::client_tls`] and [`Options::server_tls`] put each stream inside TLS; without it there is
//! [`Options::authenticate_frames`]. There is no control channel: streams and their source addresses are given by hand.

mod client;
mod driver;
mod hello;
mod server;
#[cfg(feature = "tls")]
mod tls;
mod wire;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ::tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use ::tokio::net::TcpStream;
use ::tokio::sync::oneshot;
use ::tokio::task::JoinHandle;
use mstcp_proto::{scheduler, Config, LocalError};

use wire::Wire;

pub use client::connect;
pub use server::Listener;
#[cfg(feature = "tls")]
pub use tls::ClientTls;

/// Application bytes that wait between an application and its connection, each direction.
const WAITING_BYTES: usize = 1 << 18;

/// How connections are to be. `Options::default()` is what the Python library does.
#[derive(Debug, Clone)]
pub struct Options {
    /// What both sides know beforehand, or empty.
    pub secret: Vec<u8>,
    /// Authenticate every byte by the secret. Of a listener: let no client in that does not.
    pub authenticate_frames: bool,
    /// Application bytes in a full-size frame, 1 to 65,535; a client's choice.
    pub frame_payload_bytes: usize,
    /// The receive window: bound of the bytes that are ahead or not taken by the application; 256 KiB at least.
    pub reorder_buffer_bytes: usize,
    /// The name of the rule that picks the stream of each frame: see [`mstcp_proto::scheduler`].
    pub scheduler: String,
    /// Of a listener: how many connections there may be at a time.
    pub most_connections: usize,
    /// Of a client: TLS of its streams; none: no TLS.
    #[cfg(feature = "tls")]
    pub client_tls: Option<ClientTls>,
    /// Of a listener: the certificate of its streams' TLS; none: no TLS.
    #[cfg(feature = "tls")]
    pub server_tls: Option<Arc<rustls::ServerConfig>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            secret: Vec::new(),
            authenticate_frames: false,
            frame_payload_bytes: 1428,
            reorder_buffer_bytes: 16 << 20,
            scheduler: "weighted".to_owned(),
            most_connections: 10_000,
            #[cfg(feature = "tls")]
            client_tls: None,
            #[cfg(feature = "tls")]
            server_tls: None,
        }
    }
}

impl Options {
    fn check(&self) -> io::Result<()> {
        if self.authenticate_frames && self.secret.is_empty() {
            return Err(invalid(
                "authenticate_frames takes a secret that both sides know",
            ));
        }
        #[cfg(feature = "tls")]
        if self.authenticate_frames && (self.client_tls.is_some() || self.server_tls.is_some()) {
            return Err(invalid(
                "authenticate_frames or TLS: TLS authenticates what it encrypts",
            ));
        }
        Ok(())
    }

    /// Begin a stream on a socket that has connected.
    async fn connected(&self, socket: TcpStream) -> io::Result<Wire> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.client_tls {
            return tls.connect(socket).await;
        }
        Ok(Wire::Plain(socket))
    }

    /// Begin a stream on a socket that was accepted.
    async fn accepted(&self, socket: TcpStream) -> io::Result<Wire> {
        #[cfg(feature = "tls")]
        if let Some(config) = &self.server_tls {
            return tls::accept(config, socket).await;
        }
        Ok(Wire::Plain(socket))
    }

    /// A core with one stream.
    fn core(&self, frame_payload_bytes: usize) -> Result<mstcp_proto::Connection, LocalError> {
        let config = Config {
            stream_count: 1,
            frame_payload_bytes,
            send_queue_bytes: 2 * WAITING_BYTES,
            reorder_buffer_bytes: self.reorder_buffer_bytes,
        };
        let seed = u64::from_ne_bytes(hello::random());
        let mut core =
            mstcp_proto::Connection::new(config, scheduler::by_name(&self.scheduler, seed)?)?;
        core.set_weights(&[driver::UNKNOWN_BPS])?;
        Ok(core)
    }
}

/// An error of the library as one of I/O.
fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

/// How a connection came to its end, once it has: an error's kind and sentence, or none.
type Ending = Arc<Mutex<Option<(io::ErrorKind, String)>>>;

/// One connection: reads give the peer's bytes in order, writes are spread over the streams.
///
/// Dropping it closes it: what was written is still delivered, by its task. [`Connection::close`] waits for that.
#[derive(Debug)]
pub struct Connection {
    bytes: DuplexStream,
    driver: JoinHandle<()>,
    ending: Ending,
    /// Its end tells the driver that the application has closed.
    _closing: oneshot::Sender<()>,
}

impl Connection {
    fn error(&self) -> Option<io::Error> {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending
            .as_ref()
            .map(|(kind, why)| io::Error::new(*kind, why.clone()))
    }

    /// Send what was written and the end, and wait until the peer has everything; nothing more is received.
    ///
    /// # Errors
    /// The connection was lost, or the peer took nothing for 30 s.
    pub async fn close(self) -> io::Result<()> {
        let Self {
            bytes,
            driver,
            ending,
            _closing: closing,
        } = self;
        drop((bytes, closing));
        driver.await.map_err(io::Error::other)?;
        let ending = ending.lock().unwrap_or_else(PoisonError::into_inner);
        match &*ending {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.bytes).poll_read(context, buffer);
        match (&result, self.error()) {
            // The end of what came is no end if the connection was lost.
            (Poll::Ready(_), Some(error)) if buffer.filled().len() == before => {
                Poll::Ready(Err(error))
            }
            _ => result,
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.error() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.bytes).poll_write(context, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}
