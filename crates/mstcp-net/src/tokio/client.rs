//! Opening a connection, and opening its streams again when they are lost.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::tokio::net::{TcpSocket, TcpStream};
use ::tokio::sync::mpsc;
use ::tokio::time::{sleep, timeout};
use mstcp_core::handshake::Client;
use mstcp_core::redial::Redial;

use super::driver::{self, Joined};
use super::{hello, invalid, Connection, Options};
use crate::{Endpoint, Layer};

/// How long connecting a stream may take at first.
const CONNECT: Duration = Duration::from_secs(10);
/// The streams of a connection that wait to be added.
const WAITING_STREAMS: usize = 64;

/// What opens the streams of one connection.
struct Opener {
    destination: SocketAddr,
    options: Options,
    client: Mutex<Client>,
    joined: mpsc::Sender<Joined>,
}

/// Open a connection over a stream from each of the source addresses (port 0: any).
///
/// Returns once the first stream is open; the others join by themselves, and each that is lost is opened again.
///
/// # Errors
/// No path leads there, or the peer does not let us in; `InvalidInput`: the options make no sense.
pub async fn connect(
    destination: impl ToSocketAddrs,
    sources: &[SocketAddr],
    options: Options,
) -> io::Result<Connection> {
    let destination = (destination.to_socket_addrs()?.next())
        .ok_or_else(|| invalid("the destination has no address"))?;
    let (first, others) = (sources.split_first())
        .ok_or_else(|| invalid("a connection has a stream: name a source address"))?;
    options.check()?;
    let mut core = options.core(options.frame_payload_bytes).map_err(invalid)?;
    core.reopen_streams();
    let mut client = Client::new(
        &options.secret,
        hello::random(),
        sources.len() as u32,
        options.frame_payload_bytes as u32,
    );
    if options.authenticate_frames {
        client = client.with_records();
    }
    let began = Instant::now();
    let source = Source::new(*first);
    let dialled = async { options.connected(source.dial(destination).await?).await };
    let mut wire = timeout(CONNECT, dialled).await??;
    let greeting = hello::greet(&mut client)?;
    let answer = hello::exchange(&mut wire, &greeting).await?;
    let confirmed = hello::take_answer(&mut client, &greeting, &answer)?;
    let records = hello::confirm(&mut wire, confirmed).await?;
    let source = source.of(wire.socket())?;
    let (socket, layer) = wire.into_parts(records)?;
    let payload_bytes = options.frame_payload_bytes;
    let (joined, joins) = mpsc::channel(WAITING_STREAMS);
    let opener = Arc::new(Opener {
        destination,
        options,
        client: Mutex::new(client),
        joined,
    });
    let took = began.elapsed();
    for other in others {
        ::tokio::spawn(Arc::clone(&opener).open(Source::new(*other), took, false));
    }
    let path = Path {
        opener: Arc::clone(&opener),
        source,
        took,
    };
    driver::start(
        Endpoint::new(core),
        payload_bytes,
        (socket, layer, Some(path)),
        joins,
        Arc::default(),
    )
}

/// Where a stream came from, so that it can be opened again.
pub(super) struct Path {
    opener: Arc<Opener>,
    source: Source,
    took: Duration,
}

impl Path {
    /// Open the stream again, until that works or the connection is over.
    pub(super) fn reopen(self) {
        ::tokio::spawn(self.opener.open(self.source, self.took, true));
    }
}

impl Opener {
    /// Open a stream that joins, however often that takes.
    async fn open(self: Arc<Self>, source: Source, took: Duration, is_again: bool) {
        let mut redial = Redial::new(took.as_nanos() as u64);
        let mut failed_ns = 0;
        let mut is_first = !is_again;
        while !self.joined.is_closed() {
            let attempt = redial.attempt(failed_ns);
            if !std::mem::take(&mut is_first) {
                sleep(Duration::from_nanos(attempt.delay_ns)).await;
            }
            let began = Instant::now();
            let limit = Duration::from_nanos(attempt.timeout_ns);
            if let Ok(Ok((socket, layer, id))) = timeout(limit, self.join(source)).await {
                let path = source.of(&socket).map(|source| Path {
                    opener: Arc::clone(&self),
                    source,
                    took: began.elapsed(),
                });
                let joined = Joined {
                    socket,
                    layer,
                    id,
                    confirm: None,
                    path: path.ok(),
                };
                // If the connection is over the stream is not needed.
                let _ = self.joined.send(joined).await;
                return;
            }
            failed_ns = began.elapsed().as_nanos() as u64;
        }
    }

    async fn join(&self, source: Source) -> io::Result<(TcpStream, Option<Layer>, u32)> {
        let mut wire = (self.options)
            .connected(source.dial(self.destination).await?)
            .await?;
        let greeting = hello::greet(&mut self.client())?;
        let answer = hello::exchange(&mut wire, &greeting).await?;
        let confirmed = hello::take_answer(&mut self.client(), &greeting, &answer)?;
        let records = hello::confirm(&mut wire, confirmed).await?;
        let (socket, layer) = wire.into_parts(records)?;
        Ok((socket, layer, greeting.hello.stream_id))
    }

    fn client(&self) -> std::sync::MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a stream comes from, and comes from again after it was lost.
#[derive(Clone, Copy)]
struct Source {
    address: SocketAddr,
    /// The application named no port: another will do where this one is taken.
    may_move: bool,
}

impl Source {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            may_move: address.port() == 0,
        }
    }

    async fn dial(self, destination: SocketAddr) -> io::Result<TcpStream> {
        match dial(self.address, destination).await {
            // A port that is shared (SO_REUSEADDR) is found taken as it connects.
            Err(error)
                if self.may_move
                    && matches!(
                        error.kind(),
                        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
                    ) =>
            {
                let mut anywhere = self.address;
                anywhere.set_port(0);
                dial(anywhere, destination).await
            }
            dialled => dialled,
        }
    }

    /// The same for a stream that came from there.
    fn of(self, socket: &TcpStream) -> io::Result<Self> {
        let address = match self.may_move {
            true => socket.local_addr()?,
            false => self.address,
        };
        Ok(Self { address, ..self })
    }
}

async fn dial(source: SocketAddr, destination: SocketAddr) -> io::Result<TcpStream> {
    let socket = match destination {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A lost stream is opened again from its port.
    socket.set_reuseaddr(true)?;
    socket.bind(source)?;
    let stream = socket.connect(destination).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tokio::net::TcpListener;

    #[::tokio::test]
    async fn a_port_that_another_connection_has_is_left_unless_it_was_named() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let destination = listener.local_addr()?;
        let any = Source::new("127.0.0.1:0".parse().expect("an address"));
        let first = any.dial(destination).await?;
        // It is shared, so the other connection could bind it, and is found out as it connects.
        let again = any.of(&first)?;
        let second = again.dial(destination).await?;
        assert_ne!(second.local_addr()?, first.local_addr()?);
        let named = Source::new(first.local_addr()?);
        let error = named.dial(destination).await.expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        Ok(())
    }
}
