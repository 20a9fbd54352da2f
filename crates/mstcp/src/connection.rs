//! What an application has of a connection.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use mstcp_net::{
    ClientConfig, Driver, Error, Event, SharedBytes, Statistics, StreamId, StreamSpec,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{lookup_host, ToSocketAddrs};
use tokio::sync::broadcast;

use crate::network;
use crate::task::{now_ns, Shared};

/// Open a connection over a stream for each of `streams`.
///
/// The first stream to answer opens it: the destination's addresses are tried from each source, one a moment after the other, as
/// Happy Eyeballs does (RFC 8305). The others join by themselves, and each that is lost is opened again.
///
/// # Errors
/// No path leads there, or the peer does not let us in; [`Error::Config`]: the configuration makes no sense, or a source has no
/// address of the destination's family.
pub async fn connect(
    destination: impl ToSocketAddrs,
    streams: &[StreamSpec],
    config: ClientConfig,
) -> Result<Connection, Error> {
    config.check()?;
    let destinations = lookup_host(destination).await?.collect();
    let driver = Driver::connect(now_ns(), Arc::new(config), destinations, streams)?;
    let connection = Connection::new(driver);
    // A server's sockets may have addresses that are not this host's: those of a gateway.
    network::follow(&connection.0 .0);
    let shared = connection.shared();
    let opened = shared.until(|state| match state.error() {
        Some(error) => Some(Err(error)),
        None => state.is_open.then_some(Ok(())),
    });
    opened.await?;
    Ok(connection)
}

/// What the application's handles have in common: the last closes the connection.
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.with(|state| state.driver.close(now_ns()));
    }
}

