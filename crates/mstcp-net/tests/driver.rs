//! Drivers of clients: over sockets of the application, open before the server answers, and with bytes changed on the way.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use common::{any, End, Net};
use mstcp_net::{
    ClientConfig, Driver, Error, Event, Interfaces, PlainTcp, ServerConfig, StreamId, StreamSpec,
};
use mstcp_proto::RemoteError;

const DATA: &[u8] = b"written before anybody answered";

fn early() -> ClientConfig {
    ClientConfig {
        opens_early: true,
        ..ClientConfig::default()
    }
}

/// Write, and say the first hello where that was left.
fn write(net: &mut Net, data: &[u8]) {
    let (client, now_ns) = (&mut net.client, net.now_ns);
    assert_eq!(client.driver.write(now_ns, data).unwrap(), data.len());
    client.driver.greet(now_ns);
    client.apply(now_ns);
}

fn only(net: &Net) -> &End {
    assert_eq!(net.servers.len(), 1);
    &net.servers[0]
}

#[test]
fn streams_go_over_the_sockets_that_were_given() {
    let mut ports = Vec::new();
    let mut net = Net::new(ClientConfig::default(), ServerConfig::default(), |to| {
        let connected = TcpStream::connect(to).unwrap();
        // Bound by the application, as for a port that somebody else is to know.
        let bound = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        );
        let bound = bound.unwrap();
        rustix::net::bind(&bound, &"127.0.0.2:0".parse::<SocketAddr>().unwrap()).unwrap();
        let name = rustix::net::getsockname(&bound).unwrap();
        ports.push(connected.local_addr().unwrap());
        ports.push(SocketAddr::try_from(name).unwrap());
        let given = [OwnedFd::from(connected), bound].map(Some);
        (given.into_iter().zip(&ports))
            .map(|(socket, from)| (StreamSpec::from_source(*from), socket))
            .collect()
    });
    net.until("two streams", |net| net.client.open_streams() == 2);
    write(&mut net, DATA);
    net.until("bytes", |net| only(net).received == DATA);
    let streams = net.client.driver.statistics().streams;
    let mut local: Vec<_> = streams.iter().map(|stream| stream.local).collect();
    local.sort();
    ports.sort();
    assert_eq!(local, ports);
}

#[test]
fn both_directions_at_once_bring_every_byte_once() {
    let mut net = Net::opened(3, ClientConfig::default(), ServerConfig::default());
    let data = [6_000_000, 3_000_001]
        .map(|count: usize| -> Vec<u8> { (0..count).map(|at| ((at * 31) >> 3) as u8).collect() });
    let mut written = [0; 2];
    let has_all = |net: &Net| {
        net.client.received.len() >= data[1].len() && only(net).received.len() >= data[0].len()
    };
    for _ in 0..100_000 {
        if has_all(&net) {
            break;
        }
        let now_ns = net.now_ns;
        let ends = [&mut net.client, &mut net.servers[0]];
        for ((end, data), written) in ends.into_iter().zip(&data).zip(&mut written) {
            // Large and small writes.
            let size = 1 + (*written * 7) % 200_000;
            let piece = &data[*written..data.len().min(*written + size)];
            *written += end.driver.write(now_ns, piece).unwrap();
            end.apply(now_ns);
        }
        net.now_ns += 1_000_000;
        net.turn();
    }
    assert!(net.client.received == data[1] && only(&net).received == data[0]);
}

#[test]
fn one_given_socket_can_be_plain_tcp() {
    let client = ClientConfig {
        is_plain: true,
        ..ClientConfig::default()
    };
    let server = ServerConfig {
        plain: PlainTcp::Always,
        ..ServerConfig::default()
    };
    let mut net = Net::new(client, server, |to| {
        let given = OwnedFd::from(TcpStream::connect(to).unwrap());
        vec![(StreamSpec::default(), Some(given))]
    });
    assert!(net.client.driver.connection_id().is_none());
    net.until("a connection", |net| net.client.is_open);
    write(&mut net, DATA);
    net.client.driver.close(net.now_ns);
    net.until("the end", |net| {
        net.servers.iter().any(|end| end.driver.is_ended())
    });
    assert_eq!(only(&net).received, DATA);
    net.servers[0].driver.close(net.now_ns);
    net.until("both ends", |net| {
        net.client.ended.is_some() && only(net).ended.is_some()
    });
    assert!(matches!(net.client.ended, Some(Ok(()))));
}

