//! Connections over the loopback, and what is sent over them.

use mstcp::{connect, ClientConfig, Connection, Listener, ServerConfig, StreamSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// This many streams from this host.
pub fn any(streams: usize) -> Vec<StreamSpec> {
    let source = "127.0.0.1:0".parse().unwrap();
    vec![StreamSpec::from_source(source); streams]
}

/// Both ends of a connection, client and server, and what further streams come by.
pub async fn pair(
    streams: usize,
    client: ClientConfig,
    server: ServerConfig,
) -> (Connection, Connection, Listener) {
    let mut listener = Listener::bind("127.0.0.1:0", server).await.unwrap();
    let (address, streams) = (listener.local_addr(), any(streams));
    let (client, server) = tokio::join!(connect(address, &streams, client), listener.accept());
    (client.unwrap(), server.unwrap(), listener)
}

/// Have the server send back what the client sends, and something more; compare it, and close both.
pub async fn exchange(client: Connection, server: Connection, size: usize) {
    let data: Vec<u8> = (0..size as u32)
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
    let writer = sending.await.unwrap();
    reader.unsplit(writer).close().await.unwrap();
    echoing.await.unwrap().unwrap();
}
