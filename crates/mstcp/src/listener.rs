//! Accepting connections.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mstcp_net::{Driver, Error, Progress, Server, ServerConfig};
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::{mpsc, Semaphore};
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::task::{now_ns, register};

/// Connections that wait to be accepted.
const MAX_WAITING: usize = 64;
/// Sockets whose hellos are exchanged at a time.
const MAX_HANDSHAKES: usize = 4096;
/// How long to wait where the system has no descriptor left.
const FULL: Duration = Duration::from_millis(100);

/// Listens for connections. Dropping it stops that; connections that were accepted go on.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    opened: mpsc::Receiver<Connection>,
    accepting: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Listener {
    /// Listen on an address; port 0 is any.
    ///
    /// # Errors
    /// The address is taken or none of this host; [`Error::Config`]: the configuration makes no sense.
    pub async fn bind(address: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, Error> {
        let server = Server::new(config)?;
        Self::on(TcpListener::bind(address).await?, server)
    }

    /// Listen on a socket that listens already.
    ///
    /// # Errors
    /// The system refuses it; [`Error::Config`]: the configuration makes no sense.
    pub fn from_std(listener: std::net::TcpListener, config: ServerConfig) -> Result<Self, Error> {
        listener.set_nonblocking(true)?;
        Self::on(TcpListener::from_std(listener)?, Server::new(config)?)
    }

    fn on(listener: TcpListener, server: Arc<Server>) -> Result<Self, Error> {
        let address = listener.local_addr()?;
        let (sender, opened) = mpsc::channel(MAX_WAITING);
        let accepting = tokio::spawn(accept_all(listener, server, sender));
        Ok(Self {
            address,
            opened,
            accepting,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Wait for the next connection; its further streams join by themselves.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn accept(&mut self) -> Result<Connection, Error> {
        let opened = self.opened.recv().await;
        opened.ok_or_else(|| std::io::Error::other("the listener is gone").into())
    }
}

async fn accept_all(listener: TcpListener, server: Arc<Server>, opened: mpsc::Sender<Connection>) {
    let permits = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        let accepted = listener
            .accept()
            .await
            .and_then(|(socket, _)| socket.into_std());
        let Ok(socket) = accepted else {
            tokio::time::sleep(FULL).await;
            continue;
        };
        let (server, opened) = (Arc::clone(&server), opened.clone());
        tokio::spawn(async move {
            // A refused client was told so.
            if let Ok(Some(driver)) = shake_hands(&server, socket.into()).await {
                // A listener that is gone takes no more.
                let _ = opened.send(Connection::new(*driver)).await;
            }
            drop(permit);
        });
    }
}

/// Exchange the hellos; the connection, if the socket has opened one.
async fn shake_hands(server: &Arc<Server>, socket: OwnedFd) -> Result<Option<Box<Driver>>, Error> {
    let mut incoming = server.accept(now_ns(), socket)?;
    let descriptor = register(Arc::clone(incoming.descriptor()))?;
    loop {
        let (for_bytes, for_room) = match incoming.advance(now_ns()) {
            Progress::Waits {
                for_bytes,
                for_room,
            } => (for_bytes, for_room),
            Progress::Opened(driver) => return Ok(Some(driver)),
            _ => return Ok(None),
        };
        let left = Duration::from_nanos(incoming.timeout_ns().saturating_sub(now_ns()));
        match for_bytes {
            // The time may be over: the next step tells.
            true => drop(tokio::time::timeout(left, ready(&descriptor, for_room)).await),
            false => tokio::time::sleep(left).await,
        }
    }
}

/// Wait until the socket is ready. What it is ready for is forgotten first: the step before has used all of it.
async fn ready(descriptor: &AsyncFd<Arc<OwnedFd>>, for_room: bool) {
    poll_fn(|context| {
        let mut is_ready = Poll::Pending;
        if let Poll::Ready(Ok(mut guard)) = descriptor.poll_read_ready(context) {
            guard.clear_ready();
            is_ready = Poll::Ready(());
        }
        if for_room {
            if let Poll::Ready(Ok(mut guard)) = descriptor.poll_write_ready(context) {
                guard.clear_ready();
                is_ready = Poll::Ready(());
            }
        }
        is_ready
    })
    .await;
}
