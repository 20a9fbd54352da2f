//! Connections for tokio whose streams are inside TLS.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::{any, exchange, pair};
use mstcp::{connect, ClientConfig, ClientTls, Listener, ServerConfig};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const HOST: &str = "server.example";
const LIMIT: Duration = Duration::from_secs(60);

/// What a server shows, and what trusts it.
fn certified(host: &str) -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let server = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server_name = ServerName::try_from(HOST).unwrap();
    let tls = ClientTls {
        config: Arc::new(config),
        server_name,
    };
    let server = ServerConfig {
        tls: Some(Arc::new(server)),
        ..ServerConfig::default()
    };
    let client = ClientConfig {
        tls: Some(tls),
        ..ClientConfig::default()
    };
    (server, client)
}

#[tokio::test]
async fn streams_inside_tls_carry_everything() {
    let (server, client) = certified(HOST);
    for streams in [1, 3] {
        let (client, server, _listener) = pair(streams, client.clone(), server.clone()).await;
        let exchanging = exchange(client, server, 5_000_000);
        tokio::time::timeout(LIMIT, exchanging).await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let (server, _) = certified("other.example");
    let (_, client) = certified(HOST);
    let listener = Listener::bind("127.0.0.1:0", server).await.unwrap();
    let address = listener.local_addr();
    let error = connect(address, &any(1), client).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn frames_are_authenticated_once() {
    let (server, _) = certified(HOST);
    let both = ServerConfig {
        secret: b"between us".to_vec(),
        authenticate_frames: true,
        ..server
    };
    let error = Listener::bind("127.0.0.1:0", both).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

/// Bytes of one direction that pass a relay before it does something to them.
const BEFORE: usize = 300_000;

/// Bring both directions of one stream from a client to a server; of the client's, change a byte or end it after [`BEFORE`].
async fn relay(client: TcpStream, server: SocketAddr, changes: bool) {
    let server = TcpStream::connect(server).await.unwrap();
    let (mut client_reads, mut client_writes) = client.into_split();
    let (mut server_reads, mut server_writes) = server.into_split();
    let back = tokio::spawn(async move {
        // A side may end first.
        let _ = tokio::io::copy(&mut server_reads, &mut client_writes).await;
    });
    let (mut piece, mut passed) = (vec![0; 1 << 14], 0);
    while let Ok(count @ 1..) = client_reads.read(&mut piece).await {
        if passed < BEFORE && passed + count >= BEFORE {
            if !changes {
                break;
            }
            piece[0] ^= 1;
        }
        passed += count;
        if server_writes.write_all(&piece[..count]).await.is_err() {
            break;
        }
    }
    // TCP ends as it should, TLS does not.
    let _ = server_writes.shutdown().await;
    let _ = back.await;
}

#[tokio::test]
async fn what_is_changed_or_cut_short_on_the_way_costs_that_stream_alone() {
    for changes in [true, false] {
        let (server, client) = certified(HOST);
        let mut listener = Listener::bind("127.0.0.1:0", server).await.unwrap();
        let behind = listener.local_addr();
        let relays = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = relays.local_addr().unwrap();
        let relaying = tokio::spawn(async move {
            for stream in 0.. {
                let (socket, _) = relays.accept().await.unwrap();
                let is_bad = stream == 1;
                tokio::spawn(async move {
                    match is_bad {
                        true => relay(socket, behind, changes).await,
                        false => {
                            let (mut socket, mut other) =
                                (socket, TcpStream::connect(behind).await.unwrap());
                            let _ = tokio::io::copy_bidirectional(&mut socket, &mut other).await;
                        }
                    }
                });
            }
        });
        let sources = any(3);
        let (client, server) = tokio::join!(connect(address, &sources, client), listener.accept());
        let exchanging = exchange(client.unwrap(), server.unwrap(), 8_000_000);
        tokio::time::timeout(LIMIT, exchanging).await.unwrap();
        relaying.abort();
    }
}
