//! Opening a connection, and opening its streams again when they are lost.

use std::future::{poll_fn, Future};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use ::tokio::net::{lookup_host, TcpSocket, TcpStream, ToSocketAddrs};
use ::tokio::sync::mpsc;
use ::tokio::task::JoinSet;
use ::tokio::time::{sleep, timeout};
use mstcp_proto::handshake::Client;
use mstcp_proto::redial::Redial;

use super::driver::{self, Joined};
use super::wire::Wire;
use super::{hello, invalid, Connection, Options};
use crate::{Endpoint, Layer, RecordLayer};

/// How long connecting a stream may take at first.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a way may leave an attempt unanswered before another is tried as well.
const ATTEMPT: Duration = Duration::from_millis(250);
/// No further way is there to be tried.
const FOREVER: Duration = Duration::from_secs(3600);
/// The streams of a connection that wait to be added.
const WAITING_STREAMS: usize = 64;

/// What opens the streams of one connection.
struct Opener {
    options: Options,
    client: Mutex<Client>,
    joined: mpsc::Sender<Joined>,
}

/// Open a connection over a stream from each of the source addresses (port 0: any).
///
/// The first stream to answer opens it: the destination's addresses are tried from each source, one a moment after the other, as
/// Happy Eyeballs does (RFC 8305). The others join by themselves, and each that is lost is opened again.
///
/// # Errors
/// No path leads there, or the peer does not let us in; `InvalidInput`: the options make no sense, or a source has no address of
/// the destination's family.
pub async fn connect(
    destination: impl ToSocketAddrs,
    sources: &[SocketAddr],
    options: Options,
) -> io::Result<Connection> {
    if sources.is_empty() {
        return Err(invalid("a connection has a stream: name a source address"));
    }
    options.check()?;
    options.core(options.frame_payload_bytes).map_err(invalid)?;
    let destinations: Vec<SocketAddr> = lookup_host(destination).await?.collect();
    let ways = ways(&destinations, sources)?;
    let First {
        place,
        client,
        wire,
        records,
        took,
    } = race(&ways, sources.len(), &options).await?;
    let (won, others) = (ways[place], others(&ways, place));
    let source = won.of(wire.socket())?;
    let (socket, layer) = wire.into_parts(records)?;
    let payload_bytes = options.frame_payload_bytes;
    let mut core = options.core(payload_bytes).map_err(invalid)?;
    core.reopen_streams();
    let (joined, joins) = mpsc::channel(WAITING_STREAMS);
    let opener = Arc::new(Opener {
        options,
        client: Mutex::new(client),
        joined,
    });
    for other in others {
        ::tokio::spawn(Arc::clone(&opener).open(other, took, false));
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

/// From where to where a connection may be opened, in the order of trying: the destination's first address from each source, then
/// the next.
fn ways(destinations: &[SocketAddr], sources: &[SocketAddr]) -> io::Result<Vec<Source>> {
    for source in sources {
        if !(destinations.iter()).any(|destination| destination.is_ipv4() == source.is_ipv4()) {
            let ip = source.ip();
            return Err(invalid(format_args!(
                "the destination has no address that can be reached from {ip}: name a source of its family"
            )));
        }
    }
    let mut ways = Vec::new();
    for destination in destinations {
        let own = sources.iter().enumerate();
        let fits = own.filter(|(_, source)| source.is_ipv4() == destination.is_ipv4());
        ways.extend(fits.map(|(index, source)| Source::new(index, *source, *destination)));
    }
    Ok(ways)
}

/// The ways of the sources other than the one that opened the connection, to the same address where they can.
fn others(ways: &[Source], place: usize) -> Vec<Source> {
    let won = ways[place];
    let mut others: Vec<Source> = Vec::new();
    let same = ways.iter().filter(|way| way.destination == won.destination);
    for way in same.chain(ways) {
        let is_known = others.iter().any(|other| other.index == way.index);
        if way.index != won.index && !is_known {
            others.push(*way);
        }
    }
    others
}

/// The stream that has opened a connection.
struct First {
    /// In the list of ways.
    place: usize,
    client: Client,
    wire: Wire,
    records: Option<RecordLayer>,
    took: Duration,
}

/// Open a connection on whichever way answers first.
async fn race(ways: &[Source], count: usize, options: &Options) -> io::Result<First> {
    let mut attempts = JoinSet::new();
    let (connected, mut round_trips) = mpsc::channel(ways.len());
    let mut rest = ways.iter().copied().enumerate();
    let mut failed: Option<(usize, io::Error)> = None;
    loop {
        match rest.next() {
            Some((place, way)) => {
                let (options, connected) = (options.clone(), connected.clone());
                attempts.spawn(async move {
                    let opened = way.open(place, count, &options, connected).await;
                    opened.map_err(|error| (place, error))
                });
            }
            None if attempts.is_empty() => {
                return Err(failed.map_or_else(|| invalid("no way"), |(_, error)| error));
            }
            None => {}
        }
        let has_more = rest.len() > 0;
        match next(&mut attempts, &mut round_trips, has_more).await {
            Some(Ok(first)) => return Ok(first),
            // It says the same on each way.
            Some(Err((_, error))) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(error);
            }
            // What the first way says is told.
            Some(Err((place, error)))
                if failed.as_ref().map_or(true, |(first, _)| place < *first) =>
            {
                failed = Some((place, error));
            }
            Some(Err(_)) | None => {}
        }
    }
}

type Attempts = JoinSet<Result<First, (usize, io::Error)>>;

/// Wait for an attempt to end; none: another is due. A way that has connected may leave its hello unanswered for two of its round
/// trips: a second hello would open a second connection.
async fn next(
    attempts: &mut Attempts,
    round_trips: &mut mpsc::Receiver<Duration>,
    has_more: bool,
) -> Option<Result<First, (usize, io::Error)>> {
    let mut due = Instant::now() + ATTEMPT;
    loop {
        let wait = match has_more {
            true => due.saturating_duration_since(Instant::now()),
            false => FOREVER,
        };
        let mut ended = pin!(attempts.join_next());
        let mut timer = pin!(sleep(wait));
        let happened = poll_fn(|context| {
            if let Poll::Ready(Some(result)) = ended.as_mut().poll(context) {
                return Poll::Ready(Some(Ok(result)));
            }
            if let Poll::Ready(Some(round_trip)) = round_trips.poll_recv(context) {
                return Poll::Ready(Some(Err(round_trip)));
            }
            timer.as_mut().poll(context).map(|()| None)
        });
        match happened.await? {
            Ok(Ok(result)) => return Some(result),
            // It cannot be cancelled; one that panicked is told as any other error.
            Ok(Err(error)) => return Some(Err((usize::MAX, io::Error::other(error)))),
            Err(round_trip) => due = due.max(Instant::now() + 2 * round_trip),
        }
    }
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
        let mut wire = (self.options).connected(source.dial().await?).await?;
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

/// From where to where a stream goes, and goes again after it was lost.
#[derive(Clone, Copy)]
struct Source {
    /// In the list of sources that the application gave.
    index: usize,
    address: SocketAddr,
    destination: SocketAddr,
    /// The application named no port: another will do where this one is taken.
    may_move: bool,
}

impl Source {
    fn new(index: usize, address: SocketAddr, destination: SocketAddr) -> Self {
        Self {
            index,
            address,
            destination,
            may_move: address.port() == 0,
        }
    }

    /// Open a connection that will have `count` streams; `connected` is told how long connecting took.
    async fn open(
        self,
        place: usize,
        count: usize,
        options: &Options,
        connected: mpsc::Sender<Duration>,
    ) -> io::Result<First> {
        let began = Instant::now();
        let mut client = Client::new(
            &options.secret,
            hello::random(),
            count as u32,
            options.frame_payload_bytes as u32,
        );
        if options.authenticate_frames {
            client = client.with_records();
        }
        let dialled = async {
            let socket = self.dial().await?;
            // There is room for all, and who waits may have another already.
            let _ = connected.try_send(began.elapsed());
            options.connected(socket).await
        };
        let mut wire = timeout(CONNECT, dialled).await??;
        let greeting = hello::greet(&mut client)?;
        let answer = hello::exchange(&mut wire, &greeting).await?;
        let confirmed = hello::take_answer(&mut client, &greeting, &answer)?;
        let records = hello::confirm(&mut wire, confirmed).await?;
        let took = began.elapsed();
        Ok(First {
            place,
            client,
            wire,
            records,
            took,
        })
    }

    async fn dial(self) -> io::Result<TcpStream> {
        match dial(self.address, self.destination).await {
            // A port that is shared (SO_REUSEADDR) is found taken as it connects.
            Err(error) if is_taken(&error) && self.may_move => {
                let mut anywhere = self.address;
                anywhere.set_port(0);
                dial(anywhere, self.destination).await
            }
            Err(error) if is_taken(&error) && self.address.port() > 0 => {
                let (from, to) = (self.address, self.destination);
                let reason = format!(
                    "cannot connect from {from} to {to}: another connection has these ports, or had them until less than a \
                     minute ago; take another source port, or 0 for any ({error})"
                );
                Err(io::Error::new(error.kind(), reason))
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

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
    )
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
        let any = Source::new(0, "127.0.0.1:0".parse().expect("an address"), destination);
        let first = any.dial().await?;
        // It is shared, so the other connection could bind it, and is found out as it connects.
        let again = any.of(&first)?;
        let second = again.dial().await?;
        assert_ne!(second.local_addr()?, first.local_addr()?);
        let named = Source::new(0, first.local_addr()?, destination);
        let error = named.dial().await.expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        assert!(error.to_string().contains("take another source port"));
        Ok(())
    }

    #[test]
    fn each_source_goes_to_an_address_of_its_family() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let destinations = ["[::1]:9", "127.0.0.1:9", "127.0.0.2:9"].map(address);
        let sources = ["127.0.0.1:0", "[::1]:0"].map(address);
        let tried = ways(&destinations, &sources).expect("there are some");
        let pairs: Vec<_> = (tried.iter())
            .map(|way| (way.index, way.destination))
            .collect();
        assert_eq!(
            pairs,
            [
                (1, destinations[0]),
                (0, destinations[1]),
                (0, destinations[2])
            ]
        );
        assert_eq!(others(&tried, 2)[0].destination, destinations[0]);
        assert_eq!(others(&tried, 0)[0].destination, destinations[1]);
        let error = ways(&destinations[..1], &sources)
            .err()
            .expect("one has none");
        assert!(error.to_string().contains("from 127.0.0.1"));
    }
}