/// One connection: reads give the peer's bytes in order, writes are spread over the streams.
///
/// Dropping it closes it: what was written is still delivered, by its task. [`Connection::close`] waits for that.
pub struct Connection(Arc<Handle>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    fn shared(&self) -> &Shared {
        &self.0 .0
    }

    /// What the connection's task has, for who follows it and does not keep it open.
    #[cfg(feature = "control")]
    pub(crate) fn share(&self) -> Arc<Shared> {
        Arc::clone(&self.0 .0)
    }

    pub(crate) fn new(driver: Driver) -> Self {
        Self(Arc::new(Handle(Shared::spawn(driver))))
    }

    /// Send what was written and the end, and wait until the peer has everything; nothing more is received.
    ///
    /// # Errors
    /// The connection was lost, or the peer took nothing for [`crate::TransportConfig::close_timeout`].
    pub async fn close(self) -> Result<(), Error> {
        let shared = self.shared();
        shared.with(|state| state.driver.close(now_ns()));
        let ended = shared.until(|state| state.driver.result().cloned());
        ended.await
    }

    /// Give the connection up at once: what was written may be lost, and the peer is told the reason.
    pub fn abort(self, reason: &str) {
        self.shared()
            .with(|state| state.driver.abort(now_ns(), reason));
    }

    /// A reader and a writer that two tasks can have. The connection is closed once both are dropped.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        let reader = ReadHalf(Self(Arc::clone(&self.0)));
        let writer = WriteHalf {
            connection: self,
            ends: true,
        };
        (reader, writer)
    }

    /// The connection's id, the same at both ends.
    pub fn id(&self) -> [u8; 16] {
        let id = self.shared().with(|state| state.driver.connection_id());
        // It is open, so it has one.
        id.unwrap_or_default()
    }

    /// What it has carried, and how its paths are; one system call a stream. At any time, also after its end.
    pub fn statistics(&self) -> Statistics {
        self.shared().with(|state| state.driver.statistics())
    }

    /// What happens to its streams from now on.
    pub fn events(&self) -> Events {
        Events(self.shared().with(|state| state.events.subscribe()))
    }

    /// Open a further stream, and again whenever it is lost; [`Event::StreamOpened`] tells when it carries bytes.
    ///
    /// # Errors
    /// [`Error::Config`]: this is the server's end, or the source does not fit the destination.
    pub fn add_stream(&self, spec: StreamSpec) -> Result<StreamId, Error> {
        self.act(|driver| driver.add_stream(now_ns(), spec))
    }

    /// Take a stream out once the peer has what it carried; the others go on.
    ///
    /// # Errors
    /// It is the last one, or there is none of this number.
    pub fn remove_stream(&self, stream: StreamId) -> Result<(), Error> {
        self.act(|driver| driver.remove_stream(now_ns(), stream))
    }

    /// Announce these addresses to the client (servers only), in place of [`crate::ServerConfig::announced`].
    ///
    /// # Errors
    /// [`Error::Config`]: they are too many, or this is the client's end.
    pub fn announce(&self, addresses: Vec<SocketAddr>) -> Result<(), Error> {
        self.act(|driver| driver.announce(now_ns(), addresses))
    }

    /// Pace a stream at another goodput in bit/s; none: as TCP's congestion control allows.
    ///
    /// # Errors
    /// The rate is negative or no number.
    pub fn set_rate(&self, stream: StreamId, rate_bps: Option<f64>) -> Result<(), Error> {
        self.act(|driver| driver.set_rates(now_ns(), &[(stream, rate_bps)]))
    }

    /// Use a stream by another priority, both ways: see [`StreamSpec::priority`].
    ///
    /// # Errors
    /// There is no such stream.
    pub fn set_priority(&self, stream: StreamId, priority: u8) -> Result<(), Error> {
        self.act(|driver| driver.set_priority(now_ns(), stream, priority))
    }

    /// The host's addresses or routes have changed: streams from addresses that are gone are opened again at once, from whatever
    /// address the system chooses where none was named.
    pub fn network_changed(&self) {
        self.act(|driver| driver.network_changed(now_ns()));
    }

    /// Whether a read would return at once; else `context` is woken when it would. It is the same task's turn to read.
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.shared().with(|state| {
            let driver = &state.driver;
            if driver.ready_bytes() > 0 || driver.is_ended() || driver.result().is_some() {
                return Poll::Ready(());
            }
            state.reader = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Whether a write would take bytes, or fail, at once; else `context` is woken when it would.
    pub fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.shared().with(|state| {
            if !state.driver.is_paused() {
                return Poll::Ready(());
            }
            state.writer = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Wait for bytes, and take them as they were read, without a copy; none: the peer sends no more.
    ///
    /// A piece has 256 KiB at most, and may hold as much memory however small it is.
    ///
    /// # Errors
    /// As those of a read.
    pub async fn read_chunk(&mut self) -> io::Result<Option<Bytes>> {
        let take = |driver: &mut Driver| driver.take(now_ns()).map(Bytes::from_owner);
        poll_fn(|context| self.poll_taken(context, take)).await
    }

    /// Wait for room, and send all of these bytes without a copy. They are kept until the peer has them.
    ///
    /// # Errors
    /// As those of a write.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> io::Result<()> {
        let shared: SharedBytes = Arc::new(chunk);
        let write = |driver: &mut Driver| {
            let is_taken = driver.write_shared(now_ns(), &shared)?;
            Ok(is_taken.then_some(()))
        };
        poll_fn(|context| self.poll_written(context, write)).await
    }

    fn poll_taken<R>(
        &self,
        context: &mut Context<'_>,
        take: impl FnOnce(&mut Driver) -> Option<R>,
    ) -> Poll<io::Result<Option<R>>> {
        self.shared().with(|state| {
            let taken = take(&mut state.driver);
            if taken.is_some() || state.driver.is_ended() {
                return Poll::Ready(Ok(taken));
            }
            match state.driver.result() {
                // The end of what came is no end if the connection was lost.
                Some(Err(error)) => Poll::Ready(Err(error.clone().into())),
                Some(Ok(())) => Poll::Ready(Ok(None)),
                None => {
                    state.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn poll_written<R>(
        &self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut Driver) -> Result<Option<R>, Error>,
    ) -> Poll<io::Result<R>> {
        self.shared().with(|state| match write(&mut state.driver) {
            Err(error) => Poll::Ready(Err(error.into())),
            Ok(Some(written)) => Poll::Ready(Ok(written)),
            Ok(None) => {
                state.writer = Some(context.waker().clone());
                Poll::Pending
            }
        })
    }

    fn act<R>(&self, act: impl FnOnce(&mut Driver) -> R) -> R {
        self.shared().with(|state| act(&mut state.driver))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = |driver: &mut Driver| {
            let count = driver.read(now_ns(), buffer.initialize_unfilled());
            buffer.advance(count);
            (count > 0).then_some(())
        };
        self.poll_taken(context, read).map_ok(drop)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = |driver: &mut Driver| {
            let count = driver.write(now_ns(), data)?;
            Ok((count > 0 || data.is_empty()).then_some(count))
        };
        self.poll_written(context, write)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What was written goes out by itself.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.act(|driver| driver.end(now_ns()));
        Poll::Ready(Ok(()))
    }
}

/// The half of a connection that reads. See [`Connection::into_split`].
#[derive(Debug)]
pub struct ReadHalf(Connection);

/// The half of a connection that writes; dropping it sends the end. See [`Connection::into_split`].
#[derive(Debug)]
pub struct WriteHalf {
    connection: Connection,
    /// Whether dropping it sends the end.
    ends: bool,
}

impl ReadHalf {
    /// Put the halves together again.
    ///
    /// # Panics
    /// They are of two connections.
    pub fn unsplit(self, mut writer: WriteHalf) -> Connection {
        let is_same = Arc::ptr_eq(&self.0 .0, &writer.connection.0);
        assert!(is_same, "the halves are of two connections");
        writer.ends = false;
        self.0
    }

    /// See [`Connection::read_chunk`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_chunk(&mut self) -> io::Result<Option<Bytes>> {
        self.0.read_chunk().await
    }
}

impl WriteHalf {
    /// See [`Connection::write_chunk`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> io::Result<()> {
        self.connection.write_chunk(chunk).await
    }
}

impl AsRef<Connection> for ReadHalf {
    fn as_ref(&self) -> &Connection {
        &self.0
    }
}

impl AsRef<Connection> for WriteHalf {
    fn as_ref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        if self.ends {
            self.connection.act(|driver| driver.end(now_ns()));
        }
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

/// What happens to a connection's streams. Who is 64 events behind misses the oldest.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

impl Events {
    /// Wait for the next event; none: the connection is gone.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
