//! `client HOST:PORT STREAMS BYTES [SECRET]`: send so many bytes over so many streams to a server that sends them back, and say
//! whether all came.

use std::io;
use std::net::SocketAddr;

use mstcp_net::tokio::{connect, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PIECE_BYTES: usize = 1 << 16;

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || io::Error::other("use client HOST:PORT STREAMS BYTES [SECRET]");
    let [address, streams, bytes, secret @ ..] = &arguments[..] else {
        return Err(usage());
    };
    let streams: usize = streams.parse().map_err(|_| usage())?;
    let bytes: usize = bytes.parse().map_err(|_| usage())?;
    let options = Options {
        secret: secret.first().cloned().unwrap_or_default().into_bytes(),
        ..Options::default()
    };
    let sources = vec![SocketAddr::from(([0, 0, 0, 0], 0)); streams];
    let connection = connect(address, &sources, options).await?;
    let (mut reader, mut writer) = tokio::io::split(connection);
    let sending = tokio::spawn(async move {
        let piece: Vec<u8> = (0..PIECE_BYTES).map(|at| at as u8).collect();
        let mut left = bytes;
        while left > 0 {
            let count = left.min(PIECE_BYTES);
            writer.write_all(&piece[..count]).await?;
            left -= count;
        }
        writer.shutdown().await?;
        Ok::<_, io::Error>(writer)
    });
    let (mut memory, mut count) = (vec![0; PIECE_BYTES], 0);
    loop {
        let size = reader.read(&mut memory).await?;
        if size == 0 {
            break;
        }
        // The pieces' bytes count up and begin again every 256.
        let is_right =
            (memory[..size].iter().enumerate()).all(|(at, byte)| *byte == (count + at) as u8);
        if !is_right {
            return Err(io::Error::other("other bytes came back"));
        }
        count += size;
    }
    let writer = sending.await.map_err(io::Error::other)??;
    reader.unsplit(writer).close().await?;
    println!("{count} bytes came back");
    match count == bytes {
        true => Ok(()),
        false => Err(io::Error::other(format!("{bytes} were sent"))),
    }
}
