//! Connections for tokio, both ends: what an application sees.

use std::net::SocketAddr;

use mstcp_net::tokio::{connect, Connection, Listener, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn any(streams: usize) -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], 0)); streams]
}

fn options() -> Options {
    Options {
        secret: b"between us".to_vec(),
        ..Options::default()
    }
}

async fn pair(streams: usize, options: Options) -> (Connection, Connection) {
    let mut listener = Listener::bind("127.0.0.1:0", options.clone())
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    let sources = any(streams);
    let (client, server) = tokio::join!(connect(address, &sources, options), listener.accept());
    (client.unwrap(), server.unwrap())
}

#[tokio::test]
async fn both_directions_carry_everything_and_end_one_by_one() {
    for (streams, authenticate_frames) in [(1, false), (3, false), (1, true), (3, true)] {
        let options = Options {
            authenticate_frames,
            ..options()
        };
        let (client, server) = pair(streams, options).await;
        let data: Vec<u8> = (0..5_000_000_u32)
            .map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8)
            .collect();
        let (mut reader, mut writer) = tokio::io::split(client);
        let sent = data.clone();
        let sending = tokio::spawn(async move {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
            writer
        });
        let (mut from, mut to) = tokio::io::split(server);
        let echoing = tokio::spawn(async move {
            tokio::io::copy(&mut from, &mut to).await.unwrap();
            to.write_all(b"the end").await.unwrap();
            from.unsplit(to).close().await
        });
        let mut came = Vec::new();
        reader.read_to_end(&mut came).await.unwrap();
        assert!(came[..data.len()] == data && came[data.len()..] == *b"the end");
        reader
            .unsplit(sending.await.unwrap())
            .close()
            .await
            .unwrap();
        echoing.await.unwrap().unwrap();
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
