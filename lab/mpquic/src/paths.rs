//! A UDP socket for each path of a client: paths are told apart by the port they come from.
//!
//! The library tells paths apart by addresses. So each socket has a loopback address here that no packet carries: the library names it
//! as the source of what it sends, and hears it as the destination of what was received.

use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Connection, Path, PathId, UdpSender};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// The number of path ids that are looked at: a path that fails to open uses one up.
const PATH_IDS: u32 = 64;

/// The sockets of a client's paths.
#[derive(Debug)]
pub struct Paths {
    sockets: Vec<Arc<UdpSocket>>,
    /// Where to look first for what was received, so that no path waits for ever.
    next: usize,
}

impl Paths {
    /// Bind a socket to each port.
    pub fn bind(ports: &[u16]) -> io::Result<Self> {
        let bind = |&port: &u16| {
            let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
            socket.set_nonblocking(true)?;
            Ok(Arc::new(UdpSocket::from_std(socket)?))
        };
        let sockets = ports.iter().map(bind).collect::<io::Result<_>>()?;
        Ok(Self { sockets, next: 0 })
    }

    /// The address that stands for each path.
    pub fn locals(&self) -> Vec<Ipv4Addr> {
        (0..self.sockets.len()).map(local_of).collect()
    }
}

fn local_of(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 77, 0, index as u8 + 1)
}

/// The path that an address stands for.
pub fn index_of(local: Ipv4Addr) -> usize {
    usize::from(local.octets()[3]) - 1
}

/// What a path has sent, and its state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Carried {
    pub bytes: u64,
    pub cwnd_bytes: u64,
    pub rtt_us: u128,
}

/// The paths that are open.
pub fn open(connection: &Connection) -> impl Iterator<Item = Path> + '_ {
    (0..PATH_IDS).filter_map(|id| connection.path(PathId::from(id)))
}

/// What each path has carried, by its port; a path that has not opened has nothing.
pub fn carried(connection: &Connection, ports: &[u16]) -> Vec<(u16, Carried)> {
    let mut told = vec![Carried::default(); ports.len()];
    for path in open(connection) {
        if let Ok(Some(IpAddr::V4(local))) = path.local_ip() {
            if local.octets()[..2] == [127, 77] {
                let (stats, of_path) = (path.stats(), &mut told[index_of(local)]);
                of_path.bytes += stats.udp_tx.bytes;
                of_path.cwnd_bytes = stats.cwnd;
                of_path.rtt_us = stats.rtt.as_micros();
            }
        }
    }
    ports.iter().copied().zip(told).collect()
}

impl AsyncUdpSocket for Paths {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender { sockets: self.sockets.clone(), waiting: None })
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = self.sockets.len();
        let first = self.next;
        for index in (first..first + count).map(|index| index % count) {
            let mut buffer = ReadBuf::new(&mut buffers[0]);
            match self.sockets[index].poll_recv_from(context, &mut buffer) {
                Poll::Ready(Ok(addr)) => {
                    meta[0] = RecvMeta::default();
                    meta[0].addr = addr;
                    meta[0].len = buffer.filled().len();
                    meta[0].stride = meta[0].len;
                    meta[0].dst_ip = Some(local_of(index).into());
                    self.next = (index + 1) % count;
                    return Poll::Ready(Ok(1));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.sockets[0].local_addr()
    }
}

type Writable = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// One task's way to send.
struct Sender {
    sockets: Vec<Arc<UdpSocket>>,
    /// A socket that was full, until it is not.
    waiting: Option<Writable>,
}

impl Debug for Sender {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let index = match transmit.src_ip {
            Some(IpAddr::V4(local)) => index_of(local),
            _ => 0,
        };
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(context))?;
                self.waiting = None;
            }
            let socket = &self.sockets[index];
            match socket.try_send_to(transmit.contents, transmit.destination) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let socket = socket.clone();
                    self.waiting = Some(Box::pin(async move { socket.writable().await }));
                }
                // What cannot be sent is lost, as on the way: the protocol sends it again.
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}
