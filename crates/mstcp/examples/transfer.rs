//! `transfer sink HOST:PORT`: receive one transfer; `transfer source HOST:PORT SECONDS [SOURCE:PORT ...]`: send for SECONDS seconds,
//! over a stream from each source. The sink says `listening`, and at the end as JSON what came in which time.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mstcp::{connect, ClientConfig, Listener, ServerConfig, StreamSpec};

const PIECE_BYTES: usize = 1 << 20;

// One thread has both the connection's task and ours: to wake either costs nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match transfer(&words).await {
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
    let (mut bytes, mut began) = (0, None);
    while let Some(chunk) = connection.read_chunk().await? {
        began.get_or_insert_with(Instant::now);
        bytes += chunk.len();
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
    let (piece, began) = (Bytes::from(vec![0; PIECE_BYTES]), Instant::now());
    while began.elapsed() < Duration::from_secs_f64(seconds) {
        connection.write_chunk(piece.clone()).await?;
    }
    Ok(connection.close().await?)
}
