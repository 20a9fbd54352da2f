//! `rate CONTROLLER HOST:PORT BITS_PER_SECOND SECONDS`: ask a controller (`HOST:PORT`, of several with commas between) for a rate, send for SECONDS seconds at it
//! or until Ctrl-C, and say what was granted and what each stream carried.

use std::process::ExitCode;
use std::time::Duration;

use mstcp::control::Controller;
use mstcp::ClientConfig;
use tokio::io::AsyncWriteExt;

const MAX_STREAMS: usize = 4;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rate: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [controller, destination, rate, seconds] = &words[..] else {
        return Err("use: rate CONTROLLER HOST:PORT BITS_PER_SECOND SECONDS".into());
    };
    let controller = Controller::new(controller);
    let (mut connection, flow) = controller
        .connect(
            destination.parse()?,
            rate.parse()?,
            MAX_STREAMS,
            ClientConfig::default(),
        )
        .await?;
    println!(
        "granted {} bit/s over {} streams",
        flow.allocation().rate_bps,
        flow.allocation().streams.len()
    );
    let piece = vec![0; 1 << 14];
    let over = tokio::time::sleep(Duration::from_secs_f64(seconds.parse()?));
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(over, stopped);
    loop {
        connection.write_all(&piece).await?;
        tokio::select! {
            biased;
            () = &mut over => break,
            _ = &mut stopped => break,
            () = std::future::ready(()) => {}
        }
    }
    for stream in connection.statistics().streams {
        println!(
            "{} bit/s from {}: {} bytes",
            stream.rate_bps.unwrap_or(0.0),
            stream.local,
            stream.sent_bytes
        );
    }
    connection.close().await?;
    drop(flow);
    // The session gives the flow back meanwhile.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(())
}
