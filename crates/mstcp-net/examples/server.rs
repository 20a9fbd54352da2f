//! `server HOST:PORT [SECRET]`: send back what each connection brings, and say where it listens.

use std::io;

use mstcp_net::tokio::{Connection, Listener, Options};
use tokio::io::AsyncWriteExt;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address =
        (arguments.next()).ok_or_else(|| io::Error::other("use server HOST:PORT [SECRET]"))?;
    let options = Options {
        secret: arguments.next().unwrap_or_default().into_bytes(),
        ..Options::default()
    };
    let mut listener = Listener::bind(address, options).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let connection = listener.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = echo(connection).await {
                eprintln!("a connection ended: {error}");
            }
        });
    }
}

async fn echo(connection: Connection) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(connection);
    tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await?;
    reader.unsplit(writer).close().await
}
