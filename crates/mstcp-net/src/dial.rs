//! From where to where a stream goes: bound sockets that connect without waiting, and the order in which ways are tried.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};

use crate::config::{SocketOptions, StreamSpec};
use crate::error::Error;
use crate::sys;

/// TCP_USER_TIMEOUT: TCP gives a stream up when nothing is acknowledged for this, in milliseconds.
const USER_TIMEOUT_MS: u32 = 30_000;

/// From where to where a stream goes, and goes again after it was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Route {
    /// What was asked for.
    named: SocketAddr,
    /// What it had the last time: a path may depend on the port.
    source: SocketAddr,
    pub(crate) destination: SocketAddr,
    interface: Option<u32>,
}

impl Route {
    pub(crate) fn new(spec: &StreamSpec, destination: SocketAddr) -> Self {
        let any: IpAddr = match destination {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let named = spec.source.unwrap_or_else(|| SocketAddr::new(any, 0));
        Self {
            named,
            source: named,
            destination,
            interface: spec.interface,
        }
    }

    /// Begin to connect; true: it is connected. A port or an address that nobody named is left where it cannot be had any more.
    pub(crate) fn dial(&self, options: &SocketOptions) -> Result<(OwnedFd, bool), Error> {
        let mut result = self.dial_from(self.source, options);
        if self.source != self.named && result.as_ref().is_err_and(is_taken) {
            let mut again = self.named;
            if again.ip().is_unspecified() {
                again.set_ip(self.source.ip());
                result = self.dial_from(again, options);
            }
            if result.as_ref().is_err_and(is_taken) {
                result = self.dial_from(self.named, options);
            }
        }
        result
    }

    fn dial_from(
        &self,
        source: SocketAddr,
        options: &SocketOptions,
    ) -> Result<(OwnedFd, bool), Error> {
        let family = match self.destination {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        // A lost stream is opened again from its port.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if let Some(name) = &options.congestion_control {
            sockopt::set_tcp_congestion(&socket, name)?;
        }
        if let Some(bytes) = options.receive_buffer_bytes {
            sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
        }
        if let Some(index) = self.interface {
            sys::bind_to_interface(socket.as_raw_fd(), index)?;
        }
        if source.port() > 0 || !source.ip().is_unspecified() {
            net::bind(&socket, &source).map_err(|errno| Error::Bind {
                local: source,
                error: Arc::new(errno.into()),
            })?;
        }
        self.dial_over(socket)
    }

    /// Begin to connect a bound socket, unless it is connected; true: it is.
    pub(crate) fn dial_over(&self, socket: OwnedFd) -> Result<(OwnedFd, bool), Error> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        send_at_once(&socket)?;
        match net::connect(&socket, &self.destination) {
            Ok(()) | Err(Errno::ISCONN) => Ok((socket, true)),
            Err(Errno::INPROGRESS) => Ok((socket, false)),
            Err(errno) => Err(self.error(errno)),
        }
    }

    /// Why it does not work, in a sentence.
    pub(crate) fn error(&self, errno: Errno) -> Error {
        let is_named = self.named.port() > 0;
        let hint = match is_taken_number(errno) && is_named {
            true => {
                "another connection has these ports, or had them until less than a minute ago; take another source port, or 0 \
                 for any"
            }
            false => "",
        };
        Error::Connect {
            local: self.source,
            peer: self.destination,
            error: Arc::new(errno.into()),
            hint,
        }
    }

    /// The same for a stream that came from there.
    #[must_use]
    pub(crate) fn of(self, local: SocketAddr) -> Self {
        match self.named.port() {
            0 => Self {
                source: local,
                ..self
            },
            _ => self,
        }
    }

    /// The same, as it was asked for: the host's addresses may be others now.
    #[must_use]
    pub(crate) fn forget_source(self) -> Self {
        Self {
            source: self.named,
            ..self
        }
    }
}

fn is_taken_number(errno: Errno) -> bool {
    matches!(errno, Errno::ADDRINUSE | Errno::ADDRNOTAVAIL)
}

fn is_taken(error: &Error) -> bool {
    match error {
        Error::Bind { error, .. } | Error::Connect { error, .. } => {
            Errno::from_io_error(error).is_some_and(is_taken_number)
        }
        _ => false,
    }
}

/// Have a stream's socket send at once, and break where nothing is acknowledged.
pub(crate) fn prepare(socket: impl AsFd) -> Result<(), Errno> {
    send_at_once(&socket)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(&socket, USER_TIMEOUT_MS)?;
    Ok(())
}

/// Have a socket send at once.
pub(crate) fn send_at_once(socket: impl AsFd) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(&socket, true)
}

/// How connecting ended, once the socket is writable.
pub(crate) fn connected(socket: impl AsFd) -> Result<(), Errno> {
    match sockopt::socket_error(&socket)? {
        Ok(()) => net::getpeername(&socket).map(drop),
        Err(errno) => Err(errno),
    }
}

/// The addresses of a connected socket: its own and its peer's.
pub(crate) fn addresses(socket: impl AsFd) -> io::Result<(SocketAddr, SocketAddr)> {
    let local = SocketAddr::try_from(net::getsockname(&socket)?)?;
    let peer = net::getpeername(&socket)?.ok_or(Errno::NOTCONN)?;
    Ok((local, SocketAddr::try_from(peer)?))
}

/// Whether this host still has an address.
pub(crate) fn is_own_address(address: SocketAddr) -> bool {
    let (family, any_port) = match address {
        SocketAddr::V4(v4) => (AddressFamily::INET, SocketAddr::new((*v4.ip()).into(), 0)),
        SocketAddr::V6(mut v6) => {
            v6.set_port(0);
            (AddressFamily::INET6, v6.into())
        }
    };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    socket.map_or(true, |socket| {
        net::bind(&socket, &any_port) != Err(Errno::ADDRNOTAVAIL)
    })
}

