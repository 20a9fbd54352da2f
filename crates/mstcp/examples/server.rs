//! `server HOST:PORT [SECRET [CERTIFICATE.pem KEY.pem]]`: send back what each connection brings, and say where it listens. With a
//! certificate each stream is inside TLS.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use mstcp::{Connection, Listener, ServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;

/// TLS with a certificate and its key.
fn certified(certificates: &str, key: &str) -> io::Result<rustls::ServerConfig> {
    let chain = CertificateDer::pem_file_iter(certificates)
        .map_err(io::Error::other)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (address, secret, tls) = match &arguments[..] {
        [address] => (address, "", None),
        [address, secret] => (address, secret.as_str(), None),
        [address, secret, certificates, key] => (
            address,
            secret.as_str(),
            Some(certified(certificates, key)?),
        ),
        _ => {
            return Err(io::Error::other(
                "use server HOST:PORT [SECRET [CERTIFICATE.pem KEY.pem]]",
            ))
        }
    };
    let config = ServerConfig {
        secret: secret.as_bytes().to_vec(),
        tls: tls.map(Arc::new),
        ..ServerConfig::default()
    };
    let mut listener = Listener::bind(address, config).await?;
    println!("listening on {}", listener.local_addr());
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
    let (mut reader, mut writer) = connection.into_split();
    tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await?;
    Ok(reader.unsplit(writer).close().await?)
}
