//! Connections for tokio, both ends: what an application sees.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use common::{any, exchange, pair};
use mstcp::{connect, ClientConfig, Event, Listener, ServerConfig, StreamSpec, TransportConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn client() -> ClientConfig {
    ClientConfig {
        secret: b"between us".to_vec(),
        ..ClientConfig::default()
    }
}

fn server() -> ServerConfig {
    ServerConfig {
        secret: b"between us".to_vec(),
        ..ServerConfig::default()
    }
}

#[tokio::test]
async fn both_directions_carry_everything_and_end_one_by_one() {
    for (streams, authenticate_frames) in [(1, false), (3, false), (1, true), (3, true)] {
        let client = ClientConfig {
            authenticate_frames,
            ..client()
        };
        let server = ServerConfig {
            authenticate_frames,
            ..server()
        };
        let (client, server, _listener) = pair(streams, client, server).await;
        exchange(client, server, 5_000_000).await;
    }
}

#[tokio::test]
async fn who_does_not_know_the_secret_is_not_let_in() {
    let listener = Listener::bind("127.0.0.1:0", server()).await.unwrap();
    let stranger = ClientConfig::default();
    let error = connect(listener.local_addr(), &any(2), stranger)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("refuses"), "{error}");
}

#[tokio::test]
async fn a_listener_that_wants_authenticated_frames_takes_no_others() {
    let strict = ServerConfig {
        authenticate_frames: true,
        ..server()
    };
    let listener = Listener::bind("127.0.0.1:0", strict).await.unwrap();
    let error = connect(listener.local_addr(), &any(1), client())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("refuses"), "{error}");
    let unknown = ServerConfig {
        authenticate_frames: true,
        ..ServerConfig::default()
    };
    let error = Listener::bind("127.0.0.1:0", unknown).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused_before_anything_is_sent() {
    let wrong = ClientConfig {
        transport: TransportConfig {
            scheduler: "fastest".to_owned(),
            ..TransportConfig::default()
        },
        ..client()
    };
    let error = connect("127.0.0.1:9", &any(1), wrong).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let none = connect("127.0.0.1:9", &[], client()).await.unwrap_err();
    assert_eq!(none.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn an_address_that_answers_is_found_among_others() {
    let mut listener = Listener::bind("127.0.0.1:0", server()).await.unwrap();
    let there = listener.local_addr();
    // One refuses, one takes TCP and says nothing, one is not of the source's family.
    let silent = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let refusing = SocketAddr::from(([127, 0, 0, 3], 1));
    let other_family: SocketAddr = "[::1]:1".parse().unwrap();
    let (sources, silent) = (any(2), silent.local_addr().unwrap());
    let destinations = [other_family, refusing, silent, there];
    let (opened, accepted) = tokio::join!(
        connect(&destinations[..], &sources, client()),
        listener.accept()
    );
    exchange(opened.unwrap(), accepted.unwrap(), 100_000).await;
    let error = connect(&[refusing][..], &any(2), client())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let error = connect(&[other_family][..], &any(2), client())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("from 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn what_is_written_after_the_peer_has_closed_fails() {
    let (mut client, mut server, _listener) = pair(2, client(), server()).await;
    client.write_all(b"x").await.unwrap();
    server.read_exact(&mut [0]).await.unwrap();
    let closing = tokio::spawn(server.close());
    let failing = async {
        while client.write_all(&[0; 10_000]).await.is_ok() {}
        client.close().await
    };
    let result = tokio::time::timeout(std::time::Duration::from_secs(60), failing).await;
    assert!(result.expect("it fails").is_err());
    let _ = closing.await.unwrap();
}

#[tokio::test]
async fn chunks_are_passed_on_without_a_copy_and_given_back() {
    let (mut client, server, _listener) = pair(2, client(), server()).await;
    let memory: Arc<Vec<u8>> = Arc::new((0..3_000_001_u32).map(|at| (at >> 3) as u8).collect());
    struct Borrowed(Arc<Vec<u8>>);
    impl AsRef<[u8]> for Borrowed {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let (mut reader, mut writer) = server.into_split();
    let chunk = Bytes::from_owner(Borrowed(Arc::clone(&memory)));
    let writing = tokio::spawn(async move {
        for _ in 0..3 {
            writer.write_chunk(chunk.clone()).await.unwrap();
        }
    });
    let mut came = Vec::new();
    while let Some(chunk) = client.read_chunk().await.unwrap() {
        came.extend_from_slice(&chunk);
    }
    writing.await.unwrap();
    assert!(came == memory.repeat(3));
    client.close().await.unwrap();
    assert!(reader.read_chunk().await.unwrap().is_none());
    while Arc::strong_count(&memory) > 1 {
        tokio::task::yield_now().await; // the connection's task has not ended
    }
}

/// Wait until this many streams have opened.
async fn opened(events: &mut mstcp::Events, count: usize) {
    let mut left = count;
    while left > 0 {
        let event = events.next().await.expect("the connection is there");
        left -= usize::from(matches!(event, Event::StreamOpened { .. }));
    }
}

#[tokio::test]
async fn streams_come_and_go_under_a_transfer() {
    let (mut client, mut server, _listener) = pair(1, client(), server()).await;
    let mut events = client.events();
    let spec = StreamSpec::from_source("127.0.0.1:0".parse().unwrap());
    let added = client.add_stream(spec.priority(0)).unwrap();
    let limited = client.add_stream(spec.rate_bps(4e6)).unwrap();
    opened(&mut events, 2).await;
    let writing = tokio::spawn(async move {
        for _ in 0..64 {
            client.write_all(&[7; 1 << 14]).await.unwrap();
        }
        client
    });
    let mut memory = vec![0; 64 << 14];
    server.read_exact(&mut memory).await.unwrap();
    let client = writing.await.unwrap();
    let statistics = client.statistics();
    assert_eq!(statistics.streams.len(), 3);
    assert_eq!(statistics.streams[limited.index()].rate_bps, Some(4e6));
    assert!(statistics.streams.iter().all(|stream| stream.is_open));
    let sent: u64 = statistics
        .streams
        .iter()
        .map(|stream| stream.sent_bytes)
        .sum();
    assert!(sent >= 64 << 14);
    client.set_rate(limited, None).unwrap();
    client.set_priority(limited, 9).unwrap();
    client.remove_stream(added).unwrap();
    while !matches!(events.next().await, Some(Event::StreamLost { stream, reopens: false, .. }) if stream == added)
    {
    }
    assert!(client.remove_stream(added).is_err(), "it is gone");
    assert!(server.add_stream(spec).is_err(), "the client opens streams");
    client.network_changed();
    exchange(client, server, 1_000_000).await;
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again() {
    let (mut client, mut server, _listener) = pair(2, client(), server()).await;
    let mut events = client.events();
    while client.statistics().streams.len() < 2 {
        opened(&mut events, 1).await;
    }
    let before = client.statistics();
    client.write_all(b"x").await.unwrap();
    server.read_exact(&mut [0]).await.unwrap();
    break_socket(before.streams[1].local);
    client.write_all(&[0; 100_000]).await.unwrap();
    opened(&mut events, 1).await;
    let after = client.statistics();
    assert!(after.streams.iter().all(|stream| stream.is_open));
    server.read_exact(&mut [0; 100_000]).await.unwrap();
    exchange(client, server, 100_000).await;
}

/// Reset a socket of this process, by its own address.
fn break_socket(local: SocketAddr) {
    use std::os::fd::BorrowedFd;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let number: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
        // SAFETY: it is used at once, and a number that is nobody's is an error.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        let address = rustix::net::getsockname(socket).ok();
        if address.and_then(|address| SocketAddr::try_from(address).ok()) == Some(local) {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }
}

#[tokio::test]
async fn a_half_that_is_dropped_sends_the_end_and_the_other_goes_on() {
    let (client, server, _listener) = pair(2, self::client(), self::server()).await;
    let (mut reader, mut writer) = client.into_split();
    writer.write_all(b"hello").await.unwrap();
    drop(writer);
    let (mut from, mut to) = server.into_split();
    let mut said = Vec::new();
    from.read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"hello");
    to.write_all(b"bye").await.unwrap();
    drop((from, to));
    said.clear();
    reader.read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"bye");
    let (mut client, server, _listener) = pair(1, self::client(), self::server()).await;
    server.abort("enough of it");
    let error = client.read(&mut [0]).await.unwrap_err();
    assert!(error.to_string().contains("enough of it"), "{error}");
}