#[test]
fn streams_come_and_go_and_are_opened_again_from_where_they_were() {
    let mut net = Net::opened(2, ClientConfig::default(), ServerConfig::default());
    let local = |net: &Net, at: usize| net.client.driver.statistics().streams[at].local;
    let spec = StreamSpec::from_source("127.0.0.2:0".parse().unwrap());
    let added = net.client.driver.add_stream(net.now_ns, spec).unwrap();
    net.until("a third stream", |net| net.client.open_streams() == 3);
    let first = StreamId::from_index(0);
    net.client.driver.remove_stream(net.now_ns, first).unwrap();
    net.until("two streams", |net| only(net).open_streams() == 2);
    let before = local(&net, added.index());
    assert_eq!(before.ip().to_string(), "127.0.0.2");
    let place = net.client.driver.place_of(added).unwrap();
    let socket = &net.client.watched[&place.1].0;
    rustix::net::shutdown(socket, rustix::net::Shutdown::Both).unwrap();
    net.until("a loss", |net| net.client.open_streams() == 1);
    net.until("another", |net| {
        net.client.open_streams() == 2 && only(net).open_streams() == 2
    });
    assert_eq!(
        net.client
            .driver
            .place_of(added)
            .map(|(_, socket)| socket != place.1),
        Some(true)
    );
    write(&mut net, DATA);
    net.until("bytes", |net| only(net).received == DATA);
    let refused = net.servers[0].driver.add_stream(net.now_ns, spec);
    assert!(matches!(refused, Err(Error::Config(_))));
}

#[test]
fn streams_follow_the_interfaces_of_this_host() {
    let client = || ClientConfig {
        interfaces: Some(Interfaces::default()),
        ..ClientConfig::default()
    };
    let mut net = Net::new(client(), ServerConfig::default(), |_| Vec::new());
    net.until("a stream", |net| net.client.open_streams() == 1);
    for _ in 0..2 {
        net.client.driver.network_changed(net.now_ns);
        net.client.apply(net.now_ns);
    }
    write(&mut net, DATA);
    net.until("bytes", |net| only(net).received == DATA);
    let streams = net.client.driver.statistics().streams;
    let local: Vec<_> = streams.iter().map(|stream| stream.local.ip()).collect();
    assert_eq!(local, [std::net::Ipv4Addr::LOCALHOST]);
    let refused = Driver::connect_over(
        0,
        Arc::new(client()),
        vec![net.listener.local_addr().unwrap()],
        any(1),
    );
    assert!(matches!(refused, Err(Error::Config(_))));
}

/// Where a client's streams go, those that are open at both ends.
fn peers(net: &Net) -> Vec<SocketAddr> {
    let streams = net.client.driver.statistics().streams;
    let open = streams.iter().filter(|stream| stream.is_open);
    let mut peers: Vec<_> = open.map(|stream| stream.peer).collect();
    peers.sort_by_key(|peer| peer.ip());
    peers.truncate(only(net).open_streams());
    peers
}

#[test]
fn streams_go_to_the_addresses_that_the_server_announces_until_it_withdraws_them() {
    for most_announced in [0, 1, 2] {
        let client = ClientConfig {
            most_announced,
            ..ClientConfig::default()
        };
        let mut net = Net::new(client, ServerConfig::default(), |_| any(1));
        net.until("a stream", |net| {
            net.client.open_streams() == 1 && !net.servers.is_empty()
        });
        for host in ["127.0.0.2:0", "127.0.0.3:0"] {
            let listener = TcpListener::bind(host).unwrap();
            listener.set_nonblocking(true).unwrap();
            net.others.push(listener);
        }
        let others = net.others.iter().map(|other| other.local_addr().unwrap());
        let known = net.listener.local_addr().unwrap();
        let all: Vec<_> = [known].into_iter().chain(others).collect();
        let announce = |net: &mut Net, addresses: &[SocketAddr]| {
            let addresses = addresses.to_vec();
            net.servers[0]
                .driver
                .announce(net.now_ns, addresses)
                .unwrap();
        };
        announce(&mut net, &all);
        net.until("streams to all", |net| peers(net) == all[..=most_announced]);
        write(&mut net, DATA);
        net.until("bytes", |net| only(net).received == DATA);
        announce(&mut net, &all[2..]);
        let left = [&all[..1], &all[2..]].concat();
        net.until("those that are left", |net| {
            peers(net) == left[..=most_announced.min(1)]
        });
        let refused = net.client.driver.announce(net.now_ns, Vec::new());
        assert!(matches!(refused, Err(Error::Config(_))));
        let many = net.servers[0].driver.announce(net.now_ns, vec![known; 17]);
        assert!(matches!(many, Err(Error::Config(_))));
    }
}

#[test]
fn a_server_that_announces_ever_more_addresses_is_not_followed_for_ever() {
    let client = ClientConfig {
        most_announced: 1,
        ..ClientConfig::default()
    };
    let mut net = Net::new(client, ServerConfig::default(), |_| any(1));
    net.until("a stream", |net| {
        net.client.open_streams() == 1 && !net.servers.is_empty()
    });
    for port in 1000..1300 {
        let nowhere = SocketAddr::from(([127, 0, 0, 4], port));
        let server = &mut net.servers[0];
        server.driver.announce(net.now_ns, vec![nowhere]).unwrap();
        server.apply(net.now_ns);
        for _ in 0..2 {
            net.now_ns += 1_000_000;
            net.turn();
        }
    }
    let added = net
        .client
        .driver
        .add_stream(net.now_ns, StreamSpec::default());
    assert_eq!(added.unwrap().index(), 256);
}

