//! From where to where a stream goes: bound sockets that connect without waiting, and the order in which ways are tried.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};

use crate::config::StreamSpec;
use crate::error::Error;

/// TCP gives a stream up where nothing is acknowledged for so long, in milliseconds.
const USER_TIMEOUT_MS: u32 = 30_000;

/// From where to where a stream goes, and goes again after it was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Route {
    /// What was asked for.
    named: SocketAddr,
    /// What it had the last time: a path may depend on the port.
    source: SocketAddr,
    pub(crate) destination: SocketAddr,
}

impl Route {
    pub(crate) fn new(source: Option<SocketAddr>, destination: SocketAddr) -> Self {
        let any: IpAddr = match destination {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let named = source.unwrap_or_else(|| SocketAddr::new(any, 0));
        Self {
            named,
            source: named,
            destination,
        }
    }

    /// Begin to connect. A port or an address that nobody named is left where it cannot be had any more.
    pub(crate) fn dial(&self) -> Result<OwnedFd, Error> {
        let mut result = self.dial_from(self.source);
        if self.source != self.named && result.as_ref().is_err_and(|errno| is_taken(*errno)) {
            let mut again = self.named;
            if again.ip().is_unspecified() {
                again.set_ip(self.source.ip());
                result = self.dial_from(again);
            }
            if result.as_ref().is_err_and(|errno| is_taken(*errno)) {
                result = self.dial_from(self.named);
            }
        }
        result.map_err(|errno| self.error(errno))
    }

    fn dial_from(&self, source: SocketAddr) -> Result<OwnedFd, Errno> {
        let family = match self.destination {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        // A lost stream is opened again from its port.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        prepare(&socket)?;
        if source.port() > 0 || !source.ip().is_unspecified() {
            net::bind(&socket, &source)?;
        }
        match net::connect(&socket, &self.destination) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(errno) => Err(errno),
        }
    }

    /// Why it does not work, in a sentence.
    pub(crate) fn error(&self, errno: Errno) -> Error {
        let is_named = self.named.port() > 0;
        let hint = match is_taken(errno) && is_named {
            true => {
                "; another connection has these ports, or had them until less than a minute ago: take another source port, or \
                 0 for any"
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

fn is_taken(errno: Errno) -> bool {
    matches!(errno, Errno::ADDRINUSE | Errno::ADDRNOTAVAIL)
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

/// A way to open the connection: over which of the streams asked for, and how.
pub(crate) type Way = (usize, Route);

/// The ways in the order of trying: the destination's first address from each source, then the next.
pub(crate) fn ways(destinations: &[SocketAddr], streams: &[StreamSpec]) -> Result<Vec<Way>, Error> {
    let mut ways = Vec::new();
    for destination in destinations {
        let own = streams.iter().enumerate();
        let fits = own.filter(|(_, spec)| fits(spec, destination));
        ways.extend(fits.map(|(stream, spec)| (stream, Route::new(spec.source, *destination))));
    }
    let mut all = (0..streams.len()).map(|stream| ways.iter().any(|(way, _)| *way == stream));
    if let Some(stream) = all.position(|is_there| !is_there) {
        let source = streams[stream].source.map(|source| source.ip());
        let from = source.map_or("here".to_owned(), |ip| ip.to_string());
        return Err(Error::Config(format!(
            "the destination has no address that can be reached from {from}: name a source of its family"
        )));
    }
    Ok(ways)
}

fn fits(spec: &StreamSpec, destination: &SocketAddr) -> bool {
    spec.source
        .map_or(true, |source| source.is_ipv4() == destination.is_ipv4())
}

/// How the other streams are opened once one way has worked: to the same address where they can.
pub(crate) fn others(ways: &[Way], won: usize) -> Vec<Way> {
    let (stream, route) = ways[won];
    let mut others: Vec<Way> = Vec::new();
    let same = (ways.iter()).filter(|(_, way)| way.destination == route.destination);
    for way in same.chain(ways) {
        if way.0 != stream && others.iter().all(|other| other.0 != way.0) {
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
    let all = std::iter::once(&preferred).chain(destinations);
    let mut fitting = all.filter(|destination| fits(spec, destination));
    let destination = fitting.next()?;
    Some(Route::new(spec.source, *destination))
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
        let any = Route::new(Some(address("127.0.0.1:0")), destination);
        let first = any.dial().unwrap();
        let (local, _) = addresses(&first).unwrap();
        // It is shared, so the other connection could bind it, and is found out as it connects.
        let second = any.of(local).dial().unwrap();
        assert_ne!(addresses(&second).unwrap().0, local);
        let error = Route::new(Some(local), destination).dial().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        assert!(error.to_string().contains("take another source port"));
        // An address that is gone is left by a stream that named none.
        let moved = Route::new(None, destination).of(address("192.0.2.1:7"));
        assert!(!is_own_address(address("192.0.2.1:7")) && is_own_address(local));
        assert!(addresses(moved.dial().unwrap())
            .unwrap()
            .0
            .ip()
            .is_loopback());
    }

    #[test]
    fn each_source_goes_to_an_address_of_its_family() {
        let destinations = ["[::1]:9", "127.0.0.1:9", "127.0.0.2:9"].map(address);
        let streams = ["127.0.0.1:0", "[::1]:0"].map(|text| StreamSpec::from(address(text)));
        let tried = ways(&destinations, &streams).unwrap();
        let pairs: Vec<_> = (tried.iter())
            .map(|(stream, route)| (*stream, route.destination))
            .collect();
        let expected = [(1, 0), (0, 1), (0, 2)].map(|(stream, at)| (stream, destinations[at]));
        assert_eq!(pairs, expected);
        assert_eq!(others(&tried, 2)[0].1.destination, destinations[0]);
        assert_eq!(others(&tried, 0)[0].1.destination, destinations[1]);
        let error = ways(&destinations[..1], &streams).unwrap_err();
        assert!(error.to_string().contains("from 127.0.0.1"));
    }
}
