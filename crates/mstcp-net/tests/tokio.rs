//! Connections for tokio, both ends: what an application sees.

mod common;

use std::net::SocketAddr;

use common::{any, exchange, pair};
use mstcp_net::tokio::{connect, Listener, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn options() -> Options {
    Options {
        secret: b"between us".to_vec(),
        ..Options::default()
    }
}

#[tokio::test]
async fn both_directions_carry_everything_and_end_one_by_one() {
    for (streams, authenticate_frames) in [(1, false), (3, false), (1, true), (3, true)] {
        let options = Options {
            authenticate_frames,
            ..options()
        };
        let (client, server) = pair(streams, options).await;
        exchange(client, server, 5_000_000).await;
    }
}

#[tokio::test]
async fn who_does_not_know_the_secret_is_not_let_in() {
    let listener = Listener::bind("127.0.0.1:0", options()).await.unwrap();
    let stranger = Options::default();
    let error = connect(listener.local_addr().unwrap(), &any(2), stranger)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("refuses"), "{error}");
}

#[tokio::test]
async fn a_listener_that_wants_authenticated_frames_takes_no_others() {
    let strict = Options {
        authenticate_frames: true,
        ..options()
    };
    let listener = Listener::bind("127.0.0.1:0", strict).await.unwrap();
    let error = connect(listener.local_addr().unwrap(), &any(1), options())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("refuses"), "{error}");
    let unknown = Options {
        authenticate_frames: true,
        ..Options::default()
    };
    let error = Listener::bind("127.0.0.1:0", unknown).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused_before_anything_is_sent() {
    let wrong = Options {
        scheduler: "fastest".to_owned(),
        ..options()
    };
    let error = connect("127.0.0.1:9", &any(1), wrong).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let none = connect("127.0.0.1:9", &[], options()).await.unwrap_err();
    assert_eq!(none.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn an_address_that_answers_is_found_among_others() {
    let mut listener = Listener::bind("127.0.0.1:0", options()).await.unwrap();
    let there = listener.local_addr().unwrap();
    // One refuses, one takes TCP and says nothing, one is not of the source's family.
    let silent = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let refusing = SocketAddr::from(([127, 0, 0, 3], 1));
    let other_family: SocketAddr = "[::1]:1".parse().unwrap();
    let (sources, silent) = (any(2), silent.local_addr().unwrap());
    let destinations = [other_family, refusing, silent, there];
    let (client, server) = tokio::join!(
        connect(&destinations[..], &sources, options()),
        listener.accept()
    );
    exchange(client.unwrap(), server.unwrap(), 100_000).await;
    let error = connect(&[refusing][..], &any(2), options())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let error = connect(&[other_family][..], &any(2), options())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("from 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn what_is_written_after_the_peer_has_closed_fails() {
    let (mut client, mut server) = pair(2, options()).await;
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
