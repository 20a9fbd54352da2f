//! A byte stream over multipath QUIC: what is read from standard input, a socket, goes to the peer, and what comes from the peer is
//! written there.
//!
//! ```text
//! mpquic server ADDRESS:PORT [OPTION…]
//! mpquic client ADDRESS:PORT [OPTION…]
//!   --from P1,P2,…      the client's UDP ports: a path from each
//!   --congestion NAME   reno (the default), cubic or bbr
//!   --window BYTES      that may be sent or received and not be acknowledged or read
//! ```
//!
//! Standard output has `connected` when the peer is there, and from then on a line of what each path has carried: the port it is sent
//! from, bytes, congestion window in bytes and round-trip time in microseconds, `4001:15000:24000:10300 4002:9000:12000:22700`.

mod paths;
mod settings;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use noq::{Connection, Endpoint, EndpointConfig, FourTuple, PathStatus, RecvStream, SendStream, TokioRuntime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use paths::Paths;
use settings::{Role, Settings};

type Failure = Box<dyn Error + Send + Sync>;

/// The most that is read at once.
const PIECE_BYTES: usize = 16 << 10;
/// How often what paths have carried is told.
const TOLD_EVERY: Duration = Duration::from_millis(50);
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// How long a path may take to open, with retries.
const OPENING: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// The first byte of the stream, which lets the server know of it.
const HELLO: u8 = 0;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = Settings::from_arguments(std::env::args().skip(1))
        .map_err(Failure::from)
        .and_then(|settings| runtime?.block_on(run(settings)));
    if let Err(error) = done {
        eprintln!("mpquic: {error}");
        std::process::exit(1);
    }
}

async fn run(settings: Settings) -> Result<(), Failure> {
    let application = application()?;
    match settings.role {
        Role::Server => serve(&settings, application).await,
        Role::Client => connect(&settings, application).await,
    }
}

/// The application's end: standard input is a socket, for both directions.
fn application() -> Result<UnixStream, Failure> {
    // SAFETY: nothing else of this program uses standard input.
    let descriptor = unsafe { OwnedFd::from_raw_fd(0) };
    let socket = std::os::unix::net::UnixStream::from(descriptor);
    socket.set_nonblocking(true)?;
    Ok(UnixStream::from_std(socket)?)
}

async fn serve(settings: &Settings, application: UnixStream) -> Result<(), Failure> {
    let endpoint = Endpoint::server(settings.server()?, settings.address)?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let (send, mut receive) = connection.accept_bi().await?;
    receive.read_exact(&mut [HELLO]).await?;
    println!("connected");
    tokio::spawn(keep_alive(connection.clone()));
    carry(application, send, receive).await?;
    // The client has the last word: what is under way to it has to arrive.
    let _ = timeout(OPENING, connection.closed()).await;
    endpoint.wait_all_draining().await;
    Ok(())
}

async fn connect(settings: &Settings, application: UnixStream) -> Result<(), Failure> {
    let sockets = Paths::bind(&settings.from)?;
    let locals = sockets.locals();
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        Box::new(sockets),
        Arc::new(TokioRuntime),
    )?;
    let connection = endpoint.connect_with(settings.client()?, settings.address, "mpquic")?.await?;
    let (mut send, receive) = connection.open_bi().await?;
    send.write_all(&[HELLO]).await?;
    for local in &locals[1..] {
        timeout(OPENING, open_path(&connection, settings.address, *local))
            .await
            .map_err(|_| format!("the path from port {} did not open", settings.from[paths::index_of(*local)]))?;
    }
    println!("connected");
    tokio::spawn(keep_alive(connection.clone()));
    let telling = tokio::spawn(tell(connection.clone(), settings.from.clone()));
    carry(application, send, receive).await?;
    telling.abort();
    tell_once(&connection, &settings.from);
    connection.close(0u32.into(), b"done");
    endpoint.wait_all_draining().await;
    Ok(())
}

/// Open a further path; the peer has to have issued connection ids for it first.
async fn open_path(connection: &Connection, remote: SocketAddr, local: Ipv4Addr) {
    let path = FourTuple::new(remote, Some(local.into()));
    while connection.open_path(path, PathStatus::Available).await.is_err() {
        sleep(RETRY_AFTER).await;
    }
}

/// Have each path heard at the other end. Acknowledgements of all paths may come over one, and a path over which nothing comes counts as
/// idle; the library's own keep-alive waits as long as the path is used in one direction.
async fn keep_alive(connection: Connection) {
    loop {
        sleep(KEEP_ALIVE).await;
        for path in paths::open(&connection) {
            let _ = path.ping(); // it may be closing
        }
    }
}

/// Carry both directions to their ends.
async fn carry(application: UnixStream, send: SendStream, receive: RecvStream) -> Result<(), Failure> {
    let (from_application, to_application) = application.into_split();
    tokio::try_join!(outwards(from_application, send), inwards(receive, to_application))?;
    Ok(())
}

async fn outwards(mut application: OwnedReadHalf, mut send: SendStream) -> Result<(), Failure> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let bytes = application.read(&mut piece).await?;
        if bytes == 0 {
            send.finish()?;
            return Ok(());
        }
        send.write_all(&piece[..bytes]).await?;
    }
}

async fn inwards(mut receive: RecvStream, mut application: OwnedWriteHalf) -> Result<(), Failure> {
    let mut piece = vec![0; PIECE_BYTES];
    while let Some(bytes) = receive.read(&mut piece).await? {
        application.write_all(&piece[..bytes]).await?;
    }
    application.shutdown().await?;
    Ok(())
}

/// Tell what each path has carried, again and again.
async fn tell(connection: Connection, ports: Vec<u16>) {
    loop {
        sleep(TOLD_EVERY).await;
        tell_once(&connection, &ports);
    }
}

fn tell_once(connection: &Connection, ports: &[u16]) {
    let carried: Vec<String> = paths::carried(connection, ports)
        .into_iter()
        .map(|(port, path)| format!("{port}:{}:{}:{}", path.bytes, path.cwnd_bytes, path.rtt_us))
        .collect();
    println!("{}", carried.join(" "));
}
