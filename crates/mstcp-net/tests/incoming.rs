//! Accepted sockets whose clock is the test's: who waits for a turn, who is plain TCP, and who opens a connection twice.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mstcp_net::{sys, Driver, Error, Incoming, PlainTcp, Progress, Server, ServerConfig};
use mstcp_proto::handshake::ClientHandshake;

const SECOND_NS: u64 = 1_000_000_000;
/// Late enough for a first burst.
const NOW_NS: u64 = 100 * SECOND_NS;
const SILENCE: Duration = Duration::from_millis(50);

struct Net {
    listener: TcpListener,
    server: Arc<Server>,
}

impl Net {
    fn new(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::new(config).unwrap();
        Self { listener, server }
    }

    /// A client that says something, accepted once that is there.
    fn accept(&self, now_ns: u64, says: &[u8]) -> (TcpStream, Incoming) {
        let mut client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        client.write_all(says).unwrap();
        let (socket, _) = self.listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while sys::waiting_bytes(socket.as_raw_fd()) < says.len() {
            std::thread::yield_now();
        }
        let incoming = self.server.accept(now_ns, OwnedFd::from(socket));
        (client, incoming.unwrap())
    }
}

fn hello(id: u8, nonce: u8) -> Vec<u8> {
    let mut client = ClientHandshake::new(b"", [id; 16], 2, 1000);
    client.greet([nonce; 32], 0, b"early").unwrap().bytes
}

fn opened(progress: Progress) -> Box<Driver> {
    match progress {
        Progress::Opened(driver) => driver,
        other => panic!("{other:?}"),
    }
}

fn waits(progress: &Progress) -> bool {
    matches!(progress, Progress::Waits { .. })
}

#[test]
fn a_silent_stream_of_a_host_with_connections_may_say_its_hello_late() {
    let net = Net::new(ServerConfig {
        plain: PlainTcp::After(SILENCE),
        ..ServerConfig::default()
    });
    let (_client, mut first) = net.accept(NOW_NS, &hello(1, 1));
    let connection = opened(first.advance(NOW_NS));
    let (_silent, mut silent) = net.accept(NOW_NS, b"");
    assert!(waits(&silent.advance(NOW_NS)));
    for _ in 0..3 {
        assert!(waits(&silent.advance(silent.timeout_ns())));
    }
    // Nobody is there any more whose stream it could be.
    drop(connection);
    assert!(opened(silent.advance(silent.timeout_ns()))
        .connection_id()
        .is_none());
}

#[test]
fn hellos_have_their_turns_at_their_rate_after_a_first_burst() {
    let mut config = ServerConfig {
        max_hellos_per_s: 10.0,
        ..ServerConfig::default()
    };
    config.transport.connect_timeout = Duration::from_millis(250);
    let net = Net::new(config);
    let now_ns = NOW_NS;
    let mut all: Vec<_> = (0..14)
        .map(|id| net.accept(now_ns, &hello(id, 1)))
        .collect();
    let mut late = all.split_off(11);
    for (_, incoming) in &mut all {
        opened(incoming.advance(now_ns));
    }
    for (place, (_, incoming)) in late.iter_mut().take(2).enumerate() {
        assert!(waits(&incoming.advance(now_ns)));
        assert_eq!(
            incoming.timeout_ns(),
            now_ns + (place as u64 + 1) * SECOND_NS / 10
        );
        opened(incoming.advance(incoming.timeout_ns()));
    }
    let (client, incoming) = late.last_mut().unwrap();
    assert!(waits(&incoming.advance(now_ns)));
    assert!(client.read(&mut [0; 100]).unwrap() > 0, "it is told why");
    match incoming.advance(incoming.timeout_ns()) {
        Progress::Refused(Some(Error::NotAdmitted { reason, .. })) => {
            assert_eq!(reason, "more than 10 hellos come in a second");
        }
        other => panic!("{other:?}"),
    }
    let (_client, mut after) = net.accept(now_ns + SECOND_NS, &hello(99, 1));
    opened(after.advance(now_ns + SECOND_NS));
}

#[test]
fn a_first_hello_on_another_path_takes_the_place_of_the_first_stream() {
    let net = Net::new(ServerConfig::default());
    let (_lost, mut first) = net.accept(NOW_NS, &hello(7, 1));
    let mut connection = opened(first.advance(NOW_NS));
    let (_client, mut second) = net.accept(NOW_NS, &hello(7, 2));
    assert!(matches!(second.advance(NOW_NS), Progress::Joined(id) if id == [7; 16]));
    assert!(connection.is_called());
    connection.due(NOW_NS);
    // What came with both hellos is there once.
    let mut bytes = [0; 20];
    assert_eq!(connection.read(NOW_NS, &mut bytes), 5);
    assert_eq!(
        connection
            .statistics()
            .streams
            .iter()
            .filter(|one| one.is_open)
            .count(),
        1
    );
    // The same hello is a recorded one.
    let (_replay, mut replay) = net.accept(NOW_NS, &hello(7, 2));
    assert!(waits(&replay.advance(NOW_NS)));
    let end = replay.advance(replay.timeout_ns());
    assert!(
        matches!(end, Progress::Refused(Some(Error::NotAdmitted { .. }))),
        "{end:?}"
    );
}
