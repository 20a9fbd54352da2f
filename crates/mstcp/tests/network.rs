//! A host whose addresses go and come: its connections are told by the kernel, and open their streams again.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use mstcp::{connect, ClientConfig, Event, Events, Listener, Loss, ServerConfig, StreamSpec};
use rustix::thread::UnshareFlags;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LIMIT: Duration = Duration::from_secs(60);

/// Set the network namespace up by `ip`.
fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

async fn until(events: &mut Events, what: &str, is_it: impl Fn(&Event) -> bool) {
    let waiting = async { while !is_it(&events.next().await.expect("it is open")) {} };
    (tokio::time::timeout(LIMIT, waiting).await).unwrap_or_else(|_| panic!("no {what}"));
}

/// The thread that watches the kernel is one of a process: this test has a program of its own.
#[tokio::test]
async fn a_stream_goes_with_its_address_and_comes_back_with_it() {
    // SAFETY: no other thread shares what this one has of the network.
    if unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.is_err() {
        return; // it takes root
    }
    ip("link set lo up");
    for host in ["10.9.9.1", "10.9.9.2", "10.9.9.3"] {
        ip(&format!("addr add {host}/32 dev lo"));
    }
    let mut listener = Listener::bind("10.9.9.1:0", ServerConfig::default())
        .await
        .unwrap();
    let from = |host: &str| StreamSpec::from_source(SocketAddr::new(host.parse().unwrap(), 0));
    let streams = ["10.9.9.2", "10.9.9.3"].map(from);
    let connecting = connect(listener.local_addr(), &streams, ClientConfig::default());
    let (client, server) = tokio::join!(connecting, listener.accept());
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    let mut events = client.events();
    while client.statistics().streams.len() < 2 {
        until(&mut events, "second stream", |event| {
            matches!(event, Event::StreamOpened { .. })
        })
        .await;
    }
    let accepting = tokio::spawn(async move {
        let _ = listener.accept().await;
    });
    ip("addr del 10.9.9.2/32 dev lo");
    until(&mut events, "loss", |event| {
        matches!(
            event,
            Event::StreamLost {
                reopens: true,
                loss: Loss::Broken(_),
                ..
            }
        )
    })
    .await;
    ip("addr add 10.9.9.2/32 dev lo");
    until(&mut events, "stream from there", |event| {
        matches!(event, Event::StreamOpened { local, .. } if local.ip().to_string() == "10.9.9.2")
    })
    .await;
    client.write_all(b"here again").await.unwrap();
    let mut came = [0; 10];
    server.read_exact(&mut came).await.unwrap();
    assert_eq!(&came, b"here again");
    accepting.abort();
}
