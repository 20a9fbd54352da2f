//! This host's addresses, and the streams that go from each that may lead to the peer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::StreamSpec;
use crate::sys;

/// A stream from each address of this host that may lead to the destination, also as addresses come and go.
///
/// Each is bound to its interface, so that it leaves by that whatever the routing table prefers. A loopback address is used where the
/// destination is one, an IPv6 link-local one where it is that.
#[derive(Debug, Clone, PartialEq)]
pub struct Interfaces {
    /// How many streams there are at most. 8.
    pub most_streams: usize,
    /// By name of the interface: the rate and the priority of its streams, where they are not the default.
    pub specs: Vec<(String, StreamSpec)>,
}

impl Default for Interfaces {
    fn default() -> Self {
        Self {
            most_streams: 8,
            specs: Vec::new(),
        }
    }
}

/// An address of an interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostAddress {
    pub(crate) ip: IpAddr,
    /// Its interface's name and index.
    pub(crate) name: String,
    pub(crate) index: u32,
}

impl Interfaces {
    /// The streams that there should be, for the addresses that this host has.
    pub(crate) fn wanted(&self, destinations: &[SocketAddr]) -> io::Result<Vec<StreamSpec>> {
        Ok(self.of_addresses(&sys::host_addresses()?, destinations))
    }

    fn of_addresses(
        &self,
        addresses: &[HostAddress],
        destinations: &[SocketAddr],
    ) -> Vec<StreamSpec> {
        let is_here = |to: &SocketAddr| addresses.iter().any(|own| own.ip == to.ip());
        let mut specs: Vec<StreamSpec> = Vec::new();
        for address in addresses {
            let mut fitting = destinations
                .iter()
                .filter(|to| leads_to(address.ip, to.ip()));
            let Some(destination) = fitting.next() else {
                continue;
            };
            let named = self.specs.iter().find(|(name, _)| *name == address.name);
            let scope = match is_link_local(address.ip) {
                true => address.index,
                false => 0,
            };
            let mut source = SocketAddr::new(address.ip, 0);
            if let SocketAddr::V6(source) = &mut source {
                source.set_scope_id(scope);
            }
            specs.push(StreamSpec {
                source: Some(source),
                // What goes to this host itself goes by the loopback.
                interface: (!is_here(destination)).then_some(address.index),
                ..named.map_or_else(StreamSpec::default, |(_, spec)| *spec)
            });
        }
        specs.truncate(self.most_streams);
        specs
    }
}

fn leads_to(from: IpAddr, to: IpAddr) -> bool {
    from.is_ipv4() == to.is_ipv4()
        && from.is_loopback() == to.is_loopback()
        && is_link_local(from) == is_link_local(to)
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        // Addresses that a host gives itself lead where others do not.
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// An address as the system has it; none: it is of another family.
///
/// # Safety
/// It points to a socket address as long as its family's.
pub(crate) unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller says.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let address = &*address.cast::<libc::sockaddr_in>();
                Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let address = &*address.cast::<libc::sockaddr_in6>();
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(ip: &str, name: &str, index: u32) -> HostAddress {
        HostAddress {
            ip: ip.parse().unwrap(),
            name: name.to_owned(),
            index,
        }
    }

    #[test]
    fn a_stream_goes_from_each_address_that_may_lead_there_by_its_interface() {
        let host = [
            address("127.0.0.1", "lo", 1),
            address("::1", "lo", 1),
            address("192.0.2.7", "wlan0", 2),
            address("fe80::1", "wlan0", 2),
            address("198.51.100.7", "wwan0", 3),
            address("2001:db8::7", "wwan0", 3),
        ];
        let backup = StreamSpec::default().priority(1).rate_bps(5e6);
        let interfaces = Interfaces {
            specs: vec![("wwan0".to_owned(), backup)],
            ..Interfaces::default()
        };
        let wanted = |to: &[&str], most_streams| {
            let to: Vec<SocketAddr> = to.iter().map(|to| to.parse().unwrap()).collect();
            let limited = Interfaces {
                most_streams,
                ..interfaces.clone()
            };
            let specs = limited.of_addresses(&host, &to);
            let short = |spec: StreamSpec| (spec.source.unwrap().ip().to_string(), spec.interface);
            (
                specs.iter().copied().map(short).collect::<Vec<_>>(),
                specs.last().map(|spec| (spec.priority, spec.rate_bps)),
            )
        };
        let of = |ip: &str, interface| (ip.to_owned(), interface);
        let v4 = vec![of("192.0.2.7", Some(2)), of("198.51.100.7", Some(3))];
        assert_eq!(
            wanted(&["203.0.113.1:9"], 8),
            (v4.clone(), Some((1, Some(5e6))))
        );
        assert_eq!(
            wanted(&["203.0.113.1:9"], 1),
            (v4[..1].to_vec(), Some((0, None)))
        );
        let v6 = vec![of("2001:db8::7", Some(3))];
        assert_eq!(wanted(&["[2001:db8::1]:9"], 8).0, v6);
        let both = wanted(&["[2001:db8::1]:9", "203.0.113.1:9"], 8).0;
        assert_eq!(both, [&v4[..], &v6].concat());
        assert_eq!(wanted(&["127.0.0.9:9"], 8).0, [of("127.0.0.1", Some(1))]);
        assert_eq!(wanted(&["127.0.0.1:9"], 8).0, [of("127.0.0.1", None)]);
        assert_eq!(wanted(&["192.0.2.7:9"], 8).0[0], of("192.0.2.7", None));
        assert_eq!(wanted(&["[fe80::2]:9"], 8).0, [of("fe80::1", Some(2))]);
        assert_eq!(wanted(&[], 8).0, []);
    }
}