/// Have the peer see a broken stream when the socket is closed.
pub(crate) fn reset_on_close(socket: impl AsFd) {
    // Closed in any case.
    let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
}

/// A stream, by its index among those asked for, and a route to try for it.
pub(crate) type Candidate = (usize, Route);

/// The ways, those to each address together: all streams try the destination's first address at once, then the next. A stream
/// that has an address of its own tries that.
pub(crate) fn ways(
    destinations: &[SocketAddr],
    streams: &[StreamSpec],
) -> Result<Vec<Vec<Candidate>>, Error> {
    let mut rounds: Vec<Vec<Candidate>> = Vec::new();
    for (round, destination) in in_turns(destinations).into_iter().enumerate() {
        let own = streams.iter().enumerate();
        let ways = own.filter_map(|(stream, spec)| {
            let to = match spec.remote {
                Some(remote) => (round == 0).then_some(remote)?,
                None => destination,
            };
            fits(spec, &to).then(|| (stream, Route::new(spec, to)))
        });
        rounds.push(ways.collect());
    }
    let mut all =
        (0..streams.len()).map(|stream| rounds.iter().flatten().any(|(way, _)| *way == stream));
    if let Some(stream) = all.position(|is_there| !is_there) {
        let source = streams[stream].source.map(|source| source.ip());
        let from = source.map_or("here".to_owned(), |ip| ip.to_string());
        return Err(Error::Config(format!(
            "the destination has no address that can be reached from {from}: name a source of its family"
        )));
    }
    Ok(rounds)
}

/// Addresses whose families take turns, the first address first (RFC 8305, section 4).
fn in_turns(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (one, other): (Vec<_>, Vec<_>) =
        (addresses.iter()).partition(|address| address.is_ipv4() == first_is_v4);
    let count = one.len().max(other.len());
    let turns = (0..count).flat_map(|at| [one.get(at), other.get(at)]);
    turns.flatten().copied().collect()
}

fn fits(spec: &StreamSpec, destination: &SocketAddr) -> bool {
    spec.source
        .map_or(true, |source| source.is_ipv4() == destination.is_ipv4())
}

/// How the other streams are opened once one way has worked: to the same address where they can.
pub(crate) fn others(rounds: &[Vec<Candidate>], won: &Candidate) -> Vec<Candidate> {
    let mut others: Vec<Candidate> = Vec::new();
    let all = || rounds.iter().flatten();
    let same = all().filter(|(_, way)| way.destination == won.1.destination);
    for way in same.chain(all()) {
        if way.0 != won.0 && others.iter().all(|other| other.0 != way.0) {
            others.push(*way);
        }
    }
    others
}

/// How one further stream is opened, to the address that the connection has where it can.
pub(crate) fn way_of(
    spec: &StreamSpec,
    preferred: SocketAddr,
    destinations: &[SocketAddr],
) -> Option<Route> {
    let all = (spec.remote.iter()).chain(std::iter::once(&preferred));
    let mut fitting = (all.chain(destinations)).filter(|destination| fits(spec, destination));
    let destination = fitting.next()?;
    Some(Route::new(spec, *destination))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_port_that_another_connection_has_is_left_unless_it_was_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let destination = listener.local_addr().unwrap();
        let any = Route::new(&address("127.0.0.1:0").into(), destination);
        let options = SocketOptions::default();
        let (first, _) = any.dial(&options).unwrap();
        let (local, _) = addresses(&first).unwrap();
        // It is shared, so the other connection could bind it, and is found out as it connects.
        let (second, _) = any.of(local).dial(&options).unwrap();
        assert_ne!(addresses(&second).unwrap().0, local);
        let named = Route::new(&local.into(), destination);
        let error = named.dial(&options).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        assert!(error.to_string().contains("take another source port"));
        // An address that is gone is left by a stream that named none.
        let moved = Route::new(&StreamSpec::default(), destination).of(address("192.0.2.1:7"));
        assert!(!is_own_address(address("192.0.2.1:7")) && is_own_address(local));
        let (moved, _) = moved.dial(&options).unwrap();
        assert!(addresses(&moved).unwrap().0.ip().is_loopback());
    }

    #[test]
    fn each_source_goes_to_an_address_of_its_family() {
        let destinations = ["[::1]:9", "127.0.0.1:9", "127.0.0.2:9"].map(address);
        let streams = ["127.0.0.1:0", "[::1]:0"].map(|text| StreamSpec::from(address(text)));
        let rounds = ways(&destinations, &streams).unwrap();
        let tried: Vec<Candidate> = rounds.iter().flatten().copied().collect();
        let pairs: Vec<_> = (tried.iter())
            .map(|(stream, route)| (*stream, route.destination))
            .collect();
        let expected = [(1, 0), (0, 1), (0, 2)].map(|(stream, at)| (stream, destinations[at]));
        assert_eq!(pairs, expected);
        assert_eq!(others(&rounds, &tried[2])[0].1.destination, destinations[0]);
        assert_eq!(others(&rounds, &tried[0])[0].1.destination, destinations[1]);
        let of_its_own = streams[1].remote(address("[::1]:7"));
        let rounds = ways(&destinations, &[streams[0], of_its_own]).unwrap();
        assert_eq!(
            rounds[0],
            [(1, Route::new(&of_its_own, address("[::1]:7")))]
        );
        let error = ways(&destinations[..1], &streams).unwrap_err();
        assert!(error.to_string().contains("from 127.0.0.1"));
    }
}