#[test]
fn what_is_written_goes_with_the_hello_and_the_others_join_once_that_is_answered() {
    let mut net = Net::new(early(), ServerConfig::default(), |_| any(3));
    net.until("a connection", |net| net.client.is_open);
    assert!(net.servers.is_empty(), "no hello was said");
    write(&mut net, DATA);
    net.until("bytes", |net| {
        !net.servers.is_empty() && only(net).received == DATA
    });
    net.until("all streams", |net| {
        net.client.open_streams() == 3 && only(net).open_streams() == 3
    });
    let id = net.client.driver.connection_id();
    assert!(id.is_some() && id == only(&net).driver.connection_id());
}

#[test]
fn another_path_says_the_hello_where_the_first_is_silent_or_lost_and_nothing_comes_twice() {
    for is_lost in [false, true] {
        let mut net = Net::with_silent(early(), ServerConfig::default(), |_| any(2), 1);
        net.until("both streams", |net| {
            net.silent.len() == 1 && net.client.is_open
        });
        write(&mut net, DATA);
        if is_lost {
            let silent = &net.silent[0];
            rustix::net::sockopt::set_socket_linger(silent, Some(std::time::Duration::ZERO))
                .unwrap();
            net.silent.clear();
        }
        net.until("an answer", |net| {
            !net.servers.is_empty() && only(net).received == DATA && net.client.open_streams() > 0
        });
        write(&mut net, b"; more");
        net.until("the rest", |net| only(net).received.ends_with(b"; more"));
        assert_eq!(only(&net).received, [DATA, b"; more"].concat());
    }
}

#[test]
fn a_server_that_refuses_or_is_none_shows_after_the_opening() {
    let strict = ServerConfig {
        secret: b"ours".to_vec(),
        ..ServerConfig::default()
    };
    let mut net = Net::new(early(), strict, |_| any(2));
    net.until("a connection", |net| net.client.is_open);
    write(&mut net, DATA);
    net.until("the end", |net| net.client.ended.is_some());
    let ended = net.client.ended.take().unwrap().unwrap_err();
    assert!(
        matches!(
            ended,
            Error::Refused { .. }
                | Error::ClosedByPeer { .. }
                | Error::Remote(RemoteError::Refused(_))
        ),
        "{ended:?}"
    );
    // It accepts TCP and says nothing.
    let mut net = Net::with_silent(early(), ServerConfig::default(), |_| any(2), usize::MAX);
    net.until("a connection", |net| net.client.is_open);
    write(&mut net, DATA);
    net.until("the end", |net| net.client.ended.is_some());
    assert!(
        matches!(net.client.ended, Some(Err(Error::NoHello))),
        "{:?}",
        net.client.ended
    );
    let config = ClientConfig {
        secret: b"ours".to_vec(),
        ..early()
    };
    let to = vec!["127.0.0.1:9".parse().unwrap()];
    let refused = Driver::connect_over(0, Arc::new(config), to, any(1));
    assert!(matches!(refused, Err(Error::Config(_))));
}

/// Bring what one socket has to the other, the last byte changed if `damages`.
fn relay(from: &mut TcpStream, to: &mut TcpStream, damages: bool) {
    let mut bytes = vec![0; 1 << 16];
    if let Ok(count @ 1..) = from.read(&mut bytes) {
        bytes[count - 1] ^= u8::from(damages);
        to.write_all(&bytes[..count]).unwrap();
    }
}

#[test]
fn good_bytes_before_a_bad_record_are_delivered_and_the_rest_comes_on_another_stream() {
    let secret = b"ours".to_vec();
    let client = ClientConfig {
        secret: secret.clone(),
        authenticate_frames: true,
        ..ClientConfig::default()
    };
    let server = ServerConfig {
        secret,
        authenticate_frames: true,
        ..ServerConfig::default()
    };
    let relaying = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut net = Net::new(client, server, |_| {
        let near = TcpStream::connect(relaying.local_addr().unwrap()).unwrap();
        vec![(StreamSpec::default(), Some(near.into()))]
    });
    let mut sides = [
        relaying.accept().unwrap().0,
        TcpStream::connect(net.listener.local_addr().unwrap()).unwrap(),
    ];
    for side in &sides {
        side.set_nonblocking(true).unwrap();
    }
    let pass = |sides: &mut [TcpStream; 2], damages| {
        let [near, far] = sides;
        relay(near, far, damages);
        relay(far, near, false);
    };
    while net.client.open_streams() == 0 || net.servers.is_empty() {
        net.turn();
        pass(&mut sides, false);
    }
    for piece in [&b"good "[..], b"bad"] {
        write(&mut net, piece);
    }
    pass(&mut sides, true);
    net.until("a loss", |net| {
        let is_loss = |event: &Event| matches!(event, Event::StreamLost { .. });
        only(net).events.iter().any(is_loss)
    });
    assert_eq!(only(&net).received, b"good ");
    drop(sides);
    net.until("all", |net| only(net).received == b"good bad");
}
