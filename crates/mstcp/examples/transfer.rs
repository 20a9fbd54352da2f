//! `transfer sink HOST:PORT`: receive one transfer; `transfer source HOST:PORT SECONDS [SOURCE:PORT ...]`: send for SECONDS seconds,
//! over a stream from each source. The sink says `listening`, and at the end as JSON what came in which time.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mstcp::{connect, ClientConfig, Listener, ServerConfig, StreamSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PIECE_BYTES: usize = 1 << 20;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // By a task of the runtime: it has the connection's task on its own thread, where waking it costs nothing.
    let result = tokio::spawn(async move { transfer(&words).await }).await;
    match result.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("transfer: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn transfer(words: &[String]) -> io::Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["sink", address] => sink(address).await,
        ["source", address, seconds, ref sources @ ..] => source(address, seconds, sources).await,
        _ => Err(io::Error::other(
            "use: transfer sink HOST:PORT, or transfer source HOST:PORT SECONDS [SOURCE:PORT ...]",
        )),
    }
}

async fn sink(address: &str) -> io::Result<()> {
    let mut listener = Listener::bind(address, ServerConfig::default()).await?;
    println!("listening on {}", listener.local_addr());
    let mut connection = listener.accept().await?;
    let (mut memory, mut bytes, mut began) = (vec![0; PIECE_BYTES], 0, None);
    loop {
        let count = connection.read(&mut memory).await?;
        if count == 0 {
            break;
        }
        began.get_or_insert_with(Instant::now);
        bytes += count;
    }
    let seconds = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
    connection.close().await?;
    println!("{{\"bytes\": {bytes}, \"seconds\": {seconds}}}");
    Ok(())
}

async fn source(address: &str, seconds: &str, sources: &[&str]) -> io::Result<()> {
    let seconds = seconds.parse().map_err(io::Error::other)?;
    let mut streams = Vec::new();
    for source in sources {
        let source = source.parse().map_err(io::Error::other)?;
        streams.push(StreamSpec::from_source(source));
    }
    if streams.is_empty() {
        streams.push(StreamSpec::default());
    }
    let mut connection = connect(address, &streams, ClientConfig::default()).await?;
    let (piece, began) = (vec![0; PIECE_BYTES], Instant::now());
    while began.elapsed() < Duration::from_secs_f64(seconds) {
        connection.write_all(&piece).await?;
    }
    Ok(connection.close().await?)
}
