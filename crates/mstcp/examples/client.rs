//! `client HOST:PORT STREAMS BYTES [SECRET [CA.pem]]`: send BYTES bytes over STREAMS streams to a server that sends them back,
//! and say whether all came. With the certificate of an authority each stream is inside TLS.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use mstcp::{connect, ClientConfig, ClientTls, StreamSpec};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PIECE_BYTES: usize = 1 << 16;

/// TLS to a host whose certificate the authority of a file has signed.
fn trusting(authority: &str, host: &str) -> io::Result<ClientTls> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).map_err(io::Error::other)? {
        let certificate = certificate.map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server_name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok(ClientTls {
        config: Arc::new(config),
        server_name,
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || io::Error::other("use client HOST:PORT STREAMS BYTES [SECRET [CA.pem]]");
    let [address, streams, bytes, secret @ ..] = &arguments[..] else {
        return Err(usage());
    };
    let streams: usize = streams.parse().map_err(|_| usage())?;
    let bytes: usize = bytes.parse().map_err(|_| usage())?;
    let tls = match secret.get(1) {
        None => None,
        Some(authority) => {
            let (host, _) = address.rsplit_once(':').ok_or_else(usage)?;
            Some(trusting(authority, host)?)
        }
    };
    let config = ClientConfig {
        tls,
        secret: secret.first().cloned().unwrap_or_default().into_bytes(),
        ..ClientConfig::default()
    };
    let streams = vec![StreamSpec::default(); streams];
    let connection = connect(address, &streams, config).await?;
    let (mut reader, mut writer) = connection.into_split();
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
